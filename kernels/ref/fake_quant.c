/* fake_quant.c - numbers rounded to the steps of a quantised type, and who of them moves. */

#include "kernels/ref/numbers.h"

#include <float.h>
#include <math.h>

/* --- FakeQuant: steps from min to max, moved so that 0 is one of them --- */

struct steps {
    float low, high, size;
    bool off; /* min and max are both 0 */
};

static struct steps steps_of(float low, float high, int bits, bool narrow)
{
    float first = narrow ? 1 : 0, last = (float)((1 << bits) - 1);
    struct steps s = {.off = low == 0 && high == 0};
    if (s.off)
        return s;
    s.size = (high - low) / (last - first);
    float zero = first - low / s.size;
    zero = zero < first ? first : zero > last ? last : roundf(zero);
    s.low = (first - zero) * s.size;
    s.high = (last - zero) * s.size;
    return s;
}

static float step(const struct steps *s, float x)
{
    float inverse = 1.0f / s->size, zero = floorf(-s->low * inverse + 0.5f);
    if (s->off)
        return 0;
    x = x < s->high ? x : s->high;
    x = x > s->low ? x : s->low;
    return floorf((x - s->low) * inverse - zero + 0.5f) * s->size;
}

/* Of a node: the channels' limits, one for all or one for each. */
struct fake {
    int bits;
    bool narrow;
    int64_t channels; /* 1: all alike */
    float low, high;  /* of attributes */
    const struct tensor *lows, *highs;
};

static struct steps channel_steps(const struct fake *f, int64_t i)
{
    int64_t c = i % f->channels;
    return steps_of(f->lows ? tensor_f32(f->lows)[c] : f->low,
                    f->highs ? tensor_f32(f->highs)[c] : f->high, f->bits, f->narrow);
}

/* `first`: the input that the numbers are; limits stand behind it unless they are attributes.
 */
static bool fake_init(struct fake *f, const struct kernel_call *call, int first,
                      struct error *err)
{
    const struct node *node = call->node;
    const struct shape *shape = &kernel_in(call, first)->shape;
    *f = (struct fake){.bits = (int)node_attr_int(node, "num_bits", 8),
                       .narrow = node_attr_bool(node, "narrow_range", false),
                       .channels = 1,
                       .low = node_attr_float(node, "min", -6),
                       .high = node_attr_float(node, "max", 6)};
    if (f->bits < 2 || f->bits > 16)
        return fail(err, INVALID, "num_bits must be between 2 and 16, inclusive");
    const struct shape *gradient = &kernel_in(call, 0)->shape;
    bool args = strstr(node->op->name, "Args") != NULL;
    char one[SHAPE_TEXT_BYTES], other[SHAPE_TEXT_BYTES];
    if (args && !shape_equal(shape, gradient))
        return fail(err, INVALID,
                    "Inputs to operation %s of type %s must have the same size and shape.  "
                    "Input 0: %s != input 1: %s",
                    node->name, node->op->name, shape_text(gradient, one, sizeof(one)),
                    shape_text(shape, other, sizeof(other)));
    if (!shape_equal(shape, gradient))
        return fail(err, INVALID, "gradient and input must be the same size");
    if (args)
        return f->low < f->high ||
               fail(err, INVALID, "min has to be smaller than max, was: %g >= %g",
                    (double)f->low, (double)f->high);
    f->lows = kernel_in(call, first + 1);
    f->highs = kernel_in(call, first + 2);
    bool each = strstr(node->op->name, "PerChannel") != NULL;
    if (each && shape->rank < 1)
        return fail(err, INVALID, "inputs must be at least of rank 1");
    if (each)
        f->channels = shape->dims[shape->rank - 1];
    for (int k = 0; k < 2; k++) {
        const struct tensor *limits = k ? f->highs : f->lows;
        const char *name = k ? "max" : "min";
        if (limits->shape.rank != each)
            return fail(err, INVALID, "`%s` must be rank %d but is rank %d", name, each,
                        limits->shape.rank);
        if (limits->count != f->channels)
            return fail(err, INVALID, "%s has incorrect size, expected %lld was %lld", name,
                        (long long)f->channels, (long long)limits->count);
    }
    return true;
}

static bool fake_run(struct kernel_call *call, struct error *err)
{
    struct fake f;
    const struct tensor *in = kernel_in(call, 0);
    if (!fake_init(&f, call, 0, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    for (int64_t i = 0; out && i < in->count; i++) {
        struct steps s = channel_steps(&f, i);
        tensor_f32_mut(out)[i] = step(&s, tensor_f32(in)[i]);
    }
    return out != NULL;
}

/* What lies between the limits passes its gradient on; what does not, to the limit. */
static bool fake_grad_run(struct kernel_call *call, struct error *err)
{
    struct fake f;
    const struct tensor *dy = kernel_in(call, 0), *in = kernel_in(call, 1);
    if (!fake_init(&f, call, 1, err))
        return false;
    struct tensor *dx = kernel_output(call, 0, &in->shape, err), *ends[2] = {NULL, NULL};
    for (int k = 0; dx && f.lows && k < 2; k++) {
        ends[k] = kernel_output(call, 1 + k, &f.lows->shape, err);
        if (!ends[k])
            return false;
        kernel_zero(ends[k], 0, ends[k]->count);
    }
    for (int64_t i = 0; dx && i < in->count; i++) {
        struct steps s = channel_steps(&f, i);
        float x = tensor_f32(in)[i], g = tensor_f32(dy)[i];
        bool inside = s.off || (x >= s.low && x <= s.high);
        tensor_f32_mut(dx)[i] = inside ? g : 0;
        if (!s.off && ends[0] && x < s.low)
            tensor_f32_mut(ends[0])[i % f.channels] += g;
        if (!s.off && ends[1] && x > s.high)
            tensor_f32_mut(ends[1])[i % f.channels] += g;
    }
    return dx != NULL;
}

/* --- QuantizeAndDequantize: a scale that keeps 0 where it is --- */

struct scale {
    bool is_signed, given, narrow, half_up;
    int64_t bits;
    int64_t channels, inner; /* element i is of channel i / inner % channels */
    const struct tensor *lows, *highs;
};

/* The limits of version 3 by channels, or one for all; the others take one for all alone. */
static bool limits_check(const struct scale *s, const struct kernel_call *call, int64_t axis,
                         struct error *err)
{
    char text[SHAPE_TEXT_BYTES];
    bool third = call->in_count == 4;
    for (int k = 0; k < 2; k++) {
        const struct tensor *limits = k ? s->highs : s->lows;
        if (!third ? limits->shape.rank != 0 : axis < 0 && limits->count != 1)
            return fail(err, INVALID, "input_%s must be a scalar.", k ? "max" : "min");
    }
    for (int k = 0; axis >= 0 && k < 2; k++) {
        const struct tensor *limits = k ? s->highs : s->lows;
        const char *name = k ? "max" : "min";
        if (limits->shape.rank != 1)
            return fail(err, INVALID,
                        "Shape must be rank 1 for input_%s_tensor when the axis is specified",
                        name);
        if (limits->count != s->channels)
            return fail(err, INVALID,
                        "input_%s_tensor has incorrect size, was %lld expected %lld to match "
                        "dim %lld of the input %s",
                        name, (long long)limits->count, (long long)s->channels, (long long)axis,
                        shape_text(&limits->shape, text, sizeof(text)));
    }
    double low = s->lows->count ? tensor_number(s->lows, 0) : 0;
    double high = s->highs->count ? tensor_number(s->highs, 0) : 0;
    return axis >= 0 || low <= high ||
           fail(err, INVALID, "Invalid range: input_min %g > input_max %g", low, high);
}

static bool scale_init(struct scale *s, const struct kernel_call *call, struct error *err)
{
    const struct node *node = call->node;
    const struct shape *shape = &kernel_in(call, 0)->shape;
    const char *mark = call->in_count == 4 ? "`" : ""; /* TensorFlow's */
    int64_t axis = node_attr_int(node, "axis", -1);
    *s = (struct scale){.is_signed = node_attr_bool(node, "signed_input", true),
                        .given = node_attr_bool(node, "range_given", call->in_count == 4),
                        .narrow = node_attr_bool(node, "narrow_range", false),
                        .half_up = !strcmp(node_attr_string(node, "round_mode", ""), "HALF_UP"),
                        .bits = node_attr_int(node, "num_bits", 8),
                        .channels = 1,
                        .inner = 1,
                        .lows = call->in_count > 1 ? kernel_in(call, 1) : NULL,
                        .highs = call->in_count > 1 ? kernel_in(call, 2) : NULL};
    if (axis < -1)
        return fail(err, INVALID, "Axis must be at least -1. Found %lld", (long long)axis);
    if (axis >= shape->rank || (shape->rank == 0 && call->in_count == 4))
        return fail(err, INVALID,
                    "Axis requested is larger than input dimensions. Axis: %lld Input "
                    "Dimensions: %d",
                    (long long)axis, shape->rank);
    if (call->in_count == 4) {
        const struct tensor *bits = kernel_in(call, 3);
        if (bits->shape.rank)
            return fail(err, INVALID,
                        "Invalid shape. The `num_bits` tensor should be a scalar. Got "
                        "dimensions: %d",
                        bits->shape.rank);
        s->bits = tensor_integer(bits, 0);
    }
    if (s->bits <= 0 || s->bits >= (s->is_signed ? 62 : 63))
        return fail(err, INVALID, "num_bits is out of range: %lld with %ssigned_input_%s %d",
                    (long long)s->bits, mark, mark, s->is_signed);
    if (axis >= 0) {
        s->channels = shape->dims[axis];
        s->inner = kernel_span(shape, (int)axis + 1, shape->rank);
    }
    return !s->given || !s->lows || limits_check(s, call, axis, err);
}

/* Rounds to the type of the tensor, as if all were computed in it. */
static double in_type(const struct tensor *tensor, double value)
{
    return tensor->dtype == F32 ? (double)(float)value : value;
}

/* Limits of a channel, and their scale. */
static void channel_scale(const struct scale *s, const struct tensor *in, double *low,
                          double *high, double *scale, double *inverse)
{
    double least = s->is_signed ? -ldexp(1, (int)s->bits - 1) + (s->narrow ? 1 : 0) : 0;
    double most = ldexp(1, (int)s->bits - (s->is_signed ? 1 : 0)) - 1;
    double none = in->dtype == F32 ? (double)FLT_MAX : DBL_MAX;
    double from_low = least * *low > 0 ? in_type(in, least / *low) : none;
    double from_high = most * *high > 0 ? in_type(in, most / *high) : none;
    if (from_low < from_high) {
        *scale = from_low;
        *inverse = in_type(in, *low / least);
        *high = in_type(in, most * *inverse);
    } else {
        *scale = from_high;
        *inverse = in_type(in, *high / most);
        *low = in_type(in, least * *inverse);
    }
}

static bool quantize_run(struct kernel_call *call, struct error *err)
{
    struct scale s;
    const struct tensor *in = kernel_in(call, 0);
    if (!scale_init(&s, call, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    double *ends =
        out ? kernel_scratch(call, (size_t)s.channels * 2 * sizeof(*ends) + 1, err) : NULL;
    if (!ends)
        return false;
    for (int64_t c = 0; c < s.channels; c++) {
        bool attrs = s.given && !s.lows;
        ends[2 * c] = attrs     ? (double)node_attr_float(call->node, "input_min", 0)
                      : s.given ? tensor_number(s.lows, c)
                                : INFINITY;
        ends[2 * c + 1] = attrs     ? (double)node_attr_float(call->node, "input_max", 0)
                          : s.given ? tensor_number(s.highs, c)
                                    : -INFINITY;
    }
    for (int64_t i = 0; !s.given && i < in->count; i++) {
        double *end = ends + i / s.inner % s.channels * 2, x = tensor_number(in, i);
        end[0] = x < end[0] ? x : end[0];
        end[1] = x > end[1] ? x : end[1];
    }
    for (int64_t c = 0; c < s.channels; c++)
        for (int64_t start = c * s.inner; start < in->count; start += s.channels * s.inner) {
            double low = ends[2 * c], high = ends[2 * c + 1], scale, inverse;
            channel_scale(&s, in, &low, &high, &scale, &inverse);
            int64_t end = s.channels > 1 || s.inner > 1 ? start + s.inner : start + 1;
            for (int64_t i = start; i < end; i++) {
                double x = tensor_number(in, i);
                if (s.given) {
                    x = x < high ? x : high;
                    x = x > low ? x : low;
                }
                x = in_type(in, x * scale);
                x = s.half_up ? floor(in_type(in, x + 0.5)) : rint(x);
                tensor_set_number(out, i, x * inverse);
            }
        }
    return true;
}

/* What is outside has no gradient, and the limits have none: as TensorFlow has it. */
static bool quantize_grad_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *dy = kernel_in(call, 0), *in = kernel_in(call, 1);
    const struct tensor *lows = kernel_in(call, 2), *highs = kernel_in(call, 3);
    int64_t axis = node_attr_int(call->node, "axis", -1), channels = 1, inner = 1;
    if (!shape_equal(&dy->shape, &in->shape))
        return fail(err, INVALID, "gradient and input must be the same size");
    if (axis < -1)
        return fail(err, INVALID, "Axis must be at least -1. Found %lld", (long long)axis);
    if (axis >= in->shape.rank)
        return fail(err, INVALID,
                    "Axis should be -1 or 0 or a positive value less than %dbut given axis "
                    "value was %lld",
                    in->shape.rank, (long long)axis);
    if (axis >= 0) {
        channels = in->shape.dims[axis];
        inner = kernel_span(&in->shape, (int)axis + 1, in->shape.rank);
    }
    for (int k = 0; k < 2; k++) {
        const struct tensor *limits = k ? highs : lows;
        if (limits->shape.rank > 1)
            return fail(err, INVALID,
                        "Input %s tensor must have dimension 0 or 1. Received %d.",
                        k ? "max" : "min", limits->shape.rank);
    }
    for (int k = 0; k < 2; k++) { /* a vector of limits, or one for all */
        const struct tensor *limits = k ? highs : lows;
        const char *name = k ? "max" : "min";
        if (axis < 0 && limits->shape.rank)
            return fail(err, INVALID, "input_%s must be a scalar if axis is unspecified", name);
        if (axis >= 0 && !limits->shape.rank)
            return fail(err, INVALID,
                        "Shape must be rank 1 for input_%s_tensor when the axis is specified",
                        name);
        if (limits->count != channels)
            return fail(err, INVALID, "%s has incorrect size, expected %lld was %lld", name,
                        (long long)channels, (long long)limits->count);
    }
    struct tensor *dx = kernel_output(call, 0, &in->shape, err);
    struct tensor *dlow = dx ? kernel_output(call, 1, &lows->shape, err) : NULL;
    struct tensor *dhigh = dlow ? kernel_output(call, 2, &highs->shape, err) : NULL;
    if (!dhigh)
        return false;
    kernel_zero(dlow, 0, dlow->count);
    kernel_zero(dhigh, 0, dhigh->count);
    for (int64_t i = 0; i < in->count; i++) {
        int64_t c = i / inner % channels;
        double x = tensor_number(in, i);
        bool inside = x >= tensor_number(lows, c) && x <= tensor_number(highs, c);
        tensor_set_number(dx, i, inside ? tensor_number(dy, i) : 0);
    }
    return true;
}

#define FAKE(name_, run_)                                                                      \
    {                                                                                          \
        .op = name_, .device = CPU, .run = run_                                                \
    }
#define QUANTIZE(name_, run_)                                                                  \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = BIT(F32) | BIT(F64), .run = run_                 \
    }

const struct kernel kernel_fake_quant_with_min_max_args_ref =
    FAKE("FakeQuantWithMinMaxArgs", fake_run);
const struct kernel kernel_fake_quant_with_min_max_args_gradient_ref =
    FAKE("FakeQuantWithMinMaxArgsGradient", fake_grad_run);
const struct kernel kernel_fake_quant_with_min_max_vars_ref =
    FAKE("FakeQuantWithMinMaxVars", fake_run);
const struct kernel kernel_fake_quant_with_min_max_vars_gradient_ref =
    FAKE("FakeQuantWithMinMaxVarsGradient", fake_grad_run);
const struct kernel kernel_fake_quant_with_min_max_vars_per_channel_ref =
    FAKE("FakeQuantWithMinMaxVarsPerChannel", fake_run);
const struct kernel kernel_fake_quant_with_min_max_vars_per_channel_gradient_ref =
    FAKE("FakeQuantWithMinMaxVarsPerChannelGradient", fake_grad_run);
const struct kernel kernel_quantize_and_dequantize_ref =
    QUANTIZE("QuantizeAndDequantize", quantize_run);
const struct kernel kernel_quantize_and_dequantize_v2_ref =
    QUANTIZE("QuantizeAndDequantizeV2", quantize_run);
const struct kernel kernel_quantize_and_dequantize_v3_ref =
    QUANTIZE("QuantizeAndDequantizeV3", quantize_run);
const struct kernel kernel_quantize_and_dequantize_v4_ref =
    QUANTIZE("QuantizeAndDequantizeV4", quantize_run);
const struct kernel kernel_quantize_and_dequantize_v4_grad_ref =
    QUANTIZE("QuantizeAndDequantizeV4Grad", quantize_grad_run);
