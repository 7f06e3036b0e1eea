/* array.c - shapes, fills, and tensors seen under another shape. */

#include <math.h>

#include "runtime/ops/internal.h"

/* --- shapes as values --- */

static bool infer_shape(struct infer *infer, struct error *err)
{
    (void)err;
    for (int i = 0; i < infer->node->outputs_count; i++) {
        op_infer_rank(infer, i, 1);
        infer->outputs[i].dims[0] = infer->inputs[i].rank;
    }
    return true;
}

const struct op op_shape = {
    .name = "Shape",
    .inputs = "input:T",
    .outputs = "output:out_type",
    .attrs = "T:type out_type:{int32,int64}=int32",
    .infer = infer_shape,
    .no_gradient = true,
};

const struct op op_shape_n = {
    .name = "ShapeN",
    .inputs = "input:N*T",
    .outputs = "output:N*out_type",
    .attrs = "N:int>=1 T:type out_type:{int32,int64}=int32",
    .infer = infer_shape,
    .no_gradient = true,
};

const struct op op_size = {
    .name = "Size",
    .inputs = "input:T",
    .outputs = "output:out_type",
    .attrs = "T:type out_type:{int32,int64}=int32",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_rank = {
    .name = "Rank",
    .inputs = "input:T",
    .outputs = "output:int32",
    .attrs = "T:type",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_broadcast_gradient_args = {
    .name = "BroadcastGradientArgs",
    .inputs = "s0:T s1:T",
    .outputs = "r0:T r1:T",
    .attrs = "T:{int32,int64}=int32",
    .no_gradient = true,
};

const struct op op_broadcast_args = {
    .name = "BroadcastArgs",
    .inputs = "s0:T s1:T",
    .outputs = "r0:T",
    .attrs = "T:{int32,int64}=int32",
    .no_gradient = true,
};

/* --- the same elements under another shape --- */

static bool infer_reshape(struct infer *infer, struct error *err)
{
    (void)err;
    op_infer_from_vector(infer, 1);
    struct shape *out = &infer->outputs[0];
    int64_t known = 1, total = shape_count(&infer->inputs[0]);
    int unknown = -1, unknown_count = 0;
    for (int d = 0; d < out->rank; d++) {
        if (out->dims[d] < 0) {
            unknown = d;
            unknown_count++;
        } else if (__builtin_mul_overflow(known, out->dims[d], &known)) {
            return true; /* the kernel tells */
        }
    }
    if (infer->constants[1] && unknown_count == 1 && total > 0 && known > 0)
        out->dims[unknown] = total / known;
    return true;
}

/* The gradient under the shape of the input. */
static bool back_to_shape(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge shape = op_shape_of(g, gradient_x(g, 0));
    return op_gradient_single(g, op_call2(g, "Reshape", g->of_outputs[0], shape));
}

const struct op op_reshape = {
    .name = "Reshape",
    .inputs = "tensor:T shape:Tshape",
    .outputs = "output:T",
    .attrs = "T:type Tshape:{int32,int64}=int32",
    .infer = infer_reshape,
    .gradient = back_to_shape,
};

static bool infer_squeeze(struct infer *infer, struct error *err)
{
    (void)err;
    const struct shape *in = &infer->inputs[0];
    int count;
    const int64_t *dims = node_attr_ints(infer->node, "squeeze_dims", &count);
    if (in->rank < 0)
        return true;
    uint64_t dropped = 0;
    for (int i = 0; i < count; i++)
        dropped |= BIT((dims[i] < 0 ? dims[i] + in->rank : dims[i]) & 63);
    struct shape out = {.rank = 0};
    for (int d = 0; d < in->rank; d++) {
        if (count == 0 && in->dims[d] < 0)
            return true; /* 1 or not: the rank is not known */
        bool drop = count == 0 ? in->dims[d] == 1 : (dropped & BIT(d)) != 0;
        if (!drop)
            out.dims[out.rank++] = in->dims[d];
    }
    infer->outputs[0] = out;
    return true;
}

const struct op op_squeeze = {
    .name = "Squeeze",
    .inputs = "input:T",
    .outputs = "output:T",
    .attrs = "T:type squeeze_dims:list(int)=[]",
    .infer = infer_squeeze,
    .gradient = back_to_shape,
};

static bool infer_expand_dims(struct infer *infer, struct error *err)
{
    (void)err;
    const struct shape *in = &infer->inputs[0];
    int64_t axis;
    if (in->rank < 0 || in->rank == LIMIT_TENSOR_RANK)
        return true;
    op_infer_rank(infer, 0, in->rank + 1);
    if (!op_infer_value(infer, 1, &axis))
        return true;
    axis += axis < 0 ? in->rank + 1 : 0;
    for (int d = 0; d <= in->rank; d++)
        infer->outputs[0].dims[d] = d == axis ? 1 : in->dims[d > axis ? d - 1 : d];
    return true;
}

const struct op op_expand_dims = {
    .name = "ExpandDims",
    .inputs = "input:T dim:Tdim",
    .outputs = "output:T",
    .attrs = "T:type Tdim:{int32,int64}=int32",
    .infer = infer_expand_dims,
    .gradient = back_to_shape,
};

const struct op op_bitcast = {
    .name = "Bitcast",
    .inputs = "input:T",
    .outputs = "output:type",
    .attrs = "T:" OP_NUMBER " type:" OP_NUMBER,
    .no_gradient = true,
};

/* --- fills --- */

static bool fill_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge dy = g->of_outputs[0];
    struct edge axes =
        op_call3(g, "Range", op_int(g, 0), op_call1(g, "Rank", dy), op_int(g, 1));
    g->of_inputs[1] = op_call2(g, "Sum", dy, axes);
    return builder_ok(&g->build);
}

const struct op op_fill = {
    .name = "Fill",
    .inputs = "dims:index_type value:T",
    .outputs = "output:T",
    .attrs = "T:type index_type:{int32,int64}=int32",
    .infer = op_infer_from_first,
    .gradient = fill_gradient,
};

const struct op op_zeros_like = {
    .name = "ZerosLike",
    .inputs = "x:T",
    .outputs = "y:T",
    .attrs = "T:type",
    .infer = op_infer_unchanged,
    .no_gradient = true,
};

const struct op op_ones_like = {
    .name = "OnesLike",
    .inputs = "x:T",
    .outputs = "y:T",
    .attrs = "T:{bfloat16,half,float,double,int8,uint8,int16,uint16,int32,uint32,int64,uint64,"
             "complex64,complex128,bool}",
    .infer = op_infer_unchanged,
    .no_gradient = true,
};

static bool infer_broadcast_to(struct infer *infer, struct error *err)
{
    (void)err;
    return op_infer_from_vector(infer, 1);
}

static bool broadcast_to_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge from = op_shape_of(g, gradient_x(g, 0));
    struct edge to = op_shape_of(g, gradient_y(g, 0));
    struct edge axes = op_call2(g, "BroadcastGradientArgs", from, to);
    return op_gradient_single(g, op_unbroadcast(g, g->of_outputs[0], axes, from));
}

const struct op op_broadcast_to = {
    .name = "BroadcastTo",
    .inputs = "input:T shape:Tidx",
    .outputs = "output:T",
    .attrs = "T:type Tidx:{int32,int64}=int32",
    .infer = infer_broadcast_to,
    .gradient = broadcast_to_gradient,
};

static bool infer_vector(struct infer *infer, struct error *err)
{
    (void)err;
    op_infer_rank(infer, 0, 1);
    return true;
}

static bool infer_range(struct infer *infer, struct error *err)
{
    double ends[3];
    for (int i = 0; i < 3; i++) {
        const struct tensor *value = infer->constants[i];
        if (!value || value->count != 1)
            return infer_vector(infer, err);
        ends[i] = tensor_number(value, 0);
    }
    double size = ceil((ends[1] - ends[0]) / ends[2]);
    op_infer_rank(infer, 0, 1);
    if (size >= 0 && size < 1e9) /* else the kernel tells what is wrong */
        infer->outputs[0].dims[0] = (int64_t)size;
    return true;
}

const struct op op_range = {
    .name = "Range",
    .inputs = "start:Tidx limit:Tidx delta:Tidx",
    .outputs = "output:Tidx",
    .attrs = "Tidx:{bfloat16,half,float,double,int8,int16,int32,int64,uint16,uint32,"
             "uint64}=int32",
    .infer = infer_range,
    .no_gradient = true,
};

const struct op op_lin_space = {
    .name = "LinSpace",
    .inputs = "start:T stop:T num:Tidx",
    .outputs = "output:T",
    .attrs = "T:" OP_FLOAT " Tidx:{int32,int64}=int32",
    .infer = infer_vector,
    .no_gradient = true,
};

const struct op op_invert_permutation = {
    .name = "InvertPermutation",
    .inputs = "x:T",
    .outputs = "y:T",
    .attrs = "T:{int32,int64}=int32",
    .infer = op_infer_unchanged,
    .no_gradient = true,
};

static bool infer_one_hot(struct infer *infer, struct error *err)
{
    (void)err;
    const struct shape *in = &infer->inputs[0];
    int64_t axis = node_attr_int(infer->node, "axis", -1), depth;
    if (in->rank < 0 || in->rank == LIMIT_TENSOR_RANK || axis < -1 || axis > in->rank)
        return true;
    if (!op_infer_value(infer, 1, &depth))
        depth = -1;
    axis = axis < 0 ? in->rank : axis;
    op_infer_rank(infer, 0, in->rank + 1);
    for (int d = 0; d <= in->rank; d++)
        infer->outputs[0].dims[d] = d == axis ? depth : in->dims[d > axis ? d - 1 : d];
    return true;
}

const struct op op_one_hot = {
    .name = "OneHot",
    .inputs = "indices:TI depth:int32 on_value:T off_value:T",
    .outputs = "output:T",
    .attrs = "axis:int=-1 T:type TI:{uint8,int8,int32,int64}=int64",
    .infer = infer_one_hot,
    .no_gradient = true,
};

static bool infer_where(struct infer *infer, struct error *err)
{
    (void)err;
    infer->outputs[0] = SHAPE(-1, infer->inputs[0].rank);
    return true;
}

const struct op op_where = {
    .name = "Where",
    .inputs = "input:T",
    .outputs = "index:int64",
    .attrs = "T:{float,double,int32,uint8,int16,int8,complex64,int64,qint8,quint8,qint32,"
             "bfloat16,qint16,quint16,uint16,complex128,half,uint32,uint64,bool}=bool",
    .infer = infer_where,
    .no_gradient = true,
};

static bool band_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return op_gradient_single(
        g, op_call3(g, "MatrixBandPart", g->of_outputs[0], gradient_x(g, 1), gradient_x(g, 2)));
}

const struct op op_matrix_band_part = {
    .name = "MatrixBandPart",
    .inputs = "input:T num_lower:Tindex num_upper:Tindex",
    .outputs = "band:T",
    .attrs = "T:type Tindex:{int32,int64}=int64",
    .infer = op_infer_unchanged,
    .gradient = band_gradient,
};
