/*
 * gradient.h - gradients by extending the graph (reverse mode).
 *
 * An op's gradient function is called with its node and the gradients of its outputs, and
 * answers with the gradients of its inputs, made of new nodes.
 */
#pragma once

#include "runtime/builder.h"

struct gradient {
    struct builder build;          /* scope "gradients/<node name>_grad/" */
    const struct node *node;       /* whose gradient is wanted */
    const struct edge *of_outputs; /* d loss / d output; .from NULL where nothing flows */
    struct edge *of_inputs;        /* to fill in; .from NULL means: no gradient */
    const char *source;            /* names this gradient_build() among others in the graph */
};

/* Output `i` of the node itself, and its input `i`, as edges. */
static inline struct edge gradient_y(const struct gradient *g, int i)
{
    return (struct edge){(struct node *)g->node, i};
}
static inline struct edge gradient_x(const struct gradient *g, int i)
{
    return g->node->inputs[i];
}

/*
 * Adds nodes that compute d sum_i <y_i, grad_y_i> / d x_j for each x_j.
 *
 * `grad_ys` may be NULL, or hold edges without node: ones.  `grads` receives one edge per x,
 * with
 * `.from` NULL where x does not reach y.  Several paths are summed with AddN.  x may be a
 * variable's reference or a resource handle: then the sum over its reads.
 * Fails with UNIMPLEMENTED (naming the op) where an op on the path registers no gradient.
 */
bool gradient_build(struct graph *graph, const struct edge *ys, int ys_count,
                    const struct edge *grad_ys, const struct edge *xs, int xs_count,
                    struct edge *grads, struct error *err) CHECKED;
