/* segment.c - sums over rows that share a segment number. */

#include "kernels/ref/segment.h"
#include "kernels/ref/sums.h"

#include <math.h>

enum kind { SUM, MEAN, SQRT_N };

/* Rows of (count, inner): adds row `from` of `data`, times a factor, to row `to` of the sums.
 */
static void add_row(const struct sums *sums, int64_t to, const struct tensor *data,
                    int64_t from, int64_t inner, double factor)
{
    for (int64_t i = 0; i < inner; i++)
        kernel_sums_add(sums, to * inner + i, data, from * inner + i, factor);
}

static double factor_of(enum kind kind, double count)
{
    return kind == SUM ? 1 : 1 / (kind == MEAN ? count : sqrt(count));
}

/* How many rows each segment has. */
static double *count_rows(struct kernel_call *call, const struct tensor *ids, int64_t segments,
                          struct error *err)
{
    double *counts = kernel_zeros(call, segments, sizeof(*counts), err);
    for (int64_t i = 0; counts && i < ids->count; i++)
        counts[tensor_integer(ids, i)]++;
    return counts;
}

/* Integers are cut to their type before they are divided, as in TensorFlow. */
static void divide(struct tensor *out, int64_t inner, const double *counts)
{
    kernel_load_bits *load = kernel_load_bits_for(out->dtype);
    kernel_store_bits *store = kernel_store_bits_for(out->dtype);
    bool is_unsigned = (DTYPES_UNSIGNED & BIT(out->dtype)) != 0;
    for (int64_t i = 0; i < out->count; i++) {
        double count = counts[i / inner];
        if (count <= 1)
            continue;
        if (!load)
            kernel_set_complex(out, i, kernel_complex_at(out, i) / count);
        else if (is_unsigned)
            store(out->data, i, load(out->data, i) / (uint64_t)count);
        else
            store(out->data, i, (uint64_t)((int64_t)load(out->data, i) / (int64_t)count));
    }
}

static bool segment(struct kernel_call *call, enum kind kind, struct error *err)
{
    const struct tensor *data = kernel_in(call, 0), *ids = kernel_in(call, 1);
    struct shape shape;
    struct sums sums;
    if (!kernel_segment_rows(call, &shape, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &shape, err);
    double *counts = kernel_sums_init(call, out, &sums, err)
                         ? count_rows(call, ids, shape.dims[0], err)
                         : NULL;
    if (!counts)
        return false;
    int64_t inner = kernel_span(&shape, 1, shape.rank);
    for (int64_t i = 0; i < ids->count; i++)
        add_row(&sums, tensor_integer(ids, i), data, i, inner, 1);
    kernel_sums_write(out, &sums);
    if (kind == MEAN)
        divide(out, inner, counts);
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
    struct shape shape;
    struct sums sums;
    if (!kernel_segment_unsorted(call, &shape, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!kernel_sums_init(call, out, &sums, err))
        return false;
    int64_t inner = kernel_span(&shape, 1, shape.rank);
    for (int64_t i = 0; i < ids->count; i++) {
        int64_t id = tensor_integer(ids, i);
        if (id >= 0)
            add_row(&sums, id, data, i, inner, 1);
    }
    kernel_sums_write(out, &sums);
    return true;
}

/* --- rows picked by index first --- */

/* How many segments there are: input 3, or one more than the last number. */
static bool read_segments(const struct kernel_call *call, int64_t *segments, struct error *err)
{
    const struct tensor *data = kernel_in(call, 0), *indices = kernel_in(call, 1);
    const struct tensor *ids = kernel_in(call, 2);
    const struct tensor *given = call->in_count > 3 ? kernel_in(call, 3) : NULL;
    char text[SHAPE_TEXT_BYTES];
    if (given && given->shape.rank != 0)
        return fail(err, INVALID, "num_segments should be a scalar, not shape %s",
                    shape_text(&given->shape, text, sizeof(text)));
    if (given && tensor_integer(given, 0) < 0)
        return fail(err, INVALID, "segment ids must be >= 0");
    if (!kernel_segment_picks(indices, ids, err))
        return false;
    if (data->shape.rank < 1)
        return fail(err, INVALID, "Shape must be at least rank 1");
    if (!given)
        return kernel_segment_count(ids, segments, err);
    *segments = tensor_integer(given, 0);
    return ids->count == 0 || tensor_integer(ids, ids->count - 1) < *segments ||
           fail(err, INVALID, "segment ids must be < num_segments");
}

static bool sparse_segment(struct kernel_call *call, enum kind kind, struct error *err)
{
    const struct tensor *data = kernel_in(call, 0), *indices = kernel_in(call, 1);
    const struct tensor *ids = kernel_in(call, 2);
    int64_t segments = 0;
    if (!read_segments(call, &segments, err) ||
        !kernel_segment_sorted(ids, segments, indices, data->shape.dims[0], err))
        return false;
    struct shape shape = data->shape;
    shape.dims[0] = segments;
    struct tensor *out = kernel_output(call, 0, &shape, err);
    struct sums sums;
    double *counts =
        kernel_sums_init(call, out, &sums, err) ? count_rows(call, ids, segments, err) : NULL;
    if (!counts)
        return false;
    int64_t inner = kernel_span(&shape, 1, shape.rank);
    for (int64_t i = 0; out->count && i < ids->count; i++) {
        int64_t id = tensor_integer(ids, i);
        add_row(&sums, id, data, tensor_integer(indices, i), inner,
                factor_of(kind, counts[id]));
    }
    kernel_sums_write(out, &sums);
    return true;
}

static bool sparse_segment_grad(struct kernel_call *call, enum kind kind, struct error *err)
{
    const struct tensor *grad = kernel_in(call, 0), *indices = kernel_in(call, 1);
    const struct tensor *ids = kernel_in(call, 2);
    int64_t rows;
    if (!kernel_segment_picks(indices, ids, err) ||
        !kernel_segment_size(call, "output_dim0", &rows, err))
        return false;
    if (grad->shape.rank < 1)
        return fail(err, INVALID, "Index must be less than 0, got 0");
    if (!kernel_segment_grad(ids, grad->shape.dims[0], rows ? indices : NULL, rows, err))
        return false;
    struct shape shape = grad->shape;
    shape.dims[0] = rows;
    struct tensor *out = kernel_output(call, 0, &shape, err);
    struct sums sums;
    double *counts = kernel_sums_init(call, out, &sums, err)
                         ? count_rows(call, ids, grad->shape.dims[0], err)
                         : NULL;
    if (!counts)
        return false;
    int64_t inner = kernel_span(&shape, 1, shape.rank);
    for (int64_t i = 0; i < ids->count; i++) {
        int64_t id = tensor_integer(ids, i);
        add_row(&sums, tensor_integer(indices, i), grad, id, inner,
                factor_of(kind, counts[id]));
    }
    kernel_sums_write(out, &sums);
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
