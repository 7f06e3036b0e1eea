/*
 * optimise_layout.c - what is channels first (NCHW) is computed channels last (NHWC), which the
 * fast kernels want.
 *
 * Images are turned where they enter such ops and where they leave them; elementwise ops in
 * between work on the turned image, so that transposes end up at the edges.  An image that is
 * still read as it was is turned back once.  Sums of products may come in another order, so
 * results may differ in the last bits.
 */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "runtime/internal.h"
#include "runtime/op.h"
#include "runtime/rewrite.h"
#include "runtime/shapes.h"
#include "runtime/tensor.h"

enum { INPUTS_MAX = 8, ATTRS_MAX = 24 };

/* Which inputs and outputs of an op are images, as bits. */
struct row {
    const char *op;
    unsigned inputs, outputs;
};

static const struct row rows[] = {
    {"Conv2D", 1, 1},
    {"Conv2DBackpropFilter", 1 | 4, 0},
    {"Conv2DBackpropInput", 4, 1},
    {"MaxPool", 1, 1},
    {"MaxPoolGrad", 1 | 2 | 4, 1},
    {"AvgPool", 1, 1},
    {"BiasAdd", 1, 1},
    {"BiasAddGrad", 1, 0},
    {"FusedBatchNorm", 1, 1},
    {"FusedBatchNormV2", 1, 1},
    {"FusedBatchNormV3", 1, 1},
    {"FusedBatchNormGrad", 1 | 2, 1},
    {"FusedBatchNormGradV2", 1 | 2, 1},
    {"FusedBatchNormGradV3", 1 | 2, 1},
};

/* These take the image as it is, if all their inputs are turned. */
static const char *const elementwise[] = {"Relu",     "Relu6", "Elu",     "Sigmoid",
                                          "Tanh",     "Neg",   "Square",  "Abs",
                                          "ReluGrad", "AddN",  "Identity"};

struct turner {
    struct pass *pass;
    struct graph *graph;
    struct rewrite rewrite;
    struct shapes shapes;
    struct edge *turned; /* by output: the same channels last; .from NULL: there is none */
    struct error *err;
    bool failed;
};

static const int64_t to_last[] = {0, 2, 3, 1}, to_first[] = {0, 3, 1, 2};

static struct edge add(struct turner *t, const struct node_def *def)
{
    struct node *node = t->failed ? NULL : graph_add(t->graph, def, t->err);
    t->failed |= !node;
    return (struct edge){node, 0};
}

/* A vector of four 32-bit integers: values[places[i]] (`values` NULL: the places themselves).
 */
static struct edge add_four(struct turner *t, const char *name, const struct node *like,
                            const struct tensor *values, const int64_t *places)
{
    struct tensor value;
    if (t->failed || !tensor_init(&value, I32, &SHAPE(4), t->err)) {
        t->failed = true;
        return (struct edge){0};
    }
    for (int i = 0; i < 4; i++)
        tensor_set_number(&value, i,
                          values ? tensor_number(values, places[i]) : (double)places[i]);
    const struct attr attrs[] = {attr_type("dtype", I32), attr_tensor("value", &value)};
    const struct node_def def = {.name = name,
                                 .op = op_find("Const"),
                                 .attrs = attrs,
                                 .attrs_count = 2,
                                 .device = like->requested_device};
    struct edge made = add(t, &def);
    tensor_release(&value);
    return made;
}

/* Transpose(edge, places), named after what it turns. */
static struct edge transpose(struct turner *t, struct edge edge, const int64_t *places,
                             const char *suffix)
{
    struct arena *arena = graph_arena(t->graph);
    const char *name = arena_printf(arena, "%s/%s", edge.from->name, suffix);
    const struct edge inputs[] = {
        edge, add_four(t, arena_printf(arena, "%s/perm", name), edge.from, NULL, places)};
    const struct node_def def = {.name = name,
                                 .op = op_find("Transpose"),
                                 .inputs = inputs,
                                 .inputs_count = 2,
                                 .device = edge.from->requested_device};
    return t->failed ? (struct edge){0} : add(t, &def);
}

static struct edge *turned_at(struct turner *t, struct edge edge)
{
    return &t->turned[t->rewrite.first_output[edge.from->id] + edge.output];
}

/* The channels-last form of an edge, made if there is none. */
static struct edge turned(struct turner *t, struct edge edge)
{
    struct edge *at = turned_at(t, edge);
    if (!at->from)
        *at = transpose(t, edge, to_last, "NHWC");
    return *at;
}

/* Lists of four numbers by dimension: strides, windows, dilations; pairs for the padding. */
static int turned_attrs(const struct node *node, struct attr *attrs, int64_t (*lists)[8])
{
    static const struct attr_bytes last = {"NHWC", 4};
    int count = 0;
    for (int i = 0; i < node->attrs_count && count < ATTRS_MAX; i++) {
        const struct attr *attr = &node->attrs[i];
        attrs[count] = *attr;
        if (!strcmp(attr->name, "data_format"))
            attrs[count].strings = &last;
        bool each = !strcmp(attr->name, "strides") || !strcmp(attr->name, "ksize") ||
                    !strcmp(attr->name, "dilations");
        bool pairs = !strcmp(attr->name, "explicit_paddings");
        if ((each && attr->count == 4) || (pairs && attr->count == 8)) {
            int width = pairs ? 2 : 1;
            for (int d = 0; d < 4; d++)
                for (int w = 0; w < width; w++)
                    lists[i][d * width + w] = attr->ints[to_last[d] * width + w];
            attrs[count].ints = lists[i];
        }
        count++;
    }
    return count;
}

/* The gradient of an image is told the image's sizes: turned when they are a constant. */
static bool is_input_grad(const struct node *node)
{
    return !strcmp(node->op->name, "Conv2DBackpropInput");
}

static const struct tensor *constant_sizes(const struct node *node)
{
    const struct tensor *value = node_constant(node->inputs[0].from);
    return value && value->dtype == I32 && value->count == 4 ? value : NULL;
}

/* A node like `node` that reads and gives channels last. */
static void turn_node(struct turner *t, const struct node *node, unsigned images_in,
                      unsigned images_out)
{
    struct attr attrs[ATTRS_MAX];
    int64_t lists[ATTRS_MAX][8];
    struct edge inputs[INPUTS_MAX];
    for (int i = 0; i < node->inputs_count; i++)
        inputs[i] = images_in >> i & 1 ? turned(t, node->inputs[i]) : node->inputs[i];
    if (is_input_grad(node))
        inputs[0] = add_four(t, arena_printf(graph_arena(t->graph), "%s/sizes", node->name),
                             node, constant_sizes(node), to_last);
    if (t->failed)
        return;
    const struct node_def def = {.name = node->name,
                                 .op = node->op,
                                 .inputs = inputs,
                                 .inputs_count = node->inputs_count,
                                 .controls = node->controls,
                                 .controls_count = node->controls_count,
                                 .attrs = attrs,
                                 .attrs_count = turned_attrs(node, attrs, lists),
                                 .device = node->requested_device};
    struct edge made = add(t, &def);
    for (int i = 0; !t->failed && i < node->outputs_count; i++) {
        struct edge old = {(struct node *)node, i}, now = {made.from, i};
        if (images_out >> i & 1)
            *turned_at(t, old) = now;
        else
            rewrite_edge(&t->rewrite, old, now);
    }
    if (!t->failed)
        rewrite_controls(&t->rewrite, (struct node *)node, made.from);
}

static const struct row *find_row(const struct node *node)
{
    for (int i = 0; i < ARRAY_LEN(rows); i++)
        if (!strcmp(rows[i].op, node->op->name))
            return &rows[i];
    return NULL;
}

/* Of four dimensions for sure: what they are otherwise would be an error, which must stay. */
static bool is_image(struct turner *t, struct edge edge)
{
    return edge.from->id < t->rewrite.count && shapes_at(&t->shapes, edge)->rank == 4;
}

static bool is_elementwise(struct turner *t, const struct node *node)
{
    bool listed = false;
    for (int i = 0; i < ARRAY_LEN(elementwise); i++)
        listed |= !strcmp(elementwise[i], node->op->name);
    if (!listed || node->inputs_count < 1 || node->inputs_count > INPUTS_MAX ||
        node->outputs_count != 1)
        return false;
    for (int i = 0; i < node->inputs_count; i++)
        if (!turned_at(t, node->inputs[i])->from)
            return false;
    return true;
}

static void visit(struct turner *t, const struct node *node)
{
    const struct row *row = find_row(node);
    if (node->fault || node->inputs_count > INPUTS_MAX || node->attrs_count > ATTRS_MAX ||
        node->inputs_count < 1 ||
        dtype_is_ref(node->inputs[0].from->output_types[node->inputs[0].output]))
        return;
    if (row && !strcmp(node_attr_string(node, "data_format", ""), "NCHW")) {
        for (int i = 0; i < node->inputs_count; i++)
            if (row->inputs >> i & 1 && !is_image(t, node->inputs[i]))
                return;
        if (is_input_grad(node) && !constant_sizes(node))
            return;
        turn_node(t, node, row->inputs, row->outputs);
    } else if (is_elementwise(t, node)) {
        turn_node(t, node, (1u << node->inputs_count) - 1, 1);
    }
}

static bool has_work(const struct subgraph *subgraph)
{
    for (int i = 0; i < graph_count(subgraph->graph); i++) {
        const struct node *node = graph_node(subgraph->graph, i);
        if (find_row(node) && !strcmp(node_attr_string(node, "data_format", ""), "NCHW"))
            return true;
    }
    return false;
}

/* Who reads an image as it was reads it turned back; where nobody does, nothing is run. */
static void turn_back(struct turner *t, const int *order, const bool *needed)
{
    for (int i = 0; i < t->rewrite.count && !t->failed; i++) {
        struct node *node = graph_node(t->graph, order[i]);
        if (!needed[node->id] || (!find_row(node) && !is_elementwise(t, node)))
            continue;
        struct edge *now = turned_at(t, (struct edge){node, 0});
        if (node->outputs_count && now->from && strcmp(now->from->op->name, "Transpose")) {
            struct edge back = transpose(t, *now, to_first, "NCHW");
            if (back.from)
                rewrite_edge(&t->rewrite, (struct edge){node, 0}, back);
        }
    }
}

bool optimise_layout(struct pass *pass, struct error *err)
{
    struct subgraph *subgraph = pass->subgraph;
    struct turner t = {.pass = pass, .graph = subgraph->graph, .err = err};
    if (!pass->by_shapes || !has_work(subgraph))
        return true;
    int *order = graph_sorted(subgraph->graph, err);
    if (!order)
        return true; /* plan_new() will say what is wrong */
    bool *needed = prune_needed(subgraph);
    bool *inner = optimise_inner(subgraph, order);
    rewrite_init(&t.rewrite, subgraph);
    shapes_infer(&t.shapes, subgraph->graph, order, t.rewrite.count);
    t.turned =
        alloc_array((size_t)t.rewrite.first_output[t.rewrite.count] + 1, sizeof(struct edge));
    for (int i = 0; i < t.rewrite.count && !t.failed; i++) {
        const struct node *node = graph_node(subgraph->graph, order[i]);
        if (needed[node->id] && !(inner && inner[node->id]))
            visit(&t, node);
    }
    turn_back(&t, order, needed);
    rewrite_apply(&t.rewrite);
    shapes_release(&t.shapes);
    free(t.turned);
    free(order);
    free(needed);
    free(inner);
    return !t.failed;
}
