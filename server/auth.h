/*
 * auth.h - who is asking, and may he.
 *
 * Ways in: DIR/control.sock (the file's mode lets only the same user in), a bearer token, and a
 * browser session that a one-time login link or a password was exchanged for.  Tokens, session
 * cookies and link codes are 256 random bits; the database holds their hashes only.
 */
#pragma once

#include "base/limits.h"
#include "db/members.h"

struct arena;
struct auth;
struct db;
struct db_user;
struct error;
struct request;
struct str;

/* Of a route: nobody need sign in.  Else the lowest role that may call it (db/state.h). */
#define AUTH_PUBLIC (-2)

/*
 * Of a route: the role is needed in the project of what it works on, which its handler finds
 * and asks auth_project() about (job_find() does); to be let in at all it is needed in any.
 */
#define AUTH_IN_PROJECT(role) ((role) + 16)

enum auth_way { AUTH_BY_NOTHING, AUTH_BY_SOCKET, AUTH_BY_TOKEN, AUTH_BY_SESSION };

/* "nothing", "socket", "token", "session". */
const char *auth_way_name(enum auth_way way);

struct auth_identity {
    enum auth_way way;
    int64_t user_id;
    const char *user;                   /* name */
    enum user_role role;                /* in every project; perhaps ROLE_NONE */
    enum user_role best;                /* the highest he has in any */
    enum user_role most;                /* the token's own: not more than this, in any */
    char project[LIMIT_NAME_BYTES + 1]; /* of a token that works in this one alone; else "" */
    int64_t rights;                     /* as they were when they were read: for auth_still() */
    const char *csrf;                   /* of a session: what X-CSRF must say; else "" */
    int64_t token_id;                   /* of the token or the session; 0: none */
    int64_t expires_us;                 /* of it; 0: never */
    uint64_t generation; /* of revocations, when it was last found good: for auth_still() */
};

#define AUTH_RATE_DEFAULT 10000

/*
 * `db` and `origin` ("http://127.0.0.1:7070") are borrowed.  A token or session may send
 * `per_second` requests a second, as many at once; 0: any number.
 */
struct auth *auth_new(struct db *db, const char *origin, int64_t per_second);
void auth_free(struct auth *auth); /* NULL is fine */

/* Lets requests for another host in too ("trainyard.example:443"); before serving begins. */
void auth_allow_host(struct auth *auth, const char *host);

/*
 * Finds out who sent `req` (req->user) and whether he may use a route for `role`.  Checks the
 * Host header, and for sessions the Origin and, on all but GET and HEAD, X-CSRF and the content
 * type. Fails with UNAUTHENTICATED or DENIED; a wrong host sets req->reply.status 421, too many
 * requests 429.
 */
bool auth_request(struct auth *auth, struct request *req, int role, struct error *err) CHECKED;

/* What queries are told of who asks; borrowed from `user`. */
struct db_viewer auth_viewer(const struct auth_identity *user);

/* The role that `user` has in a project. */
bool auth_role(struct auth *auth, const struct auth_identity *user, const char *project,
               enum user_role *role, struct error *err) CHECKED;

/*
 * Whether who sent `req` has in `project` the role that its route needs there.  Fails with
 * DENIED.
 */
bool auth_project(struct request *req, const char *project, struct error *err) CHECKED;

/* The name of the role that a route needs, and whether it is needed in a project. */
const char *auth_role_name(int role, bool *in_project);

/* Whether `token` is a valid bearer token, and whose (in `arena`).  UNAUTHENTICATED if not. */
bool auth_token(struct auth *auth, const char *token, struct arena *arena,
                struct auth_identity *identity, struct error *err) CHECKED;

/*
 * For one that stays connected: whether what `user` signed in with is still good.  Costs next
 * to nothing while nothing is revoked.  When the database cannot be read the answer is no.
 */
bool auth_still(struct auth *auth, struct auth_identity *user);

/*
 * Ends a token, or a session, of `user_id` (0: of anybody); NOT_FOUND when he has none of that
 * number.  Those that stay connected by it must be woken (feed_tick).
 */
bool auth_revoke(struct auth *auth, int64_t token_id, int64_t user_id,
                 struct error *err) CHECKED;

/*
 * Writes a user (db_users_set) or his role in a project (db_members_set), and has those that
 * stay connected asked for anew.
 */
bool auth_change(struct auth *auth, const struct db_user *user, struct error *err) CHECKED;
bool auth_member(struct auth *auth, const struct db_member *member, struct error *err) CHECKED;

/*
 * Appends a login link of a user, good once and for a day:
 * "http://127.0.0.1:7070/login?code=…".
 */
bool auth_link(struct auth *auth, int64_t user_id, struct str *link, struct error *err) CHECKED;

/* The hash of a new password, in the request's arena; NULL with INVALID or EXHAUSTED (429). */
const char *auth_hash(struct auth *auth, struct request *req, const char *password,
                      struct error *err) CHECKED;

/*
 * Finds the user of that name and password.  UNAUTHENTICATED when there is none, or he is
 * disabled; DENIED when another site's page asks; too many wrong ones set 429.
 */
bool auth_password(struct auth *auth, struct request *req, const char *name,
                   const char *password, struct db_user *user, struct error *err) CHECKED;

/* Makes a session of the user, sets its cookie in the reply, and makes req->user be it. */
bool auth_begin(struct auth *auth, struct request *req, const struct db_user *user,
                struct error *err) CHECKED;

/*
 * Exchanges the code in a link for a session and sets its cookie in the reply.  UNAUTHENTICATED
 * when the code is unknown, used or too old.
 */
bool auth_sign_in(struct auth *auth, struct request *req, const char *code,
                  struct error *err) CHECKED;

/* Ends the session that `req` came with, if it came with one. */
bool auth_sign_out(struct auth *auth, struct request *req, struct error *err) CHECKED;
