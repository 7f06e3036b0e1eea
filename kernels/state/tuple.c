/* tuple.c - tuples of tensors cut from batches, and put together to batches. */

#include "kernels/state/tuple.h"

#include "base/alloc.h"
#include "kernels/ref/move.h"

struct tensor *kernel_tuple_new(int count)
{
    return alloc_array((size_t)count, sizeof(struct tensor));
}

void kernel_tuple_free(struct tensor *tuple, int count)
{
    for (int c = 0; tuple && c < count; c++)
        tensor_release(&tuple[c]);
    free(tuple);
}

struct tensor *kernel_tuple_share(const struct tensor *const *tensors, int count)
{
    struct tensor *tuple = kernel_tuple_new(count);
    for (int c = 0; c < count; c++)
        tensor_share(&tuple[c], tensors[c]);
    return tuple;
}

/* --- cutting --- */

bool kernel_tuple_slice(struct tensor *out, const struct tensor *batch, int64_t index,
                        struct error *err)
{
    assert(batch->shape.rank > 0);
    assert(index >= 0 && index < batch->shape.dims[0]);
    struct shape shape = {.rank = batch->shape.rank - 1};
    for (int d = 0; d < shape.rank; d++)
        shape.dims[d] = batch->shape.dims[d + 1];
    if (!tensor_init(out, batch->dtype, &shape, err))
        return false;
    kernel_copy(out, 0, batch, index * out->count, out->count);
    return true;
}

struct tensor *kernel_tuple_row(const struct tensor *batches, int count, int64_t index,
                                struct error *err)
{
    struct tensor *tuple = kernel_tuple_new(count);
    for (int c = 0; c < count; c++) {
        if (!kernel_tuple_slice(&tuple[c], &batches[c], index, err)) {
            kernel_tuple_free(tuple, count);
            return NULL;
        }
    }
    return tuple;
}

/* --- stacking --- */

/* [rows, element]; open dimensions become those of the largest element. */
static bool stacked_shape(struct shape *out, struct tensor *const *rows, int64_t rows_count,
                          int component, const struct shape *shape, struct error *err)
{
    if (shape->rank < 0 || shape->rank >= LIMIT_TENSOR_RANK)
        return fail(err, INVALID, "elements of %d dimensions cannot be stacked", shape->rank);
    out->rank = shape->rank + 1;
    out->dims[0] = rows_count;
    for (int d = 0; d < shape->rank; d++) {
        int64_t size = shape->dims[d] < 0 ? 0 : shape->dims[d];
        for (int64_t r = 0; r < rows_count && shape->dims[d] < 0; r++) {
            int64_t own = rows[r][component].shape.dims[d];
            size = own > size ? own : size;
        }
        out->dims[d + 1] = size;
    }
    return true;
}

bool kernel_tuple_stack(struct tensor *out, struct tensor *const *rows, int64_t rows_count,
                        int component, enum dtype dtype, const struct shape *shape,
                        struct error *err)
{
    struct shape stacked;
    if (!stacked_shape(&stacked, rows, rows_count, component, shape, err) ||
        !tensor_init(out, dtype, &stacked, err))
        return false;
    struct places to = kernel_places(&stacked), inner = to;
    int64_t row_size = to.steps[0];
    for (int d = 0; d < shape->rank; d++)
        inner.steps[d] = to.steps[d + 1];
    for (int64_t r = 0; r < rows_count; r++) {
        const struct tensor *element = &rows[r][component];
        assert(element->shape.rank == shape->rank);
        if (element->count == row_size) {
            kernel_copy(out, r * row_size, element, 0, row_size);
            continue;
        }
        struct places from = kernel_places(&element->shape);
        kernel_zero(out, r * row_size, row_size);
        inner.start = r * row_size;
        if (element->count)
            kernel_move(out, &inner, element, &from, element->shape.dims, shape->rank);
    }
    return true;
}
