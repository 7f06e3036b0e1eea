/* graph.c - the graph that a job runs, and where its nodes run. */

#include "runtime/graph.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "db/artifacts.h"
#include "runtime/dtype.h"
#include "runtime/op.h"
#include "runtime/tensor.h"
#include "server/api/api.h"
#include "server/job.h"
#include "server/reply.h"
#include "server/request.h"

#define GRAPH_LIST_SHOWN 8   /* values of a list attribute that are shown */
#define GRAPH_TEXT_SHOWN 120 /* bytes of a text attribute */

/* The newest artifact of a kind; `found` false while the job has not reported one. */
static bool read_artifact(struct request *req, const char *kind, struct db_artifact *artifact,
                          bool *found, struct error *err)
{
    struct db_job job;
    if (!job_find(req, &job, err))
        return false;
    struct db_conn *conn = db_read(req->services->db, DB_METRICS, err);
    if (!conn)
        return false;
    *found = db_artifacts_find(conn, job.number, kind, "", req->arena, artifact, err);
    db_read_done(req->services->db, conn);
    return *found || err->code == NOT_FOUND;
}

static void add_shape(struct str *out, const struct shape *shape)
{
    if (shape->rank < 0) {
        str_add(out, "?");
        return;
    }
    str_add_char(out, '[');
    for (int i = 0; i < shape->rank; i++) {
        if (shape->dims[i] < 0)
            str_printf(out, "%s?", i ? ", " : "");
        else
            str_printf(out, "%s%lld", i ? ", " : "", (long long)shape->dims[i]);
    }
    str_add_char(out, ']');
}

static void add_value(struct str *out, const struct attr *attr, int i)
{
    switch (attr->kind) {
    case ATTR_STRING:
    case ATTR_PLACEHOLDER: {
        size_t size = attr->strings[i].size;
        bool cut = size > GRAPH_TEXT_SHOWN;
        str_add_bytes(out, attr->strings[i].data, cut ? GRAPH_TEXT_SHOWN : size);
        if (cut)
            str_add(out, "…");
        break;
    }
    case ATTR_INT:
        str_printf(out, "%lld", (long long)attr->ints[i]);
        break;
    case ATTR_FLOAT:
        str_printf(out, "%g", (double)attr->floats[i]);
        break;
    case ATTR_BOOL:
        str_add(out, attr->bools[i] ? "true" : "false");
        break;
    case ATTR_TYPE:
        str_add(out, dtype_name(attr->types[i]));
        break;
    case ATTR_SHAPE:
        add_shape(out, &attr->shapes[i]);
        break;
    case ATTR_TENSOR:
        str_printf(out, "%s ", dtype_name(attr->tensors[i].dtype));
        add_shape(out, &attr->tensors[i].shape);
        break;
    case ATTR_FUNC:
        str_add(out, attr->funcs[i].name);
        break;
    case ATTR_NONE:
        break;
    }
}

/* An attribute in the words of a person: "[1, 2, 2, 1]", "DT_FLOAT". */
static void add_attr(struct str *out, const struct attr *attr)
{
    struct str text = {0};
    if (attr->is_list)
        str_add_char(&text, '[');
    for (int i = 0; i < attr->count && i < GRAPH_LIST_SHOWN; i++) {
        if (i)
            str_add(&text, ", ");
        add_value(&text, attr, i);
    }
    if (attr->count > GRAPH_LIST_SHOWN)
        str_printf(&text, ", … (%d)", attr->count);
    if (attr->is_list)
        str_add_char(&text, ']');
    str_add_json(out, attr->name, strlen(attr->name));
    str_add_char(out, ':');
    str_add_json(out, str_text(&text), text.size);
    str_release(&text);
}

static void add_inputs(struct str *out, const struct node *node)
{
    str_add(out, ",\"inputs\":[");
    for (int i = 0; i < node->inputs_count; i++) {
        struct str name = {0};
        str_add(&name, node->inputs[i].from->name);
        if (node->inputs[i].output)
            str_printf(&name, ":%d", node->inputs[i].output);
        str_add(out, i ? "," : "");
        str_add_json(out, str_text(&name), name.size);
        str_release(&name);
    }
    for (int i = 0; i < node->controls_count; i++) {
        struct str name = {0};
        str_printf(&name, "^%s", node->controls[i]->name);
        str_add(out, i || node->inputs_count ? "," : "");
        str_add_json(out, str_text(&name), name.size);
        str_release(&name);
    }
    str_add_char(out, ']');
}

static void add_node(struct str *out, const struct node *node)
{
    str_add(out, "{\"name\":");
    str_add_json(out, node->name, strlen(node->name));
    str_printf(out, ",\"op\":\"%s\",\"device\":", node->op->name);
    str_add_json(out, node->requested_device, strlen(node->requested_device));
    add_inputs(out, node);
    const struct attr *shapes = node_attr(node, "_output_shapes");
    if (shapes && shapes->kind == ATTR_SHAPE) {
        str_add(out, ",\"shapes\":[");
        for (int i = 0; i < shapes->count; i++) {
            str_add(out, i ? ",\"" : "\"");
            add_shape(out, &shapes->shapes[i]);
            str_add_char(out, '"');
        }
        str_add_char(out, ']');
    }
    str_add(out, ",\"attrs\":{");
    int added = 0;
    for (int i = 0; i < node->attrs_count; i++) {
        if (strcmp(node->attrs[i].name, "_output_shapes") == 0)
            continue;
        if (added++)
            str_add_char(out, ',');
        add_attr(out, &node->attrs[i]);
    }
    str_add(out, "}}");
}

/* GET /api/v1/jobs/{id}/graph: {nodes: […]}, none before the job has started. */
static bool graph_show(struct request *req, struct error *err)
{
    struct db_artifact artifact;
    bool found;
    if (!read_artifact(req, "graph", &artifact, &found, err))
        return false;
    struct graph *graph = graph_new();
    if (found && !graph_import(graph, artifact.bytes, artifact.size, err)) {
        graph_free(graph);
        return error_prefix(err, "the graph of the job cannot be shown: ");
    }
    struct str out = {0};
    str_add(&out, "{\"nodes\":[");
    for (int i = 0; i < graph_count(graph); i++) {
        str_add(&out, i ? "," : "");
        add_node(&out, graph_node(graph, i));
    }
    str_add(&out, "]}");
    graph_free(graph);
    size_t size = out.size;
    return reply_owned(req, 200, "application/json", str_take(&out), size);
}

/* GET /api/v1/jobs/{id}/placement: {items: [{node, op, device, requested, reason,
 * candidates}]}. */
static bool graph_placement(struct request *req, struct error *err)
{
    struct db_artifact artifact;
    bool found;
    if (!read_artifact(req, "placement", &artifact, &found, err))
        return false;
    struct str out = {0};
    str_add(&out, "{\"items\":");
    if (found)
        str_add_bytes(&out, artifact.bytes, artifact.size);
    else
        str_add(&out, "[]");
    str_add(&out, "}");
    size_t size = out.size;
    return reply_owned(req, 200, "application/json", str_take(&out), size);
}

/* GET /api/v1/jobs/{id}/times: {step, steps, us, input_us, tasks: […]}; {tasks: []} before
 * there is anything to tell. */
static bool graph_times(struct request *req, struct error *err)
{
    struct db_artifact artifact;
    bool found;
    if (!read_artifact(req, "times", &artifact, &found, err))
        return false;
    json_t *times = found ? json_loadb(artifact.bytes, artifact.size, 0, NULL) : NULL;
    if (!json_is_array(json_object_get(times, "tasks"))) { /* none, or another program's */
        json_decref(times);
        times = json_pack("{s:[]}", "tasks");
    }
    return reply_json(req, 200, times, err);
}

const struct route graph_routes[] = {
    {"GET", "/api/v1/jobs/{id}/graph", AUTH_IN_PROJECT(ROLE_VIEWER), graph_show,
     "Nodes of the graph that runs", NULL, NULL, 200, "Graph"},
    {"GET", "/api/v1/jobs/{id}/placement", AUTH_IN_PROJECT(ROLE_VIEWER), graph_placement,
     "Which op runs where, and why", NULL, NULL, 200, "Placement"},
    {"GET", "/api/v1/jobs/{id}/times", AUTH_IN_PROJECT(ROLE_VIEWER), graph_times,
     "Where the time of its steps goes: input, each task, waiting for others", NULL, NULL, 200,
     "StepTimes"},
    {0},
};
