/* routes_test.c - the table of routes: every row is found by its own pattern, and is in the
 * document. */

#include <jansson.h>

#include "base/arena.h"
#include "server/auth.h"
#include "server/openapi.h"
#include "server/request.h"
#include "server/routes.h"
#include "tests/unit/test.h"

/* "/api/v1/jobs/{id}:cancel" with a value in place of {id}. */
static const char *example_of(struct arena *arena, const char *pattern)
{
    const char *open = strchr(pattern, '{');
    if (!open)
        return pattern;
    return arena_printf(arena, "%.*s%s%s", (int)(open - pattern), pattern, "7",
                        strchr(open, '}') + 1);
}

TEST(every_route_is_found_and_documented)
{
    struct arena *arena = arena_new();
    json_t *document = openapi_document();
    CHECK(document != NULL);
    json_t *paths = json_object_get(document, "paths");
    int count = 0;
    for (int table = 0; table < routes_all_count; table++) {
        for (const struct route *row = routes_all[table]; row->method; row++, count++) {
            const struct route *found = NULL;
            const char *params[ROUTE_PARAMS_MAX] = {0};
            const char *allow;
            const char *path = example_of(arena, row->pattern);
            CHECK_INT(routes_find(arena, row->method, path, &found, params, &allow),
                      ROUTES_FOUND);
            if (found != row)
                CHECK_STOP("%s %s leads to %s", row->method, path, found->pattern);
            CHECK(json_object_get(paths, row->pattern) != NULL);
            CHECK(*row->summary);
            int role = row->role >= AUTH_IN_PROJECT(ROLE_VIEWER)
                           ? row->role - AUTH_IN_PROJECT(0)
                           : row->role;
            /* Only these may be called by anybody. */
            bool open = row->role == AUTH_PUBLIC;
            CHECK(!open || strncmp(row->pattern, "/api/", 5) != 0 ||
                  !strcmp(row->pattern, "/api/v1/stream") ||
                  (!strncmp(row->pattern, "/api/v1/session", 15) &&
                   !strcmp(row->method, "POST")));
            /* What changes something is not for those who may only read, but for one's own
             * session, password, tokens and tickets. */
            bool own = !strncmp(row->pattern, "/api/v1/session", 15) ||
                       !strncmp(row->pattern, "/api/v1/tokens", 14) ||
                       !strcmp(row->pattern, "/api/v1/stream-tickets");
            CHECK(!strcmp(row->method, "GET") || own || role >= ROLE_MEMBER);
        }
    }
    CHECK(count > 25);
    json_decref(document);
    arena_free(arena);
}

TEST(paths_near_a_route_are_none)
{
    static const char *const paths[] = {"/",
                                        "/api",
                                        "/api/v1",
                                        "/api/v1/job",
                                        "/api/v1/jobs/7/nope",
                                        "/api/v1/jobs/7:dance",
                                        "/api/v1/jobs/:cancel",
                                        "/api/v1/jobs/7:x:cancel",
                                        "/healthz/x",
                                        "/API/v1/jobs"};
    struct arena *arena = arena_new();
    for (int i = 0; i < ARRAY_LEN(paths); i++) {
        const struct route *found;
        const char *params[ROUTE_PARAMS_MAX];
        const char *allow;
        if (routes_find(arena, "POST", paths[i], &found, params, &allow) != ROUTES_NO_PATH)
            CHECK_STOP("%s is a route", paths[i]);
    }
    arena_free(arena);
}

TEST(verbs_and_methods_are_told_apart)
{
    struct arena *arena = arena_new();
    const struct route *found;
    const char *params[ROUTE_PARAMS_MAX] = {0};
    const char *allow;
    CHECK_INT(
        routes_find(arena, "POST", "/api/v1/jobs/job_01ABC:cancel", &found, params, &allow),
        ROUTES_FOUND);
    CHECK_TEXT(params[0], "job_01ABC");
    CHECK_INT(routes_find(arena, "HEAD", "/api/v1/jobs/7", &found, params, &allow),
              ROUTES_FOUND);
    CHECK_TEXT(found->pattern, "/api/v1/jobs/{id}");
    CHECK_INT(routes_find(arena, "PUT", "/api/v1/jobs", &found, params, &allow),
              ROUTES_NO_METHOD);
    CHECK_TEXT(allow, "POST, GET");
    arena_free(arena);
}
