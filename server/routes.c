/* routes.c - from method and path to a handler. */

#include "server/routes.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "base/str.h"
#include "server/api/api.h"
#include "server/assets.h"
#include "server/audit.h"
#include "server/reply.h"
#include "server/request.h"
#include "server/room.h"

const struct route *const routes_all[] = {
    health_routes,    session_routes, oidc_routes,       plan_routes,        jobs_routes,
    jobs_list_routes, arrays_routes,  story_routes,      checkpoints_routes, metrics_routes,
    logs_routes,      graph_routes,   files_routes,      follow_routes,      nodes_routes,
    examples_routes,  passes_routes,  queues_routes,     tokens_routes,      secrets_routes,
    users_routes,     members_routes, webhooks_routes,   datasets_routes,    prometheus_routes,
    openapi_routes,   points_routes,  jobs_ended_routes, tunnel_routes,
};
const int routes_all_count = ARRAY_LEN(routes_all);

bool routes_waits(const struct route *route)
{
    return strncmp(route->pattern, "/oidc/", 6) == 0;
}

/* Matches one segment of a pattern; `*param` is set when it takes one. */
static bool match_segment(struct arena *arena, const char *pattern, size_t pattern_size,
                          const char *text, size_t size, const char **param)
{
    if (pattern[0] != '{')
        return size == pattern_size && memcmp(text, pattern, size) == 0;
    const char *close = memchr(pattern, '}', pattern_size);
    assert(close);
    const char *verb = close + 1; /* "" or ":cancel" */
    size_t verb_size = (size_t)(pattern + pattern_size - verb);
    if (size <= verb_size || memcmp(text + size - verb_size, verb, verb_size) != 0)
        return false;
    size_t value_size = size - verb_size;
    if (memchr(text, ':', value_size))
        return false;
    *param = arena_text_n(arena, text, value_size);
    return true;
}

static bool match_pattern(struct arena *arena, const char *pattern, const char *path,
                          const char **params)
{
    int count = 0;
    for (;;) {
        pattern += *pattern == '/';
        path += *path == '/';
        size_t pattern_size = strcspn(pattern, "/");
        size_t size = strcspn(path, "/");
        const char *param = NULL;
        if (pattern_size != 0 || size != 0)
            if (!pattern_size ||
                !match_segment(arena, pattern, pattern_size, path, size, &param))
                return false;
        if (param) {
            assert(count < ROUTE_PARAMS_MAX);
            params[count++] = param;
        }
        pattern += pattern_size;
        path += size;
        if (!*pattern || !*path)
            return !*pattern && !*path;
    }
}

enum routes_match routes_find(struct arena *arena, const char *method, const char *path,
                              const struct route **route, const char **params,
                              const char **allow)
{
    struct str methods = {0};
    if (strcmp(method, "HEAD") == 0)
        method = "GET";
    for (int table = 0; table < routes_all_count; table++) {
        for (const struct route *row = routes_all[table]; row->method; row++) {
            if (!match_pattern(arena, row->pattern, path, params))
                continue;
            if (strcmp(row->method, method) == 0) {
                *route = row;
                str_release(&methods);
                return ROUTES_FOUND;
            }
            str_printf(&methods, "%s%s", methods.size ? ", " : "", row->method);
        }
    }
    enum routes_match result = methods.size ? ROUTES_NO_METHOD : ROUTES_NO_PATH;
    *allow = arena_text(arena, str_text(&methods));
    str_release(&methods);
    return result;
}

/* Only the parameters that a route names may be given: a typo must not be ignored. */
static bool check_query(const struct request *req, const struct route *route, struct error *err)
{
    for (int i = 0; i < req->url.query_count; i++) {
        const char *name = req->url.query[i].name;
        size_t size = strlen(name);
        bool known = false;
        for (const char *at = route->query ? route->query : ""; *at && !known;) {
            size_t word = strcspn(at, " ");
            known = size < word && memcmp(at, name, size) == 0 && at[size] == ':' &&
                    strncmp(at + size, ":header", 7) != 0;
            at += word + (at[word] == ' ');
        }
        if (!known)
            return fail(err, INVALID, "unknown parameter '%.80s'; %s takes: %s", name,
                        route->pattern, route->query ? route->query : "none");
    }
    return true;
}

/* Who asks for a change on a condition must not get it without. */
static bool check_condition(const struct request *req, const struct route *route,
                            struct error *err)
{
    return !request_header(req, "If-Match") || strcmp(route->method, "GET") == 0 ||
           (route->query && strstr(route->query, "If-Match:header")) ||
           fail(err, INVALID, "If-Match is not looked at by %s %s: leave it out", route->method,
                route->pattern);
}

/* Sets req->route; without one the reply is there (a file of the page). */
static bool admit(struct request *req, struct error *err)
{
    const struct route *route = NULL;
    const char *allow = "";
    enum routes_match match =
        routes_find(req->arena, req->method, req->url.path, &route, req->params, &allow);

    if (strcmp(req->url.path, "/healthz") != 0 && !room_check(err))
        return false;
    /* The page itself holds no secrets: it finds out by its first call whether one is signed
     * in. */
    if (match == ROUTES_NO_PATH) {
        if (!auth_request(req->services->auth, req, AUTH_PUBLIC, err))
            return false;
        if (assets_reply(req))
            return true;
    }
    /* Who is not signed in learns nothing, not even which routes there are. */
    int wanted = match == ROUTES_FOUND ? route->role : ROLE_NONE;
    if (!auth_request(req->services->auth, req, wanted, err))
        return false;
    if (match == ROUTES_NO_PATH)
        return fail(err, NOT_FOUND, "there is nothing at %s", req->url.path);
    if (match == ROUTES_NO_METHOD) {
        req->reply.status = 405;
        reply_header(req, "Allow", allow);
        return fail(err, UNIMPLEMENTED, "%s is not possible on %s; possible: %s", req->method,
                    req->url.path, allow);
    }
    if (!check_query(req, route, err) || !check_condition(req, route, err))
        return false;
    req->route = route;
    return true;
}

static void refuse(struct request *req, const struct error *err)
{
    int status = req->reply.status >= 400 ? req->reply.status : 0;
    reply_problem(req, status, err);
    if (req->reply.status >= 500) {
        char text[400];
        log_line(LOG_WARN, "http", "request=%s method=%s status=%d code=%s msg=%s", req->id,
                 req->method, req->reply.status, error_code_name(err->code),
                 log_quote(err->text, text, sizeof(text)));
    }
}

bool routes_admit(struct request *req)
{
    struct error err;
    if (!admit(req, &err)) {
        audit_refused(req, &err);
        refuse(req, &err);
    }
    return req->route;
}

void routes_dispatch(struct request *req)
{
    struct error err;
    assert(req->route);
    if (!audit_handle(req, &err))
        refuse(req, &err);
    reply_compress(req);
}
