/* session.c - signing in with a link or a password, and who one is. */

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "db/members.h"
#include "db/tokens.h"
#include "runtime/spec/spec_read.h"
#include "server/api/api.h"
#include "server/audit.h"
#include "server/body.h"
#include "server/feed.h"
#include "server/page.h"
#include "server/passwords.h"
#include "server/reply.h"
#include "server/request.h"

#define SESSION_TOKEN_DAYS 30
#define SESSION_TOKEN_DAYS_MAX 365

/*
 * GET /login?code=…: exchanges the code for a session cookie and goes on to the page, so that
 * the code does not stay in the address bar.
 */
static bool session_login(struct request *req, struct error *err)
{
    const char *code = request_query(req, "code");
    struct error why;
    req->claimed = "";
    if (!auth_sign_in(req->services->auth, req, code ? code : "", &why)) {
        if (why.code != UNAUTHENTICATED && why.code != EXHAUSTED) {
            *err = why;
            return false;
        }
        audit_refused(req, &why);
        return page_refused(req, req->reply.status ? req->reply.status : 401,
                            "This link does not sign you in", &why,
                            "A link works once, for a day. Make another on the server's "
                            "machine: <code>trainyard login --dir DIR</code>");
    }
    reply_header(req, "Location", "/");
    return reply_bytes(req, 303, NULL, "", 0);
}

static bool reply_session(struct request *req, int status, struct error *err)
{
    struct db_member *members;
    int count = 0;
    struct db_conn *conn = db_read(req->services->db, DB_CONTROL, err);
    bool ok = conn &&
              db_members_list(conn, NULL, req->user.user_id, req->arena, &members, &count, err);
    db_read_done(req->services->db, conn);
    if (!ok)
        return false;
    json_t *projects = json_object();
    const char *only = req->user.project;
    for (int i = 0; i < count && !*only; i++)
        json_object_set_new(projects, members[i].project,
                            json_string(db_role_name(members[i].role)));
    if (*only)
        json_object_set_new(projects, only, json_string(db_role_name(req->user.best)));
    json_t *json = json_pack("{s:s, s:s, s:o, s:s, s:s}", "user", req->user.user, "role",
                             db_role_name(req->user.role), "projects", projects, "way",
                             auth_way_name(req->user.way), "csrf", req->user.csrf);
    return reply_json(req, status, json, err);
}

/* GET /api/v1/session: who one is, his roles in single projects, and what X-CSRF must say. */
static bool session_show(struct request *req, struct error *err)
{
    return reply_session(req, 200, err);
}

/* Who signs in by {user, password}, and for how many days if `days` is not NULL. */
static bool read_sign_in(struct request *req, int64_t *days, struct db_user *user,
                         struct error *err)
{
    const char *const allowed[] = {"user", "password", days ? "days" : NULL, NULL};
    struct spec_object object;
    const char *name = "", *password = "";
    json_t *body = body_object(req, &object, err);
    bool ok = body && spec_read_only(&object, allowed) &&
              spec_read_required(&object, "user", "the name of a user") &&
              spec_read_text(&object, "user", LIMIT_NAME_BYTES, &name) &&
              spec_read_required(&object, "password", "his password") &&
              spec_read_text(&object, "password", PASSWORD_BYTES_MAX, &password) &&
              (!days || spec_read_integer(&object, "days", 1, SESSION_TOKEN_DAYS_MAX, days));
    json_decref(body);
    req->claimed = ok ? name : NULL;
    return ok && auth_password(req->services->auth, req, name, password, user, err);
}

/* POST /api/v1/session {user, password}: signs in, by a cookie. */
static bool session_begin(struct request *req, struct error *err)
{
    struct db_user user;
    return read_sign_in(req, NULL, &user, err) &&
           auth_begin(req->services->auth, req, &user, err) && reply_session(req, 201, err);
}

/* POST /api/v1/session/token {user, password, days}: the same for scripts: 201 {token}. */
static bool session_token(struct request *req, struct error *err)
{
    char token[DB_TOKEN_BYTES];
    struct db_user user;
    int64_t days = SESSION_TOKEN_DAYS;
    if (!read_sign_in(req, &days, &user, err))
        return false;
    int64_t expires_us = (int64_t)clock_wall_us() + days * 86400 * 1000000;
    struct db_token_new made = {.user_id = user.id,
                                .kind = TOKEN_API,
                                .role = ROLE_ADMIN,
                                .name = "login",
                                .expires_us = expires_us};
    return db_tokens_add(req->services->db, &made, token, err) &&
           auth_token(req->services->auth, token, req->arena, &req->user, err) &&
           reply_json(req, 201, json_pack("{s:s}", "token", token), err);
}

/*
 * PUT /api/v1/session/password {old, new}: one's own; who has none yet leaves `old` out.  All
 * sessions of the user end, but for the one that asks, which is given a new cookie.
 */
static bool session_password(struct request *req, struct error *err)
{
    static const char *const allowed[] = {"old", "new", NULL};
    struct auth *auth = req->services->auth;
    struct spec_object object;
    struct db_user user;
    const char *old = "", *new = "";
    json_t *body = body_object(req, &object, err);
    bool ok = body && spec_read_only(&object, allowed) &&
              spec_read_text(&object, "old", PASSWORD_BYTES_MAX, &old) &&
              spec_read_required(&object, "new", "the new password") &&
              spec_read_text(&object, "new", PASSWORD_BYTES_MAX, &new);
    json_decref(body);
    struct db_conn *conn = ok ? db_read(req->services->db, DB_CONTROL, err) : NULL;
    ok = conn && db_users_find(conn, req->user.user, req->arena, &user, err);
    db_read_done(req->services->db, conn);
    if (!ok || (*user.password && !auth_password(auth, req, user.name, old, &user, err)))
        return false;
    if (!*user.password && req->user.way == AUTH_BY_TOKEN)
        return fail(
            err, DENIED,
            "the first password is not set by a token, which may do less than its user: "
            "sign in with a link, or ask an administrator");
    user.password = auth_hash(auth, req, new, err);
    if (!user.password || !auth_change(auth, &user, err))
        return false;
    bool session = req->user.way == AUTH_BY_SESSION;
    feed_tick(req->services->feed); /* streams that the others opened end */
    return (!session || auth_begin(auth, req, &user, err)) && reply_session(req, 200, err);
}

/* DELETE /api/v1/session: signs out. */
static bool session_end(struct request *req, struct error *err)
{
    if (!auth_sign_out(req->services->auth, req, err))
        return false;
    feed_tick(req->services->feed); /* streams that it opened end */
    return reply_bytes(req, 204, NULL, "", 0);
}

/* POST /api/v1/login-links: a link that signs its holder in, once. */
static bool session_link(struct request *req, struct error *err)
{
    struct str link = {0};
    bool ok = auth_link(req->services->auth, DB_USER_ADMIN, &link, err) &&
              reply_json(req, 201, json_pack("{s:s}", "url", str_text(&link)), err);
    str_release(&link);
    return ok;
}

const struct route session_routes[] = {
    {"GET", "/login", AUTH_PUBLIC, session_login, "Sign in with a one-time link", "code:string",
     NULL, 303, "text/html"},
    {"GET", "/api/v1/session", ROLE_NONE, session_show, "Who I am", NULL, NULL, 200, "Session"},
    {"POST", "/api/v1/session", AUTH_PUBLIC, session_begin, "Sign in with a password", NULL,
     "SignIn", 201, "Session"},
    {"POST", "/api/v1/session/token", AUTH_PUBLIC, session_token, "Make a token by a password",
     NULL, "TokenSignIn", 201, "Token"},
    {"PUT", "/api/v1/session/password", ROLE_NONE, session_password, "Change my password", NULL,
     "PasswordChange", 200, "Session"},
    {"DELETE", "/api/v1/session", ROLE_NONE, session_end, "Sign out", NULL, NULL, 204, NULL},
    {"POST", "/api/v1/login-links", ROLE_ADMIN, session_link,
     "Make a one-time login link of the first user", NULL, NULL, 201, "LoginLink"},
    {0},
};
