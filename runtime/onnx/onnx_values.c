/* onnx_values.c - what a node takes and gives, in either order of dimensions. */

#include "base/error.h"
#include "runtime/onnx/internal.h"

struct onnx_value *onnx_value(struct onnx *o, struct edge edge)
{
    return &o->values[o->shapes.first_output[edge.from->id] + edge.output];
}

const struct shape *onnx_shape(struct onnx *o, int input)
{
    return shapes_at(&o->shapes, o->node->inputs[input]);
}

const struct shape *onnx_output_shape(struct onnx *o, int output)
{
    return shapes_at(&o->shapes, (struct edge){(struct node *)(uintptr_t)o->node, output});
}

enum dtype onnx_dtype(struct onnx *o, int input)
{
    return dtype_base(o->node->input_types[input]);
}

/* --- orders of dimensions --- */

/* (batch, ..., channels) to (batch, channels, ...). */
static void to_first(int rank, int64_t *order)
{
    order[0] = 0;
    order[1] = rank - 1;
    for (int d = 2; d < rank; d++)
        order[d] = d - 1;
}

static void to_last(int rank, int64_t *order)
{
    order[0] = 0;
    order[rank - 1] = 1;
    for (int d = 1; d < rank - 1; d++)
        order[d] = d + 1;
}

bool onnx_is_first(struct onnx *o, int input)
{
    const struct onnx_value *value = onnx_value(o, o->node->inputs[input]);
    return value->first && !value->plain;
}

const char *onnx_in(struct onnx *o, int input)
{
    int64_t order[LIMIT_TENSOR_RANK];
    struct edge edge = o->node->inputs[input];
    struct onnx_value *value = onnx_value(o, edge);
    if (o->failed || value->plain)
        return value->plain ? value->plain : "";
    if (value->constant.dtype) {
        value->plain = onnx_tensor(o, &value->constant);
    } else if (value->first) {
        int rank = onnx_shape(o, input)->rank;
        to_last(rank, order);
        value->plain = onnx_transpose(o, value->first, order, rank);
    } else {
        onnx_refuse(o, "its input %d (%s) cannot be had", input, edge.from->name);
        return "";
    }
    return value->plain;
}

const char *onnx_in_first(struct onnx *o, int input)
{
    int64_t order[LIMIT_TENSOR_RANK];
    struct onnx_value *value = onnx_value(o, o->node->inputs[input]);
    int rank = onnx_shape(o, input)->rank;
    if (o->failed || value->first)
        return value->first ? value->first : "";
    if (rank < 2) {
        onnx_refuse(o, "the dimensions of its input %d are not known", input);
        return "";
    }
    to_first(rank, order);
    value->first = value->constant.dtype ? onnx_turned(o, &value->constant, order)
                                         : onnx_transpose(o, onnx_in(o, input), order, rank);
    return value->first;
}

void onnx_give(struct onnx *o, int output, const char *name)
{
    if (!o->failed)
        o->values[o->shapes.first_output[o->node->id] + output].plain = name;
}

void onnx_give_first(struct onnx *o, int output, const char *name)
{
    if (!o->failed)
        o->values[o->shapes.first_output[o->node->id] + output].first = name;
}

/* --- constants --- */

const struct tensor *onnx_find_constant(struct onnx *o, int input)
{
    const struct onnx_value *value = onnx_value(o, o->node->inputs[input]);
    return value->constant.dtype ? &value->constant : NULL;
}

const struct tensor *onnx_constant(struct onnx *o, int input)
{
    const struct tensor *value = onnx_find_constant(o, input);
    if (!value)
        onnx_refuse(o, "its input %d (%s) is not constant", input,
                    o->node->inputs[input].from->name);
    return value;
}

bool onnx_constant_ints(struct onnx *o, int input, int64_t *out, int max, int *count)
{
    const struct tensor *value = onnx_constant(o, input);
    if (!value)
        return false;
    if ((value->dtype != I32 && value->dtype != I64) || value->count > max) {
        onnx_refuse(o, "its input %d is no list of at most %d integers", input, max);
        return false;
    }
    *count = (int)value->count;
    for (int i = 0; i < *count; i++)
        out[i] = tensor_integer(value, i);
    return true;
}

int onnx_axis(struct onnx *o, int64_t axis, int rank)
{
    if (rank < 0 || axis < -rank || axis >= rank) {
        onnx_refuse(o, "its axis %lld is not among the %d dimensions", (long long)axis, rank);
        return 0;
    }
    return (int)(axis < 0 ? axis + rank : axis);
}
