/* tokens.c - making, listing and revoking tokens. */

#include <inttypes.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "db/tokens.h"
#include "runtime/spec/spec_read.h"
#include "server/api/api.h"
#include "server/authority.h"
#include "server/body.h"
#include "server/feed.h"
#include "server/job.h"
#include "server/reply.h"
#include "server/request.h"

#define TOKENS_DAYS_MAX 3650

struct token_request {
    const char *name;
    int kind;            /* enum token_kind, of the two that can be asked for */
    int role;            /* enum user_role: at most */
    const char *project; /* works in this one alone; NULL: in all of the sender's */
    int64_t days;        /* 0: for ever; -1: not said */
};

/* What a token makes must not outlive it: else one that leaked would never end. */
static bool find_end(const struct request *req, int64_t days, int64_t *expires_us,
                     struct error *err)
{
    int64_t now_us = (int64_t)clock_wall_us();
    int64_t last_us = req->user.way == AUTH_BY_TOKEN ? req->user.expires_us : 0;
    *expires_us = days > 0 ? now_us + days * 86400 * 1000000 : 0;
    if (days < 0)
        *expires_us = last_us;
    else if (last_us && (!days || *expires_us > last_us))
        return error_at(err, "/days", DENIED,
                        "your own token ends in %.1f days, and one made by it must end before",
                        (double)(last_us - now_us) / 86400e6);
    return true;
}

/* The highest role that a token of the sender may have: in the project, if it names one. */
static bool find_most(const struct request *req, const char *project, enum user_role *most,
                      struct error *err)
{
    *most = req->user.best > ROLE_VIEWER ? req->user.best : ROLE_VIEWER;
    if (!project)
        return true;
    if (!auth_role(req->services->auth, &req->user, project, most, err))
        return false;
    return *most != ROLE_NONE ||
           error_at(err, "/project", DENIED, "you have no role in project '%s'", project);
}

static bool read_token(const struct request *req, const struct spec_object *object,
                       struct token_request *token)
{
    static const char *const allowed[] = {"name", "kind", "role", "project", "days", NULL};
    static const char *const kinds[] = {"api", "join", NULL};
    static const char *const roles[] = {"viewer", "member", "admin", NULL};
    enum user_role most;
    int kind = 0;
    if (!spec_read_only(object, allowed) ||
        !spec_read_text(object, "name", LIMIT_NAME_BYTES, &token->name) ||
        !spec_read_choice(object, "kind", kinds, &kind) ||
        !spec_read_name(object, "project", &token->project) ||
        !find_most(req, token->project, &most, object->err))
        return false;
    token->role = (int)most;
    if (!spec_read_choice(object, "role", roles, &token->role) ||
        !spec_read_integer(object, "days", 0, TOKENS_DAYS_MAX, &token->days))
        return false;
    token->kind = kind ? TOKEN_JOIN : TOKEN_API;
    if (kind && req->user.role != ROLE_ADMIN)
        return error_at(object->err, "/kind", DENIED,
                        "a token for nodes needs the role admin; yours is %s",
                        db_role_name(req->user.role));
    if (kind && token->project)
        return error_at(object->err, "/project", INVALID,
                        "a token for nodes is of no project: leave it out");
    return token->role <= (int)most ||
           error_at(object->err, "/role", DENIED, "your role is %s, a token cannot have more",
                    db_role_name(most));
}

/*
 * POST /api/v1/tokens {name, kind: "api" | "join", role, project, days}     201 {token}
 *
 * A join token ends with what an agent knows the server by (authority.h).
 *
 * The token is shown this once; only its hash is kept.  It may do what its user may, but no
 * more than `role` may, and with `project` in that one alone; it never has more, or lives
 * longer, than the token that made it. `days` 0: for ever, as without `days` when it is not
 * made by a token that ends.
 */
static bool tokens_create(struct request *req, struct error *err)
{
    struct token_request token = {
        .name = "token", .project = *req->user.project ? req->user.project : NULL, .days = -1};
    struct spec_object object;
    char secret[DB_TOKEN_BYTES];
    int64_t expires_us;
    json_t *body = body_object(req, &object, err);
    bool ok = body && read_token(req, &object, &token);
    json_decref(body);
    if (!ok || !find_end(req, token.days, &expires_us, err))
        return false;
    struct db_token_new made = {.user_id = req->user.user_id,
                                .kind = (enum token_kind)token.kind,
                                .role = (enum user_role)token.role,
                                .project = token.project,
                                .name = token.name,
                                .expires_us = expires_us};
    if (!db_tokens_add(req->services->db, &made, secret, err))
        return false;
    const struct authority *authority = req->services->authority;
    json_t *text = token.kind == TOKEN_JOIN && authority
                       ? json_sprintf("%s.%s", secret, authority_pin(authority))
                       : json_string(secret);
    return reply_json(req, 201, json_pack("{s:o}", "token", text), err);
}

/*
 * GET /api/v1/tokens: one's own, without their secrets; an administrator may ask for another's.
 * A token of one project is told of those of that project.
 */
static bool tokens_list(struct request *req, struct error *err)
{
    const char *name = request_query(req, "user");
    struct db_user user = {.id = req->user.user_id};
    if (name && req->user.role != ROLE_ADMIN && strcmp(name, req->user.user) != 0)
        return fail(err, DENIED, "the tokens of others are for the role admin; yours is %s",
                    db_role_name(req->user.role));
    struct db_conn *conn = db_read(req->services->db, DB_CONTROL, err);
    if (!conn)
        return false;
    struct db_token *tokens;
    int count = 0;
    bool ok = (!name || db_users_find(conn, name, req->arena, &user, err)) &&
              db_tokens_list(conn, user.id, req->arena, &tokens, &count, err);
    db_read_done(req->services->db, conn);
    if (!ok)
        return false;
    static const char *const kinds[] = {"api", "session", "login", "join"};
    json_t *items = json_array();
    for (int i = 0; i < count; i++) {
        if (*req->user.project && strcmp(req->user.project, tokens[i].project) != 0)
            continue;
        json_array_append_new(items, json_pack("{s:I, s:s, s:s, s:s, s:s?, s:o, s:o, s:o}",
                                               "id", (json_int_t)tokens[i].id, "kind",
                                               kinds[tokens[i].kind], "name", tokens[i].name,
                                               "role", db_role_name(tokens[i].most), "project",
                                               *tokens[i].project ? tokens[i].project : NULL,
                                               "created_at", job_time(tokens[i].created_us),
                                               "expires_at", job_time(tokens[i].expires_us),
                                               "used_at", job_time(tokens[i].used_us)));
    }
    return reply_json(req, 200, json_pack("{s:o}", "items", items), err);
}

/* DELETE /api/v1/tokens/{id}: it does not work any more from now.  One's own; an administrator
 * may end anybody's. */
static bool tokens_revoke(struct request *req, struct error *err)
{
    char *end;
    long long id = strtoll(req->params[0], &end, 10);
    if (*end || id <= 0)
        return fail(err, NOT_FOUND, "there is no token '%.40s'", req->params[0]);
    if (*req->user.project && id != req->user.token_id)
        return fail(err, DENIED, "a token of one project can end itself alone");
    int64_t owner = req->user.role == ROLE_ADMIN ? 0 : req->user.user_id;
    if (!auth_revoke(req->services->auth, id, owner, err))
        return false;
    feed_tick(req->services->feed); /* streams that it opened end */
    return reply_bytes(req, 204, NULL, "", 0);
}

const struct route tokens_routes[] = {
    {"POST", "/api/v1/tokens", ROLE_NONE, tokens_create, "Make a token", NULL, "TokenRequest",
     201, "Token"},
    {"GET", "/api/v1/tokens", ROLE_NONE, tokens_list, "My tokens, without their secrets",
     "user:string", NULL, 200, "TokenList"},
    {"DELETE", "/api/v1/tokens/{id}", ROLE_NONE, tokens_revoke, "Revoke a token", NULL, NULL,
     204, NULL},
    {0},
};
