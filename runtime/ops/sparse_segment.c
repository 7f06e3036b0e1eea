/*
 * sparse_segment.c - rows picked by index and summed, into a number of segments that is given;
 * gradients that name only the rows they touch.
 */

#include "runtime/ops/internal.h"

static bool infer_segments(struct infer *infer, struct error *err)
{
    (void)err;
    int64_t segments = -1;
    int count;
    if (infer->inputs[0].rank < 1)
        return true;
    if (!op_infer_values(infer, 3, &segments, &count) || count != 1)
        segments = -1;
    infer->outputs[0] = infer->inputs[0];
    infer->outputs[0].dims[0] = segments;
    return true;
}

static bool segment_gradient(struct gradient *g, const char *op)
{
    struct edge rows =
        op_call3(g, "GatherV2", op_shape_of(g, gradient_x(g, 0)), op_int(g, 0), op_int(g, 0));
    g->of_inputs[0] = op_call(
        g, op, INPUTS(g->of_outputs[0], gradient_x(g, 1), gradient_x(g, 2), rows), NO_ATTRS);
    return builder_ok(&g->build);
}

static bool segment_sum_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return segment_gradient(g, "SparseSegmentSumGrad");
}
static bool segment_mean_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return segment_gradient(g, "SparseSegmentMeanGrad");
}
static bool segment_sqrt_n_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return segment_gradient(g, "SparseSegmentSqrtNGrad");
}

#define SEGMENTS(name_, types_, gradient_)                                                     \
    {                                                                                          \
        .name = name_,                                                                         \
        .inputs = "data:T indices:Tidx segment_ids:Tsegmentids num_segments:Tnumsegments",     \
        .outputs = "output:T",                                                                 \
        .attrs = "T:" types_ " Tidx:{int32,int64}=int32 Tnumsegments:{int32,int64}=int32 "     \
                 "Tsegmentids:{int32,int64}=int32 sparse_gradient:bool=false",                 \
        .infer = infer_segments, .gradient = gradient_,                                        \
    }

const struct op op_sparse_segment_sum_with_num_segments =
    SEGMENTS("SparseSegmentSumWithNumSegments", OP_REAL, segment_sum_gradient);
const struct op op_sparse_segment_mean_with_num_segments =
    SEGMENTS("SparseSegmentMeanWithNumSegments", OP_FLOAT, segment_mean_gradient);
const struct op op_sparse_segment_sqrt_n_with_num_segments =
    SEGMENTS("SparseSegmentSqrtNWithNumSegments", OP_FLOAT, segment_sqrt_n_gradient);

static bool infer_grad_v2(struct infer *infer, struct error *err)
{
    (void)err;
    infer->outputs[1] = SHAPE(-1);
    if (infer->inputs[0].rank < 1)
        return true;
    infer->outputs[0] = infer->inputs[0];
    infer->outputs[0].dims[0] = -1;
    return true;
}

#define SEGMENT_GRAD_V2(name_)                                                                 \
    {                                                                                          \
        .name = name_,                                                                         \
        .inputs = "grad:T indices:Tidx segment_ids:Tsegmentids dense_output_dim0:int32",       \
        .outputs = "output:T sorted_unique_indices:Tidx",                                      \
        .attrs = "T:" OP_FLOAT " Tidx:{int32,int64}=int32 Tsegmentids:{int32,int64}=int32",    \
        .infer = infer_grad_v2,                                                                \
    }

const struct op op_sparse_segment_sum_grad_v2 = SEGMENT_GRAD_V2("SparseSegmentSumGradV2");
const struct op op_sparse_segment_mean_grad_v2 = SEGMENT_GRAD_V2("SparseSegmentMeanGradV2");
const struct op op_sparse_segment_sqrt_n_grad_v2 = SEGMENT_GRAD_V2("SparseSegmentSqrtNGradV2");
