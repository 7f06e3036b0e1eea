/* sparse.c - sparse tensors read, ordered and given out. */

#include "kernels/ref/sparse.h"

bool kernel_sparse_in(const struct kernel_call *call, int indices, int values, int shape,
                      struct sparse *sparse, struct error *err)
{
    const struct tensor *index = kernel_in(call, indices), *value = kernel_in(call, values);
    const struct tensor *dims = kernel_in(call, shape);
    char text[SHAPE_TEXT_BYTES];
    if (index->shape.rank != 2)
        return fail(err, INVALID, "Input indices should be a matrix but received shape %s",
                    shape_text(&index->shape, text, sizeof(text)));
    if (value->shape.rank != 1)
        return fail(err, INVALID, "Input values should be a vector but received shape %s",
                    shape_text(&value->shape, text, sizeof(text)));
    if (dims->shape.rank != 1)
        return fail(err, INVALID, "Input shape should be a vector but received shape %s",
                    shape_text(&dims->shape, text, sizeof(text)));
    if (index->shape.dims[0] != value->count)
        return fail(err, INVALID,
                    "Number of values must match first dimension of indices. "
                    "Got %lld values, %lld indices",
                    (long long)value->count, (long long)index->shape.dims[0]);
    if (index->shape.dims[1] != dims->count)
        return fail(err, INVALID,
                    "Number of dimensions must match second dimension of indices. "
                    "Got %lld dimensions, indices of %lld",
                    (long long)dims->count, (long long)index->shape.dims[1]);
    if (dims->count > LIMIT_TENSOR_RANK)
        return fail(err, INVALID, "a sparse tensor of %lld dimensions, at most %d",
                    (long long)dims->count, LIMIT_TENSOR_RANK);
    for (int64_t d = 0; d < dims->count; d++)
        if (tensor_i64(dims)[d] < 0)
            return fail(err, INVALID, "Expected shape dimensions to be non-negative, got %lld",
                        (long long)tensor_i64(dims)[d]);
    *sparse = (struct sparse){.index = tensor_i64(index),
                              .values = value,
                              .count = value->count,
                              .rank = (int)dims->count,
                              .dims = tensor_i64(dims)};
    return true;
}

bool kernel_sparse_check(const struct sparse *sparse, struct error *err)
{
    for (int64_t i = 0; i < sparse->count; i++)
        for (int d = 0; d < sparse->rank; d++) {
            int64_t at = kernel_sparse_at(sparse, i)[d];
            if (at < 0 || at >= sparse->dims[d])
                return fail(
                    err, INVALID,
                    "indices[%lld, %d] = %lld is out of bounds: it must be in [0, %lld)",
                    (long long)i, d, (long long)at, (long long)sparse->dims[d]);
        }
    return true;
}

int kernel_sparse_compare(const int64_t *a, const int64_t *b, int rank)
{
    for (int d = 0; d < rank; d++)
        if (a[d] != b[d])
            return a[d] < b[d] ? -1 : 1;
    return 0;
}

/* Merges the sorted runs [from, middle) and [middle, to). */
static void merge(const int64_t *index, int rank, const int64_t *in, int64_t *out, int64_t from,
                  int64_t middle, int64_t to)
{
    int64_t a = from, b = middle;
    for (int64_t k = from; k < to; k++) {
        bool first =
            b >= to || (a < middle && kernel_sparse_compare(index + in[a] * rank,
                                                            index + in[b] * rank, rank) <= 0);
        out[k] = first ? in[a++] : in[b++];
    }
}

int64_t *kernel_sparse_order(struct kernel_call *call, const int64_t *index, int64_t count,
                             int rank, struct error *err)
{
    int64_t *order = kernel_scratch(call, (size_t)count * 2 * sizeof(*order) + 1, err);
    if (!order)
        return NULL;
    int64_t *other = order + count;
    for (int64_t i = 0; i < count; i++)
        order[i] = i;
    for (int64_t run = 1; run < count; run *= 2) {
        for (int64_t from = 0; from < count; from += 2 * run) {
            int64_t middle = from + run < count ? from + run : count;
            int64_t to = from + 2 * run < count ? from + 2 * run : count;
            merge(index, rank, order, other, from, middle, to);
        }
        int64_t *swapped = order;
        order = other;
        other = swapped;
    }
    return order;
}

bool kernel_sparse_out(struct kernel_call *call, int first, int64_t count, int rank,
                       struct sparse_out *out, struct error *err)
{
    struct tensor *index = kernel_output(call, first, &SHAPE(count, rank), err);
    struct tensor *values = index ? kernel_output(call, first + 1, &SHAPE(count), err) : NULL;
    struct tensor *dims = values ? kernel_output(call, first + 2, &SHAPE(rank), err) : NULL;
    if (!dims)
        return false;
    *out = (struct sparse_out){index->data, values, dims->data};
    return true;
}
