/*
 * sparse_segment.c - gradients of rows picked by index and summed by segment, which name only
 * the rows that they touch.
 */

#include "runtime/ops/internal.h"

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
