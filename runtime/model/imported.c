/* imported.c - from a MetaGraphDef to a model, see imported.h. */

#include "runtime/model/imported.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/map.h"
#include "base/str.h"
#include "runtime/io/base64.h"
#include "runtime/meta_graph.h"
#include "runtime/model/build.h"
#include "runtime/model/metric.h"
#include "runtime/op.h"
#include "runtime/spec/spec.h"

#define POINTER "/model/graph"
#define SCOPE "trainyard/" /* in front of the names of what is added */

struct importing {
    struct build m;
    const struct spec *spec;
    const struct model_data *data;
    struct meta_graph meta;
    int nodes_count;      /* that the graph came with */
    struct edge examples; /* how many a batch has, (1) float; a feed of the first feature */
    bool *needed;         /* by node id: a step, an evaluation or a prediction runs it */
    struct model_variable *variables;
    int variables_count;
    struct model_metric *metrics;
};

static void at(struct importing *g, const char *field)
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

static void read_graph(struct importing *g)
{
    struct str bytes = {0};
    at(g, POINTER "/meta_graph");
    if (!base64_decode(g->spec->graph.meta_graph, &bytes))
        build_refuse(&g->m, INVALID, "meta_graph is not base64");
    else if (!meta_graph_read(str_text(&bytes), bytes.size, g->m.b.graph, &g->meta, g->m.b.err))
        fail_here(g);
    str_release(&bytes);
    g->nodes_count = graph_count(g->m.b.graph);
    /* What follows from what its placeholders declare, before anything else feeds them. */
    if (build_ok(&g->m) && !shapes_extend(&g->m.shapes, g->m.b.graph, g->m.b.err))
        fail_here(g);
}

/* The tensor "x:0" or node "x" that `name` of a field means; no node after a failure. */
static struct edge find(struct importing *g, const char *name)
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

/* --- what it is fed with --- */

static bool is_placeholder(const struct node *node)
{
    return !strcmp(node->op->name, "Placeholder") || !strcmp(node->op->name, "PlaceholderV2");
}

static bool can_be_fed(const struct node *node)
{
    return is_placeholder(node) || !strcmp(node->op->name, "PlaceholderWithDefault");
}

static const char *input_name(const struct importing *g, const char *feature)
{
    const struct spec_graph *graph = &g->spec->graph;
    for (int i = 0; i < graph->inputs_count; i++) {
        if (!strcmp(graph->inputs[i].name, feature))
            return graph->inputs[i].tensor;
    }
    for (int i = 0; i < g->meta.inputs_count; i++) {
        if (!strcmp(g->meta.inputs[i].name, feature))
            return g->meta.inputs[i].tensor;
    }
    return feature;
}

/* The placeholder that takes the feature; one that may be missing: no node if it is. */
static struct edge find_input(struct importing *g, const struct model_feature *feature,
                              bool wanted)
{
    enum { TOLD = 20 };
    const struct graph *graph = g->m.b.graph;
    struct edge edge = {0};
    struct error ignored; /* what there is tells more */
    struct str all = {0};
    int count = 0;
    if (graph_edge(graph, input_name(g, feature->name), &edge, &ignored) &&
        can_be_fed(edge.from))
        return edge;
    if (!wanted && input_name(g, feature->name) == feature->name)
        return (struct edge){0};
    for (int i = 0; i < g->nodes_count; i++) {
        if (can_be_fed(graph_node(graph, i)) && count++ < TOLD)
            str_printf(&all, "%s\"%s\"", count > 1 ? ", " : "", graph_node(graph, i)->name);
    }
    build_refuse(&g->m, INVALID,
                 "no placeholder takes \"%s\" of the data: \"inputs\" says which, "
                 "{\"%s\": NAME}; there %s%s",
                 feature->name, feature->name, count ? "are: " : "is none", str_text(&all));
    str_release(&all);
    return (struct edge){0};
}

/* Whoever read the placeholder reads `edge` instead. */
static void rewire(struct importing *g, struct edge placeholder, struct edge edge)
{
    struct graph *graph = g->m.b.graph;
    for (int i = 0; i < g->nodes_count; i++) {
        struct node *node = graph_node(graph, i);
        for (int k = 0; k < node->inputs_count; k++) {
            if (node->inputs[k].from == placeholder.from)
                graph_set_input(graph, node, k, edge);
        }
    }
}

/* Examples of as many numbers, in the shape that the placeholder declares. */
static struct edge reshape(struct importing *g, struct edge x, struct edge placeholder,
                           const struct model_feature *feature)
{
    const struct shape *shape = node_attr_shape(placeholder.from, "shape");
    struct shape wanted = shape ? *shape : SHAPE_UNKNOWN, is = *build_shape(&g->m, x);
    char takes[SHAPE_TEXT_BYTES], gives[SHAPE_TEXT_BYTES];
    if (!build_ok(&g->m) || shape_compatible(&wanted, &is))
        return x;
    shape_text(&wanted, takes, sizeof(takes));
    shape_text(&is, gives, sizeof(gives));
    struct shape one = wanted;
    if (wanted.rank > 0)
        one.dims[0] = 1;
    if (wanted.rank > 0 && wanted.dims[0] < 0 && shape_is_full(&one) &&
        shape_count(&one) == shape_count(&feature->shape))
        return build_reshape(&g->m, x, wanted.dims, wanted.rank);
    build_refuse(&g->m, INVALID,
                 "the placeholder \"%s\" takes %s, \"%s\" of the data is %s with the examples "
                 "in front",
                 placeholder.from->name, takes, feature->name, gives);
    return x;
}

static void feed(struct importing *g, const struct model_feature *feature, bool wanted)
{
    struct build *m = &g->m;
    struct shape batch = {.rank = feature->shape.rank + 1, .dims = {-1}};
    memcpy(batch.dims + 1, feature->shape.dims,
           (size_t)feature->shape.rank * sizeof(*batch.dims));
    struct edge input = find_input(g, feature, wanted);
    if (!build_ok(m))
        return;
    struct edge x =
        builder_add(&m->b, "Placeholder", feature->name, NO_INPUTS,
                    ATTRS(attr_type("dtype", feature->dtype), attr_shape("shape", &batch)));
    if (build_ok(m) && strcmp(x.from->name + strlen(SCOPE), feature->name) != 0)
        build_refuse(m, INVALID, "the graph has a node \"" SCOPE "%s\" already", feature->name);
    if (build_ok(m) && !g->examples.from) {
        static const int64_t first = 0, one = 1;
        g->examples = build_cast(m, build_slice(m, build_shape_of(m, x), &first, &one, 1), F32);
    }
    if (!input.from)
        return;
    int type = build_ok(m) ? input.from->output_types[0] : feature->dtype;
    const uint64_t numbers = DTYPES_REAL | BIT(BOOL);
    if (type != feature->dtype && (!(numbers & BIT(type)) || !(numbers & BIT(feature->dtype))))
        build_refuse(m, INVALID, "the placeholder \"%s\" takes %s, \"%s\" of the data is %s",
                     input.from->name, dtype_name((enum dtype)type), feature->name,
                     dtype_name((enum dtype)feature->dtype));
    struct edge made = reshape(g, build_cast(m, x, (enum dtype)type), input, feature);
    if (build_ok(m))
        rewire(g, input, made);
}

static bool is_feature(const struct model_data *data, const char *name)
{
    bool is = !strcmp(data->target.name, name) ||
              (data->weight.name && !strcmp(data->weight.name, name));
    for (int i = 0; !is && i < data->features_count; i++)
        is = !strcmp(data->features[i].name, name);
    return is;
}

static void feed_all(struct importing *g)
{
    const struct spec_graph *graph = &g->spec->graph;
    at(g, POINTER "/inputs");
    for (int i = 0; i < graph->inputs_count && build_ok(&g->m); i++) {
        if (!is_feature(g->data, graph->inputs[i].name))
            build_refuse(&g->m, INVALID, "the data has no \"%.60s\"", graph->inputs[i].name);
    }
    for (int i = 0; i < g->data->features_count && build_ok(&g->m); i++)
        feed(g, &g->data->features[i], true);
    /* What nobody asks for is fed to nobody: a graph may learn without a target. */
    if (build_ok(&g->m))
        feed(g, &g->data->target, false);
    if (build_ok(&g->m) && g->data->weight.name)
        feed(g, &g->data->weight, false);
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
    struct edge edge = find(g, name);
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
    at(g, POINTER "/loss");
    const char *loss = graph->loss ? graph->loss : only_of(g, "losses", "loss");
    struct edge mean = find_number(g, loss);
    g->metrics[0] =
        (struct model_metric){.name = "loss",
                              .config = config_default(config_find(&metric_family, "Mean"),
                                                       &metric_family, g->m.arena),
                              .sums = output_text(&g->m, mean),
                              .eval_sums = build_ok(&g->m) ? add_sums(g, mean) : ""};
    at(g, POINTER "/metrics");
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
    at(g, POINTER "/train");
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
    at(g, POINTER "/init");
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
    at(g, POINTER "/output");
    if (!name && g->meta.outputs_count == 1)
        name = g->meta.outputs[0].tensor;
    struct edge edge = name ? find(g, name) : (struct edge){0};
    if (!edge.from)
        return NULL;
    if (!edge.from->outputs_count) {
        build_refuse(&g->m, INVALID, "\"%.200s\" is no tensor", name);
        return NULL;
    }
    *shape = *build_shape(&g->m, edge);
    return output_text(&g->m, edge);
}

/* --- variables --- */

/* Marks what the node is computed from. */
static void mark(struct importing *g, const struct node *node, int *stack)
{
    int depth = 0;
    if (!node || g->needed[node->id])
        return;
    g->needed[node->id] = true;
    stack[depth++] = node->id;
    while (depth) {
        node = graph_node(g->m.b.graph, stack[--depth]);
        for (int i = 0; i < node->inputs_count + node->controls_count; i++) {
            const struct node *from = i < node->inputs_count
                                          ? node->inputs[i].from
                                          : node->controls[i - node->inputs_count];
            if (from && !g->needed[from->id]) {
                g->needed[from->id] = true;
                stack[depth++] = from->id;
            }
        }
    }
}

static bool is_variable(const struct node *node)
{
    return !strcmp(node->op->name, "VarHandleOp") || !strcmp(node->op->name, "VariableV2") ||
           !strcmp(node->op->name, "Variable");
}

static void add_variable(struct importing *g, const struct node *node,
                         const struct map *trainable)
{
    const char *name = node_attr_string(node, "shared_name", "");
    const char *container = node_attr_string(node, "container", "");
    const struct shape *shape = node_attr_shape(node, "shape");
    bool by_ref = strcmp(node->op->name, "VarHandleOp") != 0;
    if (((*name || !by_ref) && strcmp(name, node->name) != 0) || *container)
        build_refuse(&g->m, UNIMPLEMENTED,
                     "the variable \"%s\" is shared as \"%s\" in the container \"%s\", which "
                     "checkpoints here do not tell apart",
                     node->name, name, container);
    else if (!shape || !shape_is_full(shape))
        build_refuse(&g->m, UNIMPLEMENTED, "the shape of the variable \"%s\" is left open",
                     node->name);
    else
        g->variables[g->variables_count++] =
            (struct model_variable){.name = node->name,
                                    .dtype = node_attr_type(node, "dtype"),
                                    .shape = *shape,
                                    .trainable = map_has(trainable, node->name),
                                    .by_ref = by_ref};
}

/* The variables of all that is run, and whether that can be fed. */
static void look_at_nodes(struct importing *g)
{
    const struct graph *graph = g->m.b.graph;
    const struct meta_collection *list = meta_graph_find(&g->meta, "trainable_variables");
    struct map *trainable = map_new();
    for (int i = 0; list && i < list->count; i++)
        map_set(trainable, list->values[i], (void *)list);
    for (int i = 0; i < g->nodes_count && build_ok(&g->m); i++) {
        const struct node *node = graph_node(graph, i);
        at(g, POINTER "/inputs");
        if (g->needed[i] && is_placeholder(node))
            build_refuse(&g->m, INVALID,
                         "nothing of the data is fed to the placeholder \"%s\", which training "
                         "needs: \"inputs\" says what is, {\"%s\": \"%s\"} (one with a default "
                         "would do without)",
                         node->name, g->data->target.name, node->name);
        at(g, POINTER);
        if (g->needed[i] && is_variable(node))
            add_variable(g, node, trainable);
    }
    map_free(trainable);
}

static void find_variables(struct importing *g, const char *output)
{
    struct graph *graph = g->m.b.graph;
    if (!build_ok(&g->m))
        return;
    size_t count = (size_t)graph_count(graph);
    g->needed = arena_array(g->m.arena, count, sizeof(*g->needed));
    g->variables = arena_array(g->m.arena, count, sizeof(*g->variables));
    int *stack = alloc_array(count, sizeof(*stack));
    mark(g, graph_find(graph, SCOPE MODEL_TRAIN), stack);
    for (int i = 0; i <= g->spec->graph.metrics_count; i++)
        mark(g, find(g, g->metrics[i].eval_sums).from, stack);
    if (output)
        mark(g, find(g, output).from, stack);
    free(stack);
    look_at_nodes(g);
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
    struct importing g = {.m = {.b = {.graph = graph, .scope = SCOPE, .err = err},
                                .arena = graph_arena(graph),
                                .spec = spec,
                                .pointer = POINTER,
                                .shapes = {.declared = true}},
                          .spec = spec,
                          .data = data,
                          .metrics = arena_array(graph_arena(graph),
                                                 (size_t)spec->graph.metrics_count + 1,
                                                 sizeof(struct model_metric))};
    struct shape shape = SHAPE_UNKNOWN;
    read_graph(&g);
    feed_all(&g);
    add_metrics(&g);
    add_train(&g);
    add_init(&g);
    const char *output = find_output(&g, &shape);
    find_variables(&g, output);
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
                              .scope = SCOPE,
                              .eval_scope = SCOPE,
                              .train = SCOPE MODEL_TRAIN,
                              .init = SCOPE MODEL_INIT};
    else
        graph_free(graph);
    build_release(&g.m);
    return ok;
}
