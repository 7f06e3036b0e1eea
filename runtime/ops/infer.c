/* infer.c - steps of shape inference that ops share. */

#include "runtime/ops/dataset.h"

#include "runtime/graph.h"

void op_infer_rank(struct infer *infer, int index, int rank)
{
    assert(rank >= 0 && rank <= LIMIT_TENSOR_RANK);
    infer->outputs[index].rank = rank;
    for (int d = 0; d < rank; d++)
        infer->outputs[index].dims[d] = -1;
}

int64_t op_infer_dim(const struct infer *infer, int index, int axis)
{
    const struct shape *shape = &infer->inputs[index];
    if (axis < 0)
        axis += shape->rank;
    return shape->rank > 0 && axis >= 0 && axis < shape->rank ? shape->dims[axis] : -1;
}

bool op_infer_values(const struct infer *infer, int index,
                     int64_t values[static LIMIT_TENSOR_RANK], int *count)
{
    const struct tensor *tensor = infer->constants[index];
    if (!tensor || tensor->count > LIMIT_TENSOR_RANK)
        return false;
    if (tensor->dtype != I32 && tensor->dtype != I64)
        return false;
    *count = (int)tensor->count;
    for (int i = 0; i < *count; i++)
        values[i] = tensor_integer(tensor, i);
    return true;
}

bool op_infer_value(const struct infer *infer, int index, int64_t *value)
{
    int64_t values[LIMIT_TENSOR_RANK];
    int count;
    if (!op_infer_values(infer, index, values, &count) || count != 1)
        return false;
    *value = values[0];
    return true;
}

/* The elements of a Const of integers; false when it is none. */
static bool constant_elements(const struct node *node, int64_t *out, int max, int *count)
{
    const struct tensor *value = node_constant(node);
    if (!value || (value->dtype != I32 && value->dtype != I64) || value->count > max)
        return false;
    *count = (int)value->count;
    for (int i = 0; i < *count; i++)
        out[i] = tensor_integer(value, i);
    return true;
}

/* A vector put together of constants and of slices of known length, whose elements are -1. */
static bool partly_constant(const struct node *node, int64_t values[static LIMIT_TENSOR_RANK],
                            int *count)
{
    *count = 0;
    if (strcmp(node->op->name, "ConcatV2") != 0)
        return false;
    for (int i = 0; i + 1 < node->inputs_count; i++) {
        const struct node *part = node->inputs[i].from;
        int room = LIMIT_TENSOR_RANK - *count, length;
        int64_t size[LIMIT_TENSOR_RANK];
        if (constant_elements(part, values + *count, room, &length)) {
            *count += length;
            continue;
        }
        if (strcmp(part->op->name, "Slice") != 0 || part->inputs_count < 3 ||
            !constant_elements(part->inputs[2].from, size, LIMIT_TENSOR_RANK, &length) ||
            length != 1 || size[0] < 0 || size[0] > room)
            return false;
        while (size[0]--)
            values[(*count)++] = -1;
    }
    return true;
}

bool op_infer_from_vector(struct infer *infer, int index)
{
    int64_t values[LIMIT_TENSOR_RANK];
    int count;
    if (op_infer_values(infer, index, values, &count) ||
        partly_constant(infer->node->inputs[index].from, values, &count)) {
        infer->outputs[0].rank = count;
        for (int d = 0; d < count; d++)
            infer->outputs[0].dims[d] = values[d] < 0 ? -1 : values[d];
        return true;
    }
    int64_t rank = infer->inputs[index].rank == 1 ? infer->inputs[index].dims[0] : -1;
    if (rank >= 0 && rank <= LIMIT_TENSOR_RANK)
        op_infer_rank(infer, 0, (int)rank);
    return true;
}

bool op_infer_from_first(struct infer *infer, struct error *err)
{
    (void)err;
    return op_infer_from_vector(infer, 0);
}

bool op_infer_from_second(struct infer *infer, struct error *err)
{
    (void)err;
    return op_infer_from_vector(infer, 1);
}

bool op_infer_second(struct infer *infer, struct error *err)
{
    (void)err;
    infer->outputs[0] = infer->inputs[1];
    return true;
}

bool op_infer_shape_attr(struct infer *infer, struct error *err)
{
    (void)err;
    const struct shape *shape = node_attr_shape(infer->node, "shape");
    if (shape)
        infer->outputs[0] = *shape;
    return true;
}

bool op_infer_element(struct infer *infer, struct error *err)
{
    (void)err;
    const struct attr *shapes = node_attr(infer->node, "output_shapes");
    for (int i = 0; shapes && i < shapes->count && i < infer->node->outputs_count; i++)
        infer->outputs[i] = shapes->shapes[i];
    return true;
}
