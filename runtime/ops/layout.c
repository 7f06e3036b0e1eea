/* layout.c - the same elements in another order, repeated or padded. */

#include "runtime/ops/internal.h"

static bool infer_transpose(struct infer *infer, struct error *err)
{
    (void)err;
    const struct shape *in = &infer->inputs[0];
    int64_t order[LIMIT_TENSOR_RANK];
    int count;
    if (in->rank < 0)
        return true;
    op_infer_rank(infer, 0, in->rank);
    if (!op_infer_values(infer, 1, order, &count) || count != in->rank)
        return true;
    for (int d = 0; d < count; d++) {
        int64_t from = order[d] < 0 ? order[d] + count : order[d];
        if (from >= 0 && from < count)
            infer->outputs[0].dims[d] = in->dims[from];
    }
    return true;
}

static bool transpose_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge order = op_call1(g, "InvertPermutation", gradient_x(g, 1));
    return op_gradient_single(g, op_call2(g, "Transpose", g->of_outputs[0], order));
}

const struct op op_transpose = {
    .name = "Transpose",
    .inputs = "x:T perm:Tperm",
    .outputs = "y:T",
    .attrs = "T:type Tperm:{int32,int64}=int32",
    .infer = infer_transpose,
    .gradient = transpose_gradient,
};

static bool infer_tile(struct infer *infer, struct error *err)
{
    (void)err;
    const struct shape *in = &infer->inputs[0];
    int64_t multiples[LIMIT_TENSOR_RANK];
    int count;
    if (in->rank < 0)
        return true;
    op_infer_rank(infer, 0, in->rank);
    if (!op_infer_values(infer, 1, multiples, &count) || count != in->rank)
        return true;
    for (int d = 0; d < count; d++)
        infer->outputs[0].dims[d] = shape_product(in->dims[d], multiples[d]);
    return true;
}

/* Seen as (m0, d0, m1, d1, ...), the gradient is summed over the m. */
static bool tile_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge x = gradient_x(g, 0), multiples = gradient_x(g, 1);
    struct edge shape = op_call(g, "Shape", INPUTS(x),
                                ATTRS(attr_type("out_type", (int)op_edge_type(multiples))));
    struct edge pairs = op_call(g, "Pack", INPUTS(multiples, shape),
                                ATTRS(attr_int("N", 2), attr_int("axis", 1)));
    struct edge split = op_call2(g, "Reshape", pairs, op_ints(g, (const int64_t[]){-1}, 1));
    struct edge axes =
        op_call3(g, "Range", op_int(g, 0), op_call1(g, "Size", split), op_int(g, 2));
    struct edge sum = op_call2(g, "Sum", op_call2(g, "Reshape", g->of_outputs[0], split), axes);
    return op_gradient_single(g, op_call2(g, "Reshape", sum, shape));
}

const struct op op_tile = {
    .name = "Tile",
    .inputs = "input:T multiples:Tmultiples",
    .outputs = "output:T",
    .attrs = "T:type Tmultiples:{int32,int64}=int32",
    .infer = infer_tile,
    .gradient = tile_gradient,
};

static bool infer_pad(struct infer *infer, struct error *err)
{
    (void)err;
    const struct shape *in = &infer->inputs[0];
    int64_t paddings[LIMIT_TENSOR_RANK];
    int count;
    if (in->rank < 0)
        return true;
    op_infer_rank(infer, 0, in->rank);
    if (!op_infer_values(infer, 1, paddings, &count) || count != 2 * in->rank)
        return true;
    for (int d = 0; d < in->rank; d++)
        infer->outputs[0].dims[d] =
            shape_sum(shape_sum(in->dims[d], paddings[2 * d]), paddings[2 * d + 1]);
    return true;
}

/* The inner part of the gradient: Slice at the paddings in front. */
static struct edge inner_part(struct gradient *g)
{
    struct edge x = gradient_x(g, 0), paddings = gradient_x(g, 1);
    struct edge shape = op_call(g, "Shape", INPUTS(x),
                                ATTRS(attr_type("out_type", (int)op_edge_type(paddings))));
    struct edge both =
        op_call(g, "Unpack", INPUTS(paddings), ATTRS(attr_int("num", 2), attr_int("axis", 1)));
    return op_call3(g, "Slice", g->of_outputs[0], both, shape);
}

static bool pad_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return op_gradient_single(g, inner_part(g));
}

const struct op op_pad = {
    .name = "Pad",
    .inputs = "input:T paddings:Tpaddings",
    .outputs = "output:T",
    .attrs = "T:type Tpaddings:{int32,int64}=int32",
    .infer = infer_pad,
    .gradient = pad_gradient,
};

const struct op op_pad_v2 = {
    .name = "PadV2",
    .inputs = "input:T paddings:Tpaddings constant_values:T",
    .outputs = "output:T",
    .attrs = "T:type Tpaddings:{int32,int64}=int32",
    .infer = infer_pad,
    .gradient = pad_gradient,
};

static bool mirror(struct gradient *g, const char *op)
{
    const char *mode = node_attr_string(g->node, "mode", "REFLECT");
    return op_gradient_single(g, op_call(g, op, INPUTS(g->of_outputs[0], gradient_x(g, 1)),
                                         ATTRS(attr_string("mode", mode))));
}

static bool mirror_pad_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return mirror(g, "MirrorPadGrad");
}

static bool mirror_pad_grad_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return mirror(g, "MirrorPad");
}

const struct op op_mirror_pad = {
    .name = "MirrorPad",
    .inputs = "input:T paddings:Tpaddings",
    .outputs = "output:T",
    .attrs = "T:type Tpaddings:{int32,int64}=int32 mode:{'REFLECT','SYMMETRIC'}",
    .infer = infer_pad,
    .gradient = mirror_pad_gradient,
};

const struct op op_mirror_pad_grad = {
    .name = "MirrorPadGrad",
    .inputs = "input:T paddings:Tpaddings",
    .outputs = "output:T",
    .attrs = "T:type Tpaddings:{int32,int64}=int32 mode:{'REFLECT','SYMMETRIC'}",
    .gradient = mirror_pad_grad_gradient,
};

static bool reverse_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return op_gradient_single(g, op_call2(g, "ReverseV2", g->of_outputs[0], gradient_x(g, 1)));
}

const struct op op_reverse_v2 = {
    .name = "ReverseV2",
    .inputs = "tensor:T axis:Tidx",
    .outputs = "output:T",
    .attrs = "Tidx:{int32,int64}=int32 T:{uint8,int8,uint16,int16,int32,uint32,int64,uint64,"
             "bool,bfloat16,half,float,double,complex64,complex128,string}",
    .infer = op_infer_unchanged,
    .gradient = reverse_gradient,
};

static bool reverse_sequence_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    int64_t seq = node_attr_int(g->node, "seq_dim", 0);
    int64_t batch = node_attr_int(g->node, "batch_dim", 0);
    return op_gradient_single(
        g, op_call(g, "ReverseSequence", INPUTS(g->of_outputs[0], gradient_x(g, 1)),
                   ATTRS(attr_int("seq_dim", seq), attr_int("batch_dim", batch))));
}

const struct op op_reverse_sequence = {
    .name = "ReverseSequence",
    .inputs = "input:T seq_lengths:Tlen",
    .outputs = "output:T",
    .attrs = "seq_dim:int batch_dim:int=0 T:type Tlen:{int32,int64}=int64",
    .infer = op_infer_unchanged,
    .gradient = reverse_sequence_gradient,
};

/* --- blocks of pixels into channels and back --- */

static bool block_gradient(struct gradient *g, const char *op)
{
    int64_t block = node_attr_int(g->node, "block_size", 2);
    const char *format = node_attr_string(g->node, "data_format", "NHWC");
    return op_gradient_single(
        g, op_call(g, op, INPUTS(g->of_outputs[0]),
                   ATTRS(attr_int("block_size", block), attr_string("data_format", format))));
}

static bool space_to_depth_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return block_gradient(g, "DepthToSpace");
}

static bool depth_to_space_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return block_gradient(g, "SpaceToDepth");
}

const struct op op_space_to_depth = {
    .name = "SpaceToDepth",
    .inputs = "input:T",
    .outputs = "output:T",
    .attrs = "T:type block_size:int>=2 data_format:{'NHWC','NCHW','NCHW_VECT_C'}='NHWC'",
    .gradient = space_to_depth_gradient,
};

const struct op op_depth_to_space = {
    .name = "DepthToSpace",
    .inputs = "input:T",
    .outputs = "output:T",
    .attrs = "T:type block_size:int>=2 data_format:{'NHWC','NCHW','NCHW_VECT_C'}='NHWC'",
    .gradient = depth_to_space_gradient,
};
