/* session.c - signing in with a link, and who one is. */

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "server/api/api.h"
#include "server/feed.h"
#include "server/reply.h"
#include "server/request.h"

/* A page of plain HTML for a person whose link did not work. */
static bool reply_page(struct request *req, int status, const struct error *why)
{
    struct str page = {0};
    str_add(&page, "<!doctype html><meta charset=utf-8><title>Sign in to Trainyard</title>"
                   "<h1>This link does not sign you in</h1><p>");
    for (const char *c = why->text; *c; c++) {
        if (*c == '<')
            str_add(&page, "&lt;");
        else if (*c == '&')
            str_add(&page, "&amp;");
        else
            str_add_char(&page, *c);
    }
    str_add(&page, "<p>A link works once, for a day. Make another on the server's machine: "
                   "<code>trainyard login --dir DIR</code>");
    size_t size = page.size;
    reply_header(req, "Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'");
    return reply_owned(req, status, "text/html; charset=utf-8", str_take(&page), size);
}

/*
 * GET /login?code=…: exchanges the code for a session cookie and goes on to the page, so that
 * the code does not stay in the address bar.
 */
static bool session_login(struct request *req, struct error *err)
{
    const char *code = request_query(req, "code");
    struct error why;
    if (!auth_sign_in(req->services->auth, req, code ? code : "", &why)) {
        if (why.code != UNAUTHENTICATED && why.code != EXHAUSTED) {
            *err = why;
            return false;
        }
        return reply_page(req, req->reply.status ? req->reply.status : 401, &why);
    }
    reply_header(req, "Location", "/");
    return reply_bytes(req, 303, NULL, "", 0);
}

/* GET /api/v1/session: who one is, and what X-CSRF must say. */
static bool session_show(struct request *req, struct error *err)
{
    static const char *const ways[] = {"nothing", "socket", "token", "session"};
    json_t *json = json_pack("{s:s, s:s, s:s, s:s}", "user", req->user.user, "role",
                             db_role_name(req->user.role), "way", ways[req->user.way], "csrf",
                             req->user.csrf);
    return reply_json(req, 200, json, err);
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
    bool ok = auth_link(req->services->auth, &link, err) &&
              reply_json(req, 201, json_pack("{s:s}", "url", str_text(&link)), err);
    str_release(&link);
    return ok;
}

const struct route session_routes[] = {
    {"GET", "/login", AUTH_PUBLIC, session_login, "Sign in with a one-time link", "code:string",
     NULL, 303, "text/html"},
    {"GET", "/api/v1/session", ROLE_VIEWER, session_show, "Who I am", NULL, NULL, 200,
     "Session"},
    {"DELETE", "/api/v1/session", ROLE_VIEWER, session_end, "Sign out", NULL, NULL, 204, NULL},
    {"POST", "/api/v1/login-links", ROLE_ADMIN, session_link, "Make a one-time login link",
     NULL, NULL, 201, "LoginLink"},
    {0},
};
