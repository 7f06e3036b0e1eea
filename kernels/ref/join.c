/* join.c - tensors joined along an axis, and taken apart. */

#include "kernels/ref/numbers.h"

/* --- joins --- */

/* Sizes agree but for `axis`; `*sum` is the length of the result along it. */
static bool check_parts(const struct kernel_call *call, int first, int count, int axis,
                        int64_t *sum, struct error *err)
{
    const struct shape *shape = &kernel_in(call, first)->shape;
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    *sum = 0;
    for (int i = first; i < first + count; i++) {
        const struct shape *other = &kernel_in(call, i)->shape;
        if (other->rank != shape->rank)
            return fail(err, INVALID,
                        "ConcatOp : Ranks of all input tensors should match: shape[0] = %s vs. "
                        "shape[%d] = %s",
                        shape_text(shape, a, sizeof(a)), i - first,
                        shape_text(other, b, sizeof(b)));
        *sum += other->dims[axis];
        for (int d = 0; d < shape->rank; d++)
            if (d != axis && other->dims[d] != shape->dims[d])
                return fail(err, INVALID,
                            "ConcatOp : Dimension %d in both shapes must be equal: shape[0] = "
                            "%s vs. shape[%d] = %s",
                            d, shape_text(shape, a, sizeof(a)), i - first,
                            shape_text(other, b, sizeof(b)));
    }
    return true;
}

/* As old graphs have it, a vector of one element is a scalar here. */
static bool axis_of(const struct kernel_call *call, int input, int rank, int *axis,
                    struct error *err)
{
    const struct tensor *in = kernel_in(call, input);
    char text[SHAPE_TEXT_BYTES];
    if (in->count != 1 || in->shape.rank > 1)
        return fail(err, INVALID, "%s tensor should be a scalar integer, but got shape %s",
                    input ? "axis" : "concat_dim", shape_text(&in->shape, text, sizeof(text)));
    int64_t value = tensor_integer(in, 0);
    if (value < -rank || value >= rank)
        return fail(err, INVALID,
                    "ConcatOp : Expected concatenating dimensions in the range [%d, %d), but "
                    "got %lld",
                    -rank, rank, (long long)value);
    *axis = (int)(value < 0 ? value + rank : value);
    return true;
}

static bool concat(struct kernel_call *call, int axis_input, int first, struct error *err)
{
    int count = call->in_count - 1, axis = 0;
    const struct shape *shape = &kernel_in(call, first)->shape;
    int64_t length, offset = 0;
    if (!axis_of(call, axis_input, shape->rank, &axis, err) ||
        !check_parts(call, first, count, axis, &length, err))
        return false;
    struct shape joined = *shape;
    joined.dims[axis] = length;
    struct tensor *out = kernel_output(call, 0, &joined, err);
    if (!out)
        return false;
    int64_t outer = kernel_span(shape, 0, axis),
            inner = kernel_span(shape, axis + 1, shape->rank);
    for (int i = first; i < first + count; i++) {
        const struct tensor *in = kernel_in(call, i);
        int64_t row = in->shape.dims[axis] * inner;
        for (int64_t o = 0; o < outer; o++)
            kernel_copy(out, o * length * inner + offset, in, o * row, row);
        offset += row;
    }
    return true;
}

static bool concat_v2_run(struct kernel_call *call, struct error *err)
{
    return concat(call, call->in_count - 1, 0, err);
}

static bool concat_run(struct kernel_call *call, struct error *err)
{
    return concat(call, 0, 1, err);
}

/* "[1 2 5]". */
static const char *numbers_text(const struct tensor *numbers, char *out, size_t size)
{
    size_t used = (size_t)snprintf(out, size, "[");
    for (int64_t i = 0; i < numbers->count && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%lld", i ? " " : "",
                                 (long long)tensor_integer(numbers, i));
    if (used < size)
        snprintf(out + used, size - used, "]");
    return out;
}

static bool concat_offset_run(struct kernel_call *call, struct error *err)
{
    int count = call->in_count - 1, axis = 0;
    int64_t offset = 0;
    int rank = (int)kernel_in(call, 1)->count;
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    if (kernel_in(call, 0)->shape.rank != 0)
        return fail(err, INVALID,
                    "Concat dim tensor should be a scalar integer, but got shape %s",
                    shape_text(&kernel_in(call, 0)->shape, a, sizeof(a)));
    for (int i = 1; i <= count; i++)
        if (kernel_in(call, i)->shape.rank != 1)
            return fail(err, INVALID, "input %d should be a vector, but got shape %s", i,
                        shape_text(&kernel_in(call, i)->shape, a, sizeof(a)));
    int64_t along = tensor_integer(kernel_in(call, 0), 0);
    axis = (int)(along < 0 ? along + rank : along);
    if (along < -rank || along >= rank)
        return fail(err, INVALID, "Concat dim is out of range: %lld vs. %d", (long long)along,
                    rank);
    for (int i = 1; i <= count; i++)
        if (kernel_in(call, i)->count != rank)
            return fail(err, INVALID, "input %d should contain %d elements, but got %lld",
                        i - 1, rank, (long long)kernel_in(call, i)->count);
    for (int i = 0; i < count; i++) {
        const struct tensor *shape = kernel_in(call, i + 1);
        for (int d = 0; d < rank; d++)
            if (d != axis && tensor_integer(shape, d) != tensor_integer(kernel_in(call, 1), d))
                return fail(err, INVALID,
                            "All dimensions except %d must match. Input %d has shape %s and "
                            "doesn't match input 0 with shape %s.",
                            axis, i, numbers_text(shape, a, sizeof(a)),
                            numbers_text(kernel_in(call, 1), b, sizeof(b)));
        struct tensor *out = kernel_output(call, i, &shape->shape, err);
        if (!out)
            return false;
        kernel_zero(out, 0, rank);
        kernel_store_bits_for(out->dtype)(out->data, axis, (uint64_t)offset);
        offset += tensor_integer(shape, axis);
    }
    return true;
}

static bool pack_run(struct kernel_call *call, struct error *err)
{
    int count = call->in_count, rank = kernel_in(call, 0)->shape.rank;
    const struct shape *shape = &kernel_in(call, 0)->shape;
    int64_t axis = node_attr_int(call->node, "axis", 0);
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    if (axis < -rank - 1 || axis > rank || rank == LIMIT_TENSOR_RANK)
        return fail(err, INVALID, "axis = %lld not in [%d, %d)", (long long)axis, -rank - 1,
                    rank + 1);
    axis += axis < 0 ? rank + 1 : 0;
    for (int i = 1; i < count; i++)
        if (!shape_equal(&kernel_in(call, i)->shape, shape))
            return fail(err, INVALID,
                        "Shapes of all inputs must match: values[0].shape = %s != "
                        "values[%d].shape = %s",
                        shape_text(shape, a, sizeof(a)), i,
                        shape_text(&kernel_in(call, i)->shape, b, sizeof(b)));
    struct shape packed = {.rank = rank + 1};
    for (int d = 0; d <= rank; d++)
        packed.dims[d] = d == axis ? count : shape->dims[d > axis ? d - 1 : d];
    struct tensor *out = kernel_output(call, 0, &packed, err);
    if (!out)
        return false;
    int64_t outer = kernel_span(shape, 0, (int)axis),
            inner = kernel_span(shape, (int)axis, rank);
    for (int64_t o = 0; o < outer; o++)
        for (int i = 0; i < count; i++)
            kernel_copy(out, (o * count + i) * inner, kernel_in(call, i), o * inner, inner);
    return true;
}

/* --- parts --- */

struct parts { /* of an input along an axis */
    struct kernel_call *call;
    const struct tensor *in;
    int axis;
    struct tensor whole; /* the input, where its memory may be given out; else none */
};

/* The counterpart: parts_end(). */
static struct parts parts_begin(struct kernel_call *call, int input, int axis)
{
    struct parts parts = {.call = call, .in = kernel_in(call, input), .axis = axis};
    if (kernel_span(&parts.in->shape, 0, axis) != 1 ||
        !kernel_input_take_apart(call, input, &parts.whole))
        parts.whole = (struct tensor){0};
    return parts;
}

static bool parts_end(struct parts *parts, bool ok)
{
    tensor_release(&parts->whole);
    return ok;
}

/* Output `index` is [begin, begin + size) along the axis. */
static bool take_part(struct parts *parts, int index, int64_t begin, int64_t size,
                      const struct shape *shape, struct error *err)
{
    struct kernel_call *call = parts->call;
    const struct tensor *in = parts->in;
    int axis = parts->axis;
    int64_t outer = kernel_span(&in->shape, 0, axis);
    int64_t inner = kernel_span(&in->shape, axis + 1, in->shape.rank);
    if (parts->whole.buffer &&
        kernel_output_part(call, index, &parts->whole, begin * inner, shape))
        return true;
    struct tensor *out = kernel_output(call, index, shape, err);
    if (!out)
        return false;
    for (int64_t o = 0; o < outer; o++)
        kernel_copy(out, o * size * inner, in, (o * in->shape.dims[axis] + begin) * inner,
                    size * inner);
    return true;
}

static bool unpack_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    int rank = in->shape.rank, count = call->node->outputs_count;
    int64_t axis = node_attr_int(call->node, "axis", 0);
    char text[SHAPE_TEXT_BYTES];
    if (axis < -rank || axis >= rank)
        return fail(err, INVALID, "axis = %lld not in [%d, %d)", (long long)axis, -rank, rank);
    axis += axis < 0 ? rank : 0;
    if (in->shape.dims[axis] != count)
        return fail(err, INVALID, "Input shape axis %lld must equal %d, got shape %s",
                    (long long)axis, count, shape_text(&in->shape, text, sizeof(text)));
    struct shape shape = {.rank = rank - 1};
    for (int d = 0; d < rank - 1; d++)
        shape.dims[d] = in->shape.dims[d < axis ? d : d + 1];
    struct parts parts = parts_begin(call, 0, (int)axis);
    bool ok = true;
    for (int i = 0; ok && i < count; i++)
        ok = take_part(&parts, i, i, 1, &shape, err);
    return parts_end(&parts, ok);
}

/* One element, whatever its shape. */
static bool split_axis(const struct tensor *at, const char *what, int rank, int *axis,
                       struct error *err)
{
    if (at->count != 1)
        return fail(err, INVALID, "%s must have exactly one element.", what);
    int64_t value = tensor_integer(at, 0);
    *axis = (int)(value < 0 ? value + rank : value);
    return (value >= -rank && value < rank) ||
           fail(err, INVALID, "-input rank(-%d) <= split_dim < input rank (%d), but got %lld",
                rank, rank, (long long)value);
}

static bool split_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 1);
    int axis = 0, count = call->node->outputs_count;
    if (kernel_in(call, 0)->shape.rank)
        return fail(err, INVALID, "split_dim must be a scalar but has rank %d",
                    kernel_in(call, 0)->shape.rank);
    if (!split_axis(kernel_in(call, 0), "split_dim", in->shape.rank, &axis, err))
        return false;
    if (in->shape.dims[axis] % count != 0)
        return fail(err, INVALID,
                    "Number of ways to split should evenly divide the split dimension, but got "
                    "split_dim %d (size = %lld) and num_split %d",
                    axis, (long long)in->shape.dims[axis], count);
    struct shape shape = in->shape;
    int64_t size = shape.dims[axis] /= count;
    struct parts parts = parts_begin(call, 1, axis);
    bool ok = true;
    for (int i = 0; ok && i < count; i++)
        ok = take_part(&parts, i, i * size, size, &shape, err);
    return parts_end(&parts, ok);
}

static bool split_v_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0), *sizes = kernel_in(call, 1);
    const struct tensor *split = kernel_in(call, 2);
    int axis = 0, count = call->node->outputs_count, unknown = -1;
    int64_t total = 0, begin = 0;
    if (sizes->shape.rank != 1 || sizes->count != count || in->shape.rank == 0)
        return fail(err, INVALID,
                    "size of the split_tensor must be 1-D and have the same elements as "
                    "outputs got %d -D and %lld elements",
                    sizes->shape.rank, (long long)sizes->count);
    if (!split_axis(split, "split_dim_tensor", in->shape.rank, &axis, err))
        return false;
    for (int i = 0; i < count; i++) {
        int64_t size = tensor_integer(sizes, i);
        if (size < -1 || (size == -1 && unknown >= 0))
            return fail(err, INVALID, "Split size at index %d must be >= 0. Got: %lld", i,
                        (long long)size);
        if (size == -1)
            unknown = i;
        else
            total += size;
    }
    int64_t length = in->shape.dims[axis];
    if (count == 1 && unknown == 0)
        return fail(err, INVALID,
                    "If there is only one output, it must have the same size as the input. "
                    "Input size: %lld output size: -1",
                    (long long)length);
    if (unknown < 0 ? total != length : total > length)
        return fail(err, INVALID,
                    "Determined shape must either match input shape along split_dim exactly "
                    "if fully specified, or be less than the size of the input along split_dim "
                    "if not fully specified.  Got: %lld",
                    (long long)total);
    struct parts parts = parts_begin(call, 0, axis);
    bool ok = true;
    for (int i = 0; ok && i < count; i++) {
        struct shape shape = in->shape;
        int64_t size = i == unknown ? length - total : tensor_integer(sizes, i);
        shape.dims[axis] = size;
        ok = take_part(&parts, i, begin, size, &shape, err);
        begin += size;
    }
    return parts_end(&parts, ok);
}

#define JOIN(name_, run_)                                                                      \
    {                                                                                          \
        .op = name_, .device = CPU, .run = run_                                                \
    }

const struct kernel kernel_concat_v2_ref = JOIN("ConcatV2", concat_v2_run);
const struct kernel kernel_concat_ref = JOIN("Concat", concat_run);
const struct kernel kernel_concat_offset_ref = JOIN("ConcatOffset", concat_offset_run);
const struct kernel kernel_pack_ref = JOIN("Pack", pack_run);
const struct kernel kernel_unpack_ref = JOIN("Unpack", unpack_run);
const struct kernel kernel_split_ref = JOIN("Split", split_run);
const struct kernel kernel_split_v_ref = JOIN("SplitV", split_v_run);
