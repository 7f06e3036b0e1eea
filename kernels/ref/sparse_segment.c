/*
 * sparse_segment.c - gradients of rows picked by index and summed by segment, which name only
 * the rows that they touch.
 */

#include "kernels/ref/segment.h"
#include "kernels/ref/sums.h"

#include <math.h>

enum kind { SUM, MEAN, SQRT_N };

static double share(enum kind kind, int64_t count)
{
    return kind == SUM || count == 0 ? 1
           : kind == MEAN            ? 1.0 / (double)count
                                     : 1 / sqrt((double)count);
}

/* How many of the ids are each of 0 ... segments - 1. */
static int64_t *count_ids(struct kernel_call *call, const struct tensor *ids, int64_t segments,
                          struct error *err)
{
    int64_t *counts = kernel_zeros(call, segments, sizeof(*counts), err);
    for (int64_t i = 0; counts && i < ids->count; i++)
        counts[tensor_integer(ids, i)]++;
    return counts;
}

/* Adds row ids[i] of `from` to row map[i] of `out`, for each i. */
static bool add_rows(struct kernel_call *call, struct tensor *out, const struct tensor *from,
                     const int64_t *map, const struct tensor *ids, enum kind kind,
                     const int64_t *counts, struct error *err)
{
    int64_t inner = kernel_span(&out->shape, 1, out->shape.rank);
    double *sums = kernel_sums(call, out, err);
    if (!sums)
        return false;
    for (int64_t i = 0; i < ids->count; i++) {
        int64_t id = tensor_integer(ids, i);
        double factor = share(kind, counts[id]);
        for (int64_t k = 0; k < inner; k++)
            sums[map[i] * inner + k] += factor * tensor_number(from, id * inner + k);
    }
    for (int64_t i = 0; i < out->count; i++)
        tensor_set_number(out, i, sums[i]);
    return true;
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
    if (!kernel_segment_picks(indices, ids, err) ||
        !kernel_segment_size(call, "dense_output_dim0", &rows, err))
        return false;
    if (grad->shape.rank < 1)
        return fail(err, INVALID, "Index must be less than 0, got 0");
    if (!kernel_segment_grad(ids, grad->shape.dims[0], indices, rows, err))
        return false;
    int64_t count = indices->count, unique = 0;
    int64_t *counts = count_ids(call, ids, grad->shape.dims[0], err);
    struct pick *picks =
        counts ? kernel_scratch(call, (size_t)count * sizeof(*picks) + 1, err) : NULL;
    int64_t *map = picks ? kernel_scratch(call, (size_t)count * sizeof(*map) + 1, err) : NULL;
    if (!map)
        return false;
    for (int64_t i = 0; i < count; i++)
        picks[i] = (struct pick){tensor_integer(indices, i), i};
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
    return add_rows(call, out, grad, map, ids, kind, counts, err);
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

const struct kernel kernel_sparse_segment_sum_grad_v2_ref =
    SEGMENT("SparseSegmentSumGradV2", DTYPES_FLOAT, sum_grad_run);
const struct kernel kernel_sparse_segment_mean_grad_v2_ref =
    SEGMENT("SparseSegmentMeanGradV2", DTYPES_FLOAT, mean_grad_run);
const struct kernel kernel_sparse_segment_sqrt_n_grad_v2_ref =
    SEGMENT("SparseSegmentSqrtNGradV2", DTYPES_FLOAT, sqrt_n_grad_run);
