/*
 * batch.c - elements put together and taken apart: batches, padded batches, their undoing,
 * windows.
 */

#include "base/alloc.h"
#include "kernels/data/dataset.h"

struct batch {
    struct dataset dataset;
    int64_t size;
    bool drop_remainder;
    struct shape *shapes;   /* padded: to which, -1: as long as the longest */
    struct tensor *padding; /* padded: a scalar for each component */
};

/*
 * Reads up to `size` elements; `*end` when there are not enough to give.  Of mapped elements a
 * whole batch without padding is used up also when some fail: TensorFlow maps them as one.
 */
static bool collect(struct iterator *it, struct rows *rows, bool *end, struct error *err)
{
    const struct batch *batch = (const struct batch *)it->dataset;
    bool over = false, ok = true;
    bool mapped = !batch->padding && kernel_map_is(batch->dataset.inputs[0]);
    struct error later;
    for (int64_t i = 0; i < batch->size && !over && (ok || mapped); i++) {
        if (!kernel_rows_pull(rows, it->input, &over, ok ? err : &later))
            ok = false;
        if (!ok && !kernel_iterator_go_on(it, &later))
            return false;
    }
    *end = ok ? rows->count == 0 || (batch->drop_remainder && rows->count < batch->size) : over;
    return ok;
}

static bool batch_next(struct iterator *it, struct tensor *out, bool *end, struct error *err)
{
    struct rows rows = {.width = it->dataset->width};
    bool ok = collect(it, &rows, end, err) && (*end || kernel_rows_stack(&rows, out, err));
    kernel_rows_release(&rows);
    return ok;
}

static int64_t batch_cardinality(const struct dataset *dataset)
{
    const struct batch *batch = (const struct batch *)dataset;
    int64_t count = kernel_dataset_cardinality(dataset->inputs[0]);
    if (count < 0)
        return count;
    return count / batch->size + (count % batch->size && !batch->drop_remainder);
}

static void batch_release(struct dataset *dataset)
{
    struct batch *batch = (struct batch *)dataset;
    kernel_row_release(batch->padding, dataset->width);
    free(batch->padding);
    free(batch->shapes);
}

static const struct dataset_type batch_type = {
    .name = "Batch",
    .dataset_size = sizeof(struct batch),
    .iterator_size = sizeof(struct iterator),
    .next = batch_next,
    .cardinality = batch_cardinality,
    .release = batch_release,
};

struct dataset *kernel_batch_new(struct dataset *input, const struct signature *signature,
                                 int64_t size, bool drop_remainder, struct error *err)
{
    struct batch *batch =
        (struct batch *)kernel_dataset_new(&batch_type, signature, &input, 1, err);
    if (!batch)
        return NULL;
    batch->size = size;
    batch->drop_remainder = drop_remainder;
    return &batch->dataset;
}

/* The dataset with its size; `drop` is the input that says what becomes of the rest, -1: none.
 */
static struct batch *batch_make(struct kernel_call *call, const struct dataset_type *type,
                                int drop, struct error *err)
{
    int64_t size;
    if (!kernel_scalar(call, 1, "batch_size", &size, err))
        return NULL;
    if (size <= 0)
        return fail_null(err, INVALID, "Batch size must be greater than zero.");
    if (drop >= 0 && kernel_in(call, drop)->count != 1)
        return fail_null(err, INVALID, "drop_remainder must be a scalar");
    struct batch *batch = (struct batch *)kernel_dataset_make(call, type, 0, 1, err);
    if (!batch)
        return NULL;
    batch->size = size;
    batch->drop_remainder = drop >= 0 && *(const bool *)kernel_in(call, drop)->data;
    if (batch->dataset.width == batch->dataset.inputs[0]->width)
        return batch;
    resource_unref(&batch->dataset.resource);
    return fail_null(err, INVALID, "output_types has another length than the input's");
}

static bool batch_run(struct kernel_call *call, struct error *err)
{
    struct batch *batch = batch_make(call, &batch_type, -1, err);
    return kernel_dataset_output(call, batch ? &batch->dataset : NULL, err);
}

static bool batch_v2_run(struct kernel_call *call, struct error *err)
{
    struct batch *batch = batch_make(call, &batch_type, 2, err);
    return kernel_dataset_output(call, batch ? &batch->dataset : NULL, err);
}

/* --- padded batches --- */

/* The shape that component `c` of all rows is padded to, the batch in front. */
static bool padded_shape(const struct rows *rows, int c, const struct shape *wanted,
                         struct shape *out, struct error *err)
{
    *out = (struct shape){.rank = wanted->rank + 1, .dims = {rows->count}};
    if (out->rank > LIMIT_TENSOR_RANK)
        return fail(err, INVALID, "elements of rank %d cannot be batched", wanted->rank);
    for (int d = 0; d < wanted->rank; d++)
        out->dims[d + 1] = wanted->dims[d] < 0 ? 0 : wanted->dims[d];
    for (int64_t i = 0; i < rows->count; i++) {
        const struct shape *shape = &kernel_rows_at(rows, i)[c].shape;
        if (shape->rank != wanted->rank)
            return fail(err, INVALID,
                        "All elements in a batch must have the same rank as the padded shape "
                        "for component%d: expected rank %d but got element with rank %d",
                        c, wanted->rank, shape->rank);
        for (int d = 0; d < wanted->rank; d++) {
            if (wanted->dims[d] < 0 && shape->dims[d] > out->dims[d + 1])
                out->dims[d + 1] = shape->dims[d];
            if (shape->dims[d] > out->dims[d + 1])
                return fail(err, DATA_LOSS,
                            "Attempted to pad to a smaller size than the input element.");
        }
    }
    return true;
}

/* Copies the elements of `from` into the corner of row `index` of `to`. */
static void copy_corner(struct tensor *to, int64_t index, const struct tensor *from)
{
    int rank = from->shape.rank;
    int64_t at[LIMIT_TENSOR_RANK] = {0}, row = rank ? from->shape.dims[rank - 1] : 1;
    for (int64_t done = 0; done < from->count; done += row) {
        int64_t place = index;
        for (int d = 0; d < rank; d++)
            place = place * to->shape.dims[d + 1] + at[d];
        kernel_copy(to, place, from, done, row);
        for (int d = rank - 2; d >= 0 && ++at[d] == from->shape.dims[d]; d--)
            at[d] = 0;
    }
}

/* Every element becomes the scalar; what is filled is copied behind itself. */
static void fill(struct tensor *out, const struct tensor *scalar)
{
    if (out->count)
        kernel_copy(out, 0, scalar, 0, 1);
    for (int64_t done = 1; done < out->count; done *= 2)
        kernel_copy(out, done, out, 0, done < out->count - done ? done : out->count - done);
}

static bool pad(const struct rows *rows, const struct batch *batch, struct tensor *out,
                struct error *err)
{
    for (int c = 0; c < rows->width; c++) {
        struct shape shape;
        if (!padded_shape(rows, c, &batch->shapes[c], &shape, err) ||
            !tensor_init(&out[c], batch->dataset.types[c], &shape, err))
            return false;
        fill(&out[c], &batch->padding[c]);
        for (int64_t i = 0; i < rows->count; i++)
            copy_corner(&out[c], i, &kernel_rows_at(rows, i)[c]);
    }
    return true;
}

static bool padded_next(struct iterator *it, struct tensor *out, bool *end, struct error *err)
{
    struct rows rows = {.width = it->dataset->width};
    bool ok = collect(it, &rows, end, err) &&
              (*end || pad(&rows, (const struct batch *)it->dataset, out, err));
    kernel_rows_release(&rows);
    return ok;
}

static const struct dataset_type padded_type = {
    .name = "PaddedBatch",
    .dataset_size = sizeof(struct batch),
    .iterator_size = sizeof(struct iterator),
    .next = padded_next,
    .cardinality = batch_cardinality,
    .release = batch_release,
};

/* The vector in an input as a shape with holes. */
static bool read_padded(const struct tensor *vector, struct shape *shape, struct error *err)
{
    if (vector->shape.rank != 1 || vector->count > LIMIT_TENSOR_RANK - 1)
        return fail(err, INVALID, "All padded shapes must be vectors");
    shape->rank = (int)vector->count;
    for (int d = 0; d < shape->rank; d++)
        if ((shape->dims[d] = tensor_i64(vector)[d]) < -1)
            return fail(err, INVALID, "a padded shape has dimension %lld",
                        (long long)shape->dims[d]);
    return true;
}

static bool padded_run(struct kernel_call *call, struct error *err)
{
    int width = kernel_dataset_list(call->node, "Toutput_types");
    if (node_attr_int(call->node, "N", 0) != width)
        return fail(err, INVALID, "N is not the number of output types");
    struct batch *batch = batch_make(call, &padded_type,
                                     call->in_count > 2 + 2 * width ? 2 + 2 * width : -1, err);
    if (!batch)
        return false;
    bool ok = true;
    batch->shapes = alloc_array((size_t)width, sizeof(*batch->shapes));
    batch->padding = kernel_row_new(width);
    for (int c = 0; ok && c < width; c++) {
        const struct tensor *padding = kernel_in(call, 2 + width + c);
        ok = read_padded(kernel_in(call, 2 + c), &batch->shapes[c], err);
        if (ok && padding->shape.rank != 0)
            ok = fail(err, INVALID, "All padding values must be scalars");
        if (ok && batch->dataset.inputs[0]->types[c] != padding->dtype)
            ok = fail(err, INVALID,
                      "Mismatched type between padding value %d and input dataset's component "
                      "%d: %s vs. %s",
                      c, c, dtype_name(padding->dtype),
                      dtype_name(batch->dataset.inputs[0]->types[c]));
        tensor_share(&batch->padding[c], padding);
    }
    if (ok)
        return kernel_dataset_output(call, &batch->dataset, err);
    resource_unref(&batch->dataset.resource);
    return false;
}

/* --- taken apart --- */

struct unbatch {
    struct iterator it;
    struct tensor *row; /* of the input */
    int64_t next, count;
};

static bool unbatch_begin(struct iterator *it, struct error *err)
{
    (void)err;
    ((struct unbatch *)it)->row = kernel_row_new(it->dataset->width);
    return true;
}

static void unbatch_end(struct iterator *it)
{
    struct unbatch *unbatch = (struct unbatch *)it;
    kernel_row_release(unbatch->row, it->dataset->width);
    free(unbatch->row);
}

static bool unbatch_pull(struct unbatch *unbatch, bool *end, struct error *err)
{
    int width = unbatch->it.dataset->width;
    kernel_row_release(unbatch->row, width);
    unbatch->next = unbatch->count = 0;
    if (!kernel_iterator_next(unbatch->it.input, unbatch->row, end, err))
        return false;
    for (int c = 0; !*end && c < width; c++) {
        const struct shape *shape = &unbatch->row[c].shape;
        int64_t size = shape->rank ? shape->dims[0] : 0;
        if (shape->rank == 0)
            return fail(err, INVALID, "Unbatch: component %d is a scalar", c);
        if (c > 0 && size != unbatch->row[0].shape.dims[0])
            return fail(err, INVALID,
                        "Input element must have the same batch size in each component. "
                        "Component 0 had size %lld but component %d had size %lld.",
                        (long long)unbatch->row[0].shape.dims[0], c, (long long)size);
    }
    unbatch->count = *end || !width ? 0 : unbatch->row[0].shape.dims[0];
    return true;
}

static bool unbatch_next(struct iterator *it, struct tensor *out, bool *end, struct error *err)
{
    struct unbatch *unbatch = (struct unbatch *)it;
    while (unbatch->next == unbatch->count) {
        if (!unbatch_pull(unbatch, end, err))
            return false;
        if (*end)
            return true;
    }
    int64_t index = unbatch->next++;
    for (int c = 0; c < it->dataset->width; c++)
        if (!kernel_row_slice(&out[c], &unbatch->row[c], index, err))
            return false;
    return true;
}

static const struct dataset_type unbatch_type = {
    .name = "Unbatch",
    .dataset_size = sizeof(struct dataset),
    .iterator_size = sizeof(struct unbatch),
    .begin = unbatch_begin,
    .next = unbatch_next,
    .end = unbatch_end,
};

static bool unbatch_run(struct kernel_call *call, struct error *err)
{
    struct dataset *dataset = kernel_dataset_make(call, &unbatch_type, 0, 1, err);
    if (!dataset || dataset->width == dataset->inputs[0]->width)
        return kernel_dataset_output(call, dataset, err);
    resource_unref(&dataset->resource);
    return fail(err, INVALID, "output_types has another length than the input's");
}

#define DATASET(name_, run_)                                                                   \
    {                                                                                          \
        .op = name_, .device = CPU, .run = run_                                                \
    }

const struct kernel kernel_batch_dataset = DATASET("BatchDataset", batch_run);
const struct kernel kernel_batch_dataset_v2 = DATASET("BatchDatasetV2", batch_v2_run);
const struct kernel kernel_padded_batch_dataset = DATASET("PaddedBatchDataset", padded_run);
const struct kernel kernel_padded_batch_dataset_v2 =
    DATASET("PaddedBatchDatasetV2", padded_run);
const struct kernel kernel_unbatch_dataset = DATASET("UnbatchDataset", unbatch_run);
const struct kernel kernel_experimental_unbatch_dataset =
    DATASET("ExperimentalUnbatchDataset", unbatch_run);
