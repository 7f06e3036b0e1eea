/* tensor_array_many.c - tensor arrays: elements read into, or written from, one tensor. */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "kernels/ref/numbers.h"
#include "kernels/state/tensor_array.h"

/* Without its first dimension. */
static struct shape row_shape(const struct shape *shape)
{
    struct shape row = {.rank = shape->rank - 1};
    for (int d = 1; d < shape->rank; d++)
        row.dims[d - 1] = shape->dims[d];
    return row;
}

/* With another dimension in front; fails when there is no room for it. */
static bool stack_shape(int64_t count, const struct shape *shape, struct shape *out,
                        struct error *err)
{
    if (shape->rank >= LIMIT_TENSOR_RANK)
        return fail(err, INVALID, "a shape of %d dimensions, at most %d", shape->rank + 1,
                    LIMIT_TENSOR_RANK);
    *out = (struct shape){.rank = shape->rank + 1, .dims = {count}};
    for (int d = 0; d < shape->rank; d++)
        out->dims[d + 1] = shape->dims[d];
    return true;
}

static void pass_flow(struct kernel_call *call, int input)
{
    const struct tensor *flow = kernel_in(call, input);
    kernel_output_share(call, 0, flow, &flow->shape);
}

static bool check_vector(const struct tensor *tensor, const char *what, struct error *err)
{
    char text[SHAPE_TEXT_BYTES];
    return tensor->shape.rank == 1 ||
           fail(err, INVALID, "Expected %s to be a vector, but received shape: %s", what,
                shape_text(&tensor->shape, text, sizeof(text)));
}

static void release_all(struct tensor *tensors, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        tensor_release(&tensors[i]);
    free(tensors);
}

/* The elements named (NULL: the first `count`), to be given to release_all(). */
static struct tensor *read_all(struct tensor_array *array, const int32_t *indices,
                               int64_t count, struct error *err)
{
    if (count > LIMIT_LIST_ITEMS)
        return fail_null(err, EXHAUSTED, "TensorArray %s: %lld elements at once, at most %d",
                         kernel_tensor_array_name(array), (long long)count, LIMIT_LIST_ITEMS);
    struct tensor *values = alloc_array((size_t)count + 1, sizeof(*values));
    for (int64_t i = 0; i < count; i++) {
        if (!kernel_tensor_array_read(array, indices ? indices[i] : i, &values[i], err)) {
            release_all(values, count);
            return NULL;
        }
    }
    return values;
}

/* --- Gather --- */

static bool gather_nothing(struct kernel_call *call, const struct shape *shape,
                           struct error *err)
{
    struct shape whole;
    char text[SHAPE_TEXT_BYTES];
    if (!shape_is_full(shape))
        return fail(err, UNIMPLEMENTED,
                    "TensorArray has size zero, but element shape %s is not fully defined. "
                    "Currently only static shapes are supported when packing zero-size "
                    "TensorArrays.",
                    shape_text(shape, text, sizeof(text)));
    return stack_shape(0, shape, &whole, err) && kernel_output(call, 0, &whole, err);
}

static bool gather(struct kernel_call *call, const struct shape *element,
                   const struct tensor *values, int64_t count, struct error *err)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    const struct shape *shape = &values[0].shape;
    if (!shape_compatible(element, shape))
        return fail(err, INVALID,
                    "TensorArray was passed element_shape %s which does not match the Tensor "
                    "at index 0: %s",
                    shape_text(element, a, sizeof(a)), shape_text(shape, b, sizeof(b)));
    for (int64_t i = 1; i < count; i++)
        if (!shape_equal(shape, &values[i].shape))
            return fail(err, INVALID,
                        "TensorArray has inconsistent shapes.  Index 0 has shape: %s but index "
                        "%lld has shape: %s",
                        shape_text(shape, a, sizeof(a)), (long long)i,
                        shape_text(&values[i].shape, b, sizeof(b)));
    struct shape whole;
    struct tensor *out =
        stack_shape(count, shape, &whole, err) ? kernel_output(call, 0, &whole, err) : NULL;
    for (int64_t i = 0; out && i < count; i++)
        kernel_copy(out, i * values[0].count, &values[i], 0, values[0].count);
    return out != NULL;
}

static bool gather_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *indices = kernel_in(call, 1);
    const struct shape *shape = node_attr_shape(call->node, "element_shape");
    struct tensor_array_state state;
    struct tensor_array *array =
        kernel_tensor_array_of(call, dtype_base(call->node->output_types[0]), err);
    if (!array)
        return false;
    bool ok = (!shape || kernel_tensor_array_set_shape(array, shape, err)) &&
              check_vector(indices, "indices", err);
    if (ok && indices->count == 0) { /* whatever the array is */
        ok = gather_nothing(call, shape ? shape : &SHAPE_UNKNOWN, err);
    } else if (ok && (ok = kernel_tensor_array_look(array, &state, err))) {
        struct tensor *values = read_all(array, tensor_i32(indices), indices->count, err);
        ok = values && gather(call, &state.element_shape, values, indices->count, err);
        if (values)
            release_all(values, indices->count);
    }
    kernel_tensor_array_unref(array);
    return ok;
}

/* --- Concat --- */

static bool concat_nothing(struct kernel_call *call, const struct shape *shape,
                           struct error *err)
{
    struct shape whole;
    char text[SHAPE_TEXT_BYTES];
    if (!shape_is_full(shape))
        return fail(err, UNIMPLEMENTED,
                    "TensorArray has size zero, but element_shape_except0 %s is not fully "
                    "defined. Currently only static shapes are supported when concatenating "
                    "zero-size TensorArrays.",
                    shape_text(shape, text, sizeof(text)));
    return stack_shape(0, shape, &whole, err) && kernel_output(call, 0, &whole, err) &&
           kernel_output(call, 1, &SHAPE(0), err);
}

/* All but the first dimension is the same everywhere; `*rows` is the sum of the first. */
static bool check_concat(const struct shape *except0, const struct tensor *values,
                         int64_t count, int64_t *rows, struct error *err)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    struct shape first = {0};
    *rows = 0;
    for (int64_t i = 0; i < count; i++) {
        if (values[i].shape.rank < 1)
            return fail(err, INVALID,
                        "Concat saw a scalar shape at index %lld but requires at least "
                        "vectors.  Did you mean to call pack?",
                        (long long)i);
        struct shape row = row_shape(&values[i].shape);
        if (i == 0)
            first = row;
        if (i == 0 && !shape_compatible(except0, &row))
            return fail(err, INVALID,
                        "TensorArray was passed element_shape_except0 %s but index 0 has "
                        "(excepting dimension 0) shape: %s which does not match.",
                        shape_text(except0, a, sizeof(a)), shape_text(&row, b, sizeof(b)));
        if (!shape_equal(&first, &row))
            return fail(err, INVALID,
                        "TensorArray has inconsistent shapes.  Index 0 has (excepting "
                        "dimension 0) shape: %s but index %lld has (excepting dimension 0) "
                        "shape: %s",
                        shape_text(&first, a, sizeof(a)), (long long)i,
                        shape_text(&row, b, sizeof(b)));
        *rows += values[i].shape.dims[0];
    }
    return true;
}

static bool concat(struct kernel_call *call, const struct shape *except0,
                   const struct tensor *values, int64_t count, struct error *err)
{
    int64_t rows;
    if (!check_concat(except0, values, count, &rows, err))
        return false;
    struct shape whole = values[0].shape;
    whole.dims[0] = rows;
    struct tensor *out = kernel_output(call, 0, &whole, err);
    struct tensor *lengths = out ? kernel_output(call, 1, &SHAPE(count), err) : NULL;
    if (!lengths)
        return false;
    int64_t at = 0;
    for (int64_t i = 0; i < count; i++) {
        ((int64_t *)lengths->data)[i] = values[i].shape.dims[0];
        kernel_copy(out, at, &values[i], 0, values[i].count);
        at += values[i].count;
    }
    return true;
}

static bool concat_run(struct kernel_call *call, struct error *err)
{
    const struct shape *given = node_attr_shape(call->node, "element_shape_except0");
    struct shape except0 = given ? *given : SHAPE_UNKNOWN;
    struct tensor_array_state state;
    struct tensor_array *array =
        kernel_tensor_array_of(call, dtype_base(call->node->output_types[0]), err);
    if (!array)
        return false;
    bool ok = kernel_tensor_array_look(array, &state, err);
    if (ok && state.concat_size == 0) {
        ok = concat_nothing(call, &except0, err);
    } else if (ok) {
        struct tensor *values = read_all(array, NULL, state.concat_size, err);
        ok = values && concat(call, &except0, values, state.concat_size, err);
        if (values)
            release_all(values, state.concat_size);
    }
    kernel_tensor_array_unref(array);
    return ok;
}

/* --- Scatter and Split --- */

/* `count` elements of `value` from `start` become element `index`. */
static bool write_part(struct tensor_array *array, int64_t index, const struct tensor *value,
                       int64_t start, const struct shape *shape, struct error *err)
{
    struct tensor part = {0};
    if (!tensor_init(&part, value->dtype, shape, err))
        return false;
    kernel_copy(&part, 0, value, start, part.count);
    return kernel_tensor_array_write(array, index, &part, err);
}

static bool scatter(struct tensor_array *array, const struct tensor *indices,
                    const struct tensor *value, struct error *err)
{
    struct tensor_array_state state;
    const int32_t *to = tensor_i32(indices);
    if (!kernel_tensor_array_look(array, &state, err))
        return false;
    if (value->shape.rank < 1)
        return fail(err, INVALID, "Expected value to be at least a vector");
    if (value->shape.dims[0] != indices->count)
        return fail(err, INVALID,
                    "Expected len(indices) == values.shape[0], but saw: %lld vs. %lld",
                    (long long)indices->count, (long long)value->shape.dims[0]);
    int64_t max = -1, size = state.size;
    for (int64_t i = 0; i < indices->count; i++)
        max = to[i] > max ? to[i] : max;
    if (state.dynamic_size && size < max + 1)
        size = max + 1;
    if (max >= size)
        return fail(err, INVALID, "Max scatter index must be < array size (%lld vs. %lld)",
                    (long long)max, (long long)size);
    kernel_tensor_array_mark(array, size);
    struct shape row = row_shape(&value->shape);
    int64_t step = kernel_span(&row, 0, row.rank);
    bool ok = true;
    for (int64_t i = 0; ok && i < indices->count; i++)
        ok = write_part(array, to[i], value, i * step, &row, err);
    return ok;
}

static bool scatter_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *indices = kernel_in(call, 1), *value = kernel_in(call, 2);
    struct tensor_array *array = kernel_tensor_array_of(call, value->dtype, err);
    if (!array)
        return false;
    bool ok = check_vector(indices, "indices", err) && scatter(array, indices, value, err);
    if (ok)
        pass_flow(call, 3);
    kernel_tensor_array_unref(array);
    return ok;
}

/* The lengths are not negative and add up to the rows of the value. */
static bool check_lengths(const struct tensor *lengths, const struct tensor *value,
                          struct error *err)
{
    char text[SHAPE_TEXT_BYTES];
    const int64_t *length = tensor_i64(lengths);
    if (value->shape.rank < 1)
        return fail(err, INVALID,
                    "Expected value to be at least a vector, but received shape: []");
    int64_t rows = value->shape.dims[0], left = rows;
    for (int64_t i = 0; i < lengths->count; i++) {
        if (length[i] < 0 || length[i] > left) {
            left = -1;
            break;
        }
        left -= length[i];
    }
    return left == 0 ||
           fail(err, INVALID,
                "Expected sum of lengths to be equal to values.shape[0], but value's shape is: "
                "%s",
                shape_text(&value->shape, text, sizeof(text)));
}

static bool split(struct tensor_array *array, const struct tensor *lengths,
                  const struct tensor *value, struct error *err)
{
    struct tensor_array_state state;
    if (!check_lengths(lengths, value, err) || !kernel_tensor_array_look(array, &state, err))
        return false;
    int64_t size = state.size;
    if (state.dynamic_size && size < lengths->count)
        size = lengths->count;
    if (size != lengths->count)
        return fail(err, INVALID,
                    "TensorArray's size is not equal to the size of lengths (%lld vs. %lld), "
                    "and the TensorArray is not marked as dynamically resizeable",
                    (long long)size, (long long)lengths->count);
    kernel_tensor_array_mark(array, size);
    struct shape part = value->shape;
    int64_t row = kernel_span(&part, 1, part.rank), start = 0;
    bool ok = true;
    for (int64_t i = 0; ok && i < lengths->count; i++) {
        part.dims[0] = tensor_i64(lengths)[i];
        ok = write_part(array, i, value, start * row, &part, err);
        start += part.dims[0];
    }
    return ok;
}

static bool split_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *value = kernel_in(call, 1), *lengths = kernel_in(call, 2);
    struct tensor_array *array = kernel_tensor_array_of(call, value->dtype, err);
    if (!array)
        return false;
    bool ok = check_vector(lengths, "lengths", err) && split(array, lengths, value, err);
    if (ok)
        pass_flow(call, 3);
    kernel_tensor_array_unref(array);
    return ok;
}

#define KERNEL(name_, run_)                                                                    \
    {                                                                                          \
        .op = name_, .device = CPU, .run = run_                                                \
    }

const struct kernel kernel_tensor_array_gather_v3 = KERNEL("TensorArrayGatherV3", gather_run);
const struct kernel kernel_tensor_array_scatter_v3 =
    KERNEL("TensorArrayScatterV3", scatter_run);
const struct kernel kernel_tensor_array_concat_v3 = KERNEL("TensorArrayConcatV3", concat_run);
const struct kernel kernel_tensor_array_split_v3 = KERNEL("TensorArraySplitV3", split_run);
