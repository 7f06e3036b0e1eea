/* ragged.c - rows of different lengths, as values and splits. */

#include "runtime/ops/internal.h"

static bool infer_vectors(struct infer *infer, struct error *err)
{
    (void)err;
    for (int i = 0; i < infer->node->outputs_count; i++)
        op_infer_rank(infer, i, 1);
    return true;
}

static bool infer_gather(struct infer *infer, struct error *err)
{
    (void)err;
    int count = infer->node->outputs_count;
    for (int i = 0; i + 1 < count; i++)
        op_infer_rank(infer, i, 1);
    int64_t splits = node_attr_int(infer->node, "PARAMS_RAGGED_RANK", 1);
    infer->outputs[count - 1] = infer->inputs[splits];
    if (infer->inputs[splits].rank > 0)
        infer->outputs[count - 1].dims[0] = -1;
    return true;
}

static bool infer_sparse(struct infer *infer, struct error *err)
{
    (void)err;
    op_infer_rank(infer, 0, 2);
    op_infer_rank(infer, 1, 1);
    op_infer_rank(infer, 2, 1);
    return true;
}

/* Values stand in order: theirs is the gradient, in their shape. */
static bool sparse_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    int values = g->node->inputs_count - 1;
    g->of_inputs[values] = op_call2(g, "Reshape", op_gradient_or_zeros(g, 1),
                                    op_shape_of(g, gradient_x(g, values)));
    return builder_ok(&g->build);
}

static struct edge int64_of(struct gradient *g, struct edge x)
{
    return op_edge_type(x) == I64
               ? x
               : op_call(g, "Cast", INPUTS(x), ATTRS(attr_type("DstT", I64)));
}

/* The first dimension of x, int32. */
static struct edge length_of(struct gradient *g, struct edge x)
{
    return op_call3(g, "GatherV2", op_shape_of(g, x), op_int(g, 0), op_int(g, 0));
}

/* Which of the values each value of the output is a copy of: from the rows picked. */
static bool gather_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    int levels = (int)node_attr_int(g->node, "PARAMS_RAGGED_RANK", 1);
    struct edge values = gradient_x(g, levels), zero = op_int(g, 0), one = op_int(g, 1);
    struct edge dy = g->of_outputs[g->node->outputs_count - 1];
    if (!dy.from)
        return true;
    struct edge splits = int64_of(g, gradient_x(g, 0));
    for (int l = 1; l < levels; l++)
        splits = op_call3(g, "GatherV2", int64_of(g, gradient_x(g, l)), splits, zero);
    struct edge picks =
        op_call2(g, "Reshape", gradient_x(g, levels + 1), op_ints(g, (const int64_t[]){-1}, 1));
    struct edge next = op_call2(
        g, "AddV2", picks,
        op_call(g, "Cast", INPUTS(one), ATTRS(attr_type("DstT", op_edge_type(picks)))));
    struct edge ranges =
        op_call3(g, "RaggedRange", op_call3(g, "GatherV2", splits, picks, zero),
                 op_call3(g, "GatherV2", splits, next, zero), int64_of(g, one));
    g->of_inputs[levels] =
        op_call3(g, "UnsortedSegmentSum", dy, builder_output(ranges, 1), length_of(g, values));
    return builder_ok(&g->build);
}

/* Where each value went is where its number goes; the rest of the gradient is the default's. */
static bool tensor_gradient(struct gradient *g, struct error *err)
{
    struct edge dy = g->of_outputs[0], values = gradient_x(g, 1), fill = gradient_x(g, 2);
    struct edge zero = op_int(g, 0), one = op_int(g, 1);
    struct edge parts[LIMIT_TENSOR_RANK + 4];
    int count = g->node->inputs_count;
    if (count > ARRAY_LEN(parts))
        return fail(err, INVALID, "%d row partitions, at most %d", count - 3,
                    LIMIT_TENSOR_RANK);
    struct edge inner = op_call2(g, "Sub", op_call1(g, "Rank", values), one);
    struct edge rank = op_call2(g, "Sub", op_call1(g, "Rank", dy), inner);
    struct edge vector = op_call2(g, "Reshape", rank, op_ints(g, (const int64_t[]){1}, 1));
    parts[0] =
        op_call3(g, "Slice", op_shape_of(g, dy), op_ints(g, (const int64_t[]){0}, 1), vector);
    parts[1] = op_call3(g, "Range", zero, length_of(g, values), one);
    parts[2] = op_int(g, -1);
    for (int i = 3; i < count; i++)
        parts[i] = gradient_x(g, i);
    struct edge numbers = op_call(g, "RaggedTensorToTensor", parts, count,
                                  ATTRS(attr_int("num_row_partition_tensors", count - 3),
                                        *node_attr(g->node, "row_partition_types")));
    g->of_inputs[1] = op_call3(g, "UnsortedSegmentSum", dy, numbers, length_of(g, values));
    struct edge is_fill = op_call2(g, "Equal", numbers, op_int(g, -1));
    struct edge segment = op_call3(g, "SelectV2", is_fill, zero, op_int(g, -1));
    struct edge sum = op_call3(g, "UnsortedSegmentSum", dy, segment, one);
    struct edge shape_fill = op_shape_of(g, fill);
    struct edge axes = op_call2(g, "BroadcastGradientArgs", shape_fill, op_shape_of(g, sum));
    g->of_inputs[2] = op_unbroadcast(g, sum, axes, shape_fill);
    return builder_ok(&g->build);
}

const struct op op_ragged_range = {
    .name = "RaggedRange",
    .inputs = "starts:T limits:T deltas:T",
    .outputs = "rt_nested_splits:Tsplits rt_dense_values:T",
    .attrs = "T:{bfloat16,float,double,int32,int64}=int32 Tsplits:{int32,int64}=int64",
    .infer = infer_vectors,
    .no_gradient = true,
};

const struct op op_ragged_gather = {
    .name = "RaggedGather",
    .inputs = "params_nested_splits:PARAMS_RAGGED_RANK*Tsplits params_dense_values:Tvalues "
              "indices:Tindices",
    .outputs = "output_nested_splits:OUTPUT_RAGGED_RANK*Tsplits output_dense_values:Tvalues",
    .attrs = "Tvalues:type Tindices:{int32,int64} Tsplits:{int32,int64}=int64 "
             "PARAMS_RAGGED_RANK:int>=1 OUTPUT_RAGGED_RANK:int>=0",
    .infer = infer_gather,
    .gradient = gather_gradient,
};

const struct op op_ragged_tensor_to_tensor = {
    .name = "RaggedTensorToTensor",
    .inputs = "shape:Tshape values:T default_value:T "
              "row_partition_tensors:num_row_partition_tensors*Tindex",
    .outputs = "result:T",
    .attrs = "T:type Tindex:{int64,int32} Tshape:{int64,int32} "
             "num_row_partition_tensors:int>=1 row_partition_types:list(string)",
    .gradient = tensor_gradient,
};

const struct op op_ragged_tensor_to_sparse = {
    .name = "RaggedTensorToSparse",
    .inputs = "rt_nested_splits:RAGGED_RANK*Tsplits rt_dense_values:T",
    .outputs = "sparse_indices:int64 sparse_values:T sparse_dense_shape:int64",
    .attrs = "RAGGED_RANK:int>=1 T:type Tsplits:{int32,int64}=int64",
    .infer = infer_sparse,
    .gradient = sparse_gradient,
};
