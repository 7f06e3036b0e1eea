/* sparse.c - sparse tensors: places, values and a shape. */

#include "runtime/ops/internal.h"

#include "runtime/graph.h"

/* The size of the first dimension of input `index`: how many values, or dimensions. */
static int64_t length_of(const struct infer *infer, int index)
{
    return op_infer_dim(infer, index, 0);
}

static int64_t rank_of(const struct infer *infer, int indices)
{
    return op_infer_dim(infer, indices, 1);
}

/* Outputs 0, 1 and 2: a sparse tensor of unknown size, with as many dimensions as input 0. */
static bool infer_sparse(struct infer *infer, struct error *err)
{
    (void)err;
    int64_t rank = rank_of(infer, 0);
    infer->outputs[0] = SHAPE(-1, rank);
    infer->outputs[1] = SHAPE(-1);
    if (infer->node->outputs_count > 2)
        infer->outputs[2] = SHAPE(rank);
    return true;
}

/* --- rows --- */

static bool infer_fill(struct infer *infer, struct error *err)
{
    (void)err;
    int64_t dims[LIMIT_TENSOR_RANK];
    int count;
    bool known = op_infer_values(infer, 2, dims, &count) && count > 0;
    infer->outputs[0] = SHAPE(-1, rank_of(infer, 0));
    infer->outputs[1] = SHAPE(-1);
    infer->outputs[2] = SHAPE(known ? dims[0] : -1);
    infer->outputs[3] = SHAPE(length_of(infer, 0));
    return true;
}

static bool fill_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge grads =
        op_call2(g, "SparseFillEmptyRowsGrad", gradient_y(g, 3), op_gradient_or_zeros(g, 1));
    g->of_inputs[1] = grads;
    g->of_inputs[3] = builder_output(grads, 1);
    return builder_ok(&g->build);
}

const struct op op_sparse_fill_empty_rows = {
    .name = "SparseFillEmptyRows",
    .inputs = "indices:int64 values:T dense_shape:int64 default_value:T",
    .outputs = "output_indices:int64 output_values:T empty_row_indicator:bool "
               "reverse_index_map:int64",
    .attrs = "T:type",
    .infer = infer_fill,
    .gradient = fill_gradient,
};

static bool infer_fill_grad(struct infer *infer, struct error *err)
{
    (void)err;
    infer->outputs[0] = SHAPE(length_of(infer, 0));
    infer->outputs[1] = SHAPE_SCALAR;
    return true;
}

const struct op op_sparse_fill_empty_rows_grad = {
    .name = "SparseFillEmptyRowsGrad",
    .inputs = "reverse_index_map:int64 grad_values:T",
    .outputs = "d_values:T d_default_value:T",
    .attrs = "T:type",
    .infer = infer_fill_grad,
};

/* --- shapes --- */

static bool infer_reshape(struct infer *infer, struct error *err)
{
    (void)err;
    int64_t rank = length_of(infer, 2);
    infer->outputs[0] = SHAPE(length_of(infer, 0), rank);
    infer->outputs[1] = SHAPE(rank);
    return true;
}

const struct op op_sparse_reshape = {
    .name = "SparseReshape",
    .inputs = "input_indices:int64 input_shape:int64 new_shape:int64",
    .outputs = "output_indices:int64 output_shape:int64",
    .attrs = "",
    .infer = infer_reshape,
    .no_gradient = true,
};

static bool infer_reorder(struct infer *infer, struct error *err)
{
    (void)err;
    infer->outputs[0] = infer->inputs[0];
    infer->outputs[1] = infer->inputs[1];
    return true;
}

/* The numbers of the values, put in order like these, tell where each went. */
static bool reorder_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge indices = gradient_x(g, 0);
    struct edge count =
        op_call3(g, "GatherV2", op_shape_of(g, indices), op_int(g, 0), op_int(g, 0));
    struct edge numbers = op_call3(g, "Range", op_int(g, 0), count, op_int(g, 1));
    struct edge moved =
        builder_output(op_call3(g, "SparseReorder", indices, numbers, gradient_x(g, 2)), 1);
    g->of_inputs[1] = op_call3(g, "GatherV2", op_gradient_or_zeros(g, 1),
                               op_call1(g, "InvertPermutation", moved), op_int(g, 0));
    return builder_ok(&g->build);
}

const struct op op_sparse_reorder = {
    .name = "SparseReorder",
    .inputs = "input_indices:int64 input_values:T input_shape:int64",
    .outputs = "output_indices:int64 output_values:T",
    .attrs = "T:type",
    .infer = infer_reorder,
    .gradient = reorder_gradient,
};

static bool slice_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    g->of_inputs[1] = op_call(g, "SparseSliceGrad",
                              INPUTS(op_gradient_or_zeros(g, 1), gradient_x(g, 0),
                                     gradient_x(g, 3), gradient_y(g, 0)),
                              NO_ATTRS);
    return builder_ok(&g->build);
}

const struct op op_sparse_slice = {
    .name = "SparseSlice",
    .inputs = "indices:int64 values:T shape:int64 start:int64 size:int64",
    .outputs = "output_indices:int64 output_values:T output_shape:int64",
    .attrs = "T:type",
    .infer = infer_sparse,
    .gradient = slice_gradient,
};

static bool infer_slice_grad(struct infer *infer, struct error *err)
{
    (void)err;
    infer->outputs[0] = SHAPE(length_of(infer, 1));
    return true;
}

const struct op op_sparse_slice_grad = {
    .name = "SparseSliceGrad",
    .inputs = "backprop_val_grad:T input_indices:int64 input_start:int64 output_indices:int64",
    .outputs = "val_grad:T",
    .attrs = "T:" OP_NUMBER,
    .infer = infer_slice_grad,
};

const struct op op_sparse_concat = {
    .name = "SparseConcat",
    .inputs = "indices:N*int64 values:N*T shapes:N*int64",
    .outputs = "output_indices:int64 output_values:T output_shape:int64",
    .attrs = "concat_dim:int N:int>=2 T:type",
    .infer = infer_sparse,
    .no_gradient = true,
};

static bool infer_split(struct infer *infer, struct error *err)
{
    (void)err;
    int parts = (int)node_attr_int(infer->node, "num_split", 1);
    int64_t rank = length_of(infer, 3);
    for (int p = 0; p < parts && 3 * parts == infer->node->outputs_count; p++) {
        infer->outputs[p] = SHAPE(-1, rank);
        infer->outputs[parts + p] = SHAPE(-1);
        infer->outputs[2 * parts + p] = SHAPE(rank);
    }
    return true;
}

const struct op op_sparse_split = {
    .name = "SparseSplit",
    .inputs = "split_dim:int64 indices:int64 values:T shape:int64",
    .outputs = "output_indices:num_split*int64 output_values:num_split*T "
               "output_shape:num_split*int64",
    .attrs = "num_split:int>=1 T:type",
    .infer = infer_split,
};

/* --- crosses --- */

static bool infer_cross(struct infer *infer, struct error *err)
{
    (void)err;
    infer->outputs[0] = SHAPE(-1, 2);
    infer->outputs[1] = SHAPE(-1);
    infer->outputs[2] = SHAPE(2);
    return true;
}

#define CROSS(name_, inputs_, type_, attrs_)                                                   \
    {                                                                                          \
        .name = name_,                                                                         \
        .inputs = "indices:N*int64 values:list(sparse_types) shapes:N*int64 "                  \
                  "dense_inputs:list(dense_types)" inputs_,                                    \
        .outputs = "output_indices:int64 output_values:" type_ " output_shape:int64",          \
        .attrs = "N:int>=0 " attrs_ "sparse_types:list({int64,string})>=0 "                    \
                 "dense_types:list({int64,string})>=0",                                        \
        .infer = infer_cross, .no_gradient = true,                                             \
    }

const struct op op_sparse_cross =
    CROSS("SparseCross", "", "out_type",
          "hashed_output:bool num_buckets:int>=0 hash_key:int out_type:{int64,string} "
          "internal_type:{int64,string} ");
const struct op op_sparse_cross_v2 = CROSS("SparseCrossV2", " sep:string", "string", "");
const struct op op_sparse_cross_hashed =
    CROSS("SparseCrossHashed", " num_buckets:int64 strong_hash:bool salt:int64", "int64", "");

/* --- comparing --- */

const struct op op_edit_distance = {
    .name = "EditDistance",
    .inputs = "hypothesis_indices:int64 hypothesis_values:T hypothesis_shape:int64 "
              "truth_indices:int64 truth_values:T truth_shape:int64",
    .outputs = "output:float",
    .attrs = "normalize:bool=true T:type",
    .no_gradient = true,
};

/* --- reductions --- */

static bool infer_reduce(struct infer *infer, struct error *err)
{
    (void)err;
    int64_t rank = length_of(infer, 2);
    if (node_attr_bool(infer->node, "keep_dims", false) && rank >= 0 &&
        rank <= LIMIT_TENSOR_RANK)
        op_infer_rank(infer, 0, (int)rank);
    return true;
}

static bool infer_reduce_sparse(struct infer *infer, struct error *err)
{
    (void)err;
    op_infer_rank(infer, 0, 2);
    infer->outputs[1] = SHAPE(-1);
    infer->outputs[2] = SHAPE(-1);
    return true;
}

/* Each value gets the gradient of the sum that it went into. */
static bool reduce_sum_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge shape = gradient_x(g, 2);
    struct edge rank = op_call1(g, "Size", shape);
    struct edge axes =
        op_call2(g, "Reshape", gradient_x(g, 3), op_ints(g, (const int64_t[]){-1}, 1));
    axes = op_call2(g, "FloorMod", op_call2(g, "AddV2", axes, rank), rank);
    struct edge all = op_call3(g, "Range", op_int(g, 0), rank, op_int(g, 1));
    struct edge ones = op_call(g, "Cast", INPUTS(op_call1(g, "OnesLike", axes)),
                               ATTRS(attr_type("DstT", I64)));
    struct edge kept =
        op_call(g, "DynamicStitch", INPUTS(all, axes, shape, ones), ATTRS(attr_int("N", 2)));
    struct edge scale = op_call2(g, "FloorDiv", shape,
                                 op_call2(g, "Maximum", kept, op_call1(g, "OnesLike", kept)));
    scale = op_call2(g, "Maximum", scale, op_call1(g, "OnesLike", scale));
    struct edge places = op_call2(g, "FloorDiv", gradient_x(g, 0), scale);
    g->of_inputs[1] =
        op_call2(g, "GatherNd", op_call2(g, "Reshape", g->of_outputs[0], kept), places);
    return builder_ok(&g->build);
}

#define REDUCE_INPUTS                                                                          \
    "input_indices:int64 input_values:T input_shape:int64 reduction_axes:int32"
#define REDUCE_SPARSE(name_, types_)                                                           \
    {                                                                                          \
        .name = name_, .inputs = REDUCE_INPUTS,                                                \
        .outputs = "output_indices:int64 output_values:T output_shape:int64",                  \
        .attrs = "keep_dims:bool=false T:" types_, .infer = infer_reduce_sparse,               \
    }

const struct op op_sparse_reduce_sum = {
    .name = "SparseReduceSum",
    .inputs = REDUCE_INPUTS,
    .outputs = "output:T",
    .attrs = "keep_dims:bool=false T:" OP_NUMBER,
    .infer = infer_reduce,
    .gradient = reduce_sum_gradient,
};

const struct op op_sparse_reduce_max = {
    .name = "SparseReduceMax",
    .inputs = REDUCE_INPUTS,
    .outputs = "output:T",
    .attrs = "keep_dims:bool=false T:" OP_REAL,
    .infer = infer_reduce,
};

const struct op op_sparse_reduce_sum_sparse = REDUCE_SPARSE("SparseReduceSumSparse", OP_NUMBER);
const struct op op_sparse_reduce_max_sparse = REDUCE_SPARSE("SparseReduceMaxSparse", OP_REAL);

static bool infer_values(struct infer *infer, struct error *err)
{
    (void)err;
    infer->outputs[0] = infer->inputs[1];
    return true;
}

/* y (dy - sum of y dy over the row). */
static bool softmax_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge y = gradient_y(g, 0), dy = g->of_outputs[0];
    struct edge indices = gradient_x(g, 0), shape = gradient_x(g, 2);
    struct edge sums = op_call(
        g, "SparseReduceSum",
        INPUTS(indices, op_call2(g, "Mul", y, dy), shape, op_ints(g, (const int64_t[]){-1}, 1)),
        ATTRS(attr_bool("keep_dims", true)));
    struct edge centred =
        op_call(g, "SparseDenseCwiseAdd", INPUTS(indices, dy, shape, op_call1(g, "Neg", sums)),
                NO_ATTRS);
    g->of_inputs[1] = op_call2(g, "Mul", centred, y);
    return builder_ok(&g->build);
}

const struct op op_sparse_softmax = {
    .name = "SparseSoftmax",
    .inputs = "sp_indices:int64 sp_values:T sp_shape:int64",
    .outputs = "output:T",
    .attrs = "T:{half,float,double}",
    .infer = infer_values,
    .gradient = softmax_gradient,
};

/* --- with a dense tensor, or another sparse one --- */

static bool infer_mat_mul(struct infer *infer, struct error *err)
{
    (void)err;
    int64_t a[LIMIT_TENSOR_RANK] = {-1, -1};
    int count;
    bool known = op_infer_values(infer, 2, a, &count) && count == 2;
    int row = node_attr_bool(infer->node, "adjoint_a", false);
    int column = !node_attr_bool(infer->node, "adjoint_b", false);
    infer->outputs[0] = SHAPE(known ? a[row] : -1, op_infer_dim(infer, 3, column));
    return true;
}

/* Columns of a_indices. */
static struct edge column(struct gradient *g, int which)
{
    return op_call3(g, "GatherV2", gradient_x(g, 0), op_int(g, which), op_int(g, 1));
}

static struct edge transposed(struct gradient *g, struct edge x)
{
    const int64_t swap[] = {1, 0};
    return op_conjugate(g, op_call2(g, "Transpose", x, op_ints(g, swap, 2)));
}

/* d a[r,c] = <grad[r], b[c]>; d b is the product with the adjoint of a. */
static bool mat_mul_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    bool adjoint_a = node_attr_bool(g->node, "adjoint_a", false);
    bool adjoint_b = node_attr_bool(g->node, "adjoint_b", false);
    struct edge grad = g->of_outputs[0], b = gradient_x(g, 3);
    struct edge for_b =
        op_call(g, "SparseTensorDenseMatMul",
                INPUTS(gradient_x(g, 0), gradient_x(g, 1), gradient_x(g, 2), grad),
                ATTRS(attr_bool("adjoint_a", !adjoint_a)));
    struct edge from_grad = op_call3(g, "GatherV2", grad, column(g, adjoint_a), op_int(g, 0));
    struct edge from_b = op_call3(g, "GatherV2", adjoint_b ? transposed(g, b) : b,
                                  column(g, !adjoint_a), op_int(g, 0));
    struct edge for_a = op_call2(
        g, "Sum", op_call2(g, "Mul", from_grad, op_conjugate(g, from_b)), op_int(g, 1));
    g->of_inputs[1] = adjoint_a ? op_conjugate(g, for_a) : for_a;
    g->of_inputs[3] = adjoint_b ? transposed(g, for_b) : for_b;
    return builder_ok(&g->build);
}

const struct op op_sparse_tensor_dense_mat_mul = {
    .name = "SparseTensorDenseMatMul",
    .inputs = "a_indices:Tindices a_values:T a_shape:int64 b:T",
    .outputs = "product:T",
    .attrs = "T:type Tindices:{int32,int64}=int64 adjoint_a:bool=false adjoint_b:bool=false",
    .flags = OP_EXPENSIVE,
    .infer = infer_mat_mul,
    .gradient = mat_mul_gradient,
};

static bool infer_dense_add(struct infer *infer, struct error *err)
{
    (void)err;
    infer->outputs[0] = infer->inputs[3];
    return true;
}

static bool dense_add_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    g->of_inputs[1] = op_call2(g, "GatherNd", g->of_outputs[0], gradient_x(g, 0));
    g->of_inputs[3] = g->of_outputs[0];
    return builder_ok(&g->build);
}

const struct op op_sparse_tensor_dense_add = {
    .name = "SparseTensorDenseAdd",
    .inputs = "a_indices:Tindices a_values:T a_shape:Tindices b:T",
    .outputs = "output:T",
    .attrs = "T:" OP_NUMBER " Tindices:{int32,int64}",
    .infer = infer_dense_add,
    .gradient = dense_add_gradient,
};

/* What is dense gets, at each of its places, the sum over all that it was broadcast to. */
static bool cwise_gradient(struct gradient *g, bool divide)
{
    struct edge indices = gradient_x(g, 0), x = gradient_x(g, 1), y = gradient_x(g, 3);
    struct edge grad = g->of_outputs[0], one = op_ints(g, (const int64_t[]){1}, 1);
    const struct attr to_long = attr_type("DstT", I64);
    struct edge y_shape = op_call(g, "Cast", INPUTS(op_shape_of(g, y)), ATTRS(to_long));
    struct edge added = op_call2(
        g, "Reshape",
        op_call2(g, "Sub", op_call1(g, "Size", gradient_x(g, 2)), op_call1(g, "Rank", y)), one);
    struct edge ones =
        op_call(g, "Cast", INPUTS(op_call2(g, "Fill", added, op_int(g, 1))), ATTRS(to_long));
    struct edge wide =
        op_call(g, "ConcatV2", INPUTS(ones, y_shape, op_int(g, 0)), ATTRS(attr_int("N", 2)));
    struct edge scale = op_call2(g, "FloorDiv", gradient_x(g, 2), wide);
    struct edge begin =
        op_call(g, "ConcatV2", INPUTS(op_ints(g, (const int64_t[]){0}, 1), added, op_int(g, 0)),
                ATTRS(attr_int("N", 2)));
    struct edge places = op_call3(g, "Slice", op_call2(g, "FloorDiv", indices, scale), begin,
                                  op_ints(g, (const int64_t[]){-1, -1}, 2));
    struct edge dense = op_call2(g, "GatherNd", y, places);
    struct edge for_y = op_call2(g, "Mul", grad, x);
    if (divide)
        for_y = op_call1(g, "Neg", op_call2(g, "RealDiv", for_y, op_call1(g, "Square", dense)));
    g->of_inputs[1] = op_call2(g, divide ? "RealDiv" : "Mul", grad, dense);
    g->of_inputs[3] =
        op_call(g, "SparseTensorDenseAdd",
                INPUTS(places, for_y, y_shape, op_call1(g, "ZerosLike", y)), NO_ATTRS);
    return builder_ok(&g->build);
}

static bool cwise_mul_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return cwise_gradient(g, false);
}

static bool cwise_div_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return cwise_gradient(g, true);
}

#define CWISE(name_, gradient_)                                                                \
    {                                                                                          \
        .name = name_, .inputs = "sp_indices:int64 sp_values:T sp_shape:int64 dense:T",        \
        .outputs = "output:T", .attrs = "T:" OP_NUMBER, .infer = infer_values,                 \
        .gradient = gradient_,                                                                 \
    }

const struct op op_sparse_dense_cwise_add = CWISE("SparseDenseCwiseAdd", NULL);
const struct op op_sparse_dense_cwise_mul = CWISE("SparseDenseCwiseMul", cwise_mul_gradient);
const struct op op_sparse_dense_cwise_div = CWISE("SparseDenseCwiseDiv", cwise_div_gradient);

static bool add_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge grads = op_call(g, "SparseAddGrad",
                                INPUTS(op_gradient_or_zeros(g, 1), gradient_x(g, 0),
                                       gradient_x(g, 3), gradient_y(g, 0)),
                                NO_ATTRS);
    g->of_inputs[1] = grads;
    g->of_inputs[4] = builder_output(grads, 1);
    return builder_ok(&g->build);
}

const struct op op_sparse_add = {
    .name = "SparseAdd",
    .inputs = "a_indices:int64 a_values:T a_shape:int64 b_indices:int64 b_values:T "
              "b_shape:int64 thresh:Treal",
    .outputs = "sum_indices:int64 sum_values:T sum_shape:int64",
    .attrs = "T:" OP_NUMBER " Treal:" OP_REAL,
    .infer = infer_sparse,
    .gradient = add_gradient,
};

static bool infer_add_grad(struct infer *infer, struct error *err)
{
    (void)err;
    infer->outputs[0] = SHAPE(length_of(infer, 1));
    infer->outputs[1] = SHAPE(length_of(infer, 2));
    return true;
}

const struct op op_sparse_add_grad = {
    .name = "SparseAddGrad",
    .inputs = "backprop_val_grad:T a_indices:int64 b_indices:int64 sum_indices:int64",
    .outputs = "a_val_grad:T b_val_grad:T",
    .attrs = "T:" OP_NUMBER,
    .infer = infer_add_grad,
    .no_gradient = true,
};

#define EXTREME(name_, types_)                                                                 \
    {                                                                                          \
        .name = name_,                                                                         \
        .inputs = "a_indices:int64 a_values:T a_shape:int64 b_indices:int64 b_values:T "       \
                  "b_shape:int64",                                                             \
        .outputs = "output_indices:int64 output_values:T", .attrs = "T:" types_,               \
        .infer = infer_sparse,                                                                 \
    }

const struct op op_sparse_sparse_maximum = EXTREME("SparseSparseMaximum", OP_REAL);
const struct op op_sparse_sparse_minimum = EXTREME("SparseSparseMinimum", OP_NUMBER);
