/* steps.c - steps that gradients of many ops are made of. */

#include "runtime/ops/internal.h"

struct edge op_call(struct gradient *g, const char *op, const struct edge *inputs,
                    int inputs_count, const struct attr *attrs, int attrs_count)
{
    return builder_add(&g->build, op, op, inputs, inputs_count, attrs, attrs_count);
}

struct edge op_call1(struct gradient *g, const char *op, struct edge a)
{
    return op_call(g, op, INPUTS(a), NO_ATTRS);
}

struct edge op_call2(struct gradient *g, const char *op, struct edge a, struct edge b)
{
    return op_call(g, op, INPUTS(a, b), NO_ATTRS);
}

struct edge op_call3(struct gradient *g, const char *op, struct edge a, struct edge b,
                     struct edge c)
{
    return op_call(g, op, INPUTS(a, b, c), NO_ATTRS);
}

enum dtype op_edge_type(struct edge edge)
{
    return edge.from ? dtype_base(edge.from->output_types[edge.output]) : DTYPE_NONE;
}

struct edge op_number(struct gradient *g, struct edge like, double value)
{
    if (g->build.failed)
        return OP_NO_EDGE;
    return builder_scalar(&g->build, "Const", op_edge_type(like), value);
}

struct edge op_int(struct gradient *g, int64_t value)
{
    return builder_scalar(&g->build, "Const", I32, (double)value);
}

struct edge op_ints(struct gradient *g, const int64_t *values, int count)
{
    return builder_ints(&g->build, "Const", I32, values, count);
}

struct edge op_shape_of(struct gradient *g, struct edge x)
{
    return op_call1(g, "Shape", x);
}

struct edge op_conjugate(struct gradient *g, struct edge x)
{
    bool complex_type = (DTYPES_COMPLEX & BIT(op_edge_type(x))) != 0;
    return complex_type ? op_call1(g, "Conj", x) : x;
}

struct edge op_gradient_or_zeros(struct gradient *g, int index)
{
    if (g->of_outputs[index].from)
        return g->of_outputs[index];
    return op_call1(g, "ZerosLike", gradient_y(g, index));
}

struct edge op_unbroadcast(struct gradient *g, struct edge grad, struct edge axes,
                           struct edge shape)
{
    return op_call2(g, "Reshape", op_call2(g, "Sum", grad, axes), shape);
}

bool op_gradient_pair(struct gradient *g, struct edge for_x, struct edge for_y)
{
    struct edge shape_x = op_shape_of(g, gradient_x(g, 0));
    struct edge shape_y = op_shape_of(g, gradient_x(g, 1));
    struct edge axes = op_call2(g, "BroadcastGradientArgs", shape_x, shape_y);
    g->of_inputs[0] = op_unbroadcast(g, for_x, axes, shape_x);
    g->of_inputs[1] = op_unbroadcast(g, for_y, builder_output(axes, 1), shape_y);
    return builder_ok(&g->build);
}

struct edge op_kept_shape(struct gradient *g, struct edge x, struct edge axes)
{
    struct edge shape = op_shape_of(g, x);
    struct edge rank = op_call1(g, "Size", shape);
    if (op_edge_type(axes) == I64)
        axes = op_call(g, "Cast", INPUTS(axes), ATTRS(attr_type("DstT", I32)));
    axes = op_call2(g, "Reshape", axes, op_ints(g, (const int64_t[]){-1}, 1));
    axes = op_call2(g, "FloorMod", op_call2(g, "AddV2", axes, rank), rank);
    struct edge all = op_call3(g, "Range", op_int(g, 0), rank, op_int(g, 1));
    /* Later indices win: the reduced axes overwrite their sizes with 1. */
    return op_call(g, "DynamicStitch", INPUTS(all, axes, shape, op_call1(g, "OnesLike", axes)),
                   ATTRS(attr_int("N", 2)));
}

bool op_gradient_single(struct gradient *g, struct edge for_x)
{
    g->of_inputs[0] = for_x;
    return builder_ok(&g->build);
}

bool op_gradient_pass(struct gradient *g, struct error *err)
{
    (void)err;
    return op_gradient_single(g, g->of_outputs[0]);
}
