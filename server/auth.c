/* auth.c - credentials of a request, from the socket, the header or the cookie. */

#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "db/members.h"
#include "db/tokens.h"
#include "server/auth.h"
#include "server/passwords.h"
#include "server/rate.h"
#include "server/reply.h"
#include "server/request.h"
#include "server/routes.h"

#define AUTH_LINK_US (UINT64_C(24) * 3600 * 1000000)
#define AUTH_SESSION_US (UINT64_C(7) * 24 * 3600 * 1000000)
#define AUTH_IDLE_US (INT64_C(12) * 3600 * 1000000) /* of a session, until it ends */
#define AUTH_USED_US (INT64_C(5) * 60 * 1000000)    /* how exactly its last use is known */
#define AUTH_FAILURES_MAX 5                         /* wrong login codes in AUTH_FAILURES_US */
#define AUTH_FAILURES_US 60000000

struct auth {
    struct db *db;
    const char *origin;
    struct map *hosts;    /* names that the Host header may have */
    char cookie[40];      /* has the port in its name: cookies know no ports */
    bool encrypted;       /* the origin is https:// */
    pthread_mutex_t lock; /* guards: failures, failures_since_us */
    int failures;
    uint64_t failures_since_us;
    struct rate *rate;
    struct passwords *passwords;
    atomic_uint_fast64_t generation; /* counts what is revoked */
};

const char *auth_way_name(enum auth_way way)
{
    static const char *const names[] = {"nothing", "socket", "token", "session"};
    return names[way];
}

struct auth *auth_new(struct db *db, const char *origin, int64_t per_second)
{
    struct auth *auth = alloc_bytes(sizeof(*auth));
    auth->db = db;
    auth->origin = origin;
    auth->hosts = map_new();
    auth->rate = rate_new(per_second);
    auth->passwords = passwords_new();
    pthread_mutex_init(&auth->lock, NULL);
    const char *host = strstr(origin, "://");
    host = host ? host + 3 : origin;
    const char *port = strrchr(host, ':');
    port = port ? port : "";
    auth->encrypted = strncmp(origin, "https://", 8) == 0;
    snprintf(auth->cookie, sizeof(auth->cookie), "%strainyard%s%s",
             auth->encrypted ? "__Host-" : "", *port ? "_" : "", *port ? port + 1 : "");
    auth_allow_host(auth, host);
    static const char *const loopback[] = {"127.0.0.1", "localhost", "[::1]"};
    for (int i = 0; i < ARRAY_LEN(loopback); i++) {
        char *name = alloc_printf("%s%s", loopback[i], port);
        auth_allow_host(auth, name);
        free(name);
    }
    return auth;
}

void auth_free(struct auth *auth)
{
    if (!auth)
        return;
    map_free(auth->hosts);
    rate_free(auth->rate);
    passwords_free(auth->passwords);
    pthread_mutex_destroy(&auth->lock);
    free(auth);
}

void auth_allow_host(struct auth *auth, const char *host)
{
    map_set(auth->hosts, host, auth);
}

/* A page of another site may make a browser ask us under a name of its own (DNS rebinding). */
static bool check_host(const struct auth *auth, struct request *req, struct error *err)
{
    if (req->local)
        return true;
    const char *host = request_header(req, "Host");
    if (host && map_has(auth->hosts, host))
        return true;
    req->reply.status = 421;
    return fail(err, INVALID,
                "this server does not answer for the host '%.80s'; start it with --allow-host "
                "%.80s to let it",
                host ? host : "", host ? host : "NAME");
}

static const char *cookie_value(const struct auth *auth, struct request *req)
{
    const char *at = request_header(req, "Cookie");
    size_t size = strlen(auth->cookie);
    while (at && *at) {
        at += strspn(at, " ;");
        if (strncmp(at, auth->cookie, size) == 0 && at[size] == '=')
            return arena_text_n(req->arena, at + size + 1, strcspn(at + size + 1, "; "));
        at += strcspn(at, ";");
    }
    return NULL;
}

static const char *csrf_of(struct arena *arena, const char *session)
{
    unsigned char hash[16];
    static const unsigned char purpose[] = "trainyard csrf";
    crypto_generichash(hash, sizeof(hash), (const unsigned char *)session, strlen(session),
                       purpose, sizeof(purpose) - 1);
    char *text = arena_alloc(arena, 2 * sizeof(hash) + 1);
    return sodium_bin2hex(text, 2 * sizeof(hash) + 1, hash, sizeof(hash));
}

/*
 * Sessions that nobody uses end.  When it was used is written down now and then; where that
 * cannot be (a full disk) it may be used all the same.
 */
static bool check_use(struct auth *auth, const struct db_token *token, int64_t now_us,
                      struct error *err)
{
    int64_t last_us = token->used_us > token->created_us ? token->used_us : token->created_us;
    struct error none;
    char text[400];
    if (token->kind == TOKEN_SESSION && now_us - last_us > AUTH_IDLE_US)
        return fail(err, UNAUTHENTICATED,
                    "the session has ended: it was not used for %lld hours",
                    (long long)(AUTH_IDLE_US / 1000000 / 3600));
    if (now_us - token->used_us > AUTH_USED_US &&
        !db_tokens_use(auth->db, token->id, now_us, &none))
        log_line(LOG_DEBUG, "auth", "msg=%s", log_quote(none.text, text, sizeof(text)));
    return true;
}

static bool find_token(struct auth *auth, const char *text, enum token_kind kind,
                       struct arena *arena, struct auth_identity *identity, struct error *err)
{
    uint64_t generation = atomic_load(&auth->generation);
    struct db_conn *conn = db_read(auth->db, DB_CONTROL, err);
    if (!conn)
        return false;
    struct db_token token;
    int64_t now_us = (int64_t)clock_wall_us();
    bool found = db_tokens_find(conn, text, kind, now_us, arena, &token, err);
    db_read_done(auth->db, conn);
    if (!found || !check_use(auth, &token, now_us, err))
        return false;
    *identity = (struct auth_identity){
        .way = kind == TOKEN_SESSION ? AUTH_BY_SESSION : AUTH_BY_TOKEN,
        .user_id = token.user_id,
        .user = token.user,
        .role = token.role,
        .best = token.best,
        .most = token.most,
        .rights = token.rights,
        .csrf = kind == TOKEN_SESSION ? csrf_of(arena, text) : "",
        .token_id = token.id,
        .expires_us = token.expires_us,
        .generation = generation,
    };
    snprintf(identity->project, sizeof(identity->project), "%s", token.project);
    return true;
}

bool auth_token(struct auth *auth, const char *token, struct arena *arena,
                struct auth_identity *identity, struct error *err)
{
    return find_token(auth, token, TOKEN_API, arena, identity, err);
}

/* What a browser sends along with a request that some other site made it send. */
static bool check_site(const struct request *req, struct error *err)
{
    const char *origin = request_header(req, "Origin");
    const char *host = request_header(req, "Host");
    const char *bare = origin ? strstr(origin, "://") : NULL;
    bool plain = req->services->encrypted && origin && strncasecmp(origin, "https:", 6) != 0;
    if (origin && (!bare || !host || strcasecmp(bare + 3, host) != 0 || plain))
        return fail(err, DENIED, "the request comes from another site (%.80s)", origin);
    const char *site = request_header(req, "Sec-Fetch-Site");
    bool safe = strcmp(req->method, "GET") == 0 || strcmp(req->method, "HEAD") == 0;
    if (safe)
        return true;
    if (site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0)
        return fail(err, DENIED, "the request comes from another site");
    /* No form of another site can send these types. */
    const char *type = request_header(req, "Content-Type");
    if (req->has_body && (!type || (strncasecmp(type, "application/json", 16) != 0 &&
                                    strncasecmp(type, "application/octet-stream", 24) != 0)))
        return fail(err, DENIED, "the body must be sent as application/json");
    return true;
}

static bool check_session(const struct request *req, struct error *err)
{
    if (!check_site(req, err))
        return false;
    if (strcmp(req->method, "GET") == 0 || strcmp(req->method, "HEAD") == 0)
        return true;
    const char *csrf = request_header(req, "X-CSRF");
    if (!csrf || strlen(csrf) != strlen(req->user.csrf) ||
        sodium_memcmp(csrf, req->user.csrf, strlen(csrf)) != 0)
        return fail(err, DENIED,
                    "the header X-CSRF is missing or wrong; GET /api/v1/session tells it");
    return true;
}

static bool identify(struct auth *auth, struct request *req, struct error *err)
{
    if (req->local) {
        req->user = (struct auth_identity){.way = AUTH_BY_SOCKET,
                                           .user_id = DB_USER_ADMIN,
                                           .user = "admin",
                                           .role = ROLE_ADMIN,
                                           .best = ROLE_ADMIN,
                                           .most = ROLE_ADMIN,
                                           .csrf = ""};
        return true;
    }
    const char *header = request_header(req, "Authorization");
    if (header) {
        if (strncasecmp(header, "Bearer ", 7) != 0)
            return fail(err, UNAUTHENTICATED, "the Authorization header must be: Bearer TOKEN");
        return auth_token(auth, header + 7 + strspn(header + 7, " "), req->arena, &req->user,
                          err);
    }
    const char *session = cookie_value(auth, req);
    if (!session)
        return fail(err, UNAUTHENTICATED,
                    "sign in first: there is no token and no session in the request");
    return find_token(auth, session, TOKEN_SESSION, req->arena, &req->user, err) &&
           check_session(req, err);
}

/* Counts the request; false when there were too many of this token. */
static bool check_rate(struct auth *auth, struct request *req, struct error *err)
{
    if (!req->user.token_id || rate_take(auth->rate, req->user.token_id, clock_monotonic_us()))
        return true;
    req->reply.status = 429;
    return fail(err, EXHAUSTED, "too many requests of one token in a second");
}

bool auth_request(struct auth *auth, struct request *req, int role, struct error *err)
{
    if (!check_host(auth, req, err))
        return false;
    if (role == AUTH_PUBLIC)
        return true;
    if (!identify(auth, req, err) || !check_rate(auth, req, err))
        return false;
    bool in_project;
    const char *name = auth_role_name(role, &in_project);
    enum user_role have = in_project ? req->user.best : req->user.role;
    return (int)have >= (in_project ? role - AUTH_IN_PROJECT(0) : role) ||
           fail(err, DENIED, "this needs the role %s; yours is %s", name, db_role_name(have));
}

const char *auth_role_name(int role, bool *in_project)
{
    *in_project = role >= AUTH_IN_PROJECT(ROLE_VIEWER);
    return db_role_name((enum user_role)(*in_project ? role - AUTH_IN_PROJECT(0) : role));
}

/* A token of one project was asked when it was found whether its user sees that. */
struct db_viewer auth_viewer(const struct auth_identity *user)
{
    if (*user->project)
        return (struct db_viewer){.project = user->project};
    return (struct db_viewer){.member = user->role == ROLE_NONE ? user->user_id : 0};
}

bool auth_role(struct auth *auth, const struct auth_identity *user, const char *project,
               enum user_role *role, struct error *err)
{
    bool elsewhere = *user->project && strcmp(user->project, project) != 0;
    *role = elsewhere ? ROLE_NONE : *user->project ? user->best : user->role;
    if (*user->project || user->best <= user->role)
        return true;
    enum user_role member;
    struct db_conn *conn = db_read(auth->db, DB_CONTROL, err);
    bool ok = conn && db_members_role(conn, user->user_id, project, &member, err);
    db_read_done(auth->db, conn);
    if (!ok)
        return false;
    member = member < user->most ? member : user->most;
    *role = member > *role ? member : *role;
    return true;
}

bool auth_project(struct request *req, const char *project, struct error *err)
{
    int wanted = req->route->role;
    enum user_role have;
    bool in_project;
    const char *name = auth_role_name(wanted, &in_project);
    assert(in_project); /* or those would be let in who may not */
    return auth_role(req->services->auth, &req->user, project, &have, err) &&
           ((int)have >= wanted - AUTH_IN_PROJECT(0) ||
            fail(err, DENIED, "this needs the role %s in project '%.128s'; yours is %s", name,
                 project, db_role_name(have)));
}

bool auth_link(struct auth *auth, int64_t user_id, struct str *link, struct error *err)
{
    char code[DB_TOKEN_BYTES];
    int64_t expires_us = (int64_t)(clock_wall_us() + AUTH_LINK_US);
    struct db_token_new made = {.user_id = user_id,
                                .kind = TOKEN_LOGIN,
                                .role = ROLE_ADMIN,
                                .name = "login link",
                                .expires_us = expires_us};
    if (!db_tokens_add(auth->db, &made, code, err))
        return false;
    str_printf(link, "%s/login?code=%s", auth->origin, code);
    return true;
}

/* Counts wrong codes; false when there were too many in the last minute. */
static bool count_failure(struct auth *auth)
{
    uint64_t now = clock_monotonic_us();
    pthread_mutex_lock(&auth->lock);
    if (now - auth->failures_since_us > AUTH_FAILURES_US) {
        auth->failures = 0;
        auth->failures_since_us = now;
    }
    bool few = ++auth->failures <= AUTH_FAILURES_MAX;
    pthread_mutex_unlock(&auth->lock);
    return few;
}

static void set_cookie(struct auth *auth, struct request *req, const char *session)
{
    reply_header(req, "Set-Cookie",
                 arena_printf(req->arena, "%s=%s; Path=/; HttpOnly; SameSite=Lax%s; Max-Age=%d",
                              auth->cookie, session, auth->encrypted ? "; Secure" : "",
                              *session ? (int)(AUTH_SESSION_US / 1000000) : 0));
}

/* Who signs in anew has one session in his browser, not two. */
static bool end_session(struct auth *auth, struct request *req, struct error *err)
{
    const char *session = cookie_value(auth, req);
    struct db_token token;
    if (!session)
        return true;
    struct db_conn *conn = db_read(auth->db, DB_CONTROL, err);
    if (!conn)
        return false;
    bool found = db_tokens_find(conn, session, TOKEN_SESSION, (int64_t)clock_wall_us(),
                                req->arena, &token, err);
    db_read_done(auth->db, conn);
    return !found || auth_revoke(auth, token.id, 0, err);
}

bool auth_sign_in(struct auth *auth, struct request *req, const char *code, struct error *err)
{
    char session[DB_TOKEN_BYTES];
    uint64_t now = clock_wall_us();
    if (!db_tokens_exchange(auth->db, code, (int64_t)now, (int64_t)(now + AUTH_SESSION_US),
                            session, err)) {
        if (err->code == UNAUTHENTICATED && !count_failure(auth)) {
            req->reply.status = 429;
            reply_header(req, "Retry-After", "60");
            return fail(err, EXHAUSTED, "too many wrong links in a minute; wait a little");
        }
        return false;
    }
    if (!end_session(auth, req, err) ||
        !find_token(auth, session, TOKEN_SESSION, req->arena, &req->user, err))
        return false;
    set_cookie(auth, req, session);
    return true;
}

/* Who tries too often is told when to try again. */
static bool tried(struct request *req, bool ok, const struct error *err)
{
    if (!ok && err->code == EXHAUSTED)
        req->reply.status = 429;
    return ok;
}

const char *auth_hash(struct auth *auth, struct request *req, const char *password,
                      struct error *err)
{
    char *hash = arena_alloc(req->arena, PASSWORD_HASH_BYTES);
    return tried(req, passwords_hash(auth->passwords, password, hash, err), err) ? hash : NULL;
}

bool auth_password(struct auth *auth, struct request *req, const char *name,
                   const char *password, struct db_user *user, struct error *err)
{
    *user = (struct db_user){.password = ""};
    struct db_conn *conn = check_site(req, err) ? db_read(auth->db, DB_CONTROL, err) : NULL;
    if (!conn)
        return false;
    bool found = db_users_find(conn, name, req->arena, user, err);
    db_read_done(auth->db, conn);
    if (!found && err->code != NOT_FOUND)
        return false;
    const char *hash = user->disabled ? "" : user->password;
    return tried(
        req, passwords_check(auth->passwords, name, hash, password, clock_monotonic_us(), err),
        err);
}

bool auth_begin(struct auth *auth, struct request *req, const struct db_user *user,
                struct error *err)
{
    char session[DB_TOKEN_BYTES];
    int64_t expires_us = (int64_t)(clock_wall_us() + AUTH_SESSION_US);
    struct db_token_new made = {.user_id = user->id,
                                .kind = TOKEN_SESSION,
                                .role = ROLE_ADMIN,
                                .name = "password",
                                .expires_us = expires_us};
    if (!db_tokens_add(auth->db, &made, session, err) || !end_session(auth, req, err) ||
        !find_token(auth, session, TOKEN_SESSION, req->arena, &req->user, err))
        return false;
    set_cookie(auth, req, session);
    return true;
}

bool auth_change(struct auth *auth, const struct db_user *user, struct error *err)
{
    if (!db_users_set(auth->db, user, err))
        return false;
    atomic_fetch_add(&auth->generation, 1);
    return true;
}

bool auth_revoke(struct auth *auth, int64_t token_id, int64_t user_id, struct error *err)
{
    if (!db_tokens_revoke(auth->db, token_id, user_id, err))
        return false;
    atomic_fetch_add(&auth->generation, 1);
    return true;
}

bool auth_member(struct auth *auth, const struct db_member *member, struct error *err)
{
    if (!db_members_set(auth->db, member, err))
        return false;
    atomic_fetch_add(&auth->generation, 1);
    return true;
}

bool auth_still(struct auth *auth, struct auth_identity *user)
{
    int64_t now = (int64_t)clock_wall_us();
    uint64_t generation = atomic_load(&auth->generation);
    if (!user->token_id)
        return true;
    if (user->expires_us && now >= user->expires_us)
        return false;
    if (user->generation == generation)
        return true;
    struct error ignored;
    bool valid = false;
    struct db_conn *conn = db_read(auth->db, DB_CONTROL, &ignored);
    bool ok =
        conn && db_tokens_valid(conn, user->token_id, user->rights, now, &valid, &ignored);
    db_read_done(auth->db, conn);
    if (ok && valid)
        user->generation = generation;
    return ok && valid;
}

bool auth_sign_out(struct auth *auth, struct request *req, struct error *err)
{
    if (!end_session(auth, req, err))
        return false;
    set_cookie(auth, req, "");
    reply_header(req, "Clear-Site-Data", "\"storage\"");
    return true;
}
