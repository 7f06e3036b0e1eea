/*
 * builder.h - writes graphs by hand: layers, gradients, optimizers.
 *
 *   struct edge y = builder_add(&b, "MatMul", "dense/MatMul", INPUTS(x, w),
 * ATTRS(attr_bool("transpose_b", true)));
 *
 * The first failure sticks: later calls do nothing and return no edge, and builder_ok()
 * tells at the end.  Names are made unique; the scope is put in front ("gradients/").
 */
#pragma once

#include "runtime/graph.h"

struct builder {
    struct graph *graph;
    const char *scope;  /* "" or "name/", borrowed */
    const char *device; /* wished for new nodes, NULL for none */
    struct error *err;  /* the first failure; not NULL */
    bool failed;
};

#define INPUTS(...)                                                                            \
    (const struct edge[]){__VA_ARGS__},                                                        \
        (int)(sizeof((const struct edge[]){__VA_ARGS__}) / sizeof(struct edge))
#define NO_INPUTS NULL, 0
#define ATTRS(...)                                                                             \
    (const struct attr[]){__VA_ARGS__},                                                        \
        (int)(sizeof((const struct attr[]){__VA_ARGS__}) / sizeof(struct attr))
#define NO_ATTRS NULL, 0

/* Adds a node; returns its output 0 (for ops without outputs: an edge whose `from` is the
 * node). */
struct edge builder_add(struct builder *b, const char *op, const char *name,
                        const struct edge *inputs, int inputs_count, const struct attr *attrs,
                        int attrs_count);

/* Another output of the same node. */
static inline struct edge builder_output(struct edge edge, int output)
{
    return (struct edge){edge.from, output};
}

/* Constants. */
struct edge builder_const(struct builder *b, const char *name, const struct tensor *value);
struct edge builder_scalar(struct builder *b, const char *name, enum dtype dtype, double value);
struct edge builder_ints(struct builder *b, const char *name, enum dtype dtype,
                         const int64_t *values, int count);
struct edge builder_text(struct builder *b, const char *name, const char *text);

/* A NoOp that runs after all of these. */
struct node *builder_group(struct builder *b, const char *name, struct node *const *nodes,
                           int count);

bool builder_ok(const struct builder *b);
