/* nodes_certify.c - see nodes_certify.h. */

#include "server/nodes_certify.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/str.h"
#include "db/nodes.h"
#include "db/tokens.h"
#include "proto/agent_certify_pb.h"
#include "proto/rpc.h"
#include "server/authority.h"

bool nodes_token_check(struct db *db, const char *token, struct arena *arena,
                       struct db_token *found, struct error *err)
{
    struct db_conn *conn = db_read(db, DB_CONTROL, err);
    bool ok = conn && db_tokens_find(conn, token, TOKEN_JOIN, (int64_t)clock_wall_us(), arena,
                                     found, err);
    db_read_done(db, conn);
    if (!ok && err->code == UNAUTHENTICATED)
        fail(err, UNAUTHENTICATED, "this join token is not valid, or no longer");
    return ok;
}

bool nodes_name_check(const char *name, struct error *err)
{
    size_t size = strlen(name);
    bool good = size && size <= LIMIT_NAME_BYTES && name[0] != '.';
    for (const char *c = name; *c && good; c++)
        good = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
               (*c >= '0' && *c <= '9') || *c == '.' || *c == '_' || *c == '-';
    return good || fail(err, INVALID,
                        "'%.100s' is no name for a node: letters, digits, '.', '_' and '-', at "
                        "most %d of them",
                        name, LIMIT_NAME_BYTES);
}

/* Whether who came by this token is let in as this node still; `*was_removed`: but was not of
 * late. */
static bool not_removed(struct db *db, const struct authority_node *who, bool *was_removed,
                        struct error *err)
{
    struct db_node node = {0};
    struct arena *arena = arena_new();
    bool revoked = false;
    struct db_conn *conn = db_read(db, DB_CONTROL, err);
    bool ok = conn &&
              (db_nodes_find(conn, who->name, arena, &node, err) ||
               err->code == NOT_FOUND) && /* a new one */
              db_tokens_revoked(conn, who->token, &revoked, err);
    db_read_done(db, conn);
    arena_free(arena);
    *was_removed = node.removed;
    if (ok && revoked)
        return fail(err, DENIED,
                    "the token by which node '%s' came was revoked: it needs a new one "
                    "(trainyard token create --join)",
                    who->name);
    if (ok && node.refused_token && who->token <= node.refused_token)
        return fail(err, NOT_FOUND,
                    "node '%s' was removed from this server: it needs a token that was made "
                    "since (trainyard token create --join)",
                    who->name);
    return ok;
}

static bool is_their_own(const struct authority_node *who, const char *name, struct error *err)
{
    return strcmp(who->name, name) == 0 ||
           fail(err, DENIED, "the certificate is node '%s's, not node '%.100s's", who->name,
                name);
}

bool nodes_admit(struct db *db, struct authority *authority, const struct rpc_call *call,
                 const char *name, struct error *err)
{
    struct authority_node who;
    bool was_removed;
    return authority_check(authority, call, &who, err) && is_their_own(&who, name, err) &&
           not_removed(db, &who, &was_removed, err);
}

/* Whom the certificate will be of. */
static bool identify(struct db *db, struct authority *authority, const struct rpc_call *call,
                     const struct agent_certify_request *request, struct arena *arena,
                     struct authority_node *who, struct error *err)
{
    if (!request->token[0])
        return authority_check(authority, call, who, err) &&
               is_their_own(who, request->node_name, err);
    struct db_token token;
    if (!nodes_name_check(request->node_name, err) ||
        !nodes_token_check(db, request->token, arena, &token, err))
        return false;
    snprintf(who->name, sizeof(who->name), "%s", request->node_name);
    who->token = token.id;
    return true;
}

void nodes_refused(const struct rpc_call *call, const struct error *err)
{
    char text[700];
    log_line(LOG_WARN, "nodes", "peer=%s code=%s msg=%s", rpc_call_peer(call),
             error_code_name(err->code), log_quote(err->text, text, sizeof(text)));
}

bool nodes_certify(struct db *db, struct authority *authority, struct rpc_call *call,
                   struct str *answer, struct error *err)
{
    struct arena *arena = arena_new();
    struct agent_certify_request request;
    struct agent_certify_response response;
    struct authority_node who;
    bool was_removed;
    size_t size;
    const void *bytes = rpc_call_bytes(call, &size);
    bool ok =
        (authority || fail(err, PRECONDITION,
                           "this server lets in certificates of its operator's authority "
                           "(--agents-ca): give the agent --cert and --key")) &&
        agent_certify_request_unpack(bytes, size, arena, &request, err) &&
        identify(db, authority, call, &request, arena, &who, err) &&
        not_removed(db, &who, &was_removed, err) &&
        authority_issue(authority, request.request, &who, arena, &response.certificate, err) &&
        (!was_removed || db_nodes_welcome(db, who.name, err));
    if (ok) {
        agent_certify_response_pack(&response, answer);
        log_line(LOG_INFO, "nodes", "node=%s token=%lld msg=\"has a new certificate\"",
                 who.name, (long long)who.token);
    }
    arena_free(arena);
    return ok;
}
