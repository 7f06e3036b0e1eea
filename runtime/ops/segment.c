/* segment.c - sums over rows that share a segment number. */

#include "runtime/ops/internal.h"

static bool infer_segment(struct infer *infer, struct error *err)
{
    (void)err;
    if (infer->inputs[0].rank < 1)
        return true;
    infer->outputs[0] = infer->inputs[0];
    infer->outputs[0].dims[0] = -1;
    return true;
}

static bool infer_unsorted(struct infer *infer, struct error *err)
{
    (void)err;
    const struct shape *data = &infer->inputs[0], *ids = &infer->inputs[1];
    int64_t segments;
    if (data->rank < 0 || ids->rank < 0 || ids->rank > data->rank ||
        data->rank - ids->rank == LIMIT_TENSOR_RANK)
        return true;
    if (!op_infer_value(infer, 2, &segments))
        segments = -1;
    op_infer_rank(infer, 0, data->rank - ids->rank + 1);
    infer->outputs[0].dims[0] = segments;
    for (int d = ids->rank; d < data->rank; d++)
        infer->outputs[0].dims[d - ids->rank + 1] = data->dims[d];
    return true;
}

/* Rows of `grad` chosen by ids. */
static struct edge rows(struct gradient *g, struct edge grad, struct edge ids)
{
    return op_call3(g, "GatherV2", grad, ids, op_int(g, 0));
}

static bool segment_sum_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return op_gradient_single(g, rows(g, g->of_outputs[0], gradient_x(g, 1)));
}

static bool segment_mean_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge ids = gradient_x(g, 1);
    struct edge ones = op_call1(g, "OnesLike", gradient_x(g, 0));
    struct edge counts = op_call2(g, "SegmentSum", ones, ids);
    struct edge share = op_call2(g, "RealDiv", g->of_outputs[0], counts);
    return op_gradient_single(g, rows(g, share, ids));
}

/* Rows with negative ids were dropped and get zero. */
static bool unsorted_segment_sum_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge ids = gradient_x(g, 1);
    struct edge zero = op_call1(g, "ZerosLike", ids);
    struct edge gathered = rows(g, g->of_outputs[0], op_call2(g, "Maximum", ids, zero));
    struct edge taken = op_call2(g, "GreaterEqual", ids, zero);
    /* The condition gets trailing dimensions of 1, as many as rows have. */
    struct edge extra =
        op_call2(g, "Sub", op_call1(g, "Rank", gathered), op_call1(g, "Rank", ids));
    struct edge one = op_ints(g, (const int64_t[]){1}, 1);
    struct edge tail = op_call2(g, "Fill", op_call2(g, "Reshape", extra, one), op_int(g, 1));
    struct edge shape = op_call(g, "ConcatV2", INPUTS(op_shape_of(g, ids), tail, op_int(g, 0)),
                                ATTRS(attr_int("N", 2)));
    struct edge condition = op_call2(g, "Reshape", taken, shape);
    return op_gradient_single(
        g, op_call3(g, "SelectV2", condition, gathered, op_call1(g, "ZerosLike", gathered)));
}

const struct op op_segment_sum = {
    .name = "SegmentSum",
    .inputs = "data:T segment_ids:Tindices",
    .outputs = "output:T",
    .attrs = "T:" OP_NUMBER " Tindices:" OP_INDEX,
    .infer = infer_segment,
    .gradient = segment_sum_gradient,
};

const struct op op_segment_mean = {
    .name = "SegmentMean",
    .inputs = "data:T segment_ids:Tindices",
    .outputs = "output:T",
    .attrs = "T:" OP_NUMBER " Tindices:" OP_INDEX,
    .infer = infer_segment,
    .gradient = segment_mean_gradient,
};

const struct op op_unsorted_segment_sum = {
    .name = "UnsortedSegmentSum",
    .inputs = "data:T segment_ids:Tindices num_segments:Tnumsegments",
    .outputs = "output:T",
    .attrs = "T:" OP_NUMBER " Tindices:{int16,int32,int64} Tnumsegments:{int32,int64}=int32",
    .infer = infer_unsorted,
    .gradient = unsorted_segment_sum_gradient,
};

/* --- rows picked by index, then summed by segment --- */

static bool sparse_segment_gradient(struct gradient *g, const char *op)
{
    struct edge shape = op_shape_of(g, gradient_x(g, 0));
    struct edge rows_count = op_call3(g, "GatherV2", shape, op_int(g, 0), op_int(g, 0));
    return op_gradient_single(
        g,
        op_call(g, op, INPUTS(g->of_outputs[0], gradient_x(g, 1), gradient_x(g, 2), rows_count),
                NO_ATTRS));
}

static bool sparse_segment_sum_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return sparse_segment_gradient(g, "SparseSegmentSumGrad");
}

static bool sparse_segment_mean_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return sparse_segment_gradient(g, "SparseSegmentMeanGrad");
}

static bool sparse_segment_sqrt_n_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return sparse_segment_gradient(g, "SparseSegmentSqrtNGrad");
}

#define SPARSE_SEGMENT(name_, types_, gradient_)                                               \
    {                                                                                          \
        .name = name_, .inputs = "data:T indices:Tidx segment_ids:Tsegmentids",                \
        .outputs = "output:T",                                                                 \
        .attrs = "T:" types_ " Tidx:{int32,int64}=int32 Tsegmentids:{int32,int64}=int32 "      \
                 "sparse_gradient:bool=false",                                                 \
        .infer = infer_segment, .gradient = gradient_,                                         \
    }
#define SPARSE_SEGMENT_GRAD(name_)                                                             \
    {                                                                                          \
        .name = name_,                                                                         \
        .inputs = "grad:T indices:Tidx segment_ids:Tsegmentids output_dim0:int32",             \
        .outputs = "output:T",                                                                 \
        .attrs = "T:" OP_FLOAT " Tidx:{int32,int64}=int32 Tsegmentids:{int32,int64}=int32",    \
        .infer = infer_segment,                                                                \
    }

const struct op op_sparse_segment_sum =
    SPARSE_SEGMENT("SparseSegmentSum", OP_REAL, sparse_segment_sum_gradient);
const struct op op_sparse_segment_mean =
    SPARSE_SEGMENT("SparseSegmentMean", OP_FLOAT, sparse_segment_mean_gradient);
const struct op op_sparse_segment_sqrt_n =
    SPARSE_SEGMENT("SparseSegmentSqrtN", OP_FLOAT, sparse_segment_sqrt_n_gradient);
const struct op op_sparse_segment_sum_grad = SPARSE_SEGMENT_GRAD("SparseSegmentSumGrad");
const struct op op_sparse_segment_mean_grad = SPARSE_SEGMENT_GRAD("SparseSegmentMeanGrad");
const struct op op_sparse_segment_sqrt_n_grad = SPARSE_SEGMENT_GRAD("SparseSegmentSqrtNGrad");

/* --- products, greatest and least --- */

/* What each row's segment has in the tensor; of dropped rows: of segment 0. */
static struct edge of_segments(struct gradient *g, struct edge of, bool sorted)
{
    struct edge ids = gradient_x(g, 1);
    if (!sorted)
        ids = op_call2(g, "Maximum", ids, op_call1(g, "ZerosLike", ids));
    return rows(g, of, ids);
}

/* Sums by segment, as the node being differentiated has them. */
static struct edge sum_segments(struct gradient *g, struct edge of, bool sorted)
{
    return sorted ? op_call2(g, "SegmentSum", of, gradient_x(g, 1))
                  : op_call3(g, "UnsortedSegmentSum", of, gradient_x(g, 1), gradient_x(g, 2));
}

/* A condition on rows for each of their elements: trailing dimensions of 1. */
static struct edge not_dropped(struct gradient *g, struct edge like)
{
    struct edge ids = gradient_x(g, 1);
    struct edge taken = op_call2(g, "GreaterEqual", ids, op_call1(g, "ZerosLike", ids));
    struct edge extra = op_call2(g, "Sub", op_call1(g, "Rank", like), op_call1(g, "Rank", ids));
    struct edge one = op_ints(g, (const int64_t[]){1}, 1);
    struct edge tail = op_call2(g, "Fill", op_call2(g, "Reshape", extra, one), op_int(g, 1));
    struct edge shape = op_call(g, "ConcatV2", INPUTS(op_shape_of(g, ids), tail, op_int(g, 0)),
                                ATTRS(attr_int("N", 2)));
    return op_call2(
        g, "LogicalAnd", op_call2(g, "Reshape", taken, shape),
        op_call2(g, "Equal", op_call1(g, "ZerosLike", like), op_call1(g, "ZerosLike", like)));
}

/* Equal shares among the elements that are the extreme. */
static bool extreme_gradient(struct gradient *g, bool sorted)
{
    struct edge x = gradient_x(g, 0), dy = g->of_outputs[0];
    struct edge chosen = op_call2(g, "Equal", x, of_segments(g, gradient_y(g, 0), sorted));
    if (!sorted)
        chosen = op_call2(g, "LogicalAnd", chosen, not_dropped(g, x));
    struct edge ones =
        op_call(g, "Cast", INPUTS(chosen), ATTRS(attr_type("DstT", (int)op_edge_type(dy))));
    struct edge share = op_call2(g, "RealDiv", dy, sum_segments(g, ones, sorted));
    return op_gradient_single(g, op_call3(g, "SelectV2", chosen, of_segments(g, share, sorted),
                                          op_call1(g, "ZerosLike", x)));
}

/* The product of the others: exact where one is zero, 0 where more are. */
static bool product_gradient(struct gradient *g, bool sorted)
{
    struct edge x = gradient_x(g, 0), dy = g->of_outputs[0];
    struct edge zero = op_call2(g, "Equal", x, op_call1(g, "ZerosLike", x));
    struct edge zeros = sum_segments(
        g, op_call(g, "Cast", INPUTS(zero), ATTRS(attr_type("DstT", I32))), sorted);
    struct edge flow = op_call3(g, "SelectV2", op_call2(g, "Greater", zeros, op_int(g, 1)),
                                op_call1(g, "ZerosLike", dy), dy);
    struct edge safe = op_call3(g, "SelectV2", zero, op_call1(g, "OnesLike", x), x);
    struct edge without =
        sorted ? op_call2(g, "SegmentProd", safe, gradient_x(g, 1))
               : op_call3(g, "UnsortedSegmentProd", safe, gradient_x(g, 1), gradient_x(g, 2));
    struct edge quotient =
        op_call2(g, "RealDiv", of_segments(g, gradient_y(g, 0), sorted), safe);
    struct edge slope =
        op_call3(g, "SelectV2", zero, of_segments(g, without, sorted), quotient);
    struct edge dx = op_call2(g, "Mul", of_segments(g, flow, sorted), slope);
    if (!sorted)
        dx = op_call3(g, "SelectV2", not_dropped(g, x), dx, op_call1(g, "ZerosLike", dx));
    return op_gradient_single(g, dx);
}

static bool segment_extreme_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return extreme_gradient(g, true);
}
static bool unsorted_extreme_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return extreme_gradient(g, false);
}
static bool segment_prod_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return product_gradient(g, true);
}
static bool unsorted_prod_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return product_gradient(g, false);
}

#define SORTED(name_, types_, gradient_)                                                       \
    {                                                                                          \
        .name = name_, .inputs = "data:T segment_ids:Tindices", .outputs = "output:T",         \
        .attrs = "T:" types_ " Tindices:" OP_INDEX, .infer = infer_segment,                    \
        .gradient = gradient_,                                                                 \
    }
#define UNSORTED(name_, types_, gradient_)                                                     \
    {                                                                                          \
        .name = name_, .inputs = "data:T segment_ids:Tindices num_segments:Tnumsegments",      \
        .outputs = "output:T",                                                                 \
        .attrs = "T:" types_ " Tindices:" OP_INDEX " Tnumsegments:{int32,int64}=int32",        \
        .infer = infer_unsorted, .gradient = gradient_,                                        \
    }

const struct op op_segment_max = SORTED("SegmentMax", OP_REAL, segment_extreme_gradient);
const struct op op_segment_min = SORTED("SegmentMin", OP_REAL, segment_extreme_gradient);
const struct op op_segment_prod = SORTED("SegmentProd", OP_NUMBER, segment_prod_gradient);
const struct op op_unsorted_segment_max =
    UNSORTED("UnsortedSegmentMax", OP_REAL, unsorted_extreme_gradient);
const struct op op_unsorted_segment_min =
    UNSORTED("UnsortedSegmentMin", OP_REAL, unsorted_extreme_gradient);
const struct op op_unsorted_segment_prod =
    UNSORTED("UnsortedSegmentProd", OP_NUMBER, unsorted_prod_gradient);

static bool infer_with_number(struct infer *infer, struct error *err)
{
    (void)err;
    int64_t segments[LIMIT_TENSOR_RANK] = {-1};
    int count;
    if (infer->inputs[0].rank < 1)
        return true;
    if (op_infer_values(infer, 3, segments, &count) && count != 1)
        return true;
    infer->outputs[0] = infer->inputs[0];
    infer->outputs[0].dims[0] = segments[0];
    return true;
}

#define WITH_NUMBER(name_, types_, gradient_)                                                  \
    {                                                                                          \
        .name = name_,                                                                         \
        .inputs = "data:T indices:Tidx segment_ids:Tsegmentids num_segments:Tnumsegments",     \
        .outputs = "output:T",                                                                 \
        .attrs = "T:" types_ " Tidx:{int32,int64}=int32 Tnumsegments:{int32,int64}=int32 "     \
                 "Tsegmentids:{int32,int64}=int32 sparse_gradient:bool=false",                 \
        .infer = infer_with_number, .gradient = gradient_,                                     \
    }

const struct op op_sparse_segment_sum_with_num_segments =
    WITH_NUMBER("SparseSegmentSumWithNumSegments", OP_REAL, sparse_segment_sum_gradient);
const struct op op_sparse_segment_mean_with_num_segments =
    WITH_NUMBER("SparseSegmentMeanWithNumSegments", OP_FLOAT, sparse_segment_mean_gradient);
const struct op op_sparse_segment_sqrt_n_with_num_segments =
    WITH_NUMBER("SparseSegmentSqrtNWithNumSegments", OP_FLOAT, sparse_segment_sqrt_n_gradient);
