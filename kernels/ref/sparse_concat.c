/* sparse_concat.c - sparse tensors joined along a dimension, the result in row-major order. */

#include "kernels/ref/sparse.h"

#define INPUTS_MAX 4096

static bool check_ranks(const struct kernel_call *call, int count, struct error *err)
{
    static const char *const names[] = {
        "indices should be a matrix", "values should be a vector", "shapes should be a vector"};
    char text[SHAPE_TEXT_BYTES];
    for (int i = 0; i < 3 * count; i++) {
        const struct shape *shape = &kernel_in(call, i)->shape;
        if (shape->rank != (i < count ? 2 : 1))
            return fail(err, INVALID, "Input %s but received shape %s at position %d",
                        names[i / count], shape_text(shape, text, sizeof(text)), i % count);
    }
    return true;
}

/* All of one rank, and nothing negative. */
static bool check_parts(const struct kernel_call *call, int count, int64_t wanted, int *rank,
                        struct error *err)
{
    if (!check_ranks(call, count, err))
        return false;
    const struct tensor *first = kernel_in(call, 2 * count);
    if (first->count > LIMIT_TENSOR_RANK)
        return fail(err, INVALID, "a sparse tensor of %lld dimensions, at most %d",
                    (long long)first->count, LIMIT_TENSOR_RANK);
    *rank = (int)first->count;
    if (wanted < -*rank || wanted >= *rank)
        return fail(err, INVALID, "Concat dimension must be in range [%d, %d), got %lld",
                    -*rank, *rank, (long long)wanted);
    for (int n = 0; n < count; n++) {
        const struct tensor *dims = kernel_in(call, 2 * count + n);
        if (dims->count != *rank)
            return fail(err, INVALID,
                        "Ranks of all input tensors must match: expected %d but got %lld at "
                        "position %d",
                        *rank, (long long)dims->count, n);
        for (int d = 0; d < *rank; d++)
            if (tensor_i64(dims)[d] < 0)
                return fail(err, INTERNAL, "Encountered overflow from large input shape.");
    }
    return true;
}

/* Inputs: N matrices of indices, N vectors of values, N shapes. */
static bool read_all(const struct kernel_call *call, struct sparse *parts, int count, int *axis,
                     int64_t *total, struct error *err)
{
    int64_t wanted = node_attr_int(call->node, "concat_dim", 0);
    *total = 0;
    int rank = 0;
    if (!check_parts(call, count, wanted, &rank, err))
        return false;
    *axis = (int)(wanted < 0 ? wanted + rank : wanted);
    for (int n = 0; n < count; n++) {
        if (!kernel_sparse_check_made(call, n, count + n, 2 * count + n, err) ||
            !kernel_sparse_in(call, n, count + n, 2 * count + n, &parts[n], err))
            return false;
        for (int d = 0; d < rank; d++)
            if (d != *axis && parts[n].dims[d] != parts[0].dims[d])
                return fail(err, INVALID,
                            "Input shapes must match: expected %lld for dimension "
                            "%d but got %lld at position %d",
                            (long long)parts[0].dims[d], d, (long long)parts[n].dims[d], n);
        *total += parts[n].count;
    }
    return true;
}

static bool run(struct kernel_call *call, struct error *err)
{
    int count = (int)node_attr_int(call->node, "N", 0), axis = 0;
    int64_t total;
    struct sparse_out out;
    if (count < 1 || count > INPUTS_MAX)
        return fail(err, INVALID, "%d sparse tensors, at most %d", count, INPUTS_MAX);
    struct sparse *parts = kernel_scratch(call, (size_t)count * sizeof(*parts), err);
    if (!parts || !read_all(call, parts, count, &axis, &total, err))
        return false;
    int rank = parts[0].rank;
    size_t row = (size_t)rank * sizeof(int64_t);
    int64_t *index = kernel_scratch(call, (size_t)total * row + 1, err);
    struct place {
        int part;
        int64_t item;
    } *from = index ? kernel_scratch(call, (size_t)total * sizeof(*from) + 1, err) : NULL;
    if (!from || !kernel_sparse_out(call, 0, total, rank, &out, err))
        return false;
    memcpy(out.dims, parts[0].dims, row);
    int64_t at = 0, shift = 0;
    for (int n = 0; n < count; n++) {
        for (int64_t i = 0; i < parts[n].count; i++, at++) {
            memcpy(index + at * rank, kernel_sparse_at(&parts[n], i), row);
            index[at * rank + axis] += shift;
            from[at] = (struct place){n, i};
        }
        shift += parts[n].dims[axis];
    }
    out.dims[axis] = shift;
    int64_t *order = kernel_sparse_order(call, index, total, rank, err);
    if (!order)
        return false;
    for (int64_t i = 0; i < total; i++) {
        const struct place *place = &from[order[i]];
        memcpy(out.index + i * rank, index + order[i] * rank, row);
        kernel_copy(out.values, i, parts[place->part].values, place->item, 1);
    }
    return true;
}

const struct kernel kernel_sparse_concat_ref = {
    .op = "SparseConcat", .device = CPU, .run = run};
