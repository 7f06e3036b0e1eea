/*
 * optimise_shape.c - shapes that are known before the run become constants.
 *
 * Where the shapes that shapes.h infers are full, Shape, ShapeN,
 * Size, Rank and small OnesLike and ZerosLike are constants, and folding takes it from there:
 * the arithmetic on shapes that gradients are full of costs nothing at run time.
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

/* Larger OnesLike and ZerosLike are computed at each run. */
enum { FILL_COUNT_MAX = 4096 };

struct shaper {
    struct rewrite rewrite;
    struct shapes shapes;
};

/* Readers of the output get a constant, whose value is released. */
static void replace(struct shaper *s, struct node *node, int output, struct tensor *value)
{
    struct graph *graph = s->rewrite.subgraph->graph;
    struct error err;
    const struct attr attrs[] = {attr_type("dtype", value->dtype), attr_tensor("value", value)};
    const struct node_def def = {.name =
                                     arena_printf(graph_arena(graph), "%s/known", node->name),
                                 .op = op_find("Const"),
                                 .attrs = attrs,
                                 .attrs_count = ARRAY_LEN(attrs),
                                 .device = node->requested_device};
    struct node *constant = graph_add(graph, &def, &err);
    if (constant)
        rewrite_edge(&s->rewrite, (struct edge){node, output}, (struct edge){constant, 0});
    tensor_release(value);
}

static bool make_shape(const struct shape *shape, enum dtype dtype, struct tensor *value)
{
    struct error err;
    if (!shape_is_full(shape) || !tensor_init(value, dtype, &SHAPE(shape->rank), &err))
        return false;
    for (int i = 0; i < shape->rank; i++) {
        if (dtype == I32 && shape->dims[i] > INT32_MAX) {
            tensor_release(value); /* the kernel says what is wrong */
            return false;
        }
        tensor_set_number(value, i, (double)shape->dims[i]);
    }
    return true;
}

static bool make_filled(const struct shape *shape, enum dtype dtype, double number,
                        struct tensor *value)
{
    struct error err;
    if (!shape_is_full(shape) || shape_count(shape) > FILL_COUNT_MAX ||
        !(BIT(dtype) & DTYPES_REAL) || !tensor_init(value, dtype, shape, &err))
        return false;
    for (int64_t i = 0; i < value->count; i++)
        tensor_set_number(value, i, number);
    return true;
}

static void replace_node(struct shaper *s, struct node *node)
{
    const char *op = node->op->name;
    if (!node->inputs_count || !node->outputs_count)
        return;
    const struct shape *in = shapes_at(&s->shapes, node->inputs[0]);
    enum dtype dtype = dtype_base(node->output_types[0]);
    struct tensor value;
    struct error err;
    if (!strcmp(op, "Shape") || !strcmp(op, "ShapeN")) {
        for (int i = 0; i < node->inputs_count; i++) {
            if (make_shape(shapes_at(&s->shapes, node->inputs[i]), dtype, &value))
                replace(s, node, i, &value);
        }
    } else if (!strcmp(op, "Size")) {
        int64_t count = shape_count(in);
        if (count >= 0 && (dtype != I32 || count <= INT32_MAX) &&
            tensor_init_scalar(&value, dtype, (double)count, &err))
            replace(s, node, 0, &value);
    } else if (!strcmp(op, "Rank")) {
        if (in->rank >= 0 && tensor_init_scalar(&value, dtype, in->rank, &err))
            replace(s, node, 0, &value);
    } else if (!strcmp(op, "OnesLike") || !strcmp(op, "ZerosLike")) {
        if (make_filled(in, dtype, op[0] == 'O', &value))
            replace(s, node, 0, &value);
    }
}

void optimise_shape(struct subgraph *subgraph)
{
    struct error err;
    int *order = graph_sorted(subgraph->graph, &err);
    if (!order)
        return; /* plan_new() will say what is wrong */
    bool *needed = prune_needed(subgraph);
    bool *inner = optimise_inner(subgraph, order);
    struct shaper s = {.shapes = {.declared = false}};
    rewrite_init(&s.rewrite, subgraph);
    shapes_infer(&s.shapes, subgraph->graph, order, s.rewrite.count);
    for (int i = 0; i < s.rewrite.count; i++) {
        struct node *node = graph_node(subgraph->graph, i);
        if (needed[i] && !node->fault && !node->controls_count && !(inner && inner[i]))
            replace_node(&s, node);
    }
    rewrite_apply(&s.rewrite);
    shapes_release(&s.shapes);
    free(inner);
    free(needed);
    free(order);
}
