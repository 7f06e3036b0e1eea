/* count.c - numbers counted, put into buckets, and searched for in what is sorted. */

#include "runtime/ops/internal.h"

/* As many bins as the input `index` says. */
static int64_t bins_of(const struct infer *infer, int index)
{
    int64_t value;
    return op_infer_value(infer, index, &value) && value >= 0 ? value : -1;
}

static bool infer_bincount(struct infer *infer, struct error *err)
{
    (void)err;
    infer->outputs[0] = SHAPE(bins_of(infer, 1));
    return true;
}

/* One row of bins, or one for each row of the input. */
static bool infer_dense_bincount(struct infer *infer, struct error *err)
{
    (void)err;
    int rank = infer->inputs[0].rank;
    if (rank == 1)
        infer->outputs[0] = SHAPE(bins_of(infer, 1));
    else if (rank == 2)
        infer->outputs[0] = SHAPE(op_infer_dim(infer, 0, 0), bins_of(infer, 1));
    return true;
}

static bool infer_sparse_bincount(struct infer *infer, struct error *err)
{
    (void)err;
    int64_t rank = op_infer_dim(infer, 2, 0);
    if (rank == 1)
        infer->outputs[0] = SHAPE(bins_of(infer, 3));
    else if (rank == 2)
        infer->outputs[0] = SHAPE(-1, bins_of(infer, 3));
    return true;
}

static bool infer_ragged_bincount(struct infer *infer, struct error *err)
{
    (void)err;
    int64_t splits = op_infer_dim(infer, 0, 0);
    infer->outputs[0] = SHAPE(splits > 0 ? splits - 1 : -1, bins_of(infer, 2));
    return true;
}

static bool infer_sparse_counts(struct infer *infer, struct error *err)
{
    (void)err;
    int rank = infer->inputs[0].rank;
    op_infer_rank(infer, 0, 2);
    op_infer_rank(infer, 1, 1);
    op_infer_rank(infer, 2, 1);
    if (strcmp(infer->node->op->name, "DenseCountSparseOutput") == 0 && rank > 0)
        infer->outputs[2] = SHAPE(rank);
    return true;
}

static bool infer_histogram(struct infer *infer, struct error *err)
{
    (void)err;
    infer->outputs[0] = SHAPE(bins_of(infer, 2));
    return true;
}

static bool infer_search(struct infer *infer, struct error *err)
{
    (void)err;
    infer->outputs[0] = infer->inputs[1];
    return true;
}

static bool infer_nth(struct infer *infer, struct error *err)
{
    (void)err;
    infer->outputs[0] = infer->inputs[0];
    if (infer->inputs[0].rank > 0)
        infer->outputs[0].rank--;
    else
        infer->outputs[0] = SHAPE_UNKNOWN;
    return true;
}

/* All that are equal to the chosen one share its gradient. */
static bool nth_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge x = gradient_x(g, 0), last = op_int(g, -1);
    struct edge y = op_call2(g, "ExpandDims", gradient_y(g, 0), last);
    struct edge dy = op_call2(g, "ExpandDims", g->of_outputs[0], last);
    int type = op_edge_type(x);
    struct edge chosen =
        op_call(g, "Cast", INPUTS(op_call2(g, "Equal", y, x)), ATTRS(attr_type("DstT", type)));
    struct edge count = op_call2(g, "ExpandDims", op_call2(g, "Sum", chosen, last), last);
    return op_gradient_single(g, op_call2(g, "Mul", op_call2(g, "RealDiv", chosen, count), dy));
}

/* Coordinates: a row for each dimension. */
static bool infer_unravel(struct infer *infer, struct error *err)
{
    (void)err;
    int64_t dims = op_infer_dim(infer, 1, 0);
    if (infer->inputs[0].rank == 0)
        infer->outputs[0] = SHAPE(dims);
    else if (infer->inputs[0].rank == 1)
        infer->outputs[0] = SHAPE(dims, infer->inputs[0].dims[0]);
    return true;
}

static bool infer_unique(struct infer *infer, struct error *err)
{
    (void)err;
    if (infer->inputs[0].rank >= 0)
        op_infer_rank(infer, 0, infer->inputs[0].rank);
    op_infer_rank(infer, 1, 1);
    if (infer->node->outputs_count > 2)
        op_infer_rank(infer, 2, 1);
    return true;
}

/* a x b: the gradients are b x dy and dy x a. */
static bool cross_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge dy = g->of_outputs[0];
    g->of_inputs[0] = op_call2(g, "Cross", gradient_x(g, 1), dy);
    g->of_inputs[1] = op_call2(g, "Cross", dy, gradient_x(g, 0));
    return builder_ok(&g->build);
}

const struct op op_bincount = {
    .name = "Bincount",
    .inputs = "arr:int32 size:int32 weights:T",
    .outputs = "bins:T",
    .attrs = "T:{int32,int64,float,double}",
    .infer = infer_bincount,
};

const struct op op_dense_bincount = {
    .name = "DenseBincount",
    .inputs = "input:Tidx size:Tidx weights:T",
    .outputs = "output:T",
    .attrs = "Tidx:{int32,int64} T:{int32,int64,float,double} binary_output:bool=false",
    .infer = infer_dense_bincount,
};

const struct op op_sparse_bincount = {
    .name = "SparseBincount",
    .inputs = "indices:int64 values:Tidx dense_shape:int64 size:Tidx weights:T",
    .outputs = "output:T",
    .attrs = "Tidx:{int32,int64} T:{int32,int64,float,double} binary_output:bool=false",
    .infer = infer_sparse_bincount,
};

const struct op op_ragged_bincount = {
    .name = "RaggedBincount",
    .inputs = "splits:int64 values:Tidx size:Tidx weights:T",
    .outputs = "output:T",
    .attrs = "Tidx:{int32,int64} T:{int32,int64,float,double} binary_output:bool=false",
    .infer = infer_ragged_bincount,
};

const struct op op_dense_count_sparse_output = {
    .name = "DenseCountSparseOutput",
    .inputs = "values:T weights:output_type",
    .outputs = "output_indices:int64 output_values:output_type output_dense_shape:int64",
    .attrs = "T:{int32,int64} minlength:int>=-1=-1 maxlength:int>=-1=-1 binary_output:bool "
             "output_type:{int32,int64,float,double}",
    .infer = infer_sparse_counts,
};

const struct op op_sparse_count_sparse_output = {
    .name = "SparseCountSparseOutput",
    .inputs = "indices:int64 values:T dense_shape:int64 weights:output_type",
    .outputs = "output_indices:int64 output_values:output_type output_dense_shape:int64",
    .attrs = "T:{int32,int64} minlength:int>=-1=-1 maxlength:int>=-1=-1 binary_output:bool "
             "output_type:{int32,int64,float,double}",
    .infer = infer_sparse_counts,
};

const struct op op_ragged_count_sparse_output = {
    .name = "RaggedCountSparseOutput",
    .inputs = "splits:int64 values:T weights:output_type",
    .outputs = "output_indices:int64 output_values:output_type output_dense_shape:int64",
    .attrs = "T:{int32,int64} minlength:int>=-1=-1 maxlength:int>=-1=-1 binary_output:bool "
             "output_type:{int32,int64,float,double}",
    .infer = infer_sparse_counts,
};

const struct op op_bucketize = {
    .name = "Bucketize",
    .inputs = "input:T",
    .outputs = "output:int32",
    .attrs = "T:{int32,int64,float,double} boundaries:list(float)",
    .infer = op_infer_unchanged,
};

const struct op op_histogram_fixed_width = {
    .name = "HistogramFixedWidth",
    .inputs = "values:T value_range:T nbins:int32",
    .outputs = "out:dtype",
    .attrs = "T:{int32,int64,float,double} dtype:{int32,int64}=int32",
    .infer = infer_histogram,
};

const struct op op_lower_bound = {
    .name = "LowerBound",
    .inputs = "sorted_inputs:T values:T",
    .outputs = "output:out_type",
    .attrs = "T:type out_type:{int32,int64}=int32",
    .infer = infer_search,
};

const struct op op_upper_bound = {
    .name = "UpperBound",
    .inputs = "sorted_inputs:T values:T",
    .outputs = "output:out_type",
    .attrs = "T:type out_type:{int32,int64}=int32",
    .infer = infer_search,
};

const struct op op_nth_element = {
    .name = "NthElement",
    .inputs = "input:T n:int32",
    .outputs = "values:T",
    .attrs = "reverse:bool=false "
             "T:{float,double,int32,uint8,int16,int8,int64,bfloat16,uint16,half,uint32,uint64}",
    .infer = infer_nth,
    .gradient = nth_gradient,
};

const struct op op_unravel_index = {
    .name = "UnravelIndex",
    .inputs = "indices:Tidx dims:Tidx",
    .outputs = "output:Tidx",
    .attrs = "Tidx:{int32,int64}=int32",
    .infer = infer_unravel,
};

const struct op op_unique_v2 = {
    .name = "UniqueV2",
    .inputs = "x:T axis:Taxis",
    .outputs = "y:T idx:out_idx",
    .attrs = "T:type Taxis:{int32,int64}=int64 out_idx:{int32,int64}=int32",
    .infer = infer_unique,
};

const struct op op_unique_with_counts_v2 = {
    .name = "UniqueWithCountsV2",
    .inputs = "x:T axis:Taxis",
    .outputs = "y:T idx:out_idx count:out_idx",
    .attrs = "T:type Taxis:{int32,int64}=int64 out_idx:{int32,int64}=int32",
    .infer = infer_unique,
};

const struct op op_cross = {
    .name = "Cross",
    .inputs = "a:T b:T",
    .outputs = "product:T",
    .attrs = "T:{float,double,int32,uint8,int16,int8,int64,bfloat16,uint16,half,uint32,uint64}",
    .infer = op_infer_unchanged,
    .gradient = cross_gradient,
};
