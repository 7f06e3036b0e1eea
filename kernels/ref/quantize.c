/*
 * quantize.c - floats as elements of a quantised type between two limits, and back.
 *
 * The steps are TensorFlow's in float, each in its order, so that the bits are the same.
 */

#include "kernels/ref/numbers.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>

#define QUANTISED (BIT(QI8) | BIT(QU8) | BIT(QI16) | BIT(QU16) | BIT(QI32))

enum mode { MIN_COMBINED, MIN_FIRST, SCALED };

struct quantised {
    enum mode mode;
    bool to_even;
    bool narrow;
    int axis;               /* -1: all elements have the same limits */
    double lowest, highest; /* of the type */
    float half;             /* of its elements, where it is signed */
    int64_t before, slices, behind;
};

static void set_type(struct quantised *q, enum dtype dtype)
{
    int bits = (int)dtype_size(dtype) * 8;
    bool is_signed = dtype == QI8 || dtype == QI16 || dtype == QI32;
    q->lowest = is_signed ? -ldexp(1, bits - 1) : 0;
    q->highest = ldexp(1, is_signed ? bits - 1 : bits) - 1;
    q->half = is_signed ? (float)ldexp(1, bits - 1) : 0;
}

static bool read_node(struct quantised *q, const struct kernel_call *call, const char *what,
                      struct error *err)
{
    const struct node *node = call->node;
    const struct shape *shape = &kernel_in(call, 0)->shape;
    const char *mode = node_attr_string(node, "mode", "MIN_COMBINED");
    *q = (struct quantised){
        .mode = !strcmp(mode, "MIN_FIRST") ? MIN_FIRST
                : !strcmp(mode, "SCALED")  ? SCALED
                                           : MIN_COMBINED,
        .to_even = !strcmp(node_attr_string(node, "round_mode", ""), "HALF_TO_EVEN"),
        .narrow = node_attr_bool(node, "narrow_range", false),
        .axis = (int)node_attr_int(node, "axis", -1),
        .before = 1,
        .slices = 1,
        .behind = kernel_in(call, 0)->count,
    };
    if (q->axis >= shape->rank)
        return fail(err, INVALID, "Axis must be less than input dimension(%d), got %d",
                    shape->rank, q->axis);
    if (q->axis > -1 && shape->dims[q->axis] != 1) {
        q->before = kernel_span(shape, 0, q->axis);
        q->slices = shape->dims[q->axis];
        q->behind = kernel_span(shape, q->axis + 1, shape->rank);
    }
    static const char *const limits[] = {"min", "max"};
    for (int i = 0; i < 2; i++) {
        int64_t count = kernel_in(call, 1 + i)->count;
        if (count != q->slices)
            return fail(err, INVALID,
                        "input_%s_%s must have as many elements as input on the "
                        "%squantization axis (%d), got %" PRId64 ", expected %" PRId64,
                        limits[i], *what ? "tensor" : "range", what, q->axis, count, q->slices);
    }
    if (q->mode == MIN_FIRST && q->slices != 1)
        return fail(err, UNIMPLEMENTED,
                    "MIN_FIRST mode is not implemented for %s with axis != -1.",
                    *what ? "Dequantize" : "Quantize");
    return true;
}

/* --- to the type --- */

struct range {
    float low, high, scale, offset;
};

static bool range_of(const struct quantised *q, float low, float high, float least,
                     struct range *r, struct error *err)
{
    if (high < low)
        return fail(err, INVALID, "input_max_range must be larger than input_min_range.");
    float apart = fmaxf(1.0F, fmaxf(fabsf(low), fabsf(high))) * least;
    r->low = low < 0 ? low : 0;
    r->high = fmaxf(0.0F, fmaxf(high, r->low + apart));
    r->offset = 0;
    if (q->mode == MIN_COMBINED) {
        r->scale = (float)((q->highest - q->lowest) / (double)(r->high - r->low));
    } else if (q->mode == MIN_FIRST) {
        r->scale = r->high == r->low
                       ? 0
                       : (float)((q->highest - q->lowest) / (double)(r->high - r->low));
        r->offset = roundf(r->low * r->scale) - (float)q->lowest;
    } else {
        float lowest = (float)(q->lowest + q->narrow), highest = (float)q->highest;
        float from_low = lowest * r->low > 0 ? lowest / r->low : FLT_MAX;
        float from_high = highest * r->high > 0 ? highest / r->high : FLT_MAX;
        r->scale = from_low < from_high ? from_low : from_high;
        r->low = lowest / r->scale;
        r->high = highest / r->scale;
    }
    return true;
}

static float quantise(const struct quantised *q, const struct range *r, float x)
{
    if (q->mode == MIN_FIRST) {
        float upper = (float)q->highest < 2147483520.0F ? (float)q->highest : 2147483520.0F;
        x = roundf(x * r->scale) - r->offset;
        x = x < (float)q->lowest ? (float)q->lowest : x;
        return x > upper ? upper : x;
    }
    x = x > r->high ? r->high : x;
    x = x < r->low ? r->low : x;
    if (q->mode == SCALED)
        return q->to_even ? rintf(x * r->scale) : roundf(x * r->scale);
    return q->lowest < 0 ? roundf((x - r->low) * r->scale - q->half)
                         : (x - r->low) * r->scale + 0.5F;
}

static void store(struct tensor *out, int64_t i, float x)
{
    /* What is too large, or no number, is what an x86 processor makes of it. */
    int32_t n = x >= -2147483648.0F && x < 2147483648.0F ? (int32_t)x : INT32_MIN;
    switch (dtype_size(out->dtype)) {
    case 1:
        ((uint8_t *)out->data)[i] = (uint8_t)n;
        break;
    case 2:
        ((uint16_t *)out->data)[i] = (uint16_t)n;
        break;
    default:
        ((int32_t *)out->data)[i] = n;
    }
}

static bool quantize_run(struct kernel_call *call, struct error *err)
{
    struct quantised q;
    const struct tensor *in = kernel_in(call, 0);
    float least = node_attr_float(call->node, "ensure_minimum_range", 0.01F);
    if (!read_node(&q, call, "", err))
        return false;
    const struct shape *limits = q.slices == 1 ? &SHAPE_SCALAR : &kernel_in(call, 1)->shape;
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    struct tensor *low = out ? kernel_output(call, 1, limits, err) : NULL;
    struct tensor *high = low ? kernel_output(call, 2, limits, err) : NULL;
    if (!high)
        return false;
    set_type(&q, out->dtype);
    for (int64_t s = 0; s < q.slices; s++) {
        struct range r = {0};
        if (!range_of(&q, tensor_f32(kernel_in(call, 1))[s], tensor_f32(kernel_in(call, 2))[s],
                      least, &r, err))
            return false;
        tensor_f32_mut(low)[s] = r.low;
        tensor_f32_mut(high)[s] = r.high;
        for (int64_t b = 0; b < q.before; b++)
            for (int64_t i = 0, at = (b * q.slices + s) * q.behind; i < q.behind; i++)
                store(out, at + i, quantise(&q, &r, tensor_f32(in)[at + i]));
    }
    return true;
}

/* --- and back --- */

static float load(const struct tensor *in, int64_t i)
{
    switch (in->dtype) {
    case QI8:
        return (float)((const int8_t *)in->data)[i];
    case QU8:
        return (float)((const uint8_t *)in->data)[i];
    case QI16:
        return (float)((const int16_t *)in->data)[i];
    case QU16:
        return (float)((const uint16_t *)in->data)[i];
    default:
        return (float)((const int32_t *)in->data)[i];
    }
}

/* An element is (x + before) * scale + behind. */
static void set_back(const struct quantised *q, float low, float high, float *before,
                     float *scale, float *behind)
{
    float highest = (float)q->highest, lowest = (float)q->lowest;
    *before = *behind = 0;
    if (q->mode == MIN_COMBINED) {
        *scale = (high - low) / (highest - lowest);
        *before = q->half;
        *behind = low;
    } else if (q->mode == MIN_FIRST) {
        *scale = (float)((double)(high - low) / (q->highest - q->lowest));
        *behind = (high == low ? low : roundf(low / *scale) * *scale) - lowest * *scale;
    } else {
        float from_low = low / (float)(q->lowest + q->narrow), from_high = high / highest;
        *scale = q->lowest == 0 || from_low < from_high ? from_high : from_low;
    }
}

static bool dequantize_run(struct kernel_call *call, struct error *err)
{
    struct quantised q;
    const struct tensor *in = kernel_in(call, 0);
    if (!read_node(&q, call, "de", err))
        return false;
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    if (!out)
        return false;
    if (out->dtype == BF16 && q.mode != MIN_COMBINED)
        return fail(err, INVALID,
                    "When output type is bfloat16, Mode string must be 'MIN_COMBINED', is '%s'",
                    node_attr_string(call->node, "mode", ""));
    set_type(&q, in->dtype);
    for (int64_t s = 0; s < q.slices; s++) {
        float before, scale, behind;
        set_back(&q, tensor_f32(kernel_in(call, 1))[s], tensor_f32(kernel_in(call, 2))[s],
                 &before, &scale, &behind);
        for (int64_t b = 0; b < q.before; b++)
            for (int64_t i = 0, at = (b * q.slices + s) * q.behind; i < q.behind; i++) {
                float y = (load(in, at + i) + before) * scale + behind;
                if (out->dtype == F32)
                    tensor_f32_mut(out)[at + i] = y;
                else
                    ((uint16_t *)out->data)[at + i] = dtype_f32_to_bf16(y);
            }
    }
    return true;
}

const struct kernel kernel_quantize_v2_ref = {
    .op = "QuantizeV2", .device = CPU, .dtypes = QUANTISED, .run = quantize_run};
const struct kernel kernel_dequantize_ref = {
    .op = "Dequantize", .device = CPU, .dtypes = QUANTISED, .run = dequantize_run};
