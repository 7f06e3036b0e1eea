/* tokens.c - making, listing and revoking tokens. */

#include <inttypes.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "db/tokens.h"
#include "server/api/api.h"
#include "server/feed.h"
#include "server/job.h"
#include "server/reply.h"
#include "server/request.h"

#define TOKENS_DAYS_MAX 3650

struct token_request {
    const char *name;
    enum token_kind kind;
    int64_t days; /* 0: for ever */
};

static bool read_member(struct request *req, json_t *body, struct token_request *token,
                        struct error *err)
{
    const char *name;
    json_t *value;
    json_object_foreach(body, name, value)
    {
        if (strcmp(name, "name") == 0 && json_is_string(value))
            token->name = arena_text(req->arena, json_string_value(value));
        else if (strcmp(name, "kind") == 0 && json_is_string(value) &&
                 strcmp(json_string_value(value), "join") == 0)
            token->kind = TOKEN_JOIN;
        else if (strcmp(name, "kind") == 0 && json_is_string(value) &&
                 strcmp(json_string_value(value), "api") == 0)
            token->kind = TOKEN_API;
        else if (strcmp(name, "days") == 0 && json_is_integer(value) &&
                 json_integer_value(value) >= 0 && json_integer_value(value) <= TOKENS_DAYS_MAX)
            token->days = json_integer_value(value);
        else
            return error_at(
                err, arena_printf(req->arena, "/%.40s", name), INVALID,
                "a token has name (text), kind (\"api\" or \"join\") and days (0 to %d)",
                TOKENS_DAYS_MAX);
    }
    return true;
}

/*
 * POST /api/v1/tokens {name, kind: "api" | "join", days}     201 {token}
 *
 * The token is shown this once; only its hash is kept.
 */
static bool tokens_create(struct request *req, struct error *err)
{
    struct token_request token = {.name = "token", .kind = TOKEN_API};
    json_error_t where;
    json_t *body = req->body_size
                       ? json_loadb(req->body, req->body_size, JSON_REJECT_DUPLICATES, &where)
                       : json_object();
    if (!json_is_object(body)) {
        json_decref(body);
        return fail(err, INVALID, "the body must be a JSON object");
    }
    bool ok = read_member(req, body, &token, err);
    json_decref(body);
    char secret[DB_TOKEN_BYTES];
    int64_t expires_us =
        token.days ? (int64_t)clock_wall_us() + token.days * 86400 * 1000000 : 0;
    return ok &&
           db_tokens_add(req->services->db, req->user.user_id, token.kind, token.name,
                         expires_us, secret, err) &&
           reply_json(req, 201, json_pack("{s:s}", "token", secret), err);
}

/* GET /api/v1/tokens: one's own, without their secrets. */
static bool tokens_list(struct request *req, struct error *err)
{
    struct db_conn *conn = db_read(req->services->db, DB_CONTROL, err);
    if (!conn)
        return false;
    struct db_token *tokens;
    int count = 0;
    bool ok = db_tokens_list(conn, req->user.user_id, req->arena, &tokens, &count, err);
    db_read_done(req->services->db, conn);
    if (!ok)
        return false;
    static const char *const kinds[] = {"api", "session", "login", "join"};
    json_t *items = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(items, json_pack("{s:I, s:s, s:s, s:o, s:o, s:o}", "id",
                                               (json_int_t)tokens[i].id, "kind",
                                               kinds[tokens[i].kind], "name", tokens[i].name,
                                               "created_at", job_time(tokens[i].created_us),
                                               "expires_at", job_time(tokens[i].expires_us),
                                               "used_at", job_time(tokens[i].used_us)));
    return reply_json(req, 200, json_pack("{s:o}", "items", items), err);
}

/* DELETE /api/v1/tokens/{id}: it does not work any more from now. */
static bool tokens_revoke(struct request *req, struct error *err)
{
    char *end;
    long long id = strtoll(req->params[0], &end, 10);
    if (*end || id <= 0)
        return fail(err, NOT_FOUND, "there is no token '%.40s'", req->params[0]);
    if (!auth_revoke(req->services->auth, id, err))
        return false;
    feed_tick(req->services->feed); /* streams that it opened end */
    return reply_bytes(req, 204, NULL, "", 0);
}

const struct route tokens_routes[] = {
    {"POST", "/api/v1/tokens", ROLE_ADMIN, tokens_create, "Make a token", NULL, "TokenRequest",
     201, "Token"},
    {"GET", "/api/v1/tokens", ROLE_ADMIN, tokens_list, "Tokens, without their secrets", NULL,
     NULL, 200, "TokenList"},
    {"DELETE", "/api/v1/tokens/{id}", ROLE_ADMIN, tokens_revoke, "Revoke a token", NULL, NULL,
     204, NULL},
    {0},
};
