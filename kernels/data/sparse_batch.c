/* sparse_batch.c - DenseToSparseBatchDataset: elements of different sizes in one sparse tensor.
 */

#include "base/alloc.h"
#include "kernels/data/sparse.h"

struct sparse_batch {
    struct dataset dataset;
    int64_t size;
    struct shape row; /* -1: as long as the longest */
};

/* Grows `shape` to hold the element; INVALID when it does not suit. */
static bool widen(const struct shape *wanted, const struct shape *element, struct shape *shape,
                  struct error *err)
{
    if (element->rank != wanted->rank)
        return fail(
            err, INVALID,
            "Input element had rank %d, but the row shape has rank %d: incompatible with "
            "row shape",
            element->rank, wanted->rank);
    for (int d = 0; d < wanted->rank; d++) {
        if (wanted->dims[d] < 0 && element->dims[d] > shape->dims[d + 1])
            shape->dims[d + 1] = element->dims[d];
        if (element->dims[d] > shape->dims[d + 1])
            return fail(err, INVALID,
                        "Input element had shape %lld in dimension %d, larger than the row "
                        "shape's %lld",
                        (long long)element->dims[d], d, (long long)shape->dims[d + 1]);
    }
    return true;
}

/* Every value of the elements with its place. */
static bool gather(const struct rows *rows, const struct shape *shape, int64_t count,
                   struct tensor *out, struct error *err)
{
    enum dtype dtype = kernel_rows_at(rows, 0)->dtype;
    int rank = shape->rank;
    struct tensor parts[3] = {{0}, {0}, {0}};
    bool ok = tensor_init(&parts[0], I64, &SHAPE(count, rank), err) &&
              tensor_init(&parts[1], dtype, &SHAPE(count), err) &&
              tensor_init_copy(&parts[2], I64, &SHAPE(rank), shape->dims, err);
    int64_t *index = parts[0].data, at = 0;
    for (int64_t i = 0; ok && i < rows->count; i++) {
        const struct tensor *element = kernel_rows_at(rows, i);
        kernel_copy(&parts[1], at, element, 0, element->count);
        at += element->count;
        for (int64_t k = 0; k < element->count; k++, index += rank) {
            int64_t rest = k;
            index[0] = i;
            for (int d = rank - 1; d > 0; d--) {
                index[d] = rest % element->shape.dims[d - 1];
                rest /= element->shape.dims[d - 1];
            }
        }
    }
    ok = ok && kernel_sparse_element(out, &parts[0], &parts[1], &parts[2], err);
    kernel_row_release(parts, 3);
    return ok;
}

static bool sparse_batch_next(struct iterator *it, struct tensor *out, bool *end,
                              struct error *err)
{
    const struct sparse_batch *batch = (const struct sparse_batch *)it->dataset;
    struct rows rows = {.width = 1};
    struct shape shape = {.rank = batch->row.rank + 1};
    int64_t count = 0;
    bool ok = true, over = false;
    while (ok && !over && rows.count < batch->size)
        ok = kernel_rows_pull(&rows, it->input, &over, err);
    for (int d = 0; d < batch->row.rank; d++)
        shape.dims[d + 1] = batch->row.dims[d] < 0 ? 0 : batch->row.dims[d];
    for (int64_t i = 0; ok && i < rows.count; i++) {
        ok = widen(&batch->row, &kernel_rows_at(&rows, i)->shape, &shape, err);
        count += kernel_rows_at(&rows, i)->count;
    }
    shape.dims[0] = rows.count;
    *end = ok && rows.count == 0;
    ok = ok && (*end || gather(&rows, &shape, count, out, err));
    kernel_rows_release(&rows);
    return ok;
}

static const struct dataset_type sparse_batch_type = {
    .name = "DenseToSparseBatch",
    .dataset_size = sizeof(struct sparse_batch),
    .iterator_size = sizeof(struct iterator),
    .next = sparse_batch_next,
};

static bool sparse_batch_run(struct kernel_call *call, struct error *err)
{
    int64_t size;
    const struct tensor *row = kernel_in(call, 2);
    if (!kernel_scalar(call, 1, "batch_size", &size, err))
        return false;
    if (size <= 0)
        return fail(err, INVALID, "Batch size must be greater than zero.");
    if (row->shape.rank != 1 || row->count >= LIMIT_TENSOR_RANK)
        return fail(err, INVALID, "row_shape must be a vector");
    struct dataset *input = kernel_dataset_in(call, 0, err);
    if (!input)
        return false;
    if (input->width != 1)
        return fail(err, INVALID,
                    "DenseToSparseBatchDataset only supports input with a single component.");
    const int type = VARIANT;
    const struct shape looks = SHAPE(3);
    const struct signature signature = {1, &type, &looks};
    struct sparse_batch *batch = (struct sparse_batch *)kernel_dataset_new(
        &sparse_batch_type, &signature, &input, 1, err);
    if (!batch)
        return false;
    batch->size = size;
    batch->row.rank = (int)row->count;
    memcpy(batch->row.dims, tensor_i64(row), (size_t)row->count * sizeof(int64_t));
    return kernel_dataset_output(call, &batch->dataset, err);
}

const struct kernel kernel_dense_to_sparse_batch_dataset = {
    .op = "DenseToSparseBatchDataset", .device = CPU, .run = sparse_batch_run};
