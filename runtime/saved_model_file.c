/* saved_model_file.c - opens a graph that is alone in a file: a MetaGraphDef or a GraphDef. */

#include <sys/stat.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/graph.h"
#include "runtime/graph_file.h"
#include "runtime/op.h"
#include "runtime/saved_model.h"
#include "runtime/session.h"
#include "runtime/shapes.h"

#define META ".meta"

static bool ends_with(const char *text, const char *ending)
{
    size_t size = strlen(text), end = strlen(ending);
    return size > end && !strcmp(text + size - end, ending);
}

bool saved_model_is_file(const char *path)
{
    struct stat info;
    return (ends_with(path, META) || ends_with(path, ".pb") || ends_with(path, ".pbtxt")) &&
           stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

/* --- a signature for a graph that has none --- */

static bool is_placeholder(const struct node *node)
{
    return !strcmp(node->op->name, "Placeholder") || !strcmp(node->op->name, "PlaceholderV2");
}

/* What is computed from placeholders and read by no other node is what a person asks for. */
struct ends {
    bool *fed, *read; /* by node */
    int inputs, outputs;
    struct shapes shapes;
};

static bool is_output(const struct node *node, const struct ends *ends)
{
    return ends->fed[node->id] && !ends->read[node->id] && !is_placeholder(node);
}

static bool find_ends(const struct graph *graph, struct ends *ends, struct error *err)
{
    int *order = graph_sorted(graph, err);
    if (order)
        shapes_infer(&ends->shapes, graph, order, graph_count(graph));
    for (int i = 0; order && i < graph_count(graph); i++) {
        const struct node *node = graph_node(graph, order[i]);
        ends->fed[node->id] = is_placeholder(node);
        ends->inputs += is_placeholder(node);
        for (int k = 0; k < node->inputs_count; k++) {
            ends->fed[node->id] |= ends->fed[node->inputs[k].from->id];
            ends->read[node->inputs[k].from->id] = true;
        }
    }
    for (int i = 0; order && i < graph_count(graph); i++)
        if (is_output(graph_node(graph, i), ends))
            ends->outputs += graph_node(graph, i)->outputs_count;
    free(order);
    return order != NULL;
}

static void add_outputs(const struct node *node, const struct shapes *shapes,
                        struct arena *arena, struct signature_tensor *outputs, int *count)
{
    for (int k = 0; k < node->outputs_count; k++) {
        const char *tensor = arena_printf(arena, "%s:%d", node->name, k);
        outputs[(*count)++] = (struct signature_tensor){
            .name = node->outputs_count == 1 ? arena_text(arena, node->name) : tensor,
            .tensor = tensor,
            .dtype = node->output_types[k],
            .shape = *shapes_at(shapes, (struct edge){(struct node *)node, k})};
    }
}

static struct signature make_signature(const struct graph *graph, const struct ends *ends,
                                       struct arena *arena)
{
    struct signature_tensor *inputs =
        arena_array(arena, (size_t)ends->inputs + 1, sizeof(*inputs));
    struct signature_tensor *outputs =
        arena_array(arena, (size_t)ends->outputs + 1, sizeof(*outputs));
    struct signature made = {.name = "graph", .inputs = inputs, .outputs = outputs};
    for (int i = 0; i < graph_count(graph); i++) {
        const struct node *node = graph_node(graph, i);
        const struct shape *shape = node_attr_shape(node, "shape");
        if (is_placeholder(node))
            inputs[made.inputs_count++] =
                (struct signature_tensor){.name = arena_text(arena, node->name),
                                          .tensor = arena_printf(arena, "%s:0", node->name),
                                          .dtype = node->output_types[0],
                                          .shape = shape ? *shape : SHAPE_UNKNOWN};
        else if (is_output(node, ends))
            add_outputs(node, &ends->shapes, arena, outputs, &made.outputs_count);
    }
    return made;
}

/* Gives a model without signatures one. */
static bool add_signature(struct saved_model *model, struct error *err)
{
    const struct graph *graph = session_graph(model->session);
    size_t count = (size_t)graph_count(graph) + 1;
    struct ends ends = {.fed = alloc_array(count, sizeof(bool)),
                        .read = alloc_array(count, sizeof(bool))};
    bool ok = find_ends(graph, &ends, err);
    if (ok && (!ends.inputs || !ends.outputs))
        ok = fail(err, INVALID, "it has no %s",
                  ends.inputs ? "node whose result nobody reads"
                              : "placeholder that could be fed");
    if (ok) {
        struct signature *made = arena_alloc(model->arena, sizeof(*made));
        *made = make_signature(graph, &ends, model->arena);
        model->signatures = made;
        model->signatures_count = 1;
    }
    shapes_release(&ends.shapes);
    free(ends.fed);
    free(ends.read);
    return ok;
}

/* --- opening --- */

static bool open_meta(const char *path, const struct session_options *options,
                      struct saved_model *out, struct error *err)
{
    struct stat info;
    char *prefix = alloc_printf("%.*s", (int)(strlen(path) - strlen(META)), path);
    char *index = alloc_printf("%s.index", prefix);
    bool has_checkpoint = stat(index, &info) == 0;
    bool ok = saved_model_open_meta(path, has_checkpoint ? prefix : NULL, options, out, err);
    free(index);
    free(prefix);
    return ok;
}

static bool open_graph(const char *path, const struct session_options *options,
                       struct saved_model *out, struct error *err)
{
    struct graph *graph = graph_new();
    struct str what = {0};
    struct saved_model model = {.tags = "", .version = "", .arena = arena_new()};
    bool ok = graph_file_read(path, NULL, graph, &what, err);
    model.session = ok ? session_new(options, err) : NULL;
    ok = model.session && session_extend_graph(model.session, graph, err);
    str_release(&what);
    graph_free(graph);
    if (ok)
        *out = model;
    else
        saved_model_close(&model);
    return ok;
}

bool saved_model_open_file(const char *path, const struct session_options *options,
                           struct saved_model *out, struct error *err)
{
    struct saved_model model;
    if (!(ends_with(path, META) ? open_meta(path, options, &model, err)
                                : open_graph(path, options, &model, err)))
        return false;
    if (!model.signatures_count && !add_signature(&model, err)) {
        saved_model_close(&model);
        return error_prefix(err, "%s: ", path);
    }
    *out = model;
    return true;
}
