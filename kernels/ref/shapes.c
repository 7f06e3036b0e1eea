/* shapes.c - shapes as values, and the same elements under another shape. */

#include "kernels/ref/numbers.h"

/* --- shapes as values --- */

static void set_integer(struct tensor *tensor, int64_t index, int64_t value)
{
    kernel_store_bits_for(tensor->dtype)(tensor->data, index, (uint64_t)value);
}

static bool shape_run(struct kernel_call *call, struct error *err)
{
    for (int i = 0; i < call->node->outputs_count; i++) {
        const struct shape *shape = &kernel_in(call, i)->shape;
        struct tensor *out = kernel_output(call, i, &SHAPE(shape->rank), err);
        if (!out)
            return false;
        for (int d = 0; d < shape->rank; d++)
            set_integer(out, d, shape->dims[d]);
    }
    return true;
}

static bool size_run(struct kernel_call *call, struct error *err)
{
    struct tensor *out = kernel_output(call, 0, &SHAPE_SCALAR, err);
    if (!out)
        return false;
    set_integer(out, 0, kernel_in(call, 0)->count);
    return true;
}

static bool rank_run(struct kernel_call *call, struct error *err)
{
    struct tensor *out = kernel_output(call, 0, &SHAPE_SCALAR, err);
    if (!out)
        return false;
    set_integer(out, 0, kernel_in(call, 0)->shape.rank);
    return true;
}

/* Both shape inputs, and what they broadcast to. */
static bool two_shapes(const struct kernel_call *call, struct shape *shapes, struct shape *both,
                       struct error *err)
{
    for (int i = 0; i < 2; i++) {
        if (kernel_in(call, i)->shape.rank != 1)
            return fail(err, INVALID, "In[%d] must be a vector.", i);
        if (!kernel_shape_in(call, i, &shapes[i], err))
            return false;
    }
    return shape_broadcast(&shapes[0], &shapes[1], both, err);
}

static bool broadcast_args_run(struct kernel_call *call, struct error *err)
{
    struct shape shapes[2], both;
    if (!two_shapes(call, shapes, &both, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &SHAPE(both.rank), err);
    if (!out)
        return false;
    for (int d = 0; d < both.rank; d++)
        set_integer(out, d, both.dims[d]);
    return true;
}

/*
 * The axes along which each side was repeated.  Where both are 1 there is nothing to repeat,
 * but TensorFlow names the axis on both sides unless the shapes are equal.
 */
static bool broadcast_gradient_args_run(struct kernel_call *call, struct error *err)
{
    struct shape shapes[2], both;
    if (!two_shapes(call, shapes, &both, err))
        return false;
    bool equal = shape_equal(&shapes[0], &shapes[1]);
    for (int i = 0; i < 2; i++) {
        int64_t axes[LIMIT_TENSOR_RANK];
        int count = 0;
        for (int d = 0; d < both.rank && !equal; d++) {
            int own = d - (both.rank - shapes[i].rank);
            if (own < 0 || shapes[i].dims[own] == 1)
                axes[count++] = d;
        }
        struct tensor *out = kernel_output(call, i, &SHAPE(count), err);
        if (!out)
            return false;
        for (int k = 0; k < count; k++)
            set_integer(out, k, axes[k]);
    }
    return true;
}

/* --- the same elements --- */

/* The one size of -1 follows from the others; of an empty tensor from the sizes that are not 0.
 */
static bool fill_in_unknown(const struct tensor *in, struct shape *shape, struct error *err)
{
    int unknown = -1;
    int64_t known = 1;
    bool has_zero = false;
    for (int d = 0; d < shape->rank; d++) {
        if (shape->dims[d] < -1)
            return fail(err, INVALID, "Size %d must be non-negative, not %lld", d,
                        (long long)shape->dims[d]);
        if (shape->dims[d] == -1) {
            if (unknown >= 0)
                return fail(err, INVALID, "Only one input size may be -1, not both %d and %d",
                            unknown, d);
            unknown = d;
        } else if (shape->dims[d] == 0) {
            has_zero = true;
        } else if (__builtin_mul_overflow(known, shape->dims[d], &known)) {
            return fail(err, INVALID, "a shape with too many elements");
        }
    }
    if (unknown >= 0 && has_zero) {
        int64_t sizes = 1;
        for (int d = 0; d < in->shape.rank; d++)
            sizes *= in->shape.dims[d] ? in->shape.dims[d] : 1;
        shape->dims[unknown] = in->count ? 0 : sizes / known;
    } else if (unknown >= 0) {
        if (in->count % known != 0)
            return fail(
                err, INVALID,
                "Input to reshape is a tensor with %lld values, but the requested shape "
                "requires a multiple of %lld",
                (long long)in->count, (long long)known);
        shape->dims[unknown] = in->count / known;
    }
    if (shape_count(shape) == in->count)
        return true;
    return fail(err, INVALID,
                "Input to reshape is a tensor with %lld values, but the requested shape has "
                "%lld",
                (long long)in->count, (long long)shape_count(shape));
}

static bool reshape_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0), *sizes = kernel_in(call, 1);
    struct shape shape;
    char text[SHAPE_TEXT_BYTES];
    if (sizes->shape.rank > 1)
        return fail(err, INVALID, "sizes input must be 1-D, not %s",
                    shape_text(&sizes->shape, text, sizeof(text)));
    if (sizes->count > LIMIT_TENSOR_RANK)
        return fail(err, INVALID, "a shape of %lld dimensions, at most %d",
                    (long long)sizes->count, LIMIT_TENSOR_RANK);
    shape.rank = (int)sizes->count;
    for (int d = 0; d < shape.rank; d++)
        shape.dims[d] = tensor_integer(sizes, d);
    if (!fill_in_unknown(in, &shape, err))
        return false;
    kernel_output_share(call, 0, in, &shape);
    return true;
}

static bool squeeze_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    int count, rank = in->shape.rank;
    const int64_t *dims = node_attr_ints(call->node, "squeeze_dims", &count);
    uint64_t dropped = 0;
    for (int i = 0; i < count; i++) {
        int64_t d = dims[i] < 0 ? dims[i] + rank : dims[i];
        if (d < 0 || d >= rank)
            return fail(err, INVALID,
                        "Tried to squeeze dim index %lld for tensor with %d dimensions.",
                        (long long)dims[i], rank);
        if (in->shape.dims[d] != 1)
            return fail(err, INVALID,
                        "Can not squeeze dim[%lld], expected a dimension of 1, got %lld",
                        (long long)d, (long long)in->shape.dims[d]);
        dropped |= BIT(d);
    }
    struct shape shape = {.rank = 0};
    for (int d = 0; d < rank; d++) {
        bool drop = count ? (dropped & BIT(d)) != 0 : in->shape.dims[d] == 1;
        if (!drop)
            shape.dims[shape.rank++] = in->shape.dims[d];
    }
    kernel_output_share(call, 0, in, &shape);
    return true;
}

static bool expand_dims_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0), *dim = kernel_in(call, 1);
    int rank = in->shape.rank;
    if (dim->count != 1)
        return fail(err, INVALID, "'dim' must be a tensor with a single value");
    int64_t axis = tensor_integer(dim, 0);
    if (axis < -1 - rank || axis > rank || rank == LIMIT_TENSOR_RANK)
        return fail(err, INVALID,
                    "Tried to expand dim index %lld for tensor with %d dimensions.",
                    (long long)axis, rank);
    axis += axis < 0 ? rank + 1 : 0;
    struct shape shape = {.rank = rank + 1};
    for (int d = 0; d <= rank; d++)
        shape.dims[d] = d == axis ? 1 : in->shape.dims[d > axis ? d - 1 : d];
    kernel_output_share(call, 0, in, &shape);
    return true;
}

static bool bitcast_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    size_t from = dtype_size(in->dtype), to = dtype_size(call->node->output_types[0]);
    struct shape shape = in->shape;
    if (from > to) {
        if (!kernel_append_dims(&shape, &SHAPE((int64_t)(from / to)), 0, err))
            return false;
    } else if (from < to) {
        if (shape.rank == 0 || shape.dims[shape.rank - 1] != (int64_t)(to / from))
            return fail(err, INVALID, "Cannot bitcast from %d to %d", (int)in->dtype,
                        call->node->output_types[0]);
        shape.rank--;
    }
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    memcpy(out->data, in->data, (size_t)in->count * from);
    return true;
}

#define SHAPES(name_, run_)                                                                    \
    {                                                                                          \
        .op = name_, .device = CPU, .run = run_                                                \
    }

const struct kernel kernel_shape_ref = SHAPES("Shape", shape_run);
const struct kernel kernel_shape_n_ref = SHAPES("ShapeN", shape_run);
const struct kernel kernel_size_ref = SHAPES("Size", size_run);
const struct kernel kernel_rank_ref = SHAPES("Rank", rank_run);
const struct kernel kernel_broadcast_args_ref = SHAPES("BroadcastArgs", broadcast_args_run);
const struct kernel kernel_broadcast_gradient_args_ref =
    SHAPES("BroadcastGradientArgs", broadcast_gradient_args_run);
const struct kernel kernel_reshape_ref = SHAPES("Reshape", reshape_run);
const struct kernel kernel_squeeze_ref = SHAPES("Squeeze", squeeze_run);
const struct kernel kernel_expand_dims_ref = SHAPES("ExpandDims", expand_dims_run);
const struct kernel kernel_bitcast_ref = SHAPES("Bitcast", bitcast_run);
