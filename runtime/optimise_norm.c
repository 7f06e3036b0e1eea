/*
 * optimise_norm.c - batch normalisation, the image that is added to it and the Relu that
 * follows become one pass over the image, and their gradients too:
 *
 *   FusedBatchNorm... (, AddV2), Relu        _FusedBatchNormEx
 *   ReluGrad, FusedBatchNormGrad...          _FusedBatchNormGradEx
 */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/fuse.h"
#include "runtime/internal.h"
#include "runtime/op.h"
#include "runtime/shapes.h"

struct normer {
    struct fuser f;
    struct shapes shapes; /* when by_shapes */
    bool by_shapes;
    int *place;  /* by node id: where in the order of the graph */
    int *origin; /* of nodes made here, by id less f.count: the last of those it stands for */
};

/* --- forward --- */

/* The node that alone reads the normalised image; the moments may have other readers. */
static const struct fuse_use *reader_of(const struct fuser *f, const struct node *norm)
{
    const struct fuse_use *reader = NULL;
    for (int i = 0; i < fuse_uses(f, norm); i++) {
        const struct fuse_use *use = fuse_use_at(f, norm, i);
        if (use->output != 0)
            continue;
        if (reader)
            return NULL;
        reader = use;
    }
    for (int i = 0; i < f->subgraph->fetches_count; i++)
        if (f->subgraph->fetches[i].from == norm && f->subgraph->fetches[i].output == 0)
            return NULL;
    return reader;
}

/* The node whose output 0 that of `node` is: itself, unless it was made here. */
static const struct node *origin_of(const struct normer *n, const struct node *node)
{
    return node->id < n->f.count ? node
                                 : graph_node(n->f.graph, n->origin[node->id - n->f.count]);
}

/*
 * The Relu behind the sum of the normalised image and another of its shape, `*side`.  That one
 * is there before the norm in the graph's order, so it cannot depend on its moments.
 */
static struct node *relu_behind_sum(const struct normer *n, const struct fuse_use *use,
                                    const struct node *norm, struct edge *side)
{
    struct node *sum = use->node;
    if (!(fuse_is(sum, "AddV2") || fuse_is(sum, "Add")) || !n->by_shapes ||
        sum->controls_count || n->f.watched[sum->id] || !fuse_same_wishes(norm, sum))
        return NULL;
    *side = sum->inputs[1 - use->index];
    const struct node *added = origin_of(n, side->from);
    if (side->from == norm || (side->output && added != side->from) ||
        n->place[added->id] > n->place[norm->id])
        return NULL;
    const struct edge added_edge = {(struct node *)added, side->output};
    const struct edge image = {(struct node *)norm, 0};
    const struct shape *x = shapes_at(&n->shapes, image);
    if (!shape_is_full(x) || !shape_equal(x, shapes_at(&n->shapes, added_edge)))
        return NULL;
    return fuse_only_user(&n->f, sum, "Relu");
}

static bool is_norm(const struct node *node)
{
    return fuse_is(node, "FusedBatchNorm") || fuse_is(node, "FusedBatchNormV2") ||
           fuse_is(node, "FusedBatchNormV3");
}

/* The attributes of `node` that `op` has too, and what only that has. */
static int attrs_of(const struct node *node, const char *op, const struct attr *added,
                    struct attr *attrs)
{
    int count = fuse_copy_attrs(node, op, attrs, FUSE_ATTRS_MAX);
    bool typed = node_attr(node, "U");
    for (int i = typed; i < 3; i++)
        attrs[count++] = added[i];
    return count;
}

#define ADDED_ATTRS(sides)                                                                     \
    {                                                                                          \
        attr_type("U", F32), attr_int("num_side_inputs", sides),                               \
            attr_string("activation_mode", "Relu"),                                            \
    }

static struct node *make_norm(struct normer *n, const struct node *norm, struct edge *side,
                              struct node *const *parts, int parts_count)
{
    const char *op = "_FusedBatchNormEx";
    const struct attr added[] = ADDED_ATTRS(side != NULL);
    struct attr attrs[FUSE_ATTRS_MAX + 3];
    struct edge inputs[6];
    memcpy(inputs, norm->inputs, 5 * sizeof(*inputs));
    if (side)
        inputs[5] = *side;
    const struct node_def def = {.op = op_find(op),
                                 .inputs = inputs,
                                 .inputs_count = 5 + (side != NULL),
                                 .attrs = attrs,
                                 .attrs_count = attrs_of(norm, op, added, attrs)};
    return fuse_add(&n->f, &def, norm, parts, parts_count);
}

static void fuse_norm(struct normer *n, struct node *norm)
{
    struct fuser *f = &n->f;
    const struct fuse_use *use = reader_of(f, norm);
    if (!use || norm->inputs_count != 5)
        return;
    struct node *sum = NULL, *relu = use->node;
    struct edge side;
    if (!fuse_is(relu, "Relu")) {
        sum = use->node;
        relu = relu_behind_sum(n, use, norm, &side);
    }
    /* What Relu waits for must not be waited for by who reads the moments. */
    if (!relu || relu->controls_count || !fuse_same_wishes(norm, relu) ||
        node_attr_type(norm, "T") != F32)
        return;
    struct node *const parts[] = {norm, sum ? sum : relu, relu};
    struct node *fused = make_norm(n, norm, sum ? &side : NULL, parts, sum ? 3 : 2);
    if (!fused)
        return;
    n->origin[fused->id - f->count] = relu->id;
    fuse_controls(f, fused, norm);
    for (int i = 1; i < norm->outputs_count; i++)
        fuse_output(f, norm, i, fused, i);
    if (f->watched[norm->id])
        fuse_waiters(f, norm, fused, NULL);
    for (int i = 0; i < f->subgraph->targets_count; i++)
        if (f->subgraph->targets[i] == norm)
            f->subgraph->targets[i] = fused;
    fuse_replace(f, relu, fused, 0);
}

/* --- gradients --- */

static bool is_grad(const struct node *node)
{
    return fuse_is(node, "FusedBatchNormGrad") || fuse_is(node, "FusedBatchNormGradV2") ||
           fuse_is(node, "FusedBatchNormGradV3");
}

static bool is_edge(struct edge edge, const struct node *from, int output)
{
    return edge.from == from && edge.output == output;
}

static bool same_edge(struct edge a, struct edge b)
{
    return a.from == b.from && a.output == b.output;
}

/* Whether `grad` belongs to the fused node `norm`, in training. */
static bool belongs(const struct node *grad, const struct node *norm)
{
    return fuse_is(norm, "_FusedBatchNormEx") &&
           !strcmp(node_attr_string(norm, "activation_mode", ""), "Relu") &&
           same_edge(grad->inputs[1], norm->inputs[0]) &&
           same_edge(grad->inputs[2], norm->inputs[1]) && is_edge(grad->inputs[3], norm, 3) &&
           is_edge(grad->inputs[4], norm, 4) && node_attr_bool(grad, "is_training", true) &&
           node_attr_bool(norm, "is_training", true) &&
           node_attr_float(grad, "epsilon", 0.0001f) ==
               node_attr_float(norm, "epsilon", 0.0001f);
}

/* All that the new node reads was there before the ReluGrad, so no cycle can come of it. */
static void fuse_grad(struct normer *n, struct node *grad)
{
    struct fuser *f = &n->f;
    struct node *relu = grad->inputs[0].from;
    if (!fuse_is(relu, "ReluGrad") || f->watched[relu->id] || relu->controls_count ||
        grad->controls_count || !fuse_same_wishes(relu, grad))
        return;
    struct node *norm = relu->inputs[1].from;
    if (relu->inputs[1].output != 0 || norm->id >= f->count || !belongs(grad, norm))
        return;
    bool side = fuse_uses(f, relu) > 1 || node_attr_int(norm, "num_side_inputs", 0) > 0;
    const char *op = "_FusedBatchNormGradEx";
    const struct attr added[] = ADDED_ATTRS(side);
    struct attr attrs[FUSE_ATTRS_MAX + 3];
    const struct edge inputs[] = {relu->inputs[0], norm->inputs[0], norm->inputs[1], {norm, 3},
                                  {norm, 4},       {norm, 5},       norm->inputs[2], {norm, 0}};
    const struct node_def def = {.op = op_find(op),
                                 .inputs = inputs,
                                 .inputs_count = ARRAY_LEN(inputs),
                                 .attrs = attrs,
                                 .attrs_count = attrs_of(grad, op, added, attrs)};
    struct node *const parts[] = {relu, grad};
    struct node *fused = fuse_add(f, &def, grad, parts, 2);
    if (!fused)
        return;
    for (int i = 1; i < grad->outputs_count; i++)
        fuse_output(f, grad, i, fused, i);
    fuse_replace(f, grad, fused, 0);
    if (side)
        fuse_replace(f, relu, fused, 5);
}

/* --- both --- */

static bool visit_all(struct pass *pass, bool (*is_it)(const struct node *node),
                      void (*visit)(struct normer *n, struct node *node), struct error *err)
{
    int *order = graph_sorted(pass->subgraph->graph, err);
    if (!order)
        return true; /* plan_new() will say what is wrong */
    struct normer n = {.by_shapes = pass->by_shapes};
    fuse_init(&n.f, pass->subgraph, err);
    n.place = alloc_array((size_t)n.f.count + 1, sizeof(*n.place));
    n.origin = alloc_array((size_t)n.f.count + 1, sizeof(*n.origin));
    for (int i = 0; i < n.f.count; i++)
        n.place[order[i]] = i;
    if (n.by_shapes)
        shapes_infer(&n.shapes, n.f.graph, order, n.f.count);
    for (int i = 0; i < n.f.count && !n.f.failed; i++) {
        struct node *node = graph_node(n.f.graph, order[i]);
        if (n.f.needed[node->id] && is_it(node))
            visit(&n, node);
    }
    if (n.by_shapes)
        shapes_release(&n.shapes);
    free(n.place);
    free(n.origin);
    free(order);
    return fuse_finish(&n.f);
}

bool optimise_norm(struct pass *pass, struct error *err)
{
    static const char *const starts[] = {"FusedBatchNorm", "FusedBatchNormV2",
                                         "FusedBatchNormV3", NULL};
    return !fuse_has(pass->subgraph, starts) || (visit_all(pass, is_norm, fuse_norm, err) &&
                                                 visit_all(pass, is_grad, fuse_grad, err));
}
