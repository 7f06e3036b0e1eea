/* partition.c - rows dealt out by number and put together again; dense tensors from sparse
 * ones. */

#include "kernels/ref/nd.h"

/* Whether `shape` begins with the dimensions of `prefix`. */
static bool begins_with(const struct shape *shape, const struct shape *prefix)
{
    struct shape lead = *shape;
    lead.rank = prefix->rank;
    return prefix->rank <= shape->rank && shape_equal(&lead, prefix);
}

static bool dynamic_partition_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *data = kernel_in(call, 0), *partitions = kernel_in(call, 1);
    int count = call->node->outputs_count, depth = partitions->shape.rank;
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES], place[ROW_TEXT_BYTES];
    if (!begins_with(&data->shape, &partitions->shape))
        return fail(err, INVALID,
                    "data.shape must start with partitions.shape, got data.shape = %s, "
                    "partitions.shape = %s",
                    shape_text(&data->shape, a, sizeof(a)),
                    shape_text(&partitions->shape, b, sizeof(b)));
    for (int64_t i = 0; i < partitions->count; i++) {
        int64_t part = tensor_integer(partitions, i);
        if (part < 0 || part >= count)
            return fail(err, INVALID, "partitions%s = %lld is not in [0, %d)",
                        kernel_place_text(&partitions->shape, i, place, sizeof(place)),
                        (long long)part, count);
    }
    int64_t inner = kernel_span(&data->shape, depth, data->shape.rank);
    for (int p = 0; p < count; p++) {
        struct shape shape = {.rank = 1, .dims = {0}};
        for (int64_t i = 0; i < partitions->count; i++)
            shape.dims[0] += tensor_integer(partitions, i) == p;
        struct tensor *out = kernel_append_dims(&shape, &data->shape, depth, err)
                                 ? kernel_output(call, p, &shape, err)
                                 : NULL;
        if (!out)
            return false;
        int64_t to = 0;
        for (int64_t i = 0; i < partitions->count; i++)
            if (tensor_integer(partitions, i) == p)
                kernel_copy(out, to++ * inner, data, i * inner, inner);
    }
    return true;
}

/* The shape of a row: what data has beyond the dimensions of its indices. */
static struct shape row_shape(const struct tensor *indices, const struct tensor *data)
{
    struct shape shape = {.rank = 0};
    for (int d = indices->shape.rank; d < data->shape.rank; d++)
        shape.dims[shape.rank++] = data->shape.dims[d];
    return shape;
}

static bool dynamic_stitch_run(struct kernel_call *call, struct error *err)
{
    int count = call->in_count / 2;
    int64_t rows = 0;
    struct shape row = {0};
    const struct tensor *first = kernel_in(call, 0);
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES], c[SHAPE_TEXT_BYTES], d[SHAPE_TEXT_BYTES];
    for (int i = 0; i < count; i++) {
        const struct tensor *indices = kernel_in(call, i), *data = kernel_in(call, count + i);
        shape_text(&data->shape, b, sizeof(b));
        if (!begins_with(&data->shape, &indices->shape))
            return fail(err, INVALID,
                        "data[%d].shape = %s does not start with indices[%d].shape = %s", i, b,
                        i, shape_text(&indices->shape, a, sizeof(a)));
        struct shape own = row_shape(indices, data);
        if (i == 0)
            row = own;
        if (!shape_equal(&own, &row))
            return fail(err, INVALID,
                        "Need data[0].shape[%d:] = data[%d].shape[%d:], got data[0].shape = "
                        "%s, data[%d].shape = %s, indices[0].shape = %s, indices[%d].shape = "
                        "%s",
                        first->shape.rank, i, indices->shape.rank,
                        shape_text(&kernel_in(call, count)->shape, a, sizeof(a)), i, b,
                        shape_text(&first->shape, c, sizeof(c)), i,
                        shape_text(&indices->shape, d, sizeof(d)));
        for (int64_t k = 0; k < indices->count; k++) {
            int64_t index = tensor_integer(indices, k);
            if (index < 0)
                return fail(err, INVALID, "indices[%lld] is out of range", (long long)k);
            rows = index >= rows ? index + 1 : rows;
        }
    }
    struct shape shape = {.rank = 1, .dims = {rows}};
    struct tensor *out =
        kernel_append_dims(&shape, &row, 0, err) ? kernel_output(call, 0, &shape, err) : NULL;
    if (!out)
        return false;
    kernel_zero(out, 0, out->count);
    int64_t inner = kernel_span(&row, 0, row.rank);
    for (int i = 0; i < count; i++) {
        const struct tensor *indices = kernel_in(call, i);
        for (int64_t k = 0; k < indices->count; k++)
            kernel_copy(out, tensor_integer(indices, k) * inner, kernel_in(call, count + i),
                        k * inner, inner);
    }
    return true;
}

/* --- a dense tensor with values at given places --- */

static bool check_sparse(const struct kernel_call *call, int64_t *count, int *depth,
                         struct error *err)
{
    const struct tensor *indices = kernel_in(call, 0), *shape = kernel_in(call, 1);
    const struct tensor *values = kernel_in(call, 2);
    char text[SHAPE_TEXT_BYTES];
    if (indices->shape.rank > 2)
        return fail(err, INVALID,
                    "sparse_indices should be a scalar, vector, or matrix, got shape %s",
                    shape_text(&indices->shape, text, sizeof(text)));
    if (shape->shape.rank != 1)
        return fail(err, INVALID, "output_shape must be rank 1, got shape %s",
                    shape_text(&shape->shape, text, sizeof(text)));
    *count = indices->shape.rank > 0 ? indices->shape.dims[0] : 1;
    *depth = indices->shape.rank > 1 ? (int)indices->shape.dims[1] : 1;
    if (shape->count != *depth)
        return fail(err, INVALID,
                    "output_shape has incorrect number of elements: %lld should be: "
                    "%d",
                    (long long)shape->count, *depth);
    if (values->shape.rank > 1 || (values->shape.rank == 1 && values->count != *count))
        return fail(err, INVALID,
                    "sparse_values has incorrect shape %s, should be [] or [%lld]",
                    shape_text(&values->shape, text, sizeof(text)), (long long)*count);
    if (kernel_in(call, 3)->shape.rank != 0)
        return fail(err, INVALID, "default_value should be a scalar.");
    return true;
}

static bool sparse_to_dense_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *indices = kernel_in(call, 0), *values = kernel_in(call, 2);
    bool validate = node_attr_bool(call->node, "validate_indices", true);
    int64_t count = 0, last = -1;
    int depth = 0;
    char row[ROW_TEXT_BYTES], text[SHAPE_TEXT_BYTES];
    struct shape shape;
    if (!check_sparse(call, &count, &depth, err) || !kernel_shape_in(call, 1, &shape, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    for (int64_t i = 0; i < out->count; i++)
        kernel_copy(out, i, kernel_in(call, 3), 0, 1);
    for (int64_t i = 0; i < count; i++) {
        int64_t place = 0;
        for (int d = 0; d < depth; d++) {
            int64_t index = tensor_integer(indices, i * depth + d);
            if ((index < 0 || index >= shape.dims[d]) && !validate)
                return fail(err, INVALID, "Indices are not valid (out of bounds).  Shape: %s",
                            shape_text(&shape, text, sizeof(text)));
            if (index < 0 || index >= shape.dims[d])
                return fail(
                    err, INVALID, "indices[%lld] = %s is out of bounds: need 0 <= index < %s",
                    (long long)i, kernel_row_text(indices, i, depth, ",", row, sizeof(row)),
                    shape_text(&shape, text, sizeof(text)));
            place = place * shape.dims[d] + index;
        }
        if (validate && place <= last)
            return kernel_fail_order(err, i,
                                     kernel_row_text(indices, i, depth, ",", row, sizeof(row)),
                                     place == last);
        last = place;
        kernel_copy(out, place, values, values->shape.rank ? i : 0, 1);
    }
    return true;
}

#define PARTITION(name_, run_)                                                                 \
    {                                                                                          \
        .op = name_, .device = CPU, .run = run_                                                \
    }

const struct kernel kernel_dynamic_partition_ref =
    PARTITION("DynamicPartition", dynamic_partition_run);
const struct kernel kernel_dynamic_stitch_ref = PARTITION("DynamicStitch", dynamic_stitch_run);
const struct kernel kernel_parallel_dynamic_stitch_ref =
    PARTITION("ParallelDynamicStitch", dynamic_stitch_run);
const struct kernel kernel_sparse_to_dense_ref =
    PARTITION("SparseToDense", sparse_to_dense_run);
