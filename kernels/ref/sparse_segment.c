/*
 * sparse_segment.c - rows picked by index and summed by segment, into a number of segments that
 * is given; and gradients that name only the rows they touch.
 */

#include "kernels/ref/numbers.h"

#include <math.h>

enum kind { SUM, MEAN, SQRT_N };

static double share(enum kind kind, int64_t count)
{
    return kind == SUM || count == 0 ? 1
           : kind == MEAN            ? 1.0 / (double)count
                                     : 1 / sqrt((double)count);
}

static bool check(const struct tensor *indices, const struct tensor *ids, struct error *err)
{
    if (indices->shape.rank != 1)
        return fail(err, INVALID, "indices should be a vector.");
    if (ids->shape.rank != 1)
        return fail(err, INVALID, "segment_ids should be a vector.");
    return indices->count == ids->count ||
           fail(err, INVALID, "segment_ids and indices should have same size.");
}

/* How many of the ids, which do not decrease, are each of 0 ... segments - 1. */
static int64_t *count_ids(struct kernel_call *call, const struct tensor *ids, int64_t segments,
                          bool sorted, struct error *err)
{
    int64_t *counts = kernel_scratch(call, (size_t)segments * sizeof(*counts) + 1, err);
    if (!counts)
        return NULL;
    memset(counts, 0, (size_t)segments * sizeof(*counts));
    for (int64_t i = 0; i < ids->count; i++) {
        int64_t id = tensor_integer(ids, i);
        if (sorted && i > 0 && id < tensor_integer(ids, i - 1))
            return fail_null(err, INVALID, "segment ids are not increasing");
        if (id < 0 || id >= segments)
            return fail_null(err, INVALID, "Segment id %lld out of range [0, %lld)",
                             (long long)id, (long long)segments);
        counts[id]++;
    }
    return counts;
}

/* Integers wrap, so they are summed as bits; all others as complex doubles. */
static bool add_rows(struct kernel_call *call, struct tensor *out, const struct tensor *from,
                     const struct tensor *to_rows, const int64_t *to_map,
                     const struct tensor *from_rows, enum kind kind, const int64_t *counts,
                     const struct tensor *ids, struct error *err)
{
    int64_t inner = kernel_span(&out->shape, 1, out->shape.rank);
    kernel_load_bits *load = kernel_load_bits_for(out->dtype);
    kernel_store_bits *store = kernel_store_bits_for(out->dtype);
    double complex *sums =
        kernel_scratch(call, load ? 1 : (size_t)out->count * sizeof(*sums) + 1, err);
    if (!sums)
        return false;
    kernel_zero(out, 0, out->count);
    if (!load)
        memset(sums, 0, (size_t)out->count * sizeof(*sums));
    for (int64_t i = 0; i < ids->count; i++) {
        int64_t to = to_map ? to_map[i] : tensor_integer(to_rows, i);
        int64_t row = tensor_integer(from_rows, i);
        double factor = share(kind, counts[tensor_integer(ids, i)]);
        for (int64_t k = 0; k < inner; k++) {
            if (load)
                store(out->data, to * inner + k,
                      load(out->data, to * inner + k) + load(from->data, row * inner + k));
            else
                sums[to * inner + k] += factor * kernel_complex_at(from, row * inner + k);
        }
    }
    for (int64_t i = 0; !load && i < out->count; i++)
        kernel_set_complex(out, i, sums[i]);
    return true;
}

static bool forward(struct kernel_call *call, enum kind kind, struct error *err)
{
    const struct tensor *data = kernel_in(call, 0), *indices = kernel_in(call, 1);
    const struct tensor *ids = kernel_in(call, 2), *number = kernel_in(call, 3);
    if (number->shape.rank > 1 || number->count != 1)
        return fail(err, INVALID, "num_segments should be a scalar");
    int64_t segments = tensor_integer(number, 0);
    if (segments < 0)
        return fail(err, INVALID, "num_segments must be >= 0, not %lld", (long long)segments);
    if (data->shape.rank < 1)
        return fail(err, INVALID, "data must be at least rank 1");
    if (!check(indices, ids, err))
        return false;
    for (int64_t i = 0; i < indices->count; i++) {
        int64_t row = tensor_integer(indices, i);
        if (row < 0 || row >= data->shape.dims[0])
            return fail(err, INVALID, "indices[%lld] == %lld out of range [0, %lld)",
                        (long long)i, (long long)row, (long long)data->shape.dims[0]);
    }
    int64_t *counts = count_ids(call, ids, segments, true, err);
    if (!counts)
        return false;
    struct shape shape = data->shape;
    shape.dims[0] = segments;
    struct tensor *out = kernel_output(call, 0, &shape, err);
    return out && add_rows(call, out, data, ids, NULL, indices, kind, counts, ids, err);
}

/* --- gradients for the rows that occur: these in order, and their numbers --- */

struct pick {
    int64_t row;
    int64_t position;
};

static int by_row(const void *a, const void *b)
{
    const struct pick *x = a, *y = b;
    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    return x->position < y->position ? -1 : 1;
}

static bool backward(struct kernel_call *call, enum kind kind, struct error *err)
{
    const struct tensor *grad = kernel_in(call, 0), *indices = kernel_in(call, 1);
    const struct tensor *ids = kernel_in(call, 2);
    int64_t rows;
    if (!kernel_scalar(call, 3, "dense_output_dim0", &rows, err) || !check(indices, ids, err))
        return false;
    if (grad->shape.rank < 1)
        return fail(err, INVALID, "grad must be at least rank 1");
    int64_t count = indices->count, unique = 0;
    int64_t *counts = count_ids(call, ids, grad->shape.dims[0], false, err);
    struct pick *picks =
        counts ? kernel_scratch(call, (size_t)count * sizeof(*picks) + 1, err) : NULL;
    int64_t *map = picks ? kernel_scratch(call, (size_t)count * sizeof(*map) + 1, err) : NULL;
    if (!map)
        return false;
    for (int64_t i = 0; i < count; i++) {
        picks[i] = (struct pick){tensor_integer(indices, i), i};
        if (picks[i].row < 0 || picks[i].row >= rows)
            return fail(err, INVALID, "Index %lld out of range [0, %lld).",
                        (long long)picks[i].row, (long long)rows);
    }
    qsort(picks, (size_t)count, sizeof(*picks), by_row);
    for (int64_t i = 0; i < count; i++) {
        unique += i == 0 || picks[i].row != picks[i - 1].row;
        map[picks[i].position] = unique - 1;
    }
    struct shape shape = grad->shape;
    shape.dims[0] = unique;
    struct tensor *out = kernel_output(call, 0, &shape, err);
    struct tensor *numbers = out ? kernel_output(call, 1, &SHAPE(unique), err) : NULL;
    if (!numbers)
        return false;
    for (int64_t i = 0; i < count; i++)
        tensor_set_number(numbers, map[picks[i].position], (double)picks[i].row);
    return add_rows(call, out, grad, NULL, map, ids, kind, counts, ids, err);
}

static bool sum_run(struct kernel_call *call, struct error *err)
{
    return forward(call, SUM, err);
}
static bool mean_run(struct kernel_call *call, struct error *err)
{
    return forward(call, MEAN, err);
}
static bool sqrt_n_run(struct kernel_call *call, struct error *err)
{
    return forward(call, SQRT_N, err);
}
static bool sum_grad_run(struct kernel_call *call, struct error *err)
{
    return backward(call, SUM, err);
}
static bool mean_grad_run(struct kernel_call *call, struct error *err)
{
    return backward(call, MEAN, err);
}
static bool sqrt_n_grad_run(struct kernel_call *call, struct error *err)
{
    return backward(call, SQRT_N, err);
}

#define SEGMENT(name_, dtypes_, run_)                                                          \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = dtypes_, .run = run_                             \
    }

const struct kernel kernel_sparse_segment_sum_with_num_segments_ref =
    SEGMENT("SparseSegmentSumWithNumSegments", DTYPES_REAL, sum_run);
const struct kernel kernel_sparse_segment_mean_with_num_segments_ref =
    SEGMENT("SparseSegmentMeanWithNumSegments", DTYPES_FLOAT, mean_run);
const struct kernel kernel_sparse_segment_sqrt_n_with_num_segments_ref =
    SEGMENT("SparseSegmentSqrtNWithNumSegments", DTYPES_FLOAT, sqrt_n_run);
const struct kernel kernel_sparse_segment_sum_grad_v2_ref =
    SEGMENT("SparseSegmentSumGradV2", DTYPES_FLOAT, sum_grad_run);
const struct kernel kernel_sparse_segment_mean_grad_v2_ref =
    SEGMENT("SparseSegmentMeanGradV2", DTYPES_FLOAT, mean_grad_run);
const struct kernel kernel_sparse_segment_sqrt_n_grad_v2_ref =
    SEGMENT("SparseSegmentSqrtNGradV2", DTYPES_FLOAT, sqrt_n_grad_run);
