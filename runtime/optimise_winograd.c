/*
 * optimise_winograd.c - convolutions that Winograd's algorithm suits are marked for it: by an
 * attribute of a node that is otherwise the same.
 *
 * Those whose filter is 3x3 or 5x5, moves by one place, and has enough channels.  What the
 * kernel needs beyond (enough places) it sees when it runs.  Rounding is weaker than that of a
 * sum: the kernel says how much.
 */
#include <stdlib.h>

#include "runtime/internal.h"
#include "runtime/op.h"
#include "runtime/rewrite.h"
#include "runtime/shapes.h"

enum { ATTRS_MAX = 24, CHANNELS = 16 };

static bool is_op(const struct node *node, const char *name)
{
    return !strcmp(node->op->name, name);
}

/* The filter, or its gradient; .from NULL for what is no convolution. */
static struct edge filter_of(const struct node *node)
{
    if (is_op(node, "Conv2D") || is_op(node, "_FusedConv2D") ||
        is_op(node, "Conv2DBackpropInput"))
        return node->inputs[1];
    if (is_op(node, "Conv2DBackpropFilter"))
        return (struct edge){(struct node *)node, 0};
    return (struct edge){0};
}

static bool all_ones(const struct node *node, const char *attr)
{
    int count;
    const int64_t *values = node_attr_ints(node, attr, &count);
    for (int i = 0; i < count; i++)
        if (values[i] != 1)
            return false;
    return true;
}

static bool suits(const struct node *node, const struct shapes *shapes)
{
    struct edge filter = filter_of(node);
    if (node->fault || !filter.from || node->attrs_count >= ATTRS_MAX ||
        node_attr_type(node, "T") != F32 ||
        strcmp(node_attr_string(node, "data_format", "NHWC"), "NHWC") != 0 ||
        !all_ones(node, "strides") || !all_ones(node, "dilations"))
        return false;
    const struct shape *s = shapes_at(shapes, filter);
    return shape_is_full(s) && s->rank == 4 && s->dims[0] == s->dims[1] &&
           (s->dims[0] == 3 || s->dims[0] == 5) && s->dims[2] > 0 && s->dims[3] > 0 &&
           s->dims[2] % CHANNELS == 0 && s->dims[3] % CHANNELS == 0;
}

static struct node *marked(struct graph *graph, const struct node *node, struct error *err)
{
    struct attr attrs[ATTRS_MAX];
    memcpy(attrs, node->attrs, (size_t)node->attrs_count * sizeof(*attrs));
    attrs[node->attrs_count] = attr_bool(OPTIMISE_WINOGRAD_ATTR, true);
    const struct node_def def = {.name = node->name,
                                 .op = node->op,
                                 .inputs = node->inputs,
                                 .inputs_count = node->inputs_count,
                                 .controls = node->controls,
                                 .controls_count = node->controls_count,
                                 .attrs = attrs,
                                 .attrs_count = node->attrs_count + 1,
                                 .device = node->requested_device};
    return graph_add(graph, &def, err);
}

static bool has_work(const struct graph *graph)
{
    for (int i = 0; i < graph_count(graph); i++) {
        const struct node *node = graph_node(graph, i);
        if (!node->fault && filter_of(node).from)
            return true;
    }
    return false;
}

bool optimise_winograd(struct pass *pass, struct error *err)
{
    struct graph *graph = pass->subgraph->graph;
    if (!has_work(graph))
        return true;
    int *order = graph_sorted(graph, err);
    if (!order)
        return true; /* plan_new() will say what is wrong */
    bool *needed = prune_needed(pass->subgraph);
    struct rewrite rewrite;
    struct shapes shapes = {0};
    rewrite_init(&rewrite, pass->subgraph);
    shapes_infer(&shapes, graph, order, rewrite.count);
    bool ok = true;
    for (int i = 0; i < rewrite.count && ok; i++) {
        struct node *node = graph_node(graph, order[i]);
        if (!needed[node->id] || !suits(node, &shapes))
            continue;
        struct node *now = marked(graph, node, err);
        ok = now;
        if (now) {
            rewrite_edge(&rewrite, (struct edge){node, 0}, (struct edge){now, 0});
            rewrite_controls(&rewrite, node, now);
        }
    }
    rewrite_apply(&rewrite);
    shapes_release(&shapes);
    free(order);
    free(needed);
    return ok;
}
