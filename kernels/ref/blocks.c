/* blocks.c - blocks of space moved to the batch and back, tensors rolled, patches of images. */

#include "kernels/ref/move.h"
#include "kernels/ref/rules.h"

/* --- space to batch: blocks of the dimensions behind the first --- */

struct blocks {
    int count; /* of dimensions that are cut into blocks */
    int64_t size[LIMIT_TENSOR_RANK];
    int64_t pads[LIMIT_TENSOR_RANK][2]; /* or crops */
    int64_t all;                        /* product of the sizes */
};

/* Block sizes: the attribute block_size for two dimensions, or input 1; pads: the last input.
 */
static bool read_blocks(const struct kernel_call *call, struct blocks *b, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    const struct tensor *pads = kernel_in(call, call->in_count - 1);
    bool attribute = call->in_count == 2, crops = !strncmp(call->node->op->name, "Batch", 5);
    const char *what = crops ? "crops" : "paddings";
    char text[SHAPE_TEXT_BYTES];
    const struct tensor *sizes = attribute ? NULL : kernel_in(call, 1);
    if (attribute && in->shape.rank != 4)
        return fail(err, INVALID, "Input rank should be: 4instead of: %d", in->shape.rank);
    if (sizes && sizes->shape.rank != 1)
        return fail(err, INVALID, "block_shape must be one-dimensional, got rank %d",
                    sizes->shape.rank);
    b->count = attribute ? 2 : (int)sizes->count;
    b->all = 1;
    if (in->shape.rank < 1 + b->count || b->count > LIMIT_TENSOR_RANK)
        return fail(err, INVALID, "input rank should be >= %d instead of %d", 1 + b->count,
                    in->shape.rank);
    if (pads->shape.rank != 2 || pads->shape.dims[0] != b->count || pads->shape.dims[1] != 2)
        return fail(err, INVALID, "%s should have shape [%d, 2] instead of %s", what, b->count,
                    shape_text(&pads->shape, text, sizeof(text)));
    for (int d = 0; d < b->count; d++) {
        b->size[d] =
            attribute ? node_attr_int(call->node, "block_size", 2) : tensor_integer(sizes, d);
        if (b->size[d] < 1 || b->size[d] > INT32_MAX / b->all)
            return fail(err, INVALID,
                        "All values in block_shape must be positive, got value, "
                        "%lld at index %d.",
                        (long long)b->size[d], d);
        b->all *= b->size[d];
        for (int end = 0; end < 2; end++) {
            b->pads[d][end] = tensor_integer(pads, 2 * d + end);
            if (b->pads[d][end] < 0 || b->pads[d][end] > INT32_MAX)
                return fail(err, INVALID, "%s must be non-negative",
                            crops ? "Crops" : "Paddings");
        }
    }
    return true;
}

/*
 * Copies between the whole (batch, space..., rest) and its blocks (block, batch, space / size
 * ..., rest): element by element of the blocks, those in the padding left out.
 */
static void move_blocks(const struct blocks *b, struct tensor *to, const struct tensor *from,
                        const struct shape *whole, const struct shape *parts, bool to_parts)
{
    struct places places = kernel_places(whole);
    int64_t row = kernel_span(whole, 1 + b->count, whole->rank);
    int64_t rows = kernel_span(parts, 0, 1 + b->count);
    for (int64_t i = 0; i < rows; i++) {
        int64_t rest = i, at = 0, block;
        int64_t index[LIMIT_TENSOR_RANK] = {0};
        for (int d = b->count; d >= 0; d--) {
            index[d] = rest % parts->dims[d];
            rest /= parts->dims[d];
        }
        block = index[0] / whole->dims[0];
        at = index[0] % whole->dims[0] * places.steps[0];
        bool inside = true;
        for (int d = b->count - 1; d >= 0; d--) {
            int64_t place = index[1 + d] * b->size[d] + block % b->size[d] - b->pads[d][0];
            block /= b->size[d];
            inside = inside && place >= 0 && place < whole->dims[1 + d];
            at += place * places.steps[1 + d];
        }
        if (inside && to_parts)
            kernel_copy(to, i * row, from, at, row);
        else if (inside)
            kernel_copy(to, at, from, i * row, row);
    }
}

static bool space_to_batch_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    struct blocks b;
    if (!read_blocks(call, &b, err))
        return false;
    struct shape parts = in->shape;
    parts.dims[0] *= b.all;
    for (int d = 0; d < b.count; d++) {
        int64_t padded = in->shape.dims[1 + d] + b.pads[d][0] + b.pads[d][1];
        if (padded % b.size[d] != 0)
            return fail(err, INVALID,
                        "padded_shape[%d]=%lld is not divisible by "
                        "block_shape[%d]=%lld",
                        d, (long long)padded, d, (long long)b.size[d]);
        parts.dims[1 + d] = padded / b.size[d];
    }
    struct tensor *out = kernel_output(call, 0, &parts, err);
    if (!out)
        return false;
    kernel_zero(out, 0, out->count);
    if (out->count > 0 && in->count > 0)
        move_blocks(&b, out, in, &in->shape, &parts, true);
    return true;
}

static bool batch_to_space_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    struct blocks b;
    if (!read_blocks(call, &b, err))
        return false;
    struct shape whole = in->shape;
    if (in->shape.dims[0] % b.all != 0)
        return fail(err, INVALID,
                    "Input batch dimension (%lld) is not divisible by product of block sizes "
                    "(%lld)",
                    (long long)in->shape.dims[0], (long long)b.all);
    whole.dims[0] /= b.all;
    for (int d = 0; d < b.count; d++) {
        whole.dims[1 + d] = in->shape.dims[1 + d] * b.size[d] - b.pads[d][0] - b.pads[d][1];
        if (whole.dims[1 + d] < 0)
            return fail(err, INVALID, "cropped_shape[%d]=%lld must be non-negative", d,
                        (long long)whole.dims[1 + d]);
    }
    struct tensor *out = kernel_output(call, 0, &whole, err);
    if (!out)
        return false;
    if (out->count > 0)
        move_blocks(&b, out, in, &whole, &in->shape, false);
    return true;
}

/* --- rolling: what leaves at one end comes back at the other --- */

static bool roll_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0), *shift = kernel_in(call, 1);
    const struct tensor *axes = kernel_in(call, 2);
    int rank = in->shape.rank;
    int64_t shifts[LIMIT_TENSOR_RANK] = {0};
    char text[SHAPE_TEXT_BYTES];
    if (rank < 1)
        return fail(err, INVALID, "input must be 1-D or higher");
    if (shift->shape.rank > 1)
        return fail(err, INVALID, "shift must be a scalar or a 1-D vector. Found: %s",
                    shape_text(&shift->shape, text, sizeof(text)));
    if (axes->shape.rank > 1)
        return fail(err, INVALID, "axis must be a scalar or a 1-D vector. Found: %s",
                    shape_text(&axes->shape, text, sizeof(text)));
    if (!shape_equal(&shift->shape, &axes->shape))
        return fail(err, INVALID, "shift and axis must have the same size");
    for (int64_t i = 0; i < axes->count; i++) {
        int64_t axis = tensor_integer(axes, i);
        if (axis < -rank || axis >= rank)
            return fail(err, INVALID, "axis %lld is out of range", (long long)axis);
        axis += axis < 0 ? rank : 0;
        int64_t size = in->shape.dims[axis] > 0 ? in->shape.dims[axis] : 1;
        shifts[axis] = ((shifts[axis] + tensor_integer(shift, i) % size) % size + size) % size;
    }
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    if (!out)
        return false;
    struct places places = kernel_places(&in->shape);
    for (int64_t i = 0; i < in->count; i++) {
        int64_t rest = i, at = 0;
        for (int d = rank - 1; d >= 0; d--) {
            at += (rest % in->shape.dims[d] + shifts[d]) % in->shape.dims[d] * places.steps[d];
            rest /= in->shape.dims[d];
        }
        kernel_copy(out, at, in, i, 1);
    }
    return true;
}

/* --- patches: the pixels under each window, one after the other --- */

struct patches {
    int64_t window[2], stride[2], rate[2], before[2], out[2];
};

static bool read_patches(const struct node *node, const struct shape *in, struct patches *p,
                         struct error *err)
{
    static const char *const names[] = {"ksizes", "strides", "rates"};
    bool same = strcmp(node_attr_string(node, "padding", "VALID"), "SAME") == 0;
    char text[SHAPE_TEXT_BYTES];
    for (int i = 0; i < 3; i++) {
        int count; /* 4; what are more TensorFlow does not look at */
        const int64_t *values = node_attr_ints(node, names[i], &count);
        int64_t *to = i == 0 ? p->window : i == 1 ? p->stride : p->rate;
        if (values[0] != 1 || values[3] != 1)
            return fail(err, UNIMPLEMENTED, "Only support %s across space.", names[i]);
        for (int d = 0; d < 2; d++) {
            to[d] = values[1 + d];
            if (to[d] < 1 || to[d] > INT32_MAX)
                return fail(err, OUT_OF_RANGE, "%s is out of range.", names[i]);
        }
    }
    if (in->rank != 4)
        return fail(err, INVALID, "input must be 4-dimensional%s",
                    shape_text(in, text, sizeof(text)));
    for (int d = 0; d < 2; d++) {
        int64_t size = in->dims[1 + d], reach = (p->window[d] - 1) * p->rate[d] + 1;
        struct slide slide = {.size = size,
                              .window = p->window[d],
                              .dilation = p->rate[d],
                              .stride = p->stride[d],
                              .same = same};
        if (!kernel_slide(&slide, &p->out[d], err))
            return false;
        int64_t total = (p->out[d] - 1) * p->stride[d] + reach - size;
        p->before[d] = same && total > 0 ? total / 2 : 0;
    }
    return true;
}

static bool extract_image_patches_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    const int64_t *dims = in->shape.dims;
    struct patches p;
    if (!read_patches(call->node, &in->shape, &p, err))
        return false;
    int64_t per_patch = p.window[0] * p.window[1];
    struct tensor *out = kernel_output(
        call, 0, &SHAPE(dims[0], p.out[0], p.out[1], shape_product(per_patch, dims[3])), err);
    if (!out)
        return false;
    kernel_zero(out, 0, out->count);
    int64_t pixels = out->count ? dims[0] * p.out[0] * p.out[1] * per_patch : 0;
    for (int64_t i = 0; i < pixels; i++) {
        int64_t k = i % per_patch, o = i / per_patch;
        int64_t y =
            o / p.out[1] % p.out[0] * p.stride[0] - p.before[0] + k / p.window[1] * p.rate[0];
        int64_t x = o % p.out[1] * p.stride[1] - p.before[1] + k % p.window[1] * p.rate[1];
        int64_t n = o / (p.out[0] * p.out[1]);
        if (y >= 0 && y < dims[1] && x >= 0 && x < dims[2])
            kernel_copy(out, i * dims[3], in, ((n * dims[1] + y) * dims[2] + x) * dims[3],
                        dims[3]);
    }
    return true;
}

/* --- a shape that is promised, and checked --- */

/* What gives it; of what is fed TensorFlow's servers name what receives it. */
static const char *input_name(const struct node *node, char *name, size_t size)
{
    static const char fed[] = "_arg_";
    const struct edge *edge = &node->inputs[0];
    const char *from = edge->from->name;
    if (strncmp(from, fed, strlen(fed)) == 0)
        snprintf(name, size, "_recv_%s", from + strlen(fed));
    else if (edge->output)
        snprintf(name, size, "%s:%d", from, edge->output);
    else
        snprintf(name, size, "%s", from);
    return name;
}

static bool ensure_shape_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    const struct shape *promised = node_attr_shape(call->node, "shape");
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES], name[300];
    if (promised && !shape_compatible(promised, &in->shape))
        return fail(err, INVALID,
                    "Shape of tensor %s %s is not compatible with expected shape %s.",
                    input_name(call->node, name, sizeof(name)),
                    shape_text(&in->shape, a, sizeof(a)), shape_text(promised, b, sizeof(b)));
    kernel_output_share(call, 0, in, &in->shape);
    return true;
}

static bool snapshot_run(struct kernel_call *call, struct error *err)
{
    (void)err;
    kernel_output_share(call, 0, kernel_in(call, 0), &kernel_in(call, 0)->shape);
    return true;
}

#define BLOCKS(name_, dtypes_, run_)                                                           \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = dtypes_, .run = run_                             \
    }

const struct kernel kernel_space_to_batch_ref =
    BLOCKS("SpaceToBatch", DTYPES_REAL, space_to_batch_run);
const struct kernel kernel_space_to_batch_nd_ref =
    BLOCKS("SpaceToBatchND", DTYPES_REAL, space_to_batch_run);
const struct kernel kernel_batch_to_space_ref =
    BLOCKS("BatchToSpace", DTYPES_REAL, batch_to_space_run);
const struct kernel kernel_batch_to_space_nd_ref =
    BLOCKS("BatchToSpaceND", DTYPES_REAL, batch_to_space_run);
const struct kernel kernel_roll_ref = BLOCKS(
    "Roll", DTYPES_NUMBER | BIT(BOOL) | BIT(STRING) | BIT(RESOURCE) | BIT(VARIANT), roll_run);
const struct kernel kernel_extract_image_patches_ref =
    BLOCKS("ExtractImagePatches", DTYPES_NUMBER, extract_image_patches_run);
const struct kernel kernel_ensure_shape_ref = BLOCKS("EnsureShape", 0, ensure_shape_run);
const struct kernel kernel_snapshot_ref = BLOCKS("Snapshot", 0, snapshot_run);
const struct kernel kernel_guarantee_const_ref = BLOCKS("GuaranteeConst", 0, snapshot_run);
