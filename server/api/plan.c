/* plan.c - what would happen if a job were submitted, or nodes came or went. */

#include "server/plan.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "runtime/spec/spec.h"
#include "runtime/spec/spec_read.h"
#include "scheduler/loop.h"
#include "server/api/api.h"
#include "server/plan_whatif.h"
#include "server/reply.h"
#include "server/request.h"

#define CHANGES_MAX 100 /* of nodes in one request */
#define CPUS_MAX 65536.0
#define BYTES_MAX (INT64_C(1) << 50)

/* --- nodes --- */

static bool read_labels(const struct spec_object *object, struct scheduler_node_info *like)
{
    struct spec_object labels;
    if (!spec_read_object(object, "labels", &labels))
        return false;
    size_t count = labels.json ? json_object_size(labels.json) : 0;
    struct scheduler_label *list = arena_array(object->arena, count + 1, sizeof(*list));
    const char *name;
    json_t *value;
    if (labels.json)
        json_object_foreach(labels.json, name, value)
        {
            const char *text;
            if (!spec_read_name(&labels, name, &text))
                return false;
            list[like->labels_count++] =
                (struct scheduler_label){arena_text(object->arena, name), text};
        }
    like->labels = list;
    return true;
}

static bool read_added(const struct spec_object *object, struct whatif_node *out)
{
    struct scheduler_node_info *like = &out->like;
    double cpus = 0;
    int64_t count = 1;
    const char *gpu_type = "";
    if (!spec_read_number(object, "cpus", 0.001, CPUS_MAX, &cpus) ||
        !spec_read_integer(object, "memory_bytes", 0, BYTES_MAX,
                           &like->capacity.memory_bytes) ||
        !spec_read_integer(object, "gpus", 0, SCHEDULER_GPUS_MAX, &like->capacity.gpus) ||
        !spec_read_text(object, "gpu_type", LIMIT_NAME_BYTES, &gpu_type) ||
        !spec_read_integer(object, "gpu_memory_bytes", 0, BYTES_MAX, &like->gpu_memory_bytes) ||
        !spec_read_integer(object, "count", 1, LIMIT_NODES, &count) ||
        !read_labels(object, like))
        return false;
    like->capacity.cpu_millis = (int64_t)(cpus * 1000 + 0.5);
    like->gpu_type = gpu_type;
    out->count = (int)count;
    return true;
}

/* {name, remove: true}, {name, drain: true or false}, or {name, cpus, …} of one that is added.
 */
static bool read_node(const struct spec_object *object, struct whatif_node *out)
{
    static const char *const allowed[] = {
        "name",     "remove",           "drain",  "count", "cpus", "memory_bytes", "gpus",
        "gpu_type", "gpu_memory_bytes", "labels", NULL};
    bool removes = false, drains = false;
    *out = (struct whatif_node){.name = NULL};
    if (!spec_read_only(object, allowed) ||
        !spec_read_required(object, "name", "the name of a node") ||
        !spec_read_name(object, "name", &out->name) ||
        !spec_read_bool(object, "remove", &removes) ||
        !spec_read_bool(object, "drain", &drains))
        return false;
    bool has_drain = spec_read_value(object, "drain");
    bool adds = spec_read_value(object, "cpus");
    if (removes + has_drain + adds != 1)
        return error_at(object->err, object->pointer, INVALID,
                        "node '%s': one of remove, drain, or cpus (of a new one) must be there",
                        out->name);
    out->kind = removes ? WHATIF_REMOVE : drains ? WHATIF_DRAIN : WHATIF_UNDRAIN;
    if (!adds)
        return true;
    out->kind = WHATIF_ADD;
    return read_added(object, out);
}

static bool read_nodes(const struct spec_object *body, struct whatif_node **nodes, int *count)
{
    json_t *list = spec_read_value(body, "nodes");
    *nodes = NULL;
    *count = 0;
    if (list && (!json_is_array(list) || json_array_size(list) > CHANGES_MAX))
        return error_at(body->err, "/nodes", INVALID,
                        "a list of at most %d changes is wanted here", CHANGES_MAX);
    *nodes = arena_array(body->arena, json_array_size(list) + 1, sizeof(**nodes));
    for (size_t i = 0; i < json_array_size(list); i++) {
        struct spec_object object = *body;
        object.json = json_array_get(list, i);
        object.pointer = arena_printf(body->arena, "/nodes/%zu", i);
        if (!json_is_object(object.json))
            return error_at(body->err, object.pointer, INVALID, "an object is wanted here");
        if (!read_node(&object, &(*nodes)[(*count)++]))
            return false;
    }
    return true;
}

/* --- the answer --- */

static bool answer_nodes(struct request *req, const struct whatif_node *nodes, int count,
                         struct error *err)
{
    struct whatif what;
    struct str text = {0};
    if (!loop_whatif(req->services->loop, NULL, nodes, count, req->arena, &what, err))
        return false;
    plan_whatif_text(&what, &text);
    const char *said = str_text(&text);
    json_t *json = json_pack("{s:s}", "text",
                             *said ? said + (*said == ' ') : "No job would start otherwise.");
    str_release(&text);
    plan_whatif_json(&what, json);
    return reply_json(req, 200, json, err);
}

/* What is wrong with the spec is in the body's "spec". */
static bool in_spec(struct error *err)
{
    char pointer[sizeof(err->pointer)];
    snprintf(pointer, sizeof(pointer), "/spec%.190s", err->pointer);
    if (*err->pointer)
        memcpy(err->pointer, pointer, sizeof(pointer));
    return false;
}

static bool answer_job(struct request *req, const json_t *json, const struct whatif_node *nodes,
                       int count, struct error *err)
{
    struct plan plan;
    char *text = json_dumps(json, JSON_COMPACT);
    const struct spec *spec = spec_parse(req->arena, text, strlen(text), err);
    free(text);
    if (!spec || !plan_make_for(req, spec, &plan, err))
        return in_spec(err);
    if (!plan_forecast(req, spec, nodes, count, &plan, err))
        return strncmp(err->pointer, "/nodes", 6) == 0 ? false : in_spec(err);
    return reply_json(req, 200, plan_json(&plan, spec), err);
}

static bool answer(struct request *req, const struct spec_object *body)
{
    static const char *const allowed[] = {"spec", "nodes", NULL};
    struct whatif_node *nodes;
    int count;
    struct spec_object spec;
    if (!spec_read_only(body, allowed) || !spec_read_object(body, "spec", &spec) ||
        !read_nodes(body, &nodes, &count))
        return false;
    if (spec.json)
        return answer_job(req, spec.json, nodes, count, body->err);
    if (!count)
        return error_at(body->err, "/spec", INVALID,
                        "a spec of a job is wanted, or changes of nodes, or both");
    return answer_nodes(req, nodes, count, body->err);
}

/*
 * POST /api/v1/plan {spec, nodes}: when and where such a job would start and what it would
 * delay or preempt, if nodes came or went before; either may be left out.  Nothing changes.
 */
static bool plan_ask(struct request *req, struct error *err)
{
    json_error_t where;
    json_t *json = json_loadb(req->body, req->body_size, JSON_REJECT_DUPLICATES, &where);
    if (!json_is_object(json)) {
        json_decref(json);
        return fail(err, INVALID, "the body must be a JSON object");
    }
    struct spec_object body = {json, "", req->arena, err};
    bool ok = answer(req, &body);
    json_decref(json);
    return ok;
}

const struct route plan_routes[] = {
    {"POST", "/api/v1/plan", ROLE_MEMBER, plan_ask,
     "What would happen if a job were submitted, or nodes came or went", NULL, "PlanRequest",
     200, "Plan"},
    {0},
};
