/* slice.c - parts of tensors, by begin and size or by begin, end and step with masks. */

#include "kernels/ref/move.h"

static bool slice_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    const struct tensor *begin = kernel_in(call, 1), *size = kernel_in(call, 2);
    int rank = in->shape.rank;
    char a[SHAPE_TEXT_BYTES], b_text[SHAPE_TEXT_BYTES];
    if (begin->shape.rank != 1 || size->shape.rank != 1 || begin->count != rank ||
        size->count != rank)
        return fail(err, INVALID,
                    "Expected begin and size arguments to be 1-D tensors of size %d, but got "
                    "shapes %s and %s instead.",
                    rank, shape_text(&begin->shape, a, sizeof(a)),
                    shape_text(&size->shape, b_text, sizeof(b_text)));
    struct shape shape = {.rank = rank};
    struct places from = kernel_places(&in->shape);
    for (int d = 0; d < rank; d++) {
        int64_t b = tensor_integer(begin, d), s = tensor_integer(size, d);
        if (b < 0 || b > in->shape.dims[d])
            return fail(err, INVALID, "Expected begin[%d] in [0, %lld], but got %lld", d,
                        (long long)in->shape.dims[d], (long long)b);
        if (s == -1)
            s = in->shape.dims[d] - b;
        if (s < 0 || s > in->shape.dims[d] - b)
            return fail(err, INVALID, "Expected size[%d] in [0, %lld], but got %lld", d,
                        (long long)(in->shape.dims[d] - b), (long long)s);
        shape.dims[d] = s;
        from.start += b * from.steps[d];
    }
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    struct places to = kernel_places(&shape);
    kernel_move(out, &to, in, &from, shape.dims, rank);
    return true;
}

/* --- begin, end, step, masks --- */

/* Masks are per entry of the specification; an ellipsis stands for the dimensions left over. */
struct spec {
    int64_t begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask;
    const struct tensor *begin, *end, *step;
    int count;
};

static bool spec_read(const struct kernel_call *call, int first, struct spec *spec,
                      struct error *err)
{
    const struct node *node = call->node;
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES], c[SHAPE_TEXT_BYTES];
    spec->begin = kernel_in(call, first);
    spec->end = kernel_in(call, first + 1);
    spec->step = kernel_in(call, first + 2);
    spec->begin_mask = node_attr_int(node, "begin_mask", 0);
    spec->end_mask = node_attr_int(node, "end_mask", 0);
    spec->ellipsis_mask = node_attr_int(node, "ellipsis_mask", 0);
    spec->new_axis_mask = node_attr_int(node, "new_axis_mask", 0);
    spec->shrink_axis_mask = node_attr_int(node, "shrink_axis_mask", 0);
    spec->count = (int)spec->begin->count;
    if (spec->begin->shape.rank != 1 || spec->begin->count > 32 ||
        !shape_equal(&spec->begin->shape, &spec->end->shape) ||
        !shape_equal(&spec->begin->shape, &spec->step->shape))
        return fail(err, INVALID,
                    "Expected begin, end, and strides to be 1D equal size tensors, but got "
                    "shapes %s, %s, and %s instead.",
                    shape_text(&spec->begin->shape, a, sizeof(a)),
                    shape_text(&spec->end->shape, b, sizeof(b)),
                    shape_text(&spec->step->shape, c, sizeof(c)));
    if ((uint64_t)spec->ellipsis_mask & ((uint64_t)spec->ellipsis_mask - 1))
        return fail(err, INVALID, "Multiple ellipses in slice spec not allowed");
    return true;
}

/* New axes may make more dimensions than a shape has. */
static bool add_dim(struct strided *out, int64_t size, struct error *err)
{
    if (out->shape.rank == LIMIT_TENSOR_RANK)
        return fail(err, INVALID, "too many new axes: more than %d dimensions",
                    LIMIT_TENSOR_RANK);
    out->shape.dims[out->shape.rank++] = size;
    return true;
}

/* One dimension of the input under one entry: [begin, end) by step, cut to the size. */
static bool apply_entry(const struct spec *spec, int entry, int d, const struct shape *in,
                        struct strided *out, struct error *err)
{
    int64_t size = in->dims[d], step = tensor_integer(spec->step, entry);
    int64_t begin = tensor_integer(spec->begin, entry), end = tensor_integer(spec->end, entry);
    bool shrink = (spec->shrink_axis_mask >> entry) & 1;
    if (step == 0)
        return fail(err, INVALID, "strides[%d] must be non-zero", entry);
    if (shrink && step < 0)
        return fail(err, INVALID, "only stride 1 allowed on non-range indexing.");
    if (shrink) {
        int64_t index = begin < 0 ? begin + size : begin;
        if (index < 0 || index >= size)
            return fail(err, INVALID, "slice index %lld of dimension %d out of bounds.",
                        (long long)index, d);
        out->box.dims[d] = 1;
        out->from.start += index * out->from.steps[d];
        return true;
    }
    int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
    if ((spec->begin_mask >> entry) & 1) {
        begin = step > 0 ? low : high;
    } else {
        begin += begin < 0 ? size : 0;
        begin = begin < low ? low : (begin > high ? high : begin);
    }
    if ((spec->end_mask >> entry) & 1) {
        end = step > 0 ? high : low;
    } else {
        end += end < 0 ? size : 0;
        end = end < low ? low : (end > high ? high : end);
    }
    int64_t length = step > 0 ? end - begin : begin - end;
    /* Of different signs, but for none: the lowest step has no positive one. */
    length = length <= 0 ? 0 : 1 - (length - 1) / (step > 0 ? -step : step);
    out->from.start += length ? begin * out->from.steps[d] : 0;
    out->from.steps[d] *= length > 1 ? step : 0;
    out->box.dims[d] = length;
    return add_dim(out, length, err);
}

static bool apply_spec(const struct spec *spec, const struct shape *in, struct strided *out,
                       struct error *err)
{
    int taken = 0, d = 0;
    bool seen_ellipsis = false;
    for (int i = 0; i < spec->count; i++) {
        bool ellipsis = (spec->ellipsis_mask >> i) & 1;
        seen_ellipsis |= ellipsis;
        taken += !ellipsis && !((spec->new_axis_mask >> i) & 1);
    }
    if (taken > 0 && in->rank == 0)
        return fail(err, INVALID, "Attempting to slice scalar input.");
    if (taken > in->rank)
        return fail(err, INVALID,
                    "Index out of range using input dim %d; input has only %d dims", in->rank,
                    in->rank);
    out->box = *in;
    out->shape.rank = 0;
    out->from = kernel_places(in);
    for (int i = 0; i <= spec->count; i++) {
        bool at_end = i == spec->count;
        if (at_end || ((spec->ellipsis_mask >> i) & 1)) {
            /* Without ellipsis, one is understood at the end. */
            int whole = at_end && seen_ellipsis ? 0 : in->rank - taken;
            for (int k = 0; k < whole; k++, d++)
                if (!add_dim(out, in->dims[d], err))
                    return false;
        } else if ((spec->new_axis_mask >> i) & 1) {
            if (!add_dim(out, 1, err))
                return false;
        } else if (!apply_entry(spec, i, d++, in, out, err)) {
            return false;
        }
    }
    return true;
}

bool kernel_strided(const struct kernel_call *call, int first, const struct shape *in,
                    struct strided *out, struct error *err)
{
    struct spec spec;
    return spec_read(call, first, &spec, err) && apply_spec(&spec, in, out, err);
}

static bool strided_slice_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    struct strided plan;
    if (!kernel_strided(call, 1, &in->shape, &plan, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &plan.shape, err);
    if (!out)
        return false;
    struct places to = kernel_places(&plan.box);
    kernel_move(out, &to, in, &plan.from, plan.box.dims, plan.box.rank);
    return true;
}

static bool strided_slice_grad_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *grad = kernel_in(call, 4);
    struct shape shape;
    struct strided plan;
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    if (kernel_in(call, 0)->shape.rank != 1)
        return fail(err, INVALID, "shape must be 1-D");
    if (!kernel_shape_in(call, 0, &shape, err) || !kernel_strided(call, 1, &shape, &plan, err))
        return false;
    if (!shape_equal(&plan.shape, &grad->shape))
        return fail(err, INVALID, "shape of dy was %s instead of %s",
                    shape_text(&grad->shape, a, sizeof(a)),
                    shape_text(&plan.shape, b, sizeof(b)));
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    kernel_zero(out, 0, out->count);
    struct places from = kernel_places(&plan.box);
    kernel_move(out, &plan.from, grad, &from, plan.box.dims, plan.box.rank);
    return true;
}

const struct kernel kernel_slice_ref = {.op = "Slice", .device = CPU, .run = slice_run};
const struct kernel kernel_strided_slice_ref = {
    .op = "StridedSlice", .device = CPU, .run = strided_slice_run};
const struct kernel kernel_strided_slice_grad_ref = {
    .op = "StridedSliceGrad", .device = CPU, .run = strided_slice_grad_run};
