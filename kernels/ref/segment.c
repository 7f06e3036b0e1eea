/* segment.c - sums over rows that share a segment number. */

#include "kernels/ref/numbers.h"

#include <math.h>

enum kind { SUM, MEAN, SQRT_N };

/* Rows of (count, inner): adds row `from` of `data`, times a factor, to row `to` of the sums.
 */
static void add_row(double complex *sums, int64_t to, const struct tensor *data, int64_t from,
                    int64_t inner, double factor)
{
    for (int64_t i = 0; i < inner; i++)
        sums[to * inner + i] += factor * kernel_complex_at(data, from * inner + i);
}

static double factor_of(enum kind kind, double count)
{
    return kind == SUM ? 1 : 1 / (kind == MEAN ? count : sqrt(count));
}

static double complex *zero_sums(struct kernel_call *call, const struct tensor *out,
                                 struct error *err)
{
    double complex *sums = kernel_scratch(call, (size_t)out->count * sizeof(*sums) + 1, err);
    if (sums)
        memset(sums, 0, (size_t)out->count * sizeof(*sums));
    return sums;
}

/* Integers beyond 2^53 do not occur in sums of rows that were not there before. */
static void store_sums(struct tensor *out, const double complex *sums)
{
    kernel_store_bits *store = kernel_store_bits_for(out->dtype);
    for (int64_t i = 0; i < out->count; i++) {
        if (store)
            store(out->data, i, (uint64_t)(int64_t)trunc(creal(sums[i])));
        else
            kernel_set_complex(out, i, sums[i]);
    }
}

/* Segment numbers do not decrease and are not negative; `*segments` is one more than the last.
 */
static bool check_sorted(const struct tensor *ids, int64_t *segments, struct error *err)
{
    int64_t last = 0;
    for (int64_t i = 0; i < ids->count; i++) {
        int64_t id = tensor_integer(ids, i);
        if (id < 0 || id >= INT32_MAX)
            return fail(err, INVALID, "segment ids must be >= 0");
        if (id < last)
            return fail(err, INVALID, "segment ids are not increasing");
        last = id;
    }
    *segments = ids->count ? last + 1 : 0;
    return true;
}

/* How many rows each segment has. */
static double *count_rows(struct kernel_call *call, const struct tensor *ids, int64_t segments,
                          struct error *err)
{
    double *counts = kernel_scratch(call, (size_t)segments * sizeof(*counts) + 1, err);
    if (counts)
        memset(counts, 0, (size_t)segments * sizeof(*counts));
    for (int64_t i = 0; counts && i < ids->count; i++)
        counts[tensor_integer(ids, i)]++;
    return counts;
}

static bool segment(struct kernel_call *call, enum kind kind, struct error *err)
{
    const struct tensor *data = kernel_in(call, 0), *ids = kernel_in(call, 1);
    int64_t segments = 0;
    if (ids->shape.rank != 1)
        return fail(err, INVALID, "segment_ids should be a vector.");
    if (data->shape.rank < 1 || data->shape.dims[0] != ids->count)
        return fail(err, INVALID,
                    "segment_ids should be the same size as dimension 0 of input.");
    if (!check_sorted(ids, &segments, err))
        return false;
    struct shape shape = data->shape;
    shape.dims[0] = segments;
    struct tensor *out = kernel_output(call, 0, &shape, err);
    double complex *sums = out ? zero_sums(call, out, err) : NULL;
    double *counts = sums ? count_rows(call, ids, segments, err) : NULL;
    if (!counts)
        return false;
    int64_t inner = kernel_span(&shape, 1, shape.rank);
    for (int64_t i = 0; i < ids->count; i++)
        add_row(sums, tensor_integer(ids, i), data, i, inner, 1);
    if (kind == MEAN)
        for (int64_t s = 0; s < segments; s++) {
            double count = counts[s];
            for (int64_t k = 0; k < inner && count > 0; k++)
                sums[s * inner + k] /= count;
        }
    store_sums(out, sums);
    return true;
}

static bool segment_sum_run(struct kernel_call *call, struct error *err)
{
    return segment(call, SUM, err);
}

static bool segment_mean_run(struct kernel_call *call, struct error *err)
{
    return segment(call, MEAN, err);
}

static bool unsorted_segment_sum_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *data = kernel_in(call, 0), *ids = kernel_in(call, 1);
    int64_t segments = 0;
    if (!kernel_scalar(call, 2, "num_segments", &segments, err))
        return false;
    if (segments < 0)
        return fail(err, INVALID, "segment count must be non-negative: %lld",
                    (long long)segments);
    int depth = ids->shape.rank;
    struct shape lead = data->shape;
    lead.rank = depth;
    if (depth > data->shape.rank || !shape_equal(&lead, &ids->shape))
        return fail(err, INVALID, "data.shape does not start with segment_ids.shape");
    struct shape shape = {.rank = 1, .dims = {segments}};
    for (int d = depth; d < data->shape.rank; d++)
        shape.dims[shape.rank++] = data->shape.dims[d];
    struct tensor *out = kernel_output(call, 0, &shape, err);
    double complex *sums = out ? zero_sums(call, out, err) : NULL;
    if (!sums)
        return false;
    int64_t inner = kernel_span(&shape, 1, shape.rank);
    for (int64_t i = 0; i < ids->count; i++) {
        int64_t id = tensor_integer(ids, i);
        if (id >= segments)
            return fail(err, INVALID, "segment_ids[%lld] = %lld is out of range [0, %lld)",
                        (long long)i, (long long)id, (long long)segments);
        if (id >= 0)
            add_row(sums, id, data, i, inner, 1);
    }
    store_sums(out, sums);
    return true;
}

/* --- rows picked by index first --- */

static bool check_picks(const struct tensor *indices, const struct tensor *ids, int64_t rows,
                        struct error *err)
{
    if (indices->shape.rank != 1 || ids->shape.rank != 1)
        return fail(err, INVALID, "indices and segment_ids should be vectors.");
    if (indices->count != ids->count)
        return fail(err, INVALID, "segment_ids and indices should have same size.");
    for (int64_t i = 0; i < indices->count; i++) {
        int64_t index = tensor_integer(indices, i);
        if (index < 0 || index >= rows)
            return fail(err, INVALID, "indices[%lld] == %lld out of range [0, %lld)",
                        (long long)i, (long long)index, (long long)rows);
    }
    return true;
}

static bool sparse_segment(struct kernel_call *call, enum kind kind, struct error *err)
{
    const struct tensor *data = kernel_in(call, 0), *indices = kernel_in(call, 1);
    const struct tensor *ids = kernel_in(call, 2);
    int64_t segments = 0;
    if (data->shape.rank < 1)
        return fail(err, INVALID, "input must be at least rank 1");
    if (!check_picks(indices, ids, data->shape.dims[0], err) ||
        !check_sorted(ids, &segments, err))
        return false;
    if (call->in_count > 3) {
        int64_t given = 0;
        if (!kernel_scalar(call, 3, "num_segments", &given, err))
            return false;
        if (given < segments)
            return fail(err, INVALID, "segment ids must be < num_segments");
        segments = given;
    }
    struct shape shape = data->shape;
    shape.dims[0] = segments;
    struct tensor *out = kernel_output(call, 0, &shape, err);
    double complex *sums = out ? zero_sums(call, out, err) : NULL;
    double *counts = sums ? count_rows(call, ids, segments, err) : NULL;
    if (!counts)
        return false;
    int64_t inner = kernel_span(&shape, 1, shape.rank);
    for (int64_t i = 0; i < ids->count; i++) {
        int64_t id = tensor_integer(ids, i);
        add_row(sums, id, data, tensor_integer(indices, i), inner, factor_of(kind, counts[id]));
    }
    store_sums(out, sums);
    return true;
}

static bool sparse_segment_grad(struct kernel_call *call, enum kind kind, struct error *err)
{
    const struct tensor *grad = kernel_in(call, 0), *indices = kernel_in(call, 1);
    const struct tensor *ids = kernel_in(call, 2);
    int64_t rows;
    if (!kernel_scalar(call, 3, "output_dim0", &rows, err))
        return false;
    if (grad->shape.rank < 1 || rows < 0)
        return fail(err, INVALID,
                    "the gradient must be at least rank 1, output_dim0 not negative");
    if (!check_picks(indices, ids, rows, err))
        return false;
    for (int64_t i = 0; i < ids->count; i++) {
        int64_t id = tensor_integer(ids, i);
        if (id < 0 || id >= grad->shape.dims[0])
            return fail(err, INVALID, "Segment id %lld out of range [0, %lld).", (long long)id,
                        (long long)grad->shape.dims[0]);
    }
    struct shape shape = grad->shape;
    shape.dims[0] = rows;
    struct tensor *out = kernel_output(call, 0, &shape, err);
    double complex *sums = out ? zero_sums(call, out, err) : NULL;
    double *counts = sums ? count_rows(call, ids, grad->shape.dims[0], err) : NULL;
    if (!counts)
        return false;
    int64_t inner = kernel_span(&shape, 1, shape.rank);
    for (int64_t i = 0; i < ids->count; i++) {
        int64_t id = tensor_integer(ids, i);
        add_row(sums, tensor_integer(indices, i), grad, id, inner, factor_of(kind, counts[id]));
    }
    store_sums(out, sums);
    return true;
}

static bool sparse_sum_run(struct kernel_call *call, struct error *err)
{
    return sparse_segment(call, SUM, err);
}
static bool sparse_mean_run(struct kernel_call *call, struct error *err)
{
    return sparse_segment(call, MEAN, err);
}
static bool sparse_sqrt_n_run(struct kernel_call *call, struct error *err)
{
    return sparse_segment(call, SQRT_N, err);
}
static bool sparse_sum_grad_run(struct kernel_call *call, struct error *err)
{
    return sparse_segment_grad(call, SUM, err);
}
static bool sparse_mean_grad_run(struct kernel_call *call, struct error *err)
{
    return sparse_segment_grad(call, MEAN, err);
}
static bool sparse_sqrt_n_grad_run(struct kernel_call *call, struct error *err)
{
    return sparse_segment_grad(call, SQRT_N, err);
}

#define SEGMENT(name_, dtypes_, run_)                                                          \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = dtypes_, .run = run_                             \
    }

const struct kernel kernel_segment_sum_ref =
    SEGMENT("SegmentSum", DTYPES_NUMBER, segment_sum_run);
const struct kernel kernel_segment_mean_ref =
    SEGMENT("SegmentMean", DTYPES_NUMBER, segment_mean_run);
const struct kernel kernel_unsorted_segment_sum_ref =
    SEGMENT("UnsortedSegmentSum", DTYPES_NUMBER, unsorted_segment_sum_run);
const struct kernel kernel_sparse_segment_sum_ref =
    SEGMENT("SparseSegmentSum", DTYPES_REAL, sparse_sum_run);
const struct kernel kernel_sparse_segment_mean_ref =
    SEGMENT("SparseSegmentMean", DTYPES_FLOAT, sparse_mean_run);
const struct kernel kernel_sparse_segment_sqrt_n_ref =
    SEGMENT("SparseSegmentSqrtN", DTYPES_FLOAT, sparse_sqrt_n_run);
const struct kernel kernel_sparse_segment_sum_with_num_segments_ref =
    SEGMENT("SparseSegmentSumWithNumSegments", DTYPES_REAL, sparse_sum_run);
const struct kernel kernel_sparse_segment_mean_with_num_segments_ref =
    SEGMENT("SparseSegmentMeanWithNumSegments", DTYPES_FLOAT, sparse_mean_run);
const struct kernel kernel_sparse_segment_sqrt_n_with_num_segments_ref =
    SEGMENT("SparseSegmentSqrtNWithNumSegments", DTYPES_FLOAT, sparse_sqrt_n_run);
const struct kernel kernel_sparse_segment_sum_grad_ref =
    SEGMENT("SparseSegmentSumGrad", DTYPES_FLOAT, sparse_sum_grad_run);
const struct kernel kernel_sparse_segment_mean_grad_ref =
    SEGMENT("SparseSegmentMeanGrad", DTYPES_FLOAT, sparse_mean_grad_run);
const struct kernel kernel_sparse_segment_sqrt_n_grad_ref =
    SEGMENT("SparseSegmentSqrtNGrad", DTYPES_FLOAT, sparse_sqrt_n_grad_run);
