/*
 * batch_norm.c - normalisation by the moments of a batch, and its gradient.
 *
 * x is seen as (outer, channels, inner); the moments are those of a channel, in double.
 */

#include "kernels/ref/batch_norm.h"
#include "kernels/ref/numbers.h"

#include <math.h>

struct norm {
    int64_t outer, channels, inner;
    double epsilon;
    bool training;
};

static bool norm_of(const struct kernel_call *call, const struct tensor *x, struct norm *norm,
                    struct error *err)
{
    char text[SHAPE_TEXT_BYTES];
    int rank = x->shape.rank;
    if (rank != 4 && rank != 5)
        return fail(err, INVALID, "input must be 4 or 5-dimensional%s",
                    shape_text(&x->shape, text, sizeof(text)));
    bool first = strncmp(node_attr_string(call->node, "data_format", "NHWC"), "NC", 2) == 0;
    int axis = first ? 1 : rank - 1;
    *norm = (struct norm){.outer = kernel_span(&x->shape, 0, axis),
                          .channels = x->shape.dims[axis],
                          .inner = kernel_span(&x->shape, axis + 1, rank),
                          .epsilon = node_attr_float(call->node, "epsilon", 0.0001f),
                          .training = node_attr_bool(call->node, "is_training", true)};
    return true;
}

/* One number per channel; where nobody looks at them, any length will do. */
static bool check_vector(const struct kernel_call *call, int input, const char *name,
                         int64_t channels, bool used, struct error *err)
{
    const struct tensor *vector = kernel_in(call, input);
    char text[SHAPE_TEXT_BYTES];
    if (vector->shape.rank != 1)
        return fail(err, INVALID, "%s must be 1-dimensional%s", name,
                    shape_text(&vector->shape, text, sizeof(text)));
    return !used || vector->count == channels ||
           fail(err, INVALID,
                "%s must have the same number of elements as the channels of x, got %lld and "
                "%lld",
                name, (long long)vector->count, (long long)channels);
}

static int64_t place(const struct norm *norm, int64_t outer, int64_t channel, int64_t inner)
{
    return (outer * norm->channels + channel) * norm->inner + inner;
}

/* Elements of a channel: for (o) for (i). */
#define EACH_ELEMENT(norm, c, at)                                                              \
    for (int64_t o_ = 0; o_ < (norm)->outer; o_++)                                             \
        for (int64_t i_ = 0, at = place(norm, o_, c, 0); i_ < (norm)->inner; i_++, at++)

static void moments(const struct norm *norm, const struct tensor *x, int64_t c, double *mean,
                    double *variance)
{
    kernel_load *load = kernel_load_for(x->dtype);
    double count = (double)(norm->outer * norm->inner), sum = 0, squares = 0;
    EACH_ELEMENT(norm, c, at)
    {
        sum += load(x->data, at);
    }
    *mean = sum / count;
    EACH_ELEMENT(norm, c, at)
    {
        double distance = load(x->data, at) - *mean;
        squares += distance * distance;
    }
    *variance = squares / count;
}

static bool outputs_of(struct kernel_call *call, const struct shape *x, int64_t channels,
                       int64_t reserve, struct tensor **out, struct error *err)
{
    for (int i = 0; i < call->node->outputs_count; i++) {
        const struct shape vector = i < 5 ? SHAPE(i < 3 ? channels : reserve) : SHAPE_SCALAR;
        out[i] = kernel_output(call, i, i == 0 ? x : &vector, err);
        if (!out[i])
            return false;
        if (i == 5)
            kernel_zero(out[i], 0, 1);
    }
    return true;
}

static void normalise(const struct norm *norm, const struct tensor *x, int64_t c, double scale,
                      double shift, struct tensor *y)
{
    kernel_load *load = kernel_load_for(x->dtype);
    kernel_store *store = kernel_store_for(y->dtype);
    EACH_ELEMENT(norm, c, at)
    {
        store(y->data, at, load(x->data, at) * scale + shift);
    }
}

bool kernel_batch_norm_check(const struct kernel_call *call, int64_t channels, bool training,
                             double factor, struct error *err)
{
    static const char *const names[] = {"x", "scale", "offset", "estimated_mean",
                                        "estimated_variance"};
    static const char *const moments[] = {"mean", "variance"};
    for (int i = 1; i < 5; i++)
        if (!check_vector(call, i, names[i], channels, false, err))
            return false;
    for (int i = 1; i < 3; i++)
        if (!check_vector(call, i, names[i], channels, true, err))
            return false;
    for (int i = 0; (!training || factor != 1) && i < 2; i++)
        if (kernel_in(call, 3 + i)->count != channels)
            return fail(err, INVALID,
                        "When %s, %s must have the same number of elements as the channels of "
                        "x, got %lld and %lld",
                        training ? "exponential_avg_factor != 1" : "is_training=false",
                        moments[i], (long long)kernel_in(call, 3 + i)->count,
                        (long long)channels);
    return true;
}

static bool batch_norm_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *x = kernel_in(call, 0);
    struct norm norm;
    struct tensor *out[6];
    double factor = node_attr_float(call->node, "exponential_avg_factor", 1);
    if (!norm_of(call, x, &norm, err) ||
        !kernel_batch_norm_check(call, norm.channels, norm.training, factor, err))
        return false;
    if (!outputs_of(call, &x->shape, norm.channels, norm.channels, out, err))
        return false;
    double count = (double)(norm.outer * norm.inner);
    for (int64_t c = 0; c < norm.channels; c++) {
        double scale = tensor_number(kernel_in(call, 1), c);
        double offset = tensor_number(kernel_in(call, 2), c);
        double mean, variance, running_mean, running_variance;
        if (norm.training) {
            moments(&norm, x, c, &mean, &variance);
            running_mean = mean;
            running_variance = variance * count / (count > 1 ? count - 1 : 1);
        } else {
            mean = running_mean = tensor_number(kernel_in(call, 3), c);
            variance = running_variance = tensor_number(kernel_in(call, 4), c);
        }
        if (norm.training && factor != 1) {
            running_mean = (1 - factor) * tensor_number(kernel_in(call, 3), c) + factor * mean;
            running_variance =
                (1 - factor) * tensor_number(kernel_in(call, 4), c) + factor * running_variance;
        }
        double slope = scale / sqrt(variance + norm.epsilon);
        normalise(&norm, x, c, slope, offset - mean * slope, out[0]);
        tensor_set_number(out[1], c, running_mean);
        tensor_set_number(out[2], c, running_variance);
        tensor_set_number(out[3], c, mean);
        tensor_set_number(out[4], c, variance);
    }
    return true;
}

static void channel_gradient(const struct norm *norm, const struct tensor *dy,
                             const struct tensor *x, int64_t c, double mean, double variance,
                             double scale, struct tensor *const *out)
{
    kernel_load *load = kernel_load_for(x->dtype);
    kernel_store *store = kernel_store_for(x->dtype);
    double count = (double)(norm->outer * norm->inner), sum = 0, weighted = 0;
    double spread = variance + norm->epsilon;
    EACH_ELEMENT(norm, c, at)
    {
        sum += load(dy->data, at);
        weighted += load(dy->data, at) * (load(x->data, at) - mean);
    }
    EACH_ELEMENT(norm, c, at)
    {
        double d = load(dy->data, at);
        if (norm->training)
            d -= sum / count + (load(x->data, at) - mean) * weighted / count / spread;
        store(out[0]->data, at, d * scale / sqrt(spread));
    }
    tensor_set_number(out[1], c, weighted / sqrt(spread));
    tensor_set_number(out[2], c, sum);
}

bool kernel_batch_norm_grad_check(const struct kernel_call *call, int64_t channels,
                                  struct error *err)
{
    static const char *const names[] = {"scale", "saved mean", "saved variance"};
    static const char *const others[] = {"scale", "reserve_space_1", "reserve_space_2"};
    const struct shape *dy = &kernel_in(call, 0)->shape, *x = &kernel_in(call, 1)->shape;
    char text[SHAPE_TEXT_BYTES], other[SHAPE_TEXT_BYTES];
    for (int i = 0; i < 2; i++) {
        const struct shape *shape = i ? x : dy;
        if (shape->rank != 4 && shape->rank != 5)
            return fail(err, INVALID, "input must be 4 or 5-dimensional%s",
                        shape_text(shape, text, sizeof(text)));
    }
    for (int i = 0; i < 3; i++)
        if (!check_vector(call, 2 + i, names[i], channels, false, err))
            return false;
    if (!shape_equal(dy, x))
        return fail(err, INVALID,
                    "x and y_backprop must have same shape, but x has shape %s and y_backprop "
                    "has shape %s",
                    shape_text(x, text, sizeof(text)), shape_text(dy, other, sizeof(other)));
    for (int i = 0; i < 3; i++)
        if (!check_vector(call, 2 + i, others[i], channels, true, err))
            return false;
    return true;
}

static bool batch_norm_grad_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *dy = kernel_in(call, 0), *x = kernel_in(call, 1);
    struct norm norm = {0};
    struct tensor *out[5];
    if (x->shape.rank != 4 && x->shape.rank != 5)
        return kernel_batch_norm_grad_check(call, 0, err);
    if (!norm_of(call, x, &norm, err) ||
        !kernel_batch_norm_grad_check(call, norm.channels, err))
        return false;
    if (!outputs_of(call, &x->shape, norm.channels, 0, out, err))
        return false;
    for (int64_t c = 0; c < norm.channels; c++)
        channel_gradient(&norm, dy, x, c, tensor_number(kernel_in(call, 3), c),
                         tensor_number(kernel_in(call, 4), c),
                         tensor_number(kernel_in(call, 2), c), out);
    return true;
}

#define NORM(name_, run_)                                                                      \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = BIT(F16) | BIT(BF16) | BIT(F32), .run = run_,    \
    }

const struct kernel kernel_fused_batch_norm_ref = NORM("FusedBatchNorm", batch_norm_run);
const struct kernel kernel_fused_batch_norm_v2_ref = NORM("FusedBatchNormV2", batch_norm_run);
const struct kernel kernel_fused_batch_norm_v3_ref = NORM("FusedBatchNormV3", batch_norm_run);
const struct kernel kernel_fused_batch_norm_grad_ref =
    NORM("FusedBatchNormGrad", batch_norm_grad_run);
const struct kernel kernel_fused_batch_norm_grad_v2_ref =
    NORM("FusedBatchNormGradV2", batch_norm_grad_run);
const struct kernel kernel_fused_batch_norm_grad_v3_ref =
    NORM("FusedBatchNormGradV3", batch_norm_grad_run);
