/* examples.c - the shipped examples, ready to be submitted. */

#include "base/arena.h"
#include "base/error.h"
#include "runtime/spec/spec.h"
#include "server/api/api.h"
#include "server/reply.h"
#include "server/request.h"

/* GET /api/v1/examples: {items: [{name, description, spec}]}. */
static bool examples_list(struct request *req, struct error *err)
{
    json_t *items = json_array();
    for (int i = 0; i < spec_example_count(); i++) {
        const struct spec_example *example = spec_example_at(i);
        json_t *spec = json_loadb(example->json, example->size, 0, NULL);
        const char *notes = json_string_value(json_object_get(spec, "notes"));
        json_array_append_new(items,
                              json_pack("{s:s, s:s, s:o}", "name", example->name, "description",
                                        notes ? notes : "", "spec", spec));
    }
    return reply_json(req, 200, json_pack("{s:o}", "items", items), err);
}

const struct route examples_routes[] = {
    {"GET", "/api/v1/examples", AUTH_IN_PROJECT(ROLE_VIEWER), examples_list, "Example specs",
     NULL, NULL, 200, "ExampleList"},
    {0},
};
