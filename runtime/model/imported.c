/* imported.c - from a MetaGraphDef to a model, see imported.h. */

#include "runtime/model/imported.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "runtime/io/base64.h"
#include "runtime/io/gzip.h"
#include "runtime/model/imported_internal.h"
#include "runtime/model/metric.h"
#include "runtime/op.h"

void imported_at(struct importing *g, const char *field)
{
    g->m.pointer = field;
}

/* What has failed did so at the field of the moment. */
static void fail_here(struct importing *g)
{
    struct error *err = g->m.b.err;
    g->m.b.failed = true;
    snprintf(err->pointer, sizeof(err->pointer), "%s", g->m.pointer);
    error_prefix(err, "the MetaGraphDef: ");
}

/* --- the graph --- */

/* Compressed or not. */
static bool unpack(struct importing *g, struct str *bytes)
{
    struct str packed = {0};
    bool whole = true, ok = true;
    if (!base64_decode(g->spec->graph.meta_graph, bytes)) {
        build_refuse(&g->m, INVALID, "meta_graph is not base64");
        return false;
    }
    if (gzip_is(bytes->data, bytes->size)) {
        packed = *bytes;
        *bytes = (struct str){0};
        ok = gzip_decompress(packed.data, packed.size, true, LIMIT_META_GRAPH_BYTES, bytes,
                             &whole, g->m.b.err);
        str_release(&packed);
    }
    if (!ok)
        fail_here(g);
    else if (!whole)
        build_refuse(&g->m, DATA_LOSS, "meta_graph is cut off: its gzip does not end");
    return ok && whole;
}

static void read_graph(struct importing *g)
{
    struct str bytes = {0};
    imported_at(g, IMPORTED_POINTER "/meta_graph");
    if (unpack(g, &bytes) &&
        !meta_graph_read(str_text(&bytes), bytes.size, g->m.b.graph, &g->meta, g->m.b.err))
        fail_here(g);
    str_release(&bytes);
    g->nodes_count = graph_count(g->m.b.graph);
    /* What follows from what its placeholders declare, before anything else feeds them. */
    if (build_ok(&g->m) && !shapes_extend(&g->m.shapes, g->m.b.graph, g->m.b.err))
        fail_here(g);
}

struct edge imported_find(struct importing *g, const char *name)
{
    struct edge edge = {0};
    struct error err;
    if (build_ok(&g->m) && !graph_edge(g->m.b.graph, name, &edge, &err)) {
        build_refuse(&g->m, INVALID, "%s", err.text);
        return (struct edge){0};
    }
    return edge;
}

/* The node that a collection names, which may say an output of it. */
static struct node *find_node(struct importing *g, const char *name)
{
    const char *node = arena_text_n(g->m.arena, name, strcspn(name, ":"));
    struct node *found = graph_find(g->m.b.graph, node);
    if (!found)
        build_refuse(&g->m, INVALID, "the graph has no node \"%.200s\"", node);
    return found;
}

/* --- what is fetched and run --- */

/* The only name in the collection; a refusal that asks for the field when there is none. */
static const char *only_of(struct importing *g, const char *collection, const char *field)
{
    const struct meta_collection *found = meta_graph_find(&g->meta, collection);
    int count = found ? found->count : 0;
    if (count == 1)
        return found->values[0];
    build_refuse(&g->m, INVALID,
                 "the graph's collection \"%s\" has %d names, wanted: one, or \"%s\" here",
                 collection, count, field);
    return "";
}

/* A scalar of floats. */
static struct edge find_number(struct importing *g, const char *name)
{
    struct edge edge = imported_find(g, name);
    if (!edge.from)
        return edge;
    int type = edge.from->outputs_count ? edge.from->output_types[edge.output] : 0;
    const struct shape *shape = build_shape(&g->m, edge);
    char text[SHAPE_TEXT_BYTES];
    if (!type || dtype_is_ref(type) || !(DTYPES_FLOAT & BIT(type)))
        build_refuse(&g->m, INVALID, "\"%.200s\" holds no floats", name);
    else if (shape->rank > 0)
        build_refuse(&g->m, INVALID, "\"%.200s\" is %s, wanted: one number, the batch's mean",
                     name, shape_text(shape, text, sizeof(text)));
    return edge;
}

static const char *output_text(struct build *m, struct edge edge)
{
    return build_ok(m) ? arena_printf(m->arena, "%s:%d", edge.from->name, edge.output) : "";
}

/* {sum over the examples, how many}, for a mean over a batch. */
static const char *add_sums(struct importing *g, struct edge mean)
{
    struct build *m = &g->m;
    static const int64_t one = 1;
    struct edge value = build_reshape(m, build_cast(m, mean, F32), &one, 1);
    struct edge sums[] = {build_binary(m, "Mul", value, g->examples), g->examples};
    return output_text(m, build_concat(m, sums, ARRAY_LEN(sums), 0));
}

static void add_metrics(struct importing *g)
{
    const struct spec_graph *graph = &g->spec->graph;
    imported_at(g, IMPORTED_POINTER "/loss");
    const char *loss = graph->loss ? graph->loss : only_of(g, "losses", "loss");
    struct edge mean = find_number(g, loss);
    g->metrics[0] =
        (struct model_metric){.name = "loss",
                              .config = config_default(config_find(&metric_family, "Mean"),
                                                       &metric_family, g->m.arena),
                              .sums = output_text(&g->m, mean),
                              .eval_sums = build_ok(&g->m) ? add_sums(g, mean) : ""};
    imported_at(g, IMPORTED_POINTER "/metrics");
    for (int i = 0; i < graph->metrics_count && build_ok(&g->m); i++) {
        mean = find_number(g, graph->metrics[i].tensor);
        const char *sums = build_ok(&g->m) ? add_sums(g, mean) : "";
        g->metrics[i + 1] = (struct model_metric){.name = graph->metrics[i].name,
                                                  .config = g->spec->train.metrics[i].config,
                                                  .sums = sums,
                                                  .eval_sums = sums};
    }
}

static void add_train(struct importing *g)
{
    imported_at(g, IMPORTED_POINTER "/train");
    const char *name = g->spec->graph.train;
    struct node *train = NULL;
    if (!name && build_ok(&g->m))
        name = only_of(g, "train_op", "train");
    if (build_ok(&g->m))
        train = find_node(g, name);
    if (build_ok(&g->m))
        builder_group(&g->m.b, MODEL_TRAIN, &train, 1);
}

/* What sets the variables of a collection, and fills its tables. */
static void add_initializers(struct importing *g, const char *collection, struct node **nodes,
                             int *count)
{
    const struct meta_collection *found = meta_graph_find(&g->meta, collection);
    for (int i = 0; found && i < found->count && build_ok(&g->m); i++)
        nodes[(*count)++] =
            find_node(g, found->initializers ? found->initializers[i] : found->values[i]);
}

static void add_init(struct importing *g)
{
    static const char *const collections[] = {"variables", "local_variables",
                                              "table_initializer"};
    const struct meta_collection *op = meta_graph_find(&g->meta, "init_op");
    int room = 1, count = 0;
    imported_at(g, IMPORTED_POINTER "/init");
    for (int i = 0; i < g->meta.collections_count; i++)
        room += g->meta.collections[i].count;
    struct node **nodes = arena_array(g->m.arena, (size_t)room, sizeof(*nodes));
    if (!build_ok(&g->m))
        return;
    if (g->spec->graph.init)
        nodes[count++] = find_node(g, g->spec->graph.init);
    else if (op)
        add_initializers(g, op->name, nodes, &count);
    for (int i = 0; !g->spec->graph.init && !op && i < ARRAY_LEN(collections); i++)
        add_initializers(g, collections[i], nodes, &count);
    if (!count)
        build_refuse(&g->m, INVALID,
                     "no collection of the graph tells what sets its variables: \"init\" names "
                     "the op");
    if (build_ok(&g->m))
        builder_group(&g->m.b, MODEL_INIT, nodes, count);
}

/* What it predicts: as the spec says, or the only output of its signatures; NULL: nothing. */
static const char *find_output(struct importing *g, struct shape *shape)
{
    const char *name = g->spec->graph.output;
    imported_at(g, IMPORTED_POINTER "/output");
    if (!name && g->meta.outputs_count == 1)
        name = g->meta.outputs[0].tensor;
    struct edge edge = name ? imported_find(g, name) : (struct edge){0};
    if (!edge.from)
        return NULL;
    if (!edge.from->outputs_count) {
        build_refuse(&g->m, INVALID, "\"%.200s\" is no tensor", name);
        return NULL;
    }
    *shape = *build_shape(&g->m, edge);
    return output_text(&g->m, edge);
}

static int64_t parameters(const struct importing *g)
{
    int64_t count = 0;
    for (int i = 0; i < g->variables_count; i++)
        count += g->variables[i].trainable ? shape_count(&g->variables[i].shape) : 0;
    return count;
}

bool imported_build(const struct spec *spec, const struct model_data *data, struct model *out,
                    struct error *err)
{
    struct graph *graph = graph_new();
    struct importing g = {.m = {.b = {.graph = graph, .scope = IMPORTED_SCOPE, .err = err},
                                .arena = graph_arena(graph),
                                .spec = spec,
                                .pointer = IMPORTED_POINTER,
                                .shapes = {.declared = true}},
                          .spec = spec,
                          .data = data,
                          .metrics = arena_array(graph_arena(graph),
                                                 (size_t)spec->graph.metrics_count + 1,
                                                 sizeof(struct model_metric))};
    struct shape shape = SHAPE_UNKNOWN;
    read_graph(&g);
    imported_feed(&g);
    add_metrics(&g);
    add_train(&g);
    add_init(&g);
    const char *output = find_output(&g, &shape);
    imported_variables(&g, output);
    bool ok = build_ok(&g.m);
    if (ok)
        *out = (struct model){.graph = graph,
                              .variables = g.variables,
                              .variables_count = g.variables_count,
                              .metrics = g.metrics,
                              .metrics_count = spec->graph.metrics_count + 1,
                              .summary = {.parameters = parameters(&g)},
                              .output = output,
                              .output_shape = shape,
                              .scope = IMPORTED_SCOPE,
                              .eval_scope = IMPORTED_SCOPE,
                              .train = IMPORTED_SCOPE MODEL_TRAIN,
                              .init = IMPORTED_SCOPE MODEL_INIT};
    else
        graph_free(graph);
    build_release(&g.m);
    return ok;
}
