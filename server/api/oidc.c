/* oidc.c - signing in by another provider: away to it, and back. */

#include "server/oidc.h"

#include "base/arena.h"
#include "base/error.h"
#include "db/users.h"
#include "runtime/spec/spec.h"
#include "server/api/api.h"
#include "server/audit.h"
#include "server/page.h"
#include "server/reply.h"
#include "server/request.h"

#define OIDC_COOKIE "trainyard-oidc"

static struct oidc *provider(const struct request *req, struct error *err)
{
    return req->services->oidc
               ? req->services->oidc
               : fail_null(err, NOT_FOUND, "this server knows no other provider to sign in by");
}

static void set_cookie(struct request *req, const char *value, int seconds)
{
    reply_header(
        req, "Set-Cookie",
        arena_printf(req->arena, "%s=%s; Path=/oidc; HttpOnly; SameSite=Lax%s; Max-Age=%d",
                     OIDC_COOKIE, value, req->services->encrypted ? "; Secure" : "", seconds));
}

static const char *cookie_of(struct request *req)
{
    const char *at = request_header(req, "Cookie");
    size_t size = strlen(OIDC_COOKIE);
    while (at && *at) {
        at += strspn(at, " ;");
        if (strncmp(at, OIDC_COOKIE, size) == 0 && at[size] == '=')
            return arena_text_n(req->arena, at + size + 1, strcspn(at + size + 1, "; "));
        at += strcspn(at, ";");
    }
    return "";
}

static bool refuse(struct request *req, const struct error *why)
{
    audit_refused(req, why);
    int status = why->code == EXHAUSTED ? 429 : reply_status(why->code);
    return page_refused(req, status, "You are not signed in", why,
                        "<a href=\"/oidc/login\">Try again</a>, or <a href=\"/\">sign in "
                        "otherwise</a>.");
}

/* GET /oidc: whether there is another provider, and which. */
static bool oidc_show(struct request *req, struct error *err)
{
    struct oidc *oidc = req->services->oidc;
    return reply_json(req, 200, json_pack("{s:s?}", "issuer", oidc ? oidc_issuer(oidc) : NULL),
                      err);
}

/* GET /oidc/login: to the provider. */
static bool oidc_login(struct request *req, struct error *err)
{
    struct oidc *oidc = provider(req, err);
    const char *url, *cookie;
    struct error why;
    if (!oidc)
        return false;
    if (!oidc_begin(oidc, req->arena, &url, &cookie, &why))
        return refuse(req, &why);
    set_cookie(req, cookie, OIDC_COOKIE_S);
    reply_header(req, "Location", url);
    return reply_bytes(req, 303, NULL, "", 0);
}

/*
 * Who that is here.  One whom nobody knows is added, with the role that the operator has
 * chosen; or becomes the user of his name whom an admin has added and who has no other way in.
 */
static bool find_user(struct request *req, const struct oidc_person *person,
                      struct db_user *user, struct error *err)
{
    const struct services *services = req->services;
    bool found, named = false;
    struct db_conn *conn = db_read(services->db, DB_CONTROL, err);
    bool ok =
        conn && db_users_find_subject(conn, person->subject, req->arena, user, &found, err);
    if (ok && !found) {
        named = db_users_find(conn, person->name, req->arena, user, err);
        ok = named || err->code == NOT_FOUND;
    }
    db_read_done(services->db, conn);
    if (!ok || found)
        return ok;
    if (named && (user->id == DB_USER_ADMIN || *user->password || *user->subject))
        return fail(err, UNAUTHENTICATED,
                    "the name '%.100s' is that of another user here; ask an admin",
                    person->name);
    if (!named && services->oidc_role < ROLE_NONE)
        return fail(err, UNAUTHENTICATED,
                    "there is no user '%.100s' here; an admin adds one: trainyard user add "
                    "%.100s",
                    person->name, person->name);
    if (!named && !spec_is_name(person->name))
        return fail(
            err, UNAUTHENTICATED,
            "'%.100s' cannot be the name of a user here: letters, digits and . _ - make "
            "one",
            person->name);
    if (!named)
        *user = (struct db_user){.name = person->name,
                                 .role = (enum user_role)services->oidc_role,
                                 .password = "",
                                 .subject = ""};
    return (named || db_users_add(services->db, user->name, user->role, "", &user->id, err)) &&
           db_users_link(services->db, user->id, person->subject, err);
}

static bool sign_in(struct request *req, struct oidc *oidc, struct error *err)
{
    const char *state = request_query(req, "state"), *code = request_query(req, "code");
    const char *error = request_query(req, "error");
    const char *text = request_query(req, "error_description");
    struct oidc_person person;
    struct db_user user;
    if (error)
        return fail(err, UNAUTHENTICATED, "the provider says: %.100s%s%.200s", error,
                    text ? ": " : "", text ? text : "");
    if (!oidc_finish(oidc, req->arena, cookie_of(req), state ? state : "", code ? code : "",
                     &person, err))
        return false;
    req->claimed = person.name;
    if (!find_user(req, &person, &user, err))
        return false;
    return (!user.disabled ||
            fail(err, UNAUTHENTICATED, "the user '%s' is disabled", user.name)) &&
           auth_begin(req->services->auth, req, &user, err);
}

/* GET /oidc/callback: back from the provider. */
static bool oidc_callback(struct request *req, struct error *err)
{
    struct oidc *oidc = provider(req, err);
    struct error why;
    if (!oidc)
        return false;
    req->claimed = "";
    if (!sign_in(req, oidc, &why))
        return refuse(req, &why);
    set_cookie(req, "", 0);
    reply_header(req, "Location", "/");
    return reply_bytes(req, 303, NULL, "", 0);
}

const struct route oidc_routes[] = {
    {"GET", "/oidc", AUTH_PUBLIC, oidc_show, "Another provider to sign in by, if there is one",
     NULL, NULL, 200, "Provider"},
    {"GET", "/oidc/login", AUTH_PUBLIC, oidc_login, "Sign in by another provider", NULL, NULL,
     303, "text/html"},
    {"GET", "/oidc/callback", AUTH_PUBLIC, oidc_callback, "Back from another provider",
     "code:string state:string error:string error_description:string error_uri:string "
     "iss:string "
     "session_state:string scope:string authuser:string prompt:string hd:string",
     NULL, 303, "text/html"},
    {0},
};
