/* openapi.c - routes into paths. */

#include "server/openapi.h"
#include "base/arena.h"
#include "db/state.h"
#include "server/auth.h"
#include "server/reply.h"
#include "server/request.h"
#include "server/routes.h"

/* Adds what is known of a parameter by its name. */
static void describe(json_t *schema, const char *name, size_t size)
{
    const char *type = json_string_value(json_object_get(schema, "type"));
    for (const struct openapi_schema *row = openapi_parameters; row->name; row++) {
        if (strlen(row->name) != size || memcmp(row->name, name, size) != 0)
            continue;
        json_t *more = json_loads(row->json, 0, NULL);
        assert(more);
        /* A name may be of a number here and of a text there. */
        if (strcmp(type, "integer") == 0)
            json_object_del(more, "pattern");
        else if (json_object_get(more, "minimum") && json_object_del(more, "minimum") == 0)
            json_object_del(more, "maximum");
        json_object_update(schema, more);
        json_decref(more);
    }
}

/* A type that ends with '!' is of a parameter that must be there. */
static json_t *parameter(const char *name, size_t size, const char *where, const char *type,
                         size_t type_size)
{
    bool required = type[type_size - 1] == '!' || strcmp(where, "path") == 0;
    type_size -= type[type_size - 1] == '!';
    json_t *schema = json_pack("{s:s%}", "type", type, type_size);
    describe(schema, name, size);
    return json_pack("{s:s%, s:s, s:b, s:o}", "name", name, size, "in", where, "required",
                     (int)required, "schema", schema);
}

/* Parameters in the path ("{id}"), in the query ("limit:integer cursor:string") and in the head
 * ("If-Match:header"). */
static json_t *parameters(const struct route *route)
{
    json_t *list = json_array();
    for (const char *open = strchr(route->pattern, '{'); open; open = strchr(open + 1, '{'))
        json_array_append_new(list,
                              parameter(open + 1, strcspn(open + 1, "}"), "path", "string", 6));
    for (const char *at = route->query ? route->query : ""; *at;) {
        size_t word = strcspn(at, " ");
        size_t name = strcspn(at, ":");
        const char *type = at + name + 1;
        bool header = strncmp(type, "header", 6) == 0;
        json_array_append_new(list, header
                                        ? parameter(at, name, "header", "string", 6)
                                        : parameter(at, name, "query", type, word - name - 1));
        at += word + (at[word] == ' ');
    }
    return list;
}

/* {"application/json": {"schema": …}}; `what` is the name of a schema, a media type, or NULL.
 */
static json_t *content(const char *what)
{
    if (what && strchr(what, '/'))
        return json_pack("{s:{s:{s:s}}}", what, "schema", "type", "string");
    json_t *schema =
        what ? json_pack("{s:o}", "$ref", json_sprintf("#/components/schemas/%s", what))
             : json_object();
    return json_pack("{s:{s:o}}", "application/json", "schema", schema);
}

/* Adds the answer with a status; `what` as for content(), "" when it has no body. */
static void add_response(json_t *responses, int status, const char *what, size_t size)
{
    char key[8], name[64];
    snprintf(key, sizeof(key), "%d", status);
    snprintf(name, sizeof(name), "%.*s", (int)size, what);
    const char *text = status == 101 ? "Switching Protocols" : reply_status_text(status);
    json_t *response = json_pack("{s:s}", "description", text);
    if (size)
        json_object_set_new(response, "content", content(name));
    json_object_set_new(responses, key, response);
}

static json_t *responses(const struct route *route)
{
    json_t *list = json_object();
    const char *at = route->answer ? route->answer : "";
    size_t word = strcspn(at, " ");
    add_response(list, route->status, at, word);
    for (at += word; *at; at += word) {
        int status = (int)strtol(++at, (char **)&at, 10);
        at += *at == ':';
        word = strcspn(at, " ");
        add_response(list, status, at, word);
    }
    json_t *problems = json_pack("{s:{s:{s:s}}}", "application/problem+json", "schema", "$ref",
                                 "#/components/schemas/Problem");
    if (route->answer &&
        strcmp(route->answer, "text/html") == 0) /* a person is told on a page */
        json_object_set_new(problems, "text/html",
                            json_pack("{s:{s:s}}", "schema", "type", "string"));
    json_object_set_new(
        list, "default",
        json_pack("{s:s, s:o}", "description", "A problem (RFC 9457)", "content", problems));
    return list;
}

/* A body may be left out where its schema asks for nothing. */
static bool body_required(const char *name)
{
    bool required = false;
    for (const struct openapi_schema *row = openapi_schemas; row->name; row++)
        if (strcmp(row->name, name) == 0)
            required =
                strstr(row->json, "\"required\":") || strstr(row->json, "\"minProperties\":");
    return required;
}

static json_t *operation(const struct route *route)
{
    json_t *json = json_pack("{s:s, s:o, s:o}", "summary", route->summary, "parameters",
                             parameters(route), "responses", responses(route));
    if (route->body)
        json_object_set_new(json, "requestBody",
                            json_pack("{s:b, s:o}", "required", (int)body_required(route->body),
                                      "content", content(route->body)));
    if (route->role == AUTH_PUBLIC)
        json_object_set_new(json, "security", json_array());
    else {
        bool in_project;
        json_object_set_new(json, "x-role",
                            json_string(auth_role_name(route->role, &in_project)));
        if (in_project)
            json_object_set_new(json, "x-role-in", json_string("project"));
    }
    return json;
}

json_t *openapi_document(void)
{
    json_t *paths = json_object();
    for (int table = 0; table < routes_all_count; table++) {
        for (const struct route *route = routes_all[table]; route->method; route++) {
            json_t *path = json_object_get(paths, route->pattern);
            if (!path) {
                path = json_object();
                json_object_set_new(paths, route->pattern, path);
            }
            char method[8];
            size_t size = strlen(route->method);
            assert(size < sizeof(method));
            for (size_t i = 0; i <= size; i++)
                method[i] = (char)(route->method[i] ? route->method[i] | 0x20 : 0);
            json_object_set_new(path, method, operation(route));
        }
    }
    json_t *schemas = json_object();
    for (const struct openapi_schema *row = openapi_schemas; row->name; row++) {
        json_t *schema = json_loads(row->json, 0, NULL);
        assert(schema);
        json_object_set_new(schemas, row->name, schema);
    }
    return json_pack("{s:s, s:{s:s, s:s, s:s}, s:[{s:[]}, {s:[]}], s:o, s:{s:o, s:{s:{s:s, "
                     "s:s}, s:{s:s, s:s, s:s}}}}",
                     "openapi", "3.1.0", "info", "title", "Trainyard", "version", "1",
                     "description",
                     "Training as a service: submit jobs, follow them, see why they wait. "
                     "Errors are RFC 9457 problems.",
                     "security", "token", "session", "paths", paths, "components", "schemas",
                     schemas, "securitySchemes", "token", "type", "http", "scheme", "bearer",
                     "session", "type", "apiKey", "in", "cookie", "name", "trainyard");
}
