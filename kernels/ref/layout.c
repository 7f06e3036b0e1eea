/* layout.c - the same elements in another order, repeated or padded. */

#include "kernels/ref/move.h"
#include "kernels/ref/sums.h"

static bool check_order(const struct tensor *order, int rank, struct error *err)
{
    char text[SHAPE_TEXT_BYTES];
    if (order->shape.rank != 1)
        return fail(err, INVALID, "perm must be rank 1, got shape %s",
                    shape_text(&order->shape, text, sizeof(text)));
    return order->count == rank ||
           fail(err, INVALID,
                "transpose expects a vector of size %d. But input(1) is a vector of size %lld",
                rank, (long long)order->count);
}

bool kernel_transposed(const struct kernel_call *call, struct shape *shape, struct places *from,
                       struct error *err)
{
    const struct tensor *in = kernel_in(call, 0), *order = kernel_in(call, 1);
    int rank = in->shape.rank;
    if (!check_order(order, rank, err))
        return false;
    struct places own = kernel_places(&in->shape);
    uint64_t seen = 0;
    *shape = (struct shape){.rank = rank};
    *from = (struct places){0};
    for (int d = 0; d < rank; d++) {
        int64_t axis = tensor_integer(order, d);
        axis += axis < 0 ? rank : 0;
        if (axis < 0 || axis >= rank)
            return fail(err, INVALID, "%lld is out of range [0 .. %d)", (long long)axis, rank);
        seen |= BIT(axis);
        shape->dims[d] = in->shape.dims[axis];
        from->steps[d] = own.steps[axis];
    }
    for (int d = 0; d < rank; d++)
        if (!(seen & BIT(d)))
            return fail(err, INVALID, "%d is missing from the permutation of %d dimensions", d,
                        rank);
    return true;
}

static bool transpose_run(struct kernel_call *call, struct error *err)
{
    struct shape shape;
    struct places from;
    struct tensor *out = NULL;
    if (kernel_transposed(call, &shape, &from, err))
        out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    struct places to = kernel_places(&shape);
    kernel_move(out, &to, kernel_in(call, 0), &from, shape.dims, shape.rank);
    return true;
}

/* Each dimension as (repeats, size), repeats having no step in the input. */
static bool tile_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0), *multiples = kernel_in(call, 1);
    int rank = in->shape.rank;
    char text[SHAPE_TEXT_BYTES];
    if (multiples->shape.rank != 1)
        return fail(err, INVALID, "Expected multiples to be 1-D, but got shape %s",
                    shape_text(&multiples->shape, text, sizeof(text)));
    if (multiples->count != rank)
        return fail(err, INVALID,
                    "Expected multiples argument to be a vector of length %d but got "
                    "length %lld",
                    rank, (long long)multiples->count);
    struct shape shape = {.rank = rank};
    for (int d = 0; d < rank; d++) {
        int64_t times = tensor_integer(multiples, d);
        if (times < 0)
            return fail(err, INVALID, "Expected multiples[%d] >= 0, but got %lld", d,
                        (long long)times);
        if (__builtin_mul_overflow(in->shape.dims[d], times, &shape.dims[d]))
            return fail(err, INVALID, "multiples[%d] is too large: %lld", d, (long long)times);
    }
    const uint64_t without = DTYPES_QUANTIZED | BIT(U16);
    if (shape_count(&shape) > 0 && !shape_equal(&shape, &in->shape) &&
        (BIT(in->dtype) & without))
        return fail(err, UNIMPLEMENTED,
                    "TileOp : The input data type is not supported, DataType : %s, "
                    "Dimension : %d",
                    dtype_name(in->dtype), rank);
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    int64_t dims[2 * LIMIT_TENSOR_RANK];
    struct places own = kernel_places(&in->shape), target = kernel_places(&shape), to = {0},
                  from = {0};
    for (int d = 0; d < rank; d++) {
        dims[2 * d] = tensor_integer(multiples, d);
        dims[2 * d + 1] = in->shape.dims[d];
        to.steps[2 * d] = target.steps[d] * in->shape.dims[d];
        to.steps[2 * d + 1] = target.steps[d];
        from.steps[2 * d + 1] = own.steps[d];
    }
    kernel_move(out, &to, in, &from, dims, 2 * rank);
    return true;
}

/* --- padding --- */

/* Shape with paddings added; a row (before, after) per dimension. */
static bool padded_shape(const struct kernel_call *call, struct shape *shape, struct error *err)
{
    const char *between = strcmp(call->node->op->name, "MirrorPad") ? " " : ", ";
    const struct tensor *in = kernel_in(call, 0), *paddings = kernel_in(call, 1);
    int rank = in->shape.rank;
    char text[SHAPE_TEXT_BYTES], of_input[SHAPE_TEXT_BYTES];
    shape_text(&paddings->shape, text, sizeof(text));
    if (paddings->shape.rank != 2 || paddings->shape.dims[1] != 2)
        return fail(err, INVALID, "paddings must be a matrix with 2 columns: %s", text);
    if (paddings->shape.dims[0] != rank)
        return fail(err, INVALID,
                    "The first dimension of paddings must be the rank of inputs%s%s%s", text,
                    between, shape_text(&in->shape, of_input, sizeof(of_input)));
    shape->rank = rank;
    for (int d = 0; d < rank; d++) {
        int64_t before = tensor_integer(paddings, 2 * d),
                after = tensor_integer(paddings, 2 * d + 1);
        if (before < 0 || after < 0)
            return fail(err, INVALID, "Paddings must be non-negative: %lld %lld",
                        (long long)before, (long long)after);
        if (__builtin_add_overflow(in->shape.dims[d], before, &shape->dims[d]) ||
            __builtin_add_overflow(shape->dims[d], after, &shape->dims[d]))
            return fail(err, INVALID, "Paddings are too large: %lld %lld", (long long)before,
                        (long long)after);
    }
    return true;
}

static bool pad_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0), *paddings = kernel_in(call, 1);
    const struct tensor *value = call->in_count > 2 ? kernel_in(call, 2) : NULL;
    struct shape shape;
    char text[SHAPE_TEXT_BYTES];
    if (value && value->shape.rank != 0)
        return fail(err, INVALID, "constant_values must be a scalar. Found: %s",
                    shape_text(&value->shape, text, sizeof(text)));
    if (!padded_shape(call, &shape, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    if (value)
        for (int64_t i = 0; i < out->count; i++)
            kernel_copy(out, i, value, 0, 1);
    else
        kernel_zero(out, 0, out->count);
    struct places to = kernel_places(&shape), from = kernel_places(&in->shape);
    for (int d = 0; d < shape.rank; d++)
        to.start += tensor_integer(paddings, 2 * d) * to.steps[d];
    kernel_move(out, &to, in, &from, in->shape.dims, shape.rank);
    return true;
}

/* The place within [0, size) that `at`, counted from the first inner element, mirrors. */
static int64_t mirrored(int64_t at, int64_t size, bool symmetric)
{
    if (at < 0)
        return symmetric ? -at - 1 : -at;
    if (at >= size)
        return symmetric ? 2 * size - 1 - at : 2 * size - 2 - at;
    return at;
}

/* Index of the inner element that element `index` of the padded tensor shows. */
static int64_t mirror_source(const struct shape *padded, const struct shape *inner,
                             const struct tensor *paddings, bool symmetric, int64_t index)
{
    int64_t source = 0, step = 1;
    for (int d = padded->rank - 1; d >= 0; d--) {
        int64_t at = index % padded->dims[d] - tensor_integer(paddings, 2 * d);
        index /= padded->dims[d];
        source += mirrored(at, inner->dims[d], symmetric) * step;
        step *= inner->dims[d];
    }
    return source;
}

/* No padding is longer than what there is to mirror, the dimension `of` what it is. */
static bool check_mirror(const struct shape *inner, const struct tensor *paddings,
                         bool symmetric, const char *of, struct error *err)
{
    for (int d = 0; d < inner->rank; d++)
        for (int i = 0; i < 2; i++) {
            int64_t padding = tensor_integer(paddings, 2 * d + i);
            if (padding < 0 || padding > inner->dims[d] - !symmetric)
                return fail(
                    err, INVALID,
                    symmetric ? "paddings must be no greater than the %sdimension size: "
                                "%lld, %lld greater than %lld"
                              : "paddings must be less than the %sdimension size: %lld, "
                                "%lld not less than %lld",
                    of, (long long)tensor_integer(paddings, 2 * d),
                    (long long)tensor_integer(paddings, 2 * d + 1), (long long)inner->dims[d]);
        }
    return true;
}

static bool is_symmetric(const struct node *node)
{
    return strcmp(node_attr_string(node, "mode", "REFLECT"), "SYMMETRIC") == 0;
}

static bool mirror_pad_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0), *paddings = kernel_in(call, 1);
    bool symmetric = is_symmetric(call->node);
    struct shape shape;
    if (!padded_shape(call, &shape, err) ||
        !check_mirror(&in->shape, paddings, symmetric, "", err))
        return false;
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    for (int64_t i = 0; i < out->count; i++)
        kernel_copy(out, i, in, mirror_source(&shape, &in->shape, paddings, symmetric, i), 1);
    return true;
}

static bool mirror_pad_grad_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *grad = kernel_in(call, 0), *paddings = kernel_in(call, 1);
    bool symmetric = is_symmetric(call->node);
    struct shape inner = grad->shape;
    char text[SHAPE_TEXT_BYTES], of[SHAPE_TEXT_BYTES];
    shape_text(&paddings->shape, text, sizeof(text));
    if (paddings->shape.rank != 2 || paddings->shape.dims[1] != 2)
        return fail(err, INVALID, "paddings must be a matrix with 2 columns: %s", text);
    if (paddings->shape.dims[0] != inner.rank)
        return fail(err, INVALID,
                    "The first dimension of paddings must be the rank of inputs%s %s", text,
                    shape_text(&grad->shape, of, sizeof(of)));
    for (int d = 0; d < inner.rank; d++) {
        int64_t before = tensor_integer(paddings, 2 * d),
                after = tensor_integer(paddings, 2 * d + 1);
        if (before < 0 || after < 0)
            return fail(err, INVALID, "Paddings must be non-negative: %lld, %lld",
                        (long long)before, (long long)after);
        if (before >= inner.dims[d] || after >= inner.dims[d] - before)
            return fail(err, INVALID,
                        "Total paddings must be less than the input dimension size: %lld was "
                        "not less than %lld",
                        (long long)shape_sum(before, after), (long long)inner.dims[d]);
        inner.dims[d] -= before + after;
    }
    if (!check_mirror(&inner, paddings, symmetric, "output ", err))
        return false;
    struct tensor *out = kernel_output(call, 0, &inner, err);
    struct sums sums;
    if (!kernel_sums_init(call, out, &sums, err))
        return false;
    for (int64_t i = 0; i < grad->count; i++)
        kernel_sums_add(&sums, mirror_source(&grad->shape, &inner, paddings, symmetric, i),
                        grad, i, 1);
    kernel_sums_write(out, &sums);
    return true;
}

/* --- reversal --- */

static bool reverse_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0), *axes = kernel_in(call, 1);
    int rank = in->shape.rank;
    uint64_t seen = 0;
    if (rank > 0 && axes->shape.rank != 1)
        return fail(err, INVALID, "'dims' must be 1-dimension, not %d", axes->shape.rank);
    struct places from = kernel_places(&in->shape);
    if (rank == 0 || in->count == 0) { /* as it is, whatever the axes */
        kernel_output_share(call, 0, in, &in->shape);
        return true;
    }
    for (int64_t i = 0; i < axes->count; i++) {
        int64_t axis = tensor_integer(axes, i);
        axis += axis < 0 ? rank : 0;
        if (axis < 0 || axis >= rank)
            return fail(err, INVALID, "'axis'[%lld] = %lld is out of valid range [0, %d",
                        (long long)i, (long long)tensor_integer(axes, i), rank - 1);
        if (seen & BIT(axis))
            return fail(err, INVALID, "axis %lld specified more than once.", (long long)axis);
        seen |= BIT(axis);
        from.start += from.steps[axis] * (in->shape.dims[axis] - 1);
        from.steps[axis] = -from.steps[axis];
    }
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    if (!out)
        return false;
    struct places to = kernel_places(&in->shape);
    kernel_move(out, &to, in, &from, in->shape.dims, rank);
    return true;
}

static bool reverse_sequence_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0), *lengths = kernel_in(call, 1);
    int rank = in->shape.rank;
    int64_t seq = node_attr_int(call->node, "seq_dim", 0);
    int64_t batch = node_attr_int(call->node, "batch_dim", 0);
    if (batch < 0)
        return fail(err, INVALID, "Invalid batch_dim %lld", (long long)batch);
    if (seq < 0)
        return fail(err, INVALID, "Invalid seq_dim %lld", (long long)seq);
    if (lengths->shape.rank != 1)
        return fail(err, INVALID, "seq_lengths must be 1-dim, not %d", lengths->shape.rank);
    if (batch >= rank)
        return fail(err, INVALID, "batch_dim must be < input rank ( %lld vs. %d)",
                    (long long)batch, rank);
    if (seq >= rank)
        return fail(err, INVALID, "seq_dim must be < input rank ( %lld vs. %d)", (long long)seq,
                    rank);
    if (batch == seq)
        return fail(err, INVALID, "batch_dim == seq_dim == %lld", (long long)seq);
    if (lengths->count != in->shape.dims[batch])
        return fail(err, INVALID, "Length of seq_lengths != input.dims(%lld), (%lld vs. %lld)",
                    (long long)batch, (long long)lengths->count,
                    (long long)in->shape.dims[batch]);
    for (int64_t i = 0; i < lengths->count; i++) {
        int64_t length = tensor_integer(lengths, i);
        if (length < 0 || length > in->shape.dims[seq])
            return length < 0 ? fail(err, INVALID, "seq_lens(%lld) < 0", (long long)i)
                              : fail(err, INVALID, "seq_lens(%lld) > input.dims(%lld)",
                                     (long long)i, (long long)seq);
    }
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    if (!out)
        return false;
    struct places places = kernel_places(&in->shape);
    for (int64_t i = 0; i < in->count; i++) {
        int64_t b = i / places.steps[batch] % in->shape.dims[batch];
        int64_t s = i / places.steps[seq] % in->shape.dims[seq];
        int64_t length = tensor_integer(lengths, b);
        int64_t source = s < length ? length - 1 - s : s;
        kernel_copy(out, i, in, i + (source - s) * places.steps[seq], 1);
    }
    return true;
}

/* --- blocks of pixels into channels and back (NHWC) --- */

#define BLOCK_MAX 32768 /* its square fits into 32 bits */

static bool is_nhwc(const struct node *node)
{
    return !strcmp(node_attr_string(node, "data_format", "NHWC"), "NHWC");
}

static bool block_moves(struct kernel_call *call, bool to_depth, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    int64_t b = node_attr_int(call->node, "block_size", 2);
    if (in->shape.rank != 4)
        return fail(err, INVALID,
                    to_depth ? "Input rank should be 4 instead of %d"
                             : "Input rank should be: 4 instead of: %d",
                    in->shape.rank);
    if (b < 2 || b > BLOCK_MAX)
        return fail(err, INVALID, "Block size should be > 1 and at most %d, but was: %lld",
                    BLOCK_MAX, (long long)b);
    int64_t n = in->shape.dims[0], y = in->shape.dims[1], x = in->shape.dims[2],
            c = in->shape.dims[3];
    if (!to_depth && c % (b * b) != 0)
        return fail(err, INVALID, "Input depth dimension %lld should be divisible by: %lld",
                    (long long)c, (long long)(b * b));
    if (to_depth ? y % b != 0 || x % b != 0 : c % (b * b) != 0)
        return fail(err, INVALID,
                    "Image width %lld and height %lld should be divisible by block_size: %lld",
                    (long long)x, (long long)y, (long long)b);
    struct shape shape =
        to_depth ? SHAPE(n, y / b, x / b, c * b * b) : SHAPE(n, y * b, x * b, c / (b * b));
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    /* The image with pixels, as (n, y, by, x, bx, c); the other holds (n, y, x, by, bx, c). */
    int64_t rows = to_depth ? y / b : y, columns = to_depth ? x / b : x;
    int64_t depth = to_depth ? c : c / (b * b);
    int64_t dims[6] = {n, rows, columns, b, b, depth};
    struct places blocks = kernel_places(&SHAPE(n, rows, columns, b, b, depth));
    struct places pixels = {.steps = {rows * b * columns * b * depth, b * columns * b * depth,
                                      b * depth, columns * b * depth, depth, 1}};
    kernel_move(out, to_depth ? &blocks : &pixels, in, to_depth ? &pixels : &blocks, dims, 6);
    return true;
}

static bool space_to_depth_run(struct kernel_call *call, struct error *err)
{
    return block_moves(call, true, err);
}

static bool depth_to_space_run(struct kernel_call *call, struct error *err)
{
    return block_moves(call, false, err);
}

#define LAYOUT(name_, run_)                                                                    \
    {                                                                                          \
        .op = name_, .device = CPU, .run = run_                                                \
    }

const struct kernel kernel_transpose_ref = LAYOUT("Transpose", transpose_run);
const struct kernel kernel_tile_ref = LAYOUT("Tile", tile_run);
const struct kernel kernel_pad_ref = LAYOUT("Pad", pad_run);
const struct kernel kernel_pad_v2_ref = LAYOUT("PadV2", pad_run);
const struct kernel kernel_mirror_pad_ref = LAYOUT("MirrorPad", mirror_pad_run);
const struct kernel kernel_mirror_pad_grad_ref = LAYOUT("MirrorPadGrad", mirror_pad_grad_run);
const struct kernel kernel_reverse_v2_ref = LAYOUT("ReverseV2", reverse_run);
const struct kernel kernel_reverse_sequence_ref =
    LAYOUT("ReverseSequence", reverse_sequence_run);
const struct kernel kernel_space_to_depth_ref = {
    .op = "SpaceToDepth", .device = CPU, .accepts = is_nhwc, .run = space_to_depth_run};
const struct kernel kernel_depth_to_space_ref = {
    .op = "DepthToSpace", .device = CPU, .accepts = is_nhwc, .run = depth_to_space_run};
