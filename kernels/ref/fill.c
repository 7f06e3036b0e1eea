/* fill.c - tensors made from a few numbers: fills, ranges, one-hot rows, bands. */

#include "kernels/ref/move.h"

#include <math.h>

/* dims is a vector, or (as old graphs have it) a scalar for a vector of that length; value is a
 * scalar, or has one element. */
static bool fill_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *value = kernel_in(call, 1);
    struct shape shape;
    char text[SHAPE_TEXT_BYTES];
    if (kernel_in(call, 0)->shape.rank > 1)
        return fail(err, INVALID, "dims must represent a vector, got shape %s",
                    shape_text(&kernel_in(call, 0)->shape, text, sizeof(text)));
    if (value->shape.rank != 0 && !(value->shape.rank == 1 && value->count == 1))
        return fail(err, INVALID, "value must represent a scalar, got shape %s",
                    shape_text(&value->shape, text, sizeof(text)));
    if (!kernel_shape_in(call, 0, &shape, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    for (int64_t i = 0; i < out->count; i++)
        kernel_copy(out, i, value, 0, 1);
    return true;
}

static bool zeros_like_run(struct kernel_call *call, struct error *err)
{
    struct tensor *out = kernel_output(call, 0, &kernel_in(call, 0)->shape, err);
    if (!out)
        return false;
    kernel_zero(out, 0, out->count);
    return true;
}

static bool ones_like_run(struct kernel_call *call, struct error *err)
{
    struct tensor *out = kernel_output(call, 0, &kernel_in(call, 0)->shape, err);
    if (!out)
        return false;
    for (int64_t i = 0; i < out->count; i++)
        kernel_set_complex(out, i, 1);
    return true;
}

static bool broadcast_to_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    struct shape shape, both;
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    if (!kernel_shape_in(call, 1, &shape, err))
        return false;
    if (in->shape.rank > shape.rank)
        return fail(err, INVALID,
                    "Rank of input (%d) must be no greater than rank of output shape (%d).",
                    in->shape.rank, shape.rank);
    if (!shape_broadcast(&in->shape, &shape, &both, err))
        return fail(err, INVALID, "Incompatible shapes: %s vs. %s",
                    shape_text(&in->shape, a, sizeof(a)), shape_text(&shape, b, sizeof(b)));
    if (!shape_equal(&both, &shape))
        return fail(err, INVALID,
                    "Unable to broadcast tensor of shape %s to tensor of shape %s",
                    shape_text(&in->shape, a, sizeof(a)), shape_text(&shape, b, sizeof(b)));
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    struct places to = kernel_places(&shape), own = kernel_places(&in->shape), from = {0};
    for (int d = 0; d < in->shape.rank; d++) {
        int place = shape.rank - in->shape.rank + d;
        from.steps[place] = in->shape.dims[d] == 1 ? 0 : own.steps[d];
    }
    kernel_move(out, &to, in, &from, shape.dims, shape.rank);
    return true;
}

/* --- ranges --- */

static bool range_integers(struct kernel_call *call, const int64_t *ends, struct error *err)
{
    int64_t start = ends[0], limit = ends[1], delta = ends[2];
    if ((delta > 0 && start > limit) || (delta < 0 && start < limit))
        return fail(err, INVALID, "Requires start %s limit when delta %s 0: %lld/%lld",
                    delta > 0 ? "<=" : ">=", delta > 0 ? ">" : "<", (long long)start,
                    (long long)limit);
    uint64_t distance =
        delta > 0 ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
    uint64_t step = delta > 0 ? (uint64_t)delta : 0 - (uint64_t)delta;
    uint64_t count = distance / step + (distance % step != 0);
    if (count > INT64_MAX)
        return fail(err, INVALID, "a range of too many numbers");
    struct tensor *out = kernel_output(call, 0, &SHAPE((int64_t)count), err);
    if (!out)
        return false;
    for (int64_t i = 0; i < out->count; i++)
        kernel_store_bits_for(out->dtype)(out->data, i,
                                          (uint64_t)start + (uint64_t)i * (uint64_t)delta);
    return true;
}

/* Numbers are added up one by one in the type, as TensorFlow does: the roundings are the same.
 */
static bool range_floats(struct kernel_call *call, struct error *err)
{
    double start = tensor_number(kernel_in(call, 0), 0);
    double limit = tensor_number(kernel_in(call, 1), 0);
    double delta = tensor_number(kernel_in(call, 2), 0);
    if ((delta > 0 && !(start <= limit)) || (delta < 0 && !(start >= limit)))
        return fail(err, INVALID, "Requires start %s limit when delta %s 0: %g/%g",
                    delta > 0 ? "<=" : ">=", delta > 0 ? ">" : "<", start, limit);
    double count = ceil(fabs((limit - start) / delta));
    if (!(count < 9e18))
        return fail(err, INVALID, "a range of too many numbers");
    struct tensor *out = kernel_output(call, 0, &SHAPE((int64_t)count), err);
    if (!out)
        return false;
    kernel_load *load = kernel_load_for(out->dtype);
    kernel_store *store = kernel_store_for(out->dtype);
    for (int64_t i = 0; i < out->count; i++) {
        store(out->data, i, start);
        start = load(out->data, i) + delta;
    }
    return true;
}

static bool range_run(struct kernel_call *call, struct error *err)
{
    static const char *const names[] = {"start", "limit", "delta"};
    int64_t ends[3];
    bool floats = (DTYPES_FLOAT & BIT(kernel_in(call, 0)->dtype)) != 0;
    for (int i = 0; i < 3; i++) {
        const struct tensor *in = kernel_in(call, i);
        if (in->count != 1 || in->shape.rank > 1)
            return fail(err, INVALID, "%s must be a scalar", names[i]);
        ends[i] = floats ? 0 : tensor_integer(in, 0);
    }
    if (floats ? tensor_number(kernel_in(call, 2), 0) == 0 : ends[2] == 0)
        return fail(err, INVALID, "Requires delta != 0: 0");
    return floats ? range_floats(call, err) : range_integers(call, ends, err);
}

static bool lin_space_run(struct kernel_call *call, struct error *err)
{
    static const char *const names[] = {"start", "stop", "num"};
    char text[SHAPE_TEXT_BYTES];
    for (int i = 0; i < 3; i++)
        if (kernel_in(call, i)->shape.rank != 0)
            return fail(err, INVALID, "%s must be a scalar, not shape %s", names[i],
                        shape_text(&kernel_in(call, i)->shape, text, sizeof(text)));
    int64_t count = tensor_integer(kernel_in(call, 2), 0);
    if (count <= 0)
        return fail(err, INVALID, "Requires num > 0: %lld", (long long)count);
    struct tensor *out = kernel_output(call, 0, &SHAPE(count), err);
    if (!out)
        return false;
    double start = tensor_number(kernel_in(call, 0), 0);
    double stop = tensor_number(kernel_in(call, 1), 0);
    kernel_store *store = kernel_store_for(out->dtype);
    for (int64_t i = 0; i < count; i++)
        store(out->data, i,
              i == count - 1 && count > 1
                  ? stop
                  : start + (double)i * (count > 1 ? (stop - start) / (double)(count - 1) : 0));
    return true;
}

static bool invert_permutation_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    if (in->shape.rank != 1)
        return fail(err, INVALID, "invert_permutation expects a 1D vector.");
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    if (!out)
        return false;
    kernel_store_bits *store = kernel_store_bits_for(out->dtype);
    for (int64_t i = 0; i < out->count; i++)
        store(out->data, i, (uint64_t)-1);
    for (int64_t i = 0; i < in->count; i++) {
        int64_t to = tensor_integer(in, i);
        if (to < 0 || to >= in->count)
            return fail(err, INVALID, "%lld is not between 0 and %lld", (long long)to,
                        (long long)in->count);
        if (tensor_integer(out, to) != -1)
            return fail(err, INVALID, "%lld is duplicated in the input.", (long long)to);
        store(out->data, to, (uint64_t)i);
    }
    return true;
}

/* --- rows with one element on --- */

static bool one_hot_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *indices = kernel_in(call, 0);
    const struct tensor *on = kernel_in(call, 2), *off = kernel_in(call, 3);
    int rank = indices->shape.rank;
    char text[SHAPE_TEXT_BYTES];
    int64_t depth, axis = node_attr_int(call->node, "axis", -1);
    if (axis < -1 || axis > rank || rank == LIMIT_TENSOR_RANK)
        return fail(err, INVALID,
                    "Expected axis to be -1 or between [0, %d).  But received: %lld", rank + 1,
                    (long long)axis);
    static const char *const names[] = {"depth", "on_value", "off_value"};
    for (int i = 0; i < 3; i++)
        if (kernel_in(call, 1 + i)->shape.rank != 0)
            return fail(err, INVALID, "%s must be a scalar, but got: %s", names[i],
                        shape_text(&kernel_in(call, 1 + i)->shape, text, sizeof(text)));
    if (!kernel_scalar(call, 1, "depth", &depth, err))
        return false;
    if (depth < 0)
        return fail(err, INVALID, "depth must be non-negative, got: %lld", (long long)depth);
    axis = axis < 0 ? rank : axis;
    struct shape shape = {.rank = rank + 1};
    for (int d = 0; d <= rank; d++)
        shape.dims[d] = d == axis ? depth : indices->shape.dims[d > axis ? d - 1 : d];
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    int64_t inner = kernel_span(&shape, (int)axis + 1, shape.rank);
    for (int64_t i = 0; i < out->count; i++)
        kernel_copy(out, i, off, 0, 1);
    for (int64_t i = 0; i < indices->count && inner > 0; i++) {
        int64_t index = tensor_integer(indices, i);
        if (index >= 0 && index < depth)
            kernel_copy(out, (i / inner * depth + index) * inner + i % inner, on, 0, 1);
    }
    return true;
}

/* --- matrices cut to a band around the diagonal --- */

static bool band_side(const struct kernel_call *call, int input, const char *name,
                      const char *what, int64_t most, int64_t *value, struct error *err)
{
    const struct tensor *in = kernel_in(call, input);
    char text[SHAPE_TEXT_BYTES];
    if (in->shape.rank != 0)
        return fail(err, INVALID, "%s must be scalar, got shape %s", name,
                    shape_text(&in->shape, text, sizeof(text)));
    *value = tensor_integer(in, 0);
    return *value <= most ||
           fail(err, INVALID,
                "%s must be negative or less or equal to number of %s (%lld) got: %lld", name,
                what, (long long)most, (long long)*value);
}

static bool matrix_band_part_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    int rank = in->shape.rank;
    int64_t lower, upper;
    char text[SHAPE_TEXT_BYTES];
    if (rank < 2)
        return fail(err, INVALID, "input must be at least 2-dim, received shape: %s",
                    shape_text(&in->shape, text, sizeof(text)));
    int64_t rows = in->shape.dims[rank - 2], columns = in->shape.dims[rank - 1];
    if (!band_side(call, 1, "num_lower", "rows", rows, &lower, err) ||
        !band_side(call, 2, "num_upper", "columns", columns, &upper, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    if (!out)
        return false;
    kernel_copy(out, 0, in, 0, in->count);
    for (int64_t i = 0; i < out->count; i++) {
        int64_t row = i / columns % rows, column = i % columns;
        if ((lower >= 0 && row - column > lower) || (upper >= 0 && column - row > upper))
            kernel_zero(out, i, 1);
    }
    return true;
}

/* --- coordinates of what is not zero --- */

/* In bfloat16 the bits decide: numbers below the normal ones are not zero. */
static bool is_set(const struct tensor *in, int64_t i)
{
    if (in->dtype == BF16)
        return (((const uint16_t *)in->data)[i] & 0x7fff) != 0;
    return kernel_complex_at(in, i) != 0;
}

static bool where_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    int rank = in->shape.rank;
    if (rank < 1 || rank > 8)
        return fail(err, INVALID, "WhereOp : Unhandled input dimensions: %d", rank);
    if (in->dtype == F16)
        return fail(
            err, UNIMPLEMENTED,
            "No WhereOp available for float16/half type on CPU; dying in CPU WhereOp to "
            "avoid silently creating costly copies from device.");
    int64_t count = 0, row = 0;
    for (int64_t i = 0; i < in->count; i++)
        count += is_set(in, i);
    struct tensor *out = kernel_output(call, 0, &SHAPE(count, rank), err);
    if (!out)
        return false;
    int64_t *target = out->data;
    for (int64_t i = 0; i < in->count; i++) {
        if (!is_set(in, i))
            continue;
        int64_t rest = i;
        for (int d = rank - 1; d >= 0; d--) {
            target[row * rank + d] = rest % in->shape.dims[d];
            rest /= in->shape.dims[d];
        }
        row++;
    }
    return true;
}

#define FILL(name_, dtypes_, run_)                                                             \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = dtypes_, .run = run_                             \
    }

const struct kernel kernel_fill_ref = FILL("Fill", 0, fill_run);
const struct kernel kernel_zeros_like_ref =
    FILL("ZerosLike", DTYPES_PLAIN | BIT(STRING), zeros_like_run);
const struct kernel kernel_ones_like_ref =
    FILL("OnesLike", DTYPES_NUMBER | BIT(BOOL), ones_like_run);
const struct kernel kernel_broadcast_to_ref = FILL("BroadcastTo", 0, broadcast_to_run);
const struct kernel kernel_range_ref = FILL("Range", 0, range_run);
const struct kernel kernel_lin_space_ref = FILL("LinSpace", 0, lin_space_run);
const struct kernel kernel_invert_permutation_ref =
    FILL("InvertPermutation", 0, invert_permutation_run);
const struct kernel kernel_one_hot_ref = FILL("OneHot", 0, one_hot_run);
const struct kernel kernel_matrix_band_part_ref =
    FILL("MatrixBandPart", DTYPES_PLAIN, matrix_band_part_run);
const struct kernel kernel_where_ref = FILL("Where", DTYPES_NUMBER | BIT(BOOL), where_run);
