/* cost.c - see cost.h. */

#include "runtime/cost.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/map.h"
#include "runtime/graph.h"
#include "runtime/op.h"
#include "runtime/price.h"
#include "runtime/shapes.h"

#define FLOPS_PER_US 50e3 /* of products, one core with vectors of 8 floats */
#define OPS_PER_US 4e3    /* of what goes element by element */
#define BYTES_PER_US 8e3  /* through memory */
#define NODE_US 0.05      /* of a node that does nothing */

static double dim(const struct shape *shape, int index)
{
    if (shape->rank < 0 || index < 0 || index >= shape->rank)
        return 1;
    return shape->dims[index] < 0 ? 1 : (double)shape->dims[index];
}

static double numbers(const struct shape *shape)
{
    double count = 1;
    for (int i = 0; i < shape->rank; i++)
        count *= dim(shape, i);
    return count;
}

static const struct shape *input(const struct node *node, int index,
                                 const struct shapes *shapes)
{
    static const struct shape none = {.rank = -1};
    return index < node->inputs_count ? shapes_at(shapes, node->inputs[index]) : &none;
}

static bool flag(const struct node *node, const char *name)
{
    const struct attr *attr = node_attr(node, name);
    return attr && attr->kind == ATTR_BOOL && attr->count && attr->bools[0];
}

/* Twice what is multiplied; 0: the op is no product. */
static double product_flops(const struct node *node, const struct shapes *shapes)
{
    const char *op = node->op->name;
    const struct shape *x = input(node, 0, shapes), *y = input(node, 1, shapes);
    const struct shape *out = shapes_at(shapes, (struct edge){(struct node *)node, 0});
    if (!strcmp(op, "MatMul"))
        return 2 * numbers(out) * dim(x, flag(node, "transpose_a") ? 0 : 1);
    if (!strncmp(op, "BatchMatMul", 11))
        return 2 * numbers(out) * dim(x, x->rank - (flag(node, "adj_x") ? 2 : 1));
    if (!strcmp(op, "Conv2D") || !strcmp(op, "Conv3D")) /* each output by a whole filter */
        return 2 * numbers(out) * numbers(y) / dim(y, y->rank - 1);
    if (!strcmp(op, "DepthwiseConv2dNative"))
        return 2 * numbers(out) * dim(y, 0) * dim(y, 1);
    if (!strcmp(op, "Conv2DBackpropInput") || !strcmp(op, "Conv3DBackpropInputV2")) {
        const struct shape *from = input(node, 2, shapes);
        return 2 * numbers(from) * numbers(y) / dim(y, y->rank - 1);
    }
    if (!strcmp(op, "Conv2DBackpropFilter") || !strcmp(op, "Conv3DBackpropFilterV2")) {
        const struct shape *from = input(node, 2, shapes);
        return 2 * numbers(from) * numbers(out) / dim(out, out->rank - 1);
    }
    return 0;
}

double cost_bytes(const struct node *node, int output, const struct shapes *shapes)
{
    double bytes = 0;
    for (int i = 0; i < node->outputs_count; i++)
        if (output < 0 || i == output)
            bytes += numbers(shapes_at(shapes, (struct edge){(struct node *)node, i})) *
                     (double)dtype_size(dtype_base(node->output_types[i]));
    return bytes;
}

double cost_of(const struct node *node, const struct shapes *shapes)
{
    int weight = price_of(node->op->name);
    double flops = product_flops(node, shapes), bytes = cost_bytes(node, -1, shapes);
    double made = node->outputs_count
                      ? numbers(shapes_at(shapes, (struct edge){(struct node *)node, 0}))
                      : 0;
    if (weight == 0 || !node->inputs_count)
        return NODE_US;
    for (int i = 0; i < node->inputs_count; i++)
        bytes += numbers(input(node, i, shapes)) *
                 (double)dtype_size(dtype_base(node->input_types[i]));
    double us = flops / FLOPS_PER_US, moved = bytes / BYTES_PER_US;
    double steps = (weight < 0 ? 2 : weight) * made / OPS_PER_US;
    if (steps > us && !flops)
        us = steps;
    return NODE_US + (us > moved ? us : moved);
}

/* --- what was measured --- */

struct measured {
    double us, expected_us; /* sums */
};

struct cost_model {
    pthread_mutex_t lock; /* guards: ops, and what is in them */
    struct map *ops;      /* struct measured by the op's name */
};

struct cost_model *cost_model_new(void)
{
    struct cost_model *model = alloc_bytes(sizeof(*model));
    pthread_mutex_init(&model->lock, NULL);
    model->ops = map_new();
    return model;
}

void cost_model_free(struct cost_model *model)
{
    if (!model)
        return;
    for (int i = 0; i < map_count(model->ops); i++)
        free(map_value(model->ops, i));
    map_free(model->ops);
    pthread_mutex_destroy(&model->lock);
    free(model);
}

void cost_model_measured(struct cost_model *model, const struct node *node,
                         const struct shapes *shapes, double us)
{
    double expected = cost_of(node, shapes);
    pthread_mutex_lock(&model->lock);
    struct measured *op = map_find(model->ops, node->op->name);
    if (!op) {
        op = alloc_bytes(sizeof(*op));
        map_set(model->ops, node->op->name, op);
    }
    op->us += us;
    op->expected_us += expected;
    pthread_mutex_unlock(&model->lock);
}

double cost_model_of(const struct cost_model *model, const struct node *node,
                     const struct shapes *shapes)
{
    struct cost_model *open = (struct cost_model *)model; /* its lock alone changes */
    double us = cost_of(node, shapes);
    pthread_mutex_lock(&open->lock);
    const struct measured *op = map_find(open->ops, node->op->name);
    if (op)
        us *= op->us / op->expected_us;
    pthread_mutex_unlock(&open->lock);
    return us;
}
