/* rows.c - rows of tensors: elements of datasets, one or many. */

#include "base/alloc.h"
#include "kernels/data/dataset.h"

struct tensor *kernel_row_new(int width)
{
    return alloc_array((size_t)width, sizeof(struct tensor));
}

void kernel_row_release(struct tensor *row, int width)
{
    for (int i = 0; row && i < width; i++)
        tensor_release(&row[i]);
}

bool kernel_row_slice(struct tensor *out, const struct tensor *from, int64_t index,
                      struct error *err)
{
    struct shape shape = {.rank = from->shape.rank - 1};
    assert(shape.rank >= 0);
    memcpy(shape.dims, from->shape.dims + 1, (size_t)shape.rank * sizeof(int64_t));
    if (!tensor_init(out, from->dtype, &shape, err))
        return false;
    kernel_copy(out, 0, from, index * out->count, out->count);
    return true;
}

bool kernel_row_suits(const struct tensor *row, int width, const struct signature *signature,
                      struct error *err)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    if (width != signature->width)
        return fail(err, INVALID,
                    "Number of components does not match: expected %d types but got %d.",
                    signature->width, width);
    for (int i = 0; i < width; i++) {
        if ((int)row[i].dtype != signature->types[i])
            return fail(err, INVALID,
                        "Data type mismatch at component %d: expected %s but got %s.", i,
                        dtype_name((enum dtype)signature->types[i]), dtype_name(row[i].dtype));
        if (signature->shapes && !shape_compatible(&signature->shapes[i], &row[i].shape))
            return fail(err, INVALID,
                        "Incompatible shapes at component %d: expected %s but got %s.", i,
                        shape_text(&signature->shapes[i], a, sizeof(a)),
                        shape_text(&row[i].shape, b, sizeof(b)));
    }
    return true;
}

struct tensor *kernel_rows_at(const struct rows *rows, int64_t index)
{
    assert(index >= 0 && index < rows->count);
    return rows->tensors + index * rows->width;
}

struct tensor *kernel_rows_add(struct rows *rows)
{
    size_t size = (size_t)rows->width * sizeof(struct tensor);
    if (rows->count == rows->capacity) {
        rows->capacity = rows->capacity ? 2 * rows->capacity : 8;
        rows->tensors = alloc_resize(rows->tensors, (size_t)rows->capacity * size + 1);
    }
    struct tensor *row = rows->tensors + rows->count++ * rows->width;
    memset(row, 0, size);
    return row;
}

void kernel_rows_cut(struct rows *rows, int64_t count)
{
    while (rows->count > count) {
        kernel_row_release(kernel_rows_at(rows, rows->count - 1), rows->width);
        rows->count--;
    }
}

void kernel_rows_drop(struct rows *rows, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        kernel_row_release(kernel_rows_at(rows, i), rows->width);
    rows->count -= count;
    memmove(rows->tensors, rows->tensors + count * rows->width,
            (size_t)(rows->count * rows->width) * sizeof(struct tensor));
}

void kernel_rows_release(struct rows *rows)
{
    kernel_rows_cut(rows, 0);
    free(rows->tensors);
    *rows = (struct rows){.width = rows->width};
}

bool kernel_rows_pull(struct rows *rows, struct iterator *it, bool *end, struct error *err)
{
    struct tensor *row = kernel_rows_add(rows);
    bool ok = kernel_iterator_next(it, row, end, err);
    if (!ok || *end)
        rows->count--;
    return ok;
}

bool kernel_rows_stack(const struct rows *rows, struct tensor *out, struct error *err)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    for (int c = 0; c < rows->width; c++) {
        const struct tensor *first = kernel_rows_at(rows, 0) + c;
        struct shape shape = {.rank = first->shape.rank + 1, .dims = {rows->count}};
        if (shape.rank > LIMIT_TENSOR_RANK)
            return fail(err, INVALID, "elements of rank %d cannot be batched",
                        first->shape.rank);
        memcpy(shape.dims + 1, first->shape.dims, (size_t)first->shape.rank * sizeof(int64_t));
        for (int64_t i = 1; i < rows->count; i++) {
            const struct tensor *tensor = kernel_rows_at(rows, i) + c;
            if (!shape_equal(&tensor->shape, &first->shape))
                return fail(err, INVALID,
                            "Cannot batch tensors with different shapes in component %d. First "
                            "element had shape %s and element %lld had shape %s.",
                            c, shape_text(&first->shape, a, sizeof(a)), (long long)i,
                            shape_text(&tensor->shape, b, sizeof(b)));
        }
        if (!tensor_init(&out[c], first->dtype, &shape, err))
            return false;
        for (int64_t i = 0; i < rows->count; i++)
            kernel_copy(&out[c], i * first->count, kernel_rows_at(rows, i) + c, 0,
                        first->count);
    }
    return true;
}
