/* array_more.c - arrays moved, changed and summed up in ways that few programs ask for. */

#include "runtime/ops/internal.h"

#include <math.h>

static bool infer_empty(struct infer *infer, struct error *err)
{
    (void)err;
    op_infer_from_vector(infer, 0);
    return true;
}

static bool infer_transpose(struct infer *infer, struct error *err)
{
    (void)err;
    if (infer->inputs[0].rank >= 0)
        op_infer_rank(infer, 0, infer->inputs[0].rank);
    return true;
}

/* Back by the inverse order. */
static bool transpose_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return op_gradient_single(g, op_call2(g, "ConjugateTranspose", g->of_outputs[0],
                                          op_call1(g, "InvertPermutation", gradient_x(g, 1))));
}

static bool reverse_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return op_gradient_single(g, op_call2(g, "Reverse", g->of_outputs[0], gradient_x(g, 1)));
}

/* x / y, times the gradient along the axes; 0 where the norm is. */
static bool norm_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge x = gradient_x(g, 0), kept = op_kept_shape(g, x, gradient_x(g, 1));
    struct edge y = op_call2(g, "Reshape", gradient_y(g, 0), kept);
    struct edge dy = op_call2(g, "Reshape", g->of_outputs[0], kept);
    return op_gradient_single(g, op_call2(g, "Mul", x, op_call2(g, "DivNoNan", dy, y)));
}

/* Sums of logarithms, the gradient's positive and negative parts on their own. */
static bool logsumexp_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge x = gradient_x(g, 0), y = gradient_y(g, 0), dy = g->of_outputs[0];
    struct edge none = op_number(g, dy, -INFINITY), zero = op_number(g, dy, 0), sums[2];
    const struct attr attrs[] = {
        attr_bool("exclusive", node_attr_bool(g->node, "exclusive", false)),
        attr_bool("reverse", !node_attr_bool(g->node, "reverse", false))};
    for (int i = 0; i < 2; i++) {
        struct edge part = i ? op_call1(g, "Neg", dy) : dy;
        struct edge logs = op_call3(g, "SelectV2", op_call2(g, "Greater", part, zero),
                                    op_call1(g, "Log", part), none);
        struct edge whole =
            op_call(g, "CumulativeLogsumexp",
                    INPUTS(op_call2(g, "Sub", logs, y), gradient_x(g, 1)), attrs, 2);
        sums[i] = op_call1(g, "Exp", op_call2(g, "AddV2", whole, x));
    }
    return op_gradient_single(g, op_call2(g, "Sub", sums[0], sums[1]));
}

static bool bias_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    g->of_inputs[0] = g->of_outputs[0];
    g->of_inputs[1] = op_call1(g, "BiasAddGrad", g->of_outputs[0]);
    return builder_ok(&g->build);
}

const struct op op_empty = {
    .name = "Empty",
    .inputs = "shape:int32",
    .outputs = "output:dtype",
    .attrs = "dtype:type init:bool=false",
    .flags = OP_STATEFUL,
    .infer = infer_empty,
};

const struct op op_inplace_update = {
    .name = "InplaceUpdate",
    .inputs = "x:T i:int32 v:T",
    .outputs = "y:T",
    .attrs = "T:type",
    .infer = op_infer_unchanged,
};

const struct op op_inplace_add = {
    .name = "InplaceAdd",
    .inputs = "x:T i:int32 v:T",
    .outputs = "y:T",
    .attrs = "T:type",
    .infer = op_infer_unchanged,
};

const struct op op_inplace_sub = {
    .name = "InplaceSub",
    .inputs = "x:T i:int32 v:T",
    .outputs = "y:T",
    .attrs = "T:type",
    .infer = op_infer_unchanged,
};

const struct op op_deep_copy = {
    .name = "DeepCopy",
    .inputs = "x:T",
    .outputs = "y:T",
    .attrs = "T:type",
    .flags = OP_STATEFUL,
    .infer = op_infer_unchanged,
};

const struct op op_conjugate_transpose = {
    .name = "ConjugateTranspose",
    .inputs = "x:T perm:Tperm",
    .outputs = "y:T",
    .attrs = "T:type Tperm:{int32,int64}=int32",
    .infer = infer_transpose,
    .gradient = transpose_gradient,
};

const struct op op_reverse = {
    .name = "Reverse",
    .inputs = "tensor:T dims:bool",
    .outputs = "output:T",
    .attrs = "T:{uint8,int8,uint16,int16,uint32,int32,uint64,int64,bool,bfloat16,half,float,"
             "double,complex64,complex128,string}",
    .infer = op_infer_unchanged,
    .gradient = reverse_gradient,
};

const struct op op_data_format_dim_map = {
    .name = "DataFormatDimMap",
    .inputs = "x:T",
    .outputs = "y:T",
    .attrs = "T:{int32,int64}=int32 src_format:string='NHWC' dst_format:string='NCHW'",
    .infer = op_infer_unchanged,
};

const struct op op_data_format_vec_permute = {
    .name = "DataFormatVecPermute",
    .inputs = "x:T",
    .outputs = "y:T",
    .attrs = "T:{int32,int64}=int32 src_format:string='NHWC' dst_format:string='NCHW'",
    .infer = op_infer_unchanged,
};

const struct op op_euclidean_norm = {
    .name = "EuclideanNorm",
    .inputs = "input:T reduction_indices:Tidx",
    .outputs = "output:T",
    .attrs =
        "keep_dims:bool=false "
        "T:{float,double,int32,uint8,int16,int8,complex64,int64,qint8,quint8,qint32,bfloat16,"
        "qint16,quint16,uint16,complex128,half,uint32,uint64} Tidx:{int32,int64}=int32",
    .gradient = norm_gradient,
};

const struct op op_cumulative_logsumexp = {
    .name = "CumulativeLogsumexp",
    .inputs = "x:T axis:Tidx",
    .outputs = "out:T",
    .attrs = "exclusive:bool=false reverse:bool=false T:{bfloat16,half,float,double} "
             "Tidx:{int32,int64}=int32",
    .infer = op_infer_unchanged,
    .gradient = logsumexp_gradient,
};

const struct op op_bias_add_v1 = {
    .name = "BiasAddV1",
    .inputs = "value:T bias:T",
    .outputs = "output:T",
    .attrs = "T:{float,double,int32,uint8,int16,int8,complex64,int64,qint8,quint8,qint32,"
             "bfloat16,qint16,quint16,uint16,complex128,half,uint32,uint64}",
    .infer = op_infer_unchanged,
    .gradient = bias_gradient,
};

const struct op op_check_numerics_v2 = {
    .name = "CheckNumericsV2",
    .inputs = "tensor:T",
    .outputs = "output:T",
    .attrs = "T:{bfloat16,half,float,double} message:string",
    .flags = OP_STATEFUL,
    .infer = op_infer_unchanged,
    .gradient = op_gradient_pass,
};
