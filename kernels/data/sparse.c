/*
 * sparse.c - SerializeSparse, SerializeManySparse, DeserializeSparse, DeserializeManySparse: a
 * sparse tensor becomes three strings or three variants, and back.
 */

#include "kernels/data/sparse.h"

#include "base/alloc.h"
#include "base/str.h"
#include "kernels/ref/numbers.h"
#include "runtime/tensor_pb.h"

/* --- tensors in variants --- */

struct held_tensor {
    struct resource resource;
    struct tensor tensor;
};

static void held_destroy(struct resource *resource)
{
    struct held_tensor *held = (struct held_tensor *)resource;
    tensor_release(&held->tensor);
    free(held);
}

bool kernel_sparse_hold(struct tensor *out, int64_t i, const struct tensor *tensor,
                        struct error *err)
{
    if (tensor->dtype == VARIANT || tensor->dtype == RESOURCE)
        return fail(err, INVALID, "a sparse tensor of type %s cannot be held",
                    dtype_name(tensor->dtype));
    struct held_tensor *held = alloc_bytes(sizeof(*held));
    held->resource =
        (struct resource){.kind = TENSOR_KIND, .references = 1, .destroy = held_destroy};
    tensor_share(&held->tensor, tensor);
    ((struct resource_handle *)out->data)[i].resource = &held->resource;
    return true;
}

bool kernel_sparse_element(struct tensor *out, const struct tensor *indices,
                           const struct tensor *values, const struct tensor *shape,
                           struct error *err)
{
    return tensor_init(out, VARIANT, &SHAPE(3), err) &&
           kernel_sparse_hold(out, 0, indices, err) &&
           kernel_sparse_hold(out, 1, values, err) && kernel_sparse_hold(out, 2, shape, err);
}

/* Element `i` of the output: a variant, or the bytes of a TensorProto. */
static bool write_one(struct tensor *out, int64_t i, const struct tensor *tensor,
                      struct error *err)
{
    if (out->dtype == VARIANT)
        return kernel_sparse_hold(out, i, tensor, err);
    struct str bytes = {0};
    tensor_serialize_content(tensor, &bytes);
    tensor_set_string(out, i, bytes.data, bytes.size);
    str_release(&bytes);
    return true;
}

static bool read_one(struct tensor *out, const struct tensor *from, int64_t i,
                     struct error *err)
{
    if (from->dtype == STRING) {
        const struct tensor_string *bytes = &tensor_strings(from)[i];
        if (!tensor_parse(out, bytes->data, bytes->size, err))
            return fail(err, INVALID, "Could not parse serialized proto");
        return true;
    }
    struct resource *held = kernel_variant(from, i, TENSOR_KIND, err);
    if (held)
        tensor_share(out, &((struct held_tensor *)held)->tensor);
    return held != NULL;
}

/* --- to strings or variants --- */

static bool check_parts(const struct tensor *indices, const struct tensor *values,
                        const struct tensor *shape, struct error *err)
{
    static const char *const names[] = {
        "indices should be a matrix", "values should be a vector", "shape should be a vector"};
    const struct shape *shapes[] = {&indices->shape, &values->shape, &shape->shape};
    char text[SHAPE_TEXT_BYTES];
    for (int i = 0; i < 3; i++)
        if (shapes[i]->rank != (i ? 1 : 2))
            return fail(err, INVALID, "Input %s but received shape %s", names[i],
                        shape_text(shapes[i], text, sizeof(text)));
    return true;
}

bool kernel_sparse_check_sizes(const struct tensor *indices, const struct tensor *values,
                               const struct tensor *shape, struct error *err)
{
    if (!check_parts(indices, values, shape, err))
        return false;
    if (indices->shape.dims[0] != values->count)
        return fail(err, INVALID,
                    "indices and values rows (indexing dimension) must match. (indices = %lld, "
                    "values = %lld)",
                    (long long)indices->shape.dims[0], (long long)values->count);
    return indices->shape.dims[1] == shape->count ||
           fail(err, INVALID, "Order length must be SparseTensor rank.");
}

static bool serialize_run(struct kernel_call *call, struct error *err)
{
    struct tensor *out = NULL;
    if (!check_parts(kernel_in(call, 0), kernel_in(call, 1), kernel_in(call, 2), err) ||
        !(out = kernel_output(call, 0, &SHAPE(3), err)))
        return false;
    for (int i = 0; i < 3; i++)
        if (!write_one(out, i, kernel_in(call, i), err))
            return false;
    return true;
}

bool kernel_sparse_row(const struct kernel_call *call, int64_t row, int64_t *at,
                       struct tensor parts[3], struct error *err)
{
    const struct tensor *indices = kernel_in(call, 0), *values = kernel_in(call, 1),
                        *shape = kernel_in(call, 2);
    int64_t rank = shape->count, first = *at;
    while (*at < values->count && tensor_i64(indices)[*at * rank] == row)
        ++*at;
    int64_t count = *at - first;
    for (int i = 0; i < 3; i++)
        parts[i] = (struct tensor){0};
    bool ok = tensor_init(&parts[0], I64, &SHAPE(count, rank - 1), err) &&
              tensor_init(&parts[1], values->dtype, &SHAPE(count), err) &&
              tensor_init_copy(&parts[2], I64, &SHAPE(rank - 1), tensor_i64(shape) + 1, err);
    for (int64_t i = 0; ok && i < count; i++)
        memcpy((int64_t *)parts[0].data + i * (rank - 1),
               tensor_i64(indices) + (first + i) * rank + 1,
               (size_t)(rank - 1) * sizeof(int64_t));
    if (ok)
        kernel_copy(&parts[1], 0, values, first, count);
    else
        kernel_row_release(parts, 3);
    return ok;
}

/* Places are inside the shape and each comes behind the one before. */
static bool check_places(const struct tensor *indices, int64_t count,
                         const struct tensor *shape, struct error *err)
{
    char row[ROW_TEXT_BYTES], dims[ROW_TEXT_BYTES];
    const int64_t *index = tensor_i64(indices);
    int64_t rank = shape->count;
    for (int64_t i = 0; i < count; i++) {
        int order = i == 0;
        for (int64_t d = 0; d < rank; d++) {
            int64_t at = index[i * rank + d], before = i ? index[(i - 1) * rank + d] : 0;
            if (at < 0 || at >= tensor_i64(shape)[d])
                return fail(
                    err, INVALID, "indices[%lld] = %s is out of bounds: need 0 <= index < %s",
                    (long long)i, kernel_row_text(indices, i, (int)rank, ",", row, sizeof(row)),
                    kernel_row_text(shape, 0, (int)rank, ",", dims, sizeof(dims)));
            order = order ? order : (at > before) - (at < before);
        }
        if (order <= 0)
            return kernel_fail_order(
                err, i, kernel_row_text(indices, i, (int)rank, ",", row, sizeof(row)),
                order == 0);
    }
    return true;
}

bool kernel_sparse_rows(const struct kernel_call *call, int64_t *rows, struct error *err)
{
    const struct tensor *indices = kernel_in(call, 0), *values = kernel_in(call, 1),
                        *shape = kernel_in(call, 2);
    if (!kernel_sparse_check_sizes(indices, values, shape, err))
        return false;
    if (shape->count <= 1)
        return fail(err, INVALID,
                    "Rank of input SparseTensor should be > 1, but saw rank: %lld",
                    (long long)shape->count);
    *rows = tensor_i64(shape)[0];
    if (*rows < 0 || *rows > LIMIT_TENSOR_BYTES / 64)
        return fail(err, INVALID, "a sparse tensor of %lld rows", (long long)*rows);
    return check_places(indices, values->count, shape, err);
}

static bool serialize_many_run(struct kernel_call *call, struct error *err)
{
    int64_t rows, at = 0;
    if (!kernel_sparse_rows(call, &rows, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &SHAPE(rows, 3), err);
    bool ok = out;
    for (int64_t row = 0; ok && row < rows; row++) {
        struct tensor parts[3];
        ok = kernel_sparse_row(call, row, &at, parts, err);
        if (!ok)
            break;
        for (int i = 0; ok && i < 3; i++)
            ok = write_one(out, 3 * row + i, &parts[i], err);
        kernel_row_release(parts, 3);
    }
    return ok;
}

/* --- and back --- */

/* The parts of each, and what all have together. */
struct parts {
    const struct tensor *tensors; /* indices, values, shape of each */
    int64_t count;
    int64_t rank;
    int64_t values;
    int64_t dims[LIMIT_TENSOR_RANK]; /* the largest of each dimension */
};

static bool add_part(struct parts *parts, int64_t i, enum dtype dtype, struct error *err)
{
    const struct tensor *three = parts->tensors + 3 * i;
    if (three[0].dtype != I64 || three[2].dtype != I64)
        return fail(err, INVALID, "indices and shape of SparseTensor[%lld] are not int64",
                    (long long)i);
    if (three[1].dtype != dtype)
        return fail(err, INVALID,
                    "Requested SparseTensor of type %s but SparseTensor[%lld].values.dtype() "
                    "== %s",
                    dtype_name(dtype), (long long)i, dtype_name(three[1].dtype));
    if (!kernel_sparse_check_sizes(&three[0], &three[1], &three[2], err))
        return false;
    if (i == 0)
        parts->rank = three[2].count;
    if (three[2].count != parts->rank || parts->rank > LIMIT_TENSOR_RANK)
        return fail(err, INVALID,
                    "Inconsistent rank across SparseTensors: rank prior to SparseTensor[%lld] "
                    "was: %lld but rank of SparseTensor[%lld] is: %lld",
                    (long long)i, (long long)parts->rank, (long long)i,
                    (long long)three[2].count);
    for (int64_t d = 0; d < parts->rank; d++)
        if (i == 0 || tensor_i64(&three[2])[d] > parts->dims[d])
            parts->dims[d] = tensor_i64(&three[2])[d];
    parts->values += three[1].count;
    return true;
}

/* Number `i` as indices of the leading dimensions. */
static void place_of(int64_t i, const struct shape *lead, int64_t *out)
{
    for (int d = lead->rank - 1; d >= 0; d--) {
        out[d] = i % lead->dims[d];
        i /= lead->dims[d];
    }
}

static bool join(struct kernel_call *call, const struct parts *parts, const struct shape *lead,
                 struct error *err)
{
    int64_t rank = parts->rank + lead->rank, at = 0;
    struct tensor *indices = kernel_output(call, 0, &SHAPE(parts->values, rank), err);
    struct tensor *values = indices ? kernel_output(call, 1, &SHAPE(parts->values), err) : NULL;
    struct tensor *shape = values ? kernel_output(call, 2, &SHAPE(rank), err) : NULL;
    if (!shape)
        return false;
    memcpy(shape->data, lead->dims, (size_t)lead->rank * sizeof(int64_t));
    memcpy((int64_t *)shape->data + lead->rank, parts->dims,
           (size_t)parts->rank * sizeof(int64_t));
    for (int64_t i = 0; i < parts->count; i++) {
        const struct tensor *three = parts->tensors + 3 * i;
        kernel_copy(values, at, &three[1], 0, three[1].count);
        for (int64_t k = 0; k < three[1].count; k++, at++) {
            int64_t *to = (int64_t *)indices->data + at * rank;
            place_of(i, lead, to);
            memcpy(to + lead->rank, tensor_i64(&three[0]) + k * parts->rank,
                   (size_t)parts->rank * sizeof(int64_t));
        }
    }
    return true;
}

bool kernel_sparse_join(struct kernel_call *call, const struct tensor *tensors, int64_t count,
                        const struct shape *lead, enum dtype dtype, struct error *err)
{
    struct parts parts = {.tensors = tensors, .count = count};
    for (int64_t i = 0; i < count; i++)
        if (!add_part(&parts, i, dtype, err))
            return false;
    return join(call, &parts, lead, err);
}

static bool deserialize_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *from = kernel_in(call, 0);
    char text[SHAPE_TEXT_BYTES];
    struct shape lead = from->shape;
    if (lead.rank < 1)
        return fail(err, INVALID, "Serialized sparse should have non-zero rank %s",
                    shape_text(&lead, text, sizeof(text)));
    if (lead.dims[lead.rank - 1] != 3)
        return fail(err, INVALID, "Serialized sparse should have 3 as the last dimension %s",
                    shape_text(&lead, text, sizeof(text)));
    lead.rank--;
    if (from->count == 0)
        return fail(err, INVALID, "Serialized sparse should have non-zero dimension %s",
                    shape_text(&from->shape, text, sizeof(text)));
    struct tensor *tensors = alloc_array((size_t)from->count, sizeof(*tensors));
    enum dtype dtype = (enum dtype)node_attr_type(call->node, "dtype");
    bool ok = true;
    for (int64_t i = 0; ok && i < from->count; i++)
        ok = read_one(&tensors[i], from, i, err);
    ok = ok && kernel_sparse_join(call, tensors, from->count / 3, &lead, dtype, err);
    for (int64_t i = 0; i < from->count; i++)
        tensor_release(&tensors[i]);
    free(tensors);
    return ok;
}

#define SPARSE(name_, run_)                                                                    \
    {                                                                                          \
        .op = name_, .device = CPU, .run = run_                                                \
    }

const struct kernel kernel_serialize_sparse = SPARSE("SerializeSparse", serialize_run);
const struct kernel kernel_serialize_many_sparse =
    SPARSE("SerializeManySparse", serialize_many_run);
const struct kernel kernel_deserialize_sparse = SPARSE("DeserializeSparse", deserialize_run);
const struct kernel kernel_deserialize_many_sparse =
    SPARSE("DeserializeManySparse", deserialize_run);
