/* auth_test.c - who gets in: tokens, links, sessions, and what a foreign page can make a
 * browser send. */
/* Faults of docs/reliability.md: F23. */

#include "base/arena.h"
#include "base/clock.h"
#include "base/str.h"
#include "db/tokens.h"
#include "server/auth.h"
#include "server/reply.h"
#include "server/request.h"
#include "tests/unit/folder.h"

#define ORIGIN "http://127.0.0.1:7070"

struct fixture {
    struct db *db;
    struct auth *auth;
    struct services services;
    struct arena *arena;
    struct url_pair headers[16];
    struct request req;
};

static void open_fixture(struct fixture *f)
{
    struct error err;
    *f = (struct fixture){0};
    static int opened;
    char name[16];
    snprintf(name, sizeof(name), "yard%d", opened++);
    CHECK_OK((f->db = db_open(folder_path(name), &err)) != NULL, &err);
    f->auth = auth_new(f->db, ORIGIN, 0);
    f->services =
        (struct services){.auth = f->auth, .db = f->db, .folder = "/yard", .origin = ORIGIN};
    f->arena = arena_new();
}

static void close_fixture(struct fixture *f)
{
    auth_free(f->auth);
    db_close(f->db);
    arena_free(f->arena);
}

/* A new request with a Host header. */
static struct request *begin(struct fixture *f, const char *method)
{
    f->req = (struct request){.arena = f->arena,
                              .services = &f->services,
                              .id = "req_1",
                              .method = method,
                              .url = {"/api/v1/jobs", NULL, 0},
                              .headers = f->headers};
    f->headers[f->req.headers_count++] = (struct url_pair){"Host", "127.0.0.1:7070"};
    return &f->req;
}

static void header(struct fixture *f, const char *name, const char *value)
{
    f->headers[f->req.headers_count++] = (struct url_pair){name, value};
}

/* Signs in with a fresh link; returns "NAME=VALUE" of the cookie. */
static const char *sign_in(struct fixture *f)
{
    struct error err;
    struct str link = {0};
    CHECK_OK(auth_link(f->auth, DB_USER_ADMIN, &link, &err), &err);
    const char *code = strstr(str_text(&link), "code=") + 5;
    struct request *req = begin(f, "GET");
    CHECK_OK(auth_sign_in(f->auth, req, code, &err), &err);
    CHECK_INT(req->reply.headers_count, 1);
    const char *cookie = req->reply.headers[0].value;
    CHECK(strstr(cookie, "HttpOnly") && strstr(cookie, "SameSite=Lax"));
    const char *pair = arena_text_n(f->arena, cookie, strcspn(cookie, ";"));
    str_release(&link);
    return pair;
}

TEST(a_link_works_once)
{
    struct fixture f;
    struct error err;
    struct str link = {0};
    open_fixture(&f);
    CHECK_OK(auth_link(f.auth, DB_USER_ADMIN, &link, &err), &err);
    const char *code = strstr(str_text(&link), "code=") + 5;
    CHECK_OK(auth_sign_in(f.auth, begin(&f, "GET"), code, &err), &err);
    CHECK_FAILS(auth_sign_in(f.auth, begin(&f, "GET"), code, &err), &err, UNAUTHENTICATED);
    str_release(&link);
    close_fixture(&f);
}

TEST(nobody_gets_in_without_credentials)
{
    struct fixture f;
    struct error err;
    open_fixture(&f);
    CHECK_FAILS(auth_request(f.auth, begin(&f, "GET"), ROLE_VIEWER, &err), &err,
                UNAUTHENTICATED);
    CHECK_OK(auth_request(f.auth, begin(&f, "GET"), AUTH_PUBLIC, &err), &err);
    static const char *const wrong[] = {"Basic YTpi",      "Bearer",     "Bearer ",
                                        "Bearer ty_wrong", "bearer ty_", "ty_x"};
    for (int i = 0; i < ARRAY_LEN(wrong); i++) {
        begin(&f, "GET");
        header(&f, "Authorization", wrong[i]);
        CHECK_FAILS(auth_request(f.auth, &f.req, ROLE_VIEWER, &err), &err, UNAUTHENTICATED);
    }
    close_fixture(&f);
}

TEST(tokens_let_in_until_they_are_revoked_or_old)
{
    struct fixture f;
    struct error err;
    char token[DB_TOKEN_BYTES];
    open_fixture(&f);
    CHECK_OK(db_tokens_add(
                 f.db,
                 &(struct db_token_new){DB_USER_ADMIN, TOKEN_API, ROLE_ADMIN, NULL, "t", 0},
                 token, &err),
             &err);
    begin(&f, "POST");
    header(&f, "Authorization", arena_printf(f.arena, "Bearer %s", token));
    CHECK_OK(auth_request(f.auth, &f.req, ROLE_ADMIN, &err), &err);
    CHECK_TEXT(f.req.user.user, "admin");
    CHECK_INT(f.req.user.way, AUTH_BY_TOKEN);

    /* A token is no session, and no join token. */
    begin(&f, "GET");
    header(&f, "Cookie", arena_printf(f.arena, "trainyard_7070=%s", token));
    CHECK_FAILS(auth_request(f.auth, &f.req, ROLE_VIEWER, &err), &err, UNAUTHENTICATED);

    CHECK_OK(db_tokens_add(f.db,
                           &(struct db_token_new){DB_USER_ADMIN, TOKEN_API, ROLE_ADMIN, NULL,
                                                  "old", (int64_t)clock_wall_us() - 1},
                           token, &err),
             &err);
    begin(&f, "GET");
    header(&f, "Authorization", arena_printf(f.arena, "Bearer %s", token));
    CHECK_FAILS(auth_request(f.auth, &f.req, ROLE_VIEWER, &err), &err, UNAUTHENTICATED);
    close_fixture(&f);
}

/* A token of one project is there as nobody everywhere else, even an administrator's. */
TEST(a_token_of_one_project_works_there_alone)
{
    struct fixture f;
    struct error err;
    char token[DB_TOKEN_BYTES];
    enum user_role role;
    int64_t eve;
    open_fixture(&f);
    CHECK_OK(db_tokens_add(f.db,
                           &(struct db_token_new){DB_USER_ADMIN, TOKEN_API, ROLE_MEMBER,
                                                  "apples", "t", 0},
                           token, &err),
             &err);
    begin(&f, "GET");
    header(&f, "Authorization", arena_printf(f.arena, "Bearer %s", token));
    CHECK_FAILS(auth_request(f.auth, &f.req, ROLE_VIEWER, &err), &err, DENIED);
    CHECK_FAILS(auth_request(f.auth, &f.req, AUTH_IN_PROJECT(ROLE_ADMIN), &err), &err, DENIED);
    CHECK_OK(auth_request(f.auth, &f.req, AUTH_IN_PROJECT(ROLE_MEMBER), &err), &err);
    CHECK_OK(auth_role(f.auth, &f.req.user, "apples", &role, &err), &err);
    CHECK_INT(role, ROLE_MEMBER);
    CHECK_OK(auth_role(f.auth, &f.req.user, "pears", &role, &err), &err);
    CHECK_INT(role, ROLE_NONE);
    struct db_viewer viewer = auth_viewer(&f.req.user);
    CHECK_TEXT(viewer.project, "apples");

    /* Of one who is no member there: for nothing, until she is. */
    CHECK_OK(db_users_add(f.db, "eve", ROLE_NONE, "", &eve, &err), &err);
    CHECK_OK(db_tokens_add(f.db,
                           &(struct db_token_new){eve, TOKEN_API, ROLE_ADMIN, "apples", "t", 0},
                           token, &err),
             &err);
    CHECK_OK(auth_member(f.auth, &(struct db_member){"pears", "eve", ROLE_ADMIN}, &err), &err);
    begin(&f, "GET");
    header(&f, "Authorization", arena_printf(f.arena, "Bearer %s", token));
    CHECK_FAILS(auth_request(f.auth, &f.req, AUTH_IN_PROJECT(ROLE_VIEWER), &err), &err, DENIED);
    CHECK_OK(auth_member(f.auth, &(struct db_member){"apples", "eve", ROLE_VIEWER}, &err),
             &err);
    CHECK_OK(auth_request(f.auth, &f.req, AUTH_IN_PROJECT(ROLE_VIEWER), &err), &err);
    CHECK_FAILS(auth_request(f.auth, &f.req, AUTH_IN_PROJECT(ROLE_MEMBER), &err), &err, DENIED);
    close_fixture(&f);
}

/* DNS rebinding: a page under another name must not reach us. */
TEST(other_hosts_are_refused)
{
    static const char *const good[] = {"127.0.0.1:7070", "localhost:7070", "[::1]:7070",
                                       "yard.example"};
    static const char *const bad[] = {"evil.example",
                                      "evil.example:7070",
                                      "127.0.0.1",
                                      "127.0.0.1:80",
                                      "",
                                      "localhost:7070.evil.example"};
    struct fixture f;
    struct error err;
    open_fixture(&f);
    auth_allow_host(f.auth, "yard.example");
    for (int i = 0; i < ARRAY_LEN(good); i++) {
        begin(&f, "GET");
        f.headers[0].value = good[i];
        CHECK_OK(auth_request(f.auth, &f.req, AUTH_PUBLIC, &err), &err);
    }
    for (int i = 0; i < ARRAY_LEN(bad); i++) {
        begin(&f, "GET");
        f.headers[0].value = bad[i];
        CHECK_FAILS(auth_request(f.auth, &f.req, AUTH_PUBLIC, &err), &err, INVALID);
        CHECK_INT(f.req.reply.status, 421);
    }
    close_fixture(&f);
}

TEST(sessions_need_csrf_origin_and_json_to_change_anything)
{
    struct fixture f;
    struct error err;
    open_fixture(&f);
    const char *cookie = sign_in(&f);

    begin(&f, "GET");
    header(&f, "Cookie", arena_printf(f.arena, "other=1; %s; more=2", cookie));
    CHECK_OK(auth_request(f.auth, &f.req, ROLE_ADMIN, &err), &err);
    CHECK_INT(f.req.user.way, AUTH_BY_SESSION);
    const char *csrf = f.req.user.csrf;
    CHECK_INT(strlen(csrf), 32);

    struct {
        const char *origin, *site, *csrf, *type;
        bool ok;
    } cases[] = {
        {ORIGIN, "same-origin", csrf, "application/json", true},
        {NULL, NULL, csrf, "application/json; charset=utf-8", true},
        {"http://localhost:7070", NULL, csrf, "application/json",
         false}, /* not the Host it was sent to */
        {"http://evil.example", NULL, csrf, "application/json", false},
        {"null", NULL, csrf, "application/json", false},
        {ORIGIN, "cross-site", csrf, "application/json", false},
        {ORIGIN, "same-site", csrf, "application/json", false},
        {ORIGIN, NULL, NULL, "application/json", false},
        {ORIGIN, NULL, "", "application/json", false},
        {ORIGIN, NULL, "00000000000000000000000000000000", "application/json", false},
        {ORIGIN, NULL, csrf, "text/plain", false},
        {ORIGIN, NULL, csrf, NULL, false},
    };
    for (int i = 0; i < ARRAY_LEN(cases); i++) {
        begin(&f, "POST");
        f.req.body = "{}";
        f.req.body_size = 2;
        f.req.has_body = true;
        header(&f, "Cookie", cookie);
        if (cases[i].origin)
            header(&f, "Origin", cases[i].origin);
        if (cases[i].site)
            header(&f, "Sec-Fetch-Site", cases[i].site);
        if (cases[i].csrf)
            header(&f, "X-CSRF", cases[i].csrf);
        if (cases[i].type)
            header(&f, "Content-Type", cases[i].type);
        bool ok = auth_request(f.auth, &f.req, ROLE_MEMBER, &err);
        if (ok != cases[i].ok)
            CHECK_STOP("case %d: %s", i, ok ? "let in" : err.text);
        if (!ok)
            CHECK_INT(err.code, DENIED);
    }

    /* Signing out ends it. */
    begin(&f, "DELETE");
    header(&f, "Cookie", cookie);
    CHECK_OK(auth_sign_out(f.auth, &f.req, &err), &err);
    begin(&f, "GET");
    header(&f, "Cookie", cookie);
    CHECK_FAILS(auth_request(f.auth, &f.req, ROLE_VIEWER, &err), &err, UNAUTHENTICATED);
    close_fixture(&f);
}

TEST(roles_are_held)
{
    struct fixture f;
    struct error err;
    int64_t user;
    char token[DB_TOKEN_BYTES];
    open_fixture(&f);
    CHECK_OK(db_users_add(f.db, "eve", ROLE_VIEWER, "", &user, &err), &err);
    CHECK_OK(db_tokens_add(f.db,
                           &(struct db_token_new){user, TOKEN_API, ROLE_ADMIN, NULL, "t", 0},
                           token, &err),
             &err);
    begin(&f, "GET");
    header(&f, "Authorization", arena_printf(f.arena, "Bearer %s", token));
    CHECK_OK(auth_request(f.auth, &f.req, ROLE_VIEWER, &err), &err);
    CHECK_FAILS(auth_request(f.auth, &f.req, ROLE_MEMBER, &err), &err, DENIED);
    close_fixture(&f);
}

/* Guessing links is slowed down; a right one still works. */
TEST(wrong_links_are_counted)
{
    struct fixture f;
    struct error err;
    open_fixture(&f);
    int limited = 0;
    for (int i = 0; i < 8; i++) {
        struct request *req = begin(&f, "GET");
        CHECK(!auth_sign_in(f.auth, req, "ty_wrong", &err));
        limited += req->reply.status == 429;
    }
    CHECK_INT(limited, 3);
    sign_in(&f);
    close_fixture(&f);
}

/* One who stays connected is asked about again, and lives no longer than what he came with. */
TEST(a_revoked_token_is_good_no_more)
{
    struct fixture f;
    struct error err;
    char token[DB_TOKEN_BYTES], other[DB_TOKEN_BYTES], old[DB_TOKEN_BYTES];
    int64_t later_us = (int64_t)clock_wall_us() + 3600000000;
    struct auth_identity user, another, short_lived;
    open_fixture(&f);
    CHECK_OK(db_tokens_add(
                 f.db,
                 &(struct db_token_new){DB_USER_ADMIN, TOKEN_API, ROLE_ADMIN, NULL, "a", 0},
                 token, &err),
             &err);
    CHECK_OK(db_tokens_add(
                 f.db,
                 &(struct db_token_new){DB_USER_ADMIN, TOKEN_API, ROLE_ADMIN, NULL, "b", 0},
                 other, &err),
             &err);
    CHECK_OK(db_tokens_add(f.db,
                           &(struct db_token_new){DB_USER_ADMIN, TOKEN_API, ROLE_ADMIN, NULL,
                                                  "c", later_us},
                           old, &err),
             &err);
    CHECK_OK(auth_token(f.auth, token, f.arena, &user, &err), &err);
    CHECK_OK(auth_token(f.auth, other, f.arena, &another, &err), &err);
    CHECK_OK(auth_token(f.auth, old, f.arena, &short_lived, &err), &err);
    struct auth_identity nobody = {.way = AUTH_BY_NOTHING};
    CHECK(auth_still(f.auth, &user) && auth_still(f.auth, &another));
    CHECK(auth_still(f.auth, &short_lived) && auth_still(f.auth, &nobody));
    CHECK_OK(auth_revoke(f.auth, user.token_id, 0, &err), &err);
    CHECK(!auth_still(f.auth, &user));
    CHECK(auth_still(f.auth, &another) && auth_still(f.auth, &nobody));
    CHECK_FAILS(auth_token(f.auth, token, f.arena, &user, &err), &err, UNAUTHENTICATED);
    CHECK_INT(short_lived.expires_us, later_us);
    short_lived.expires_us = (int64_t)clock_wall_us(); /* as if the hour were over */
    CHECK(!auth_still(f.auth, &short_lived));
    close_fixture(&f);
}
