/*
 * sparse_rules.c - whether the parts of a sparse tensor fit each other, as TensorFlow's ops
 * have it; each of these is said in several of them.
 */

#include "kernels/ref/sparse.h"

bool kernel_sparse_check_made(const struct kernel_call *call, int indices, int values,
                              int shape, struct error *err)
{
    const struct tensor *index = kernel_in(call, indices), *value = kernel_in(call, values);
    char text[SHAPE_TEXT_BYTES];
    if (value->shape.rank != 1)
        return fail(err, INVALID, "vals must be a vec, but got: %s",
                    shape_text(&value->shape, text, sizeof(text)));
    int64_t rows = index->shape.rank ? index->shape.dims[0] : -1;
    if (rows >= 0 && rows != value->count)
        return fail(err, INVALID,
                    "indices and values rows (indexing dimension) must match. (indices = %lld, "
                    "values = %lld)",
                    (long long)rows, (long long)value->count);
    if (index->shape.rank != 2)
        return fail(err, INVALID, "indices must be a matrix, but got: %s",
                    shape_text(&index->shape, text, sizeof(text)));
    return index->shape.dims[1] == kernel_in(call, shape)->count ||
           fail(err, INVALID, "Order length must be SparseTensor rank.");
}

bool kernel_sparse_check_fit(const struct kernel_call *call, int indices, int values, int shape,
                             struct error *err)
{
    static const char *const names[] = {"indices", "values", "shape"};
    const struct tensor *parts[] = {kernel_in(call, indices), kernel_in(call, values),
                                    kernel_in(call, shape)};
    for (int i = 0; i < 3; i++)
        if (parts[i]->shape.rank != (i ? 1 : 2))
            return fail(err, INVALID, "Sparse %s must be rank %d but is rank %d", names[i],
                        i ? 1 : 2, parts[i]->shape.rank);
    const int64_t *dims = parts[0]->shape.dims;
    if (dims[0] != parts[1]->count)
        return fail(err, INVALID,
                    "Number of elements in indices (%lld) and values (%lld) do not match",
                    (long long)dims[0], (long long)parts[1]->count);
    return dims[1] == parts[2]->count ||
           fail(err, INVALID, "Index rank (%lld) and shape rank (%lld) do not match",
                (long long)dims[1], (long long)parts[2]->count);
}

bool kernel_sparse_check_inside(const struct kernel_call *call, int indices, int shape,
                                struct error *err)
{
    const struct tensor *index = kernel_in(call, indices), *dims = kernel_in(call, shape);
    int64_t rank = dims->count;
    char row[ROW_TEXT_BYTES];
    for (int64_t i = 0; rank && i < index->count / rank; i++)
        for (int64_t d = 0; d < rank; d++) {
            int64_t at = tensor_i64(index)[i * rank + d];
            if (at < 0 || at >= tensor_i64(dims)[d])
                return fail(
                    err, INVALID, "Sparse index tuple indices[%lld, :] = %s is out of bounds",
                    (long long)i, kernel_row_text(index, i, (int)rank, ", ", row, sizeof(row)));
        }
    return true;
}
