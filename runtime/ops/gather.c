/* gather.c - elements chosen by index, and put back by index. */

#include "runtime/ops/internal.h"

static bool infer_gather_axis(struct infer *infer, int64_t axis, int64_t batch_dims)
{
    const struct shape *params = &infer->inputs[0], *indices = &infer->inputs[1];
    if (params->rank < 0 || indices->rank < 0)
        return true;
    axis += axis < 0 ? params->rank : 0;
    batch_dims += batch_dims < 0 ? indices->rank : 0;
    if (axis < batch_dims || axis >= params->rank || batch_dims < 0 ||
        batch_dims > indices->rank ||
        params->rank - 1 + indices->rank - batch_dims > LIMIT_TENSOR_RANK)
        return true;
    struct shape *out = &infer->outputs[0];
    out->rank = 0;
    for (int d = 0; d < axis; d++)
        out->dims[out->rank++] = params->dims[d];
    for (int d = (int)batch_dims; d < indices->rank; d++)
        out->dims[out->rank++] = indices->dims[d];
    for (int d = (int)axis + 1; d < params->rank; d++)
        out->dims[out->rank++] = params->dims[d];
    return true;
}

static bool infer_gather(struct infer *infer, struct error *err)
{
    (void)err;
    return infer_gather_axis(infer, 0, 0);
}

static bool infer_gather_v2(struct infer *infer, struct error *err)
{
    (void)err;
    int64_t axis;
    if (!op_infer_value(infer, 2, &axis))
        return true;
    return infer_gather_axis(infer, axis, node_attr_int(infer->node, "batch_dims", 0));
}

/*
 * Rows of the gradient summed by index, for gathers along axis 0: indices flattened, the
 * gradient as (indices, rows...).  `shape` is that of what was gathered from, int32.
 */
static struct edge scatter_rows(struct gradient *g, struct edge indices, struct edge grad,
                                struct edge shape)
{
    struct edge minus_one = op_ints(g, (const int64_t[]){-1}, 1);
    struct edge one = op_ints(g, (const int64_t[]){1}, 1), zero = op_int(g, 0);
    struct edge row = op_call3(g, "Slice", shape, one, minus_one);
    struct edge size = op_call2(g, "Reshape", op_call1(g, "Size", indices), one);
    struct edge flat_shape =
        op_call(g, "ConcatV2", INPUTS(size, row, zero), ATTRS(attr_int("N", 2)));
    struct edge rows = op_call3(g, "GatherV2", shape, zero, zero);
    return op_call3(g, "UnsortedSegmentSum", op_call2(g, "Reshape", grad, flat_shape),
                    op_call2(g, "Reshape", indices, minus_one), rows);
}

static bool gather_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge shape = op_shape_of(g, gradient_x(g, 0));
    return op_gradient_single(g, scatter_rows(g, gradient_x(g, 1), g->of_outputs[0], shape));
}

/* Entries [begin, end) of a vector. */
static struct edge part(struct gradient *g, struct edge vector, struct edge begin,
                        struct edge end)
{
    struct edge one = op_ints(g, (const int64_t[]){1}, 1);
    return op_call3(g, "Slice", vector, op_call2(g, "Reshape", begin, one),
                    op_call2(g, "Reshape", op_call2(g, "Sub", end, begin), one));
}

static struct edge product_of(struct gradient *g, struct edge vector)
{
    struct edge zero = op_ints(g, (const int64_t[]){0}, 1);
    return op_call2(g, "Prod", vector, zero);
}

static struct edge span(struct gradient *g, struct edge from, struct edge to)
{
    return op_call3(g, "Range", from, to, op_int(g, 1));
}

/*
 * Along any axis, with batch dimensions.  params is (batch, before, axis, after) and the
 * gradient (batch, before, indices, after).  The gradient is turned to (batch, indices, before,
 * after); to each index is added its batch's place times the length of the axis, so that one
 * sum by segment does all batches; the result (batch, axis, before, after) is turned back.
 */
static bool gather_v2_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge params = gradient_x(g, 0), indices = gradient_x(g, 1), axis = gradient_x(g, 2);
    struct edge zero = op_int(g, 0), one = op_int(g, 1);
    int64_t batch_attr = node_attr_int(g->node, "batch_dims", 0);
    struct edge shape = op_shape_of(g, params), rank = op_call1(g, "Rank", params);
    struct edge indices_shape = op_shape_of(g, indices);
    struct edge indices_rank = op_call1(g, "Rank", indices);
    if (op_edge_type(indices) != I32)
        indices = op_call(g, "Cast", INPUTS(indices), ATTRS(attr_type("DstT", I32)));
    if (op_edge_type(axis) != I32)
        axis = op_call(g, "Cast", INPUTS(axis), ATTRS(attr_type("DstT", I32)));
    axis = op_call2(g, "FloorMod", axis, rank);
    struct edge batch = op_int(g, batch_attr);
    if (batch_attr < 0)
        batch = op_call2(g, "AddV2", batch, indices_rank);

    struct edge batch_shape = part(g, shape, zero, batch);
    struct edge before_shape = part(g, shape, batch, axis);
    struct edge after_shape = part(g, shape, op_call2(g, "AddV2", axis, one), rank);
    struct edge axis_size = op_call3(g, "GatherV2", shape, axis, zero);
    struct edge picked_shape = part(g, indices_shape, batch, indices_rank);
    struct edge batch_count = product_of(g, batch_shape), before = product_of(g, before_shape);
    struct edge after = product_of(g, after_shape), picked = product_of(g, picked_shape);

    struct edge grad = op_call2(g, "Reshape", g->of_outputs[0],
                                op_call(g, "Pack", INPUTS(batch_count, before, picked, after),
                                        ATTRS(attr_int("N", 4))));
    struct edge turn = op_ints(g, (const int64_t[]){0, 2, 1, 3}, 4);
    grad = op_call2(g, "Transpose", grad, turn);
    struct edge rows_shape =
        op_call(g, "Pack", INPUTS(op_call2(g, "Mul", batch_count, picked), before, after),
                ATTRS(attr_int("N", 3)));
    grad = op_call2(g, "Reshape", grad, rows_shape);

    struct edge starts = op_call2(g, "Mul", span(g, zero, batch_count), axis_size);
    struct edge column =
        op_call2(g, "Reshape", starts, op_ints(g, (const int64_t[]){-1, 1}, 2));
    struct edge table =
        op_call2(g, "Reshape", indices,
                 op_call(g, "Pack", INPUTS(batch_count, picked), ATTRS(attr_int("N", 2))));
    struct edge ids = op_call2(g, "Reshape", op_call2(g, "AddV2", table, column),
                               op_ints(g, (const int64_t[]){-1}, 1));
    struct edge sums = op_call3(g, "UnsortedSegmentSum", grad, ids,
                                op_call2(g, "Mul", batch_count, axis_size));
    struct edge turned =
        op_call2(g, "Reshape", sums,
                 op_call(g, "Pack", INPUTS(batch_count, axis_size, before, after),
                         ATTRS(attr_int("N", 4))));
    return op_gradient_single(
        g, op_call2(g, "Reshape", op_call2(g, "Transpose", turned, turn), shape));
}

const struct op op_gather = {
    .name = "Gather",
    .inputs = "params:Tparams indices:Tindices",
    .outputs = "output:Tparams",
    .attrs = "validate_indices:bool=true Tparams:type Tindices:" OP_INDEX,
    .infer = infer_gather,
    .gradient = gather_gradient,
};

const struct op op_gather_v2 = {
    .name = "GatherV2",
    .inputs = "params:Tparams indices:Tindices axis:Taxis",
    .outputs = "output:Tparams",
    .attrs = "batch_dims:int=0 Tparams:type Tindices:{int16,int32,int64} Taxis:" OP_INDEX,
    .infer = infer_gather_v2,
    .gradient = gather_v2_gradient,
};

static bool resource_gather_gradient(struct gradient *g, struct error *err)
{
    if (node_attr_int(g->node, "batch_dims", 0) != 0)
        return fail(err, UNIMPLEMENTED,
                    "node '%s': no gradient of ResourceGather with batch_dims", g->node->name);
    struct edge shape = op_call1(g, "VariableShape", gradient_x(g, 0));
    return op_gradient_single(g, scatter_rows(g, gradient_x(g, 1), g->of_outputs[0], shape));
}

/* The shape of what the handle stands for, where its node tells it. */
static bool infer_resource_gather(struct infer *infer, struct error *err)
{
    (void)err;
    const struct shape *rows = node_attr_shape(infer->node->inputs[0].from, "shape");
    const struct shape *indices = &infer->inputs[1];
    struct shape *out = &infer->outputs[0];
    if (!rows || rows->rank < 1 || indices->rank < 0 ||
        node_attr_int(infer->node, "batch_dims", 0) != 0 ||
        rows->rank - 1 + indices->rank > LIMIT_TENSOR_RANK)
        return true;
    *out = *indices;
    for (int i = 1; i < rows->rank; i++)
        out->dims[out->rank++] = rows->dims[i];
    return true;
}

const struct op op_resource_gather = {
    .name = "ResourceGather",
    .inputs = "resource:resource indices:Tindices",
    .outputs = "output:dtype",
    .attrs = "batch_dims:int=0 validate_indices:bool=true dtype:type Tindices:" OP_INDEX,
    .flags = OP_STATEFUL,
    .infer = infer_resource_gather,
    .gradient = resource_gather_gradient,
};

static bool resource_gather_nd_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge indices = gradient_x(g, 1);
    struct edge shape = op_call(g, "VariableShape", INPUTS(gradient_x(g, 0)),
                                ATTRS(attr_type("out_type", (int)op_edge_type(indices))));
    return op_gradient_single(g, op_call3(g, "ScatterNd", indices, g->of_outputs[0], shape));
}

const struct op op_resource_gather_nd = {
    .name = "ResourceGatherNd",
    .inputs = "resource:resource indices:Tindices",
    .outputs = "output:dtype",
    .attrs = "dtype:type Tindices:" OP_INDEX,
    .flags = OP_STATEFUL,
    .gradient = resource_gather_nd_gradient,
};

static bool gather_nd_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge indices = gradient_x(g, 1);
    struct edge shape = op_call(g, "Shape", INPUTS(gradient_x(g, 0)),
                                ATTRS(attr_type("out_type", (int)op_edge_type(indices))));
    return op_gradient_single(g, op_call3(g, "ScatterNd", indices, g->of_outputs[0], shape));
}

const struct op op_gather_nd = {
    .name = "GatherNd",
    .inputs = "params:Tparams indices:Tindices",
    .outputs = "output:Tparams",
    .attrs = "Tparams:type Tindices:{int16,int32,int64} bad_indices_policy:string=''",
    .gradient = gather_nd_gradient,
};

static bool scatter_nd_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    g->of_inputs[1] = op_call2(g, "GatherNd", g->of_outputs[0], gradient_x(g, 0));
    return builder_ok(&g->build);
}

static bool infer_scatter_nd(struct infer *infer, struct error *err)
{
    (void)err;
    return op_infer_from_vector(infer, 2);
}

const struct op op_scatter_nd = {
    .name = "ScatterNd",
    .inputs = "indices:Tindices updates:T shape:Tindices",
    .outputs = "output:T",
    .attrs = "T:type Tindices:{int16,int32,int64} bad_indices_policy:string=''",
    .infer = infer_scatter_nd,
    .gradient = scatter_nd_gradient,
};

/* --- partition and stitch --- */

static bool dynamic_partition_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    int count = g->node->outputs_count;
    struct edge data = gradient_x(g, 0), partitions = gradient_x(g, 1);
    struct edge shape = op_shape_of(g, partitions);
    struct edge zero = op_ints(g, (const int64_t[]){0}, 1);
    struct edge places = op_call2(
        g, "Reshape",
        op_call3(g, "Range", op_int(g, 0), op_call2(g, "Prod", shape, zero), op_int(g, 1)),
        shape);
    struct edge parts = op_call(g, "DynamicPartition", INPUTS(places, partitions),
                                ATTRS(attr_int("num_partitions", count)));
    struct edge *inputs =
        arena_array(graph_arena(g->build.graph), (size_t)(2 * count), sizeof(*inputs));
    for (int i = 0; i < count; i++) {
        inputs[i] = builder_output(parts, i);
        inputs[count + i] = op_gradient_or_zeros(g, i);
    }
    struct edge stitched =
        op_call(g, "DynamicStitch", inputs, 2 * count, ATTRS(attr_int("N", count)));
    return op_gradient_single(g, op_call2(g, "Reshape", stitched, op_shape_of(g, data)));
}

const struct op op_dynamic_partition = {
    .name = "DynamicPartition",
    .inputs = "data:T partitions:int32",
    .outputs = "outputs:num_partitions*T",
    .attrs = "num_partitions:int>=1 T:type",
    .gradient = dynamic_partition_gradient,
};

static bool dynamic_stitch_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    int count = g->node->inputs_count / 2;
    for (int i = 0; i < count; i++)
        g->of_inputs[count + i] =
            op_call3(g, "GatherV2", g->of_outputs[0], gradient_x(g, i), op_int(g, 0));
    return builder_ok(&g->build);
}

#define STITCH(name_)                                                                          \
    {                                                                                          \
        .name = name_, .inputs = "indices:N*int32 data:N*T", .outputs = "merged:T",            \
        .attrs = "N:int>=1 T:type", .gradient = dynamic_stitch_gradient,                       \
    }

const struct op op_dynamic_stitch = STITCH("DynamicStitch");
const struct op op_parallel_dynamic_stitch = STITCH("ParallelDynamicStitch");

/* --- sets, ranks --- */

const struct op op_unique = {
    .name = "Unique",
    .inputs = "x:T",
    .outputs = "y:T idx:out_idx",
    .attrs = "T:type out_idx:{int32,int64}=int32",
    .no_gradient = true,
};

const struct op op_unique_with_counts = {
    .name = "UniqueWithCounts",
    .inputs = "x:T",
    .outputs = "y:T idx:out_idx count:out_idx",
    .attrs = "T:type out_idx:{int32,int64}=int32",
    .no_gradient = true,
};

const struct op op_list_diff = {
    .name = "ListDiff",
    .inputs = "x:T y:T",
    .outputs = "out:T idx:out_idx",
    .attrs = "T:type out_idx:{int32,int64}=int32",
    .no_gradient = true,
};

/* Seen as rows, each gradient goes to the place its value came from. */
static bool top_k_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge x = gradient_x(g, 0), dy = g->of_outputs[0], indices = gradient_y(g, 1);
    if (!dy.from)
        return true;
    struct edge minus_one = op_ints(g, (const int64_t[]){-1}, 1), zero = op_int(g, 0);
    if (op_edge_type(indices) != I32)
        indices = op_call(g, "Cast", INPUTS(indices), ATTRS(attr_type("DstT", I32)));
    struct edge shape = op_shape_of(g, x),
                last = op_call2(g, "Sub", op_call1(g, "Rank", x), op_int(g, 1));
    struct edge width = op_call3(g, "GatherV2", shape, last, zero);
    struct edge total = op_call1(g, "Size", x);
    struct edge rows =
        op_call2(g, "FloorDiv", total, op_call2(g, "Maximum", width, op_int(g, 1)));
    struct edge starts = op_call2(g, "Mul", span(g, zero, rows), width);
    struct edge rows_shape = op_call(
        g, "Pack", INPUTS(rows, op_call3(g, "GatherV2", op_shape_of(g, indices), last, zero)),
        ATTRS(attr_int("N", 2)));
    struct edge column =
        op_call2(g, "Reshape", starts, op_ints(g, (const int64_t[]){-1, 1}, 2));
    struct edge places =
        op_call2(g, "AddV2", op_call2(g, "Reshape", indices, rows_shape), column);
    struct edge flat = op_call3(g, "UnsortedSegmentSum", op_call2(g, "Reshape", dy, minus_one),
                                op_call2(g, "Reshape", places, minus_one), total);
    return op_gradient_single(g, op_call2(g, "Reshape", flat, shape));
}

/* Of the last dimension there are k. */
static bool infer_top_k(struct infer *infer, struct error *err)
{
    (void)err;
    struct shape top = infer->inputs[0];
    int64_t k = node_attr_int(infer->node, "k", -1);
    if (infer->node->inputs_count > 1 && !op_infer_value(infer, 1, &k))
        k = -1;
    if (top.rank > 0)
        top.dims[top.rank - 1] = k < 0 ? -1 : k;
    infer->outputs[0] = infer->outputs[1] = top;
    return true;
}

const struct op op_top_k_v2 = {
    .name = "TopKV2",
    .inputs = "input:T k:Tk",
    .outputs = "values:T indices:index_type",
    .attrs = "sorted:bool=true T:" OP_REAL
             " Tk:{int16,int32,int64}=int32 index_type:{int16,int32,int64}=int32",
    .infer = infer_top_k,
    .gradient = top_k_gradient,
};

const struct op op_top_k = {
    .name = "TopK",
    .inputs = "input:T",
    .outputs = "values:T indices:int32",
    .attrs = "k:int>=0 sorted:bool=true T:" OP_REAL,
    .infer = infer_top_k,
    .gradient = top_k_gradient,
};

static bool infer_in_top_k(struct infer *infer, struct error *err)
{
    (void)err;
    infer->outputs[0] = SHAPE(op_infer_dim(infer, 0, 0));
    return true;
}

const struct op op_in_top_k = {
    .name = "InTopK",
    .inputs = "predictions:float targets:T",
    .outputs = "precision:bool",
    .attrs = "k:int T:{int32,int64}=int32",
    .infer = infer_in_top_k,
    .no_gradient = true,
};

const struct op op_in_top_k_v2 = {
    .name = "InTopKV2",
    .inputs = "predictions:float targets:T k:T",
    .outputs = "precision:bool",
    .attrs = "T:{int32,int64}=int32",
    .infer = infer_in_top_k,
    .no_gradient = true,
};

static bool infer_sparse_to_dense(struct infer *infer, struct error *err)
{
    (void)err;
    return op_infer_from_vector(infer, 1);
}

/* Values get the gradient at their place, the default the rest. */
static bool sparse_to_dense_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge dy = g->of_outputs[0];
    struct edge values = op_call2(g, "GatherNd", dy, gradient_x(g, 0));
    struct edge all =
        op_call2(g, "Sum", dy,
                 op_call3(g, "Range", op_int(g, 0), op_call1(g, "Rank", dy), op_int(g, 1)));
    struct edge taken =
        op_call2(g, "Sum", values,
                 op_call3(g, "Range", op_int(g, 0), op_call1(g, "Rank", values), op_int(g, 1)));
    g->of_inputs[2] = values;
    g->of_inputs[3] = op_call2(g, "Sub", all, taken);
    return builder_ok(&g->build);
}

const struct op op_sparse_to_dense = {
    .name = "SparseToDense",
    .inputs = "sparse_indices:Tindices output_shape:Tindices sparse_values:T default_value:T",
    .outputs = "dense:T",
    .attrs = "validate_indices:bool=true T:type Tindices:" OP_INDEX,
    .infer = infer_sparse_to_dense,
    .gradient = sparse_to_dense_gradient,
};
