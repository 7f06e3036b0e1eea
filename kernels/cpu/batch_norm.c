/*
 * batch_norm.c - batch normalisation in float, channels last, perhaps with Relu.
 *
 * x is (rows, channels).  Threads take rows; sums are in double, added in the order of the
 * threads, so the same number of threads gives the same bits.
 */
#include <math.h>

#include "base/error.h"
#include "kernels/cpu/parallel.h"
#include "kernels/list.h"

struct norm {
    int64_t rows, channels;
    const float *x;
    float *y;
    double *mean, *variance; /* of the batch, or those given */
    double *sums;            /* (threads, channels) */
    float *slope, *shift;
    int threads;
    bool relu;
};

static bool norm_accepts(const struct node *node)
{
    const char *mode = node_attr_string(node, "activation_mode", "Identity");
    const char *format = node_attr_string(node, "data_format", "NHWC");
    return !strcmp(format, "NHWC") && (!strcmp(mode, "Relu") || !strcmp(mode, "Identity")) &&
           node_attr_int(node, "num_side_inputs", 0) == 0 &&
           (!node_attr(node, "U") || node_attr_type(node, "U") == F32);
}

/* sums[t][c] of x - from[c], squared if `squared`, over the rows of each thread; then in all.
 */
static void sum_channels(struct norm *n, const double *from, bool squared, double *total)
{
    int64_t channels = n->channels;
#pragma omp parallel for num_threads(n->threads) schedule(static) if (n->threads > 1)
    for (int t = 0; t < n->threads; t++) {
        struct range r = parallel_range(n->rows, 1, n->threads, t);
        double *sums = n->sums + t * channels;
        memset(sums, 0, (size_t)channels * sizeof(*sums));
        for (int64_t row = r.from; row < r.to; row++) {
            const float *x = n->x + row * channels;
            if (squared) {
                for (int64_t c = 0; c < channels; c++)
                    sums[c] += (x[c] - from[c]) * (x[c] - from[c]);
            } else {
                for (int64_t c = 0; c < channels; c++)
                    sums[c] += x[c];
            }
        }
    }
    for (int64_t c = 0; c < channels; c++) {
        double sum = 0;
        for (int t = 0; t < n->threads; t++)
            sum += n->sums[t * channels + c];
        total[c] = sum / (double)n->rows;
    }
}

static void normalise(const struct norm *n)
{
    int64_t channels = n->channels;
    const float *slope = n->slope, *shift = n->shift;
#pragma omp parallel for num_threads(n->threads) schedule(static) if (n->threads > 1)
    for (int t = 0; t < n->threads; t++) {
        struct range r = parallel_range(n->rows, 1, n->threads, t);
        for (int64_t row = r.from; row < r.to; row++) {
            const float *x = n->x + row * channels;
            float *y = n->y + row * channels;
            for (int64_t c = 0; c < channels; c++) {
                float value = x[c] * slope[c] + shift[c];
                y[c] = n->relu && value < 0 ? 0 : value; /* a NaN stays */
            }
        }
    }
}

static bool check_inputs(const struct kernel_call *call, bool training, double factor,
                         struct error *err)
{
    static const char *const names[] = {"x", "scale", "offset", "estimated_mean",
                                        "estimated_variance"};
    const struct tensor *x = kernel_in(call, 0);
    char text[SHAPE_TEXT_BYTES];
    if (x->shape.rank != 4)
        return fail(err, INVALID, "input must be 4-dimensional%s",
                    shape_text(&x->shape, text, sizeof(text)));
    for (int i = 1; i < 5; i++) {
        const struct tensor *vector = kernel_in(call, i);
        if (vector->shape.rank != 1)
            return fail(err, INVALID, "%s must be 1-dimensional%s", names[i],
                        shape_text(&vector->shape, text, sizeof(text)));
        bool used = i < 3 || !training || factor != 1;
        if (used && vector->count != x->shape.dims[3])
            return fail(err, INVALID,
                        "%s must have the same number of elements as the channels of x, got "
                        "%lld and %lld",
                        names[i], (long long)vector->count, (long long)x->shape.dims[3]);
    }
    return true;
}

/* Slope and shift of each channel, and what the node tells of the moments. */
static void finish_channel(const struct kernel_call *call, struct norm *n, int64_t c,
                           bool training, double factor, float **out)
{
    double epsilon = node_attr_float(call->node, "epsilon", 0.0001f), count = (double)n->rows;
    double mean, variance, running_mean, running_variance;
    if (training) {
        mean = running_mean = n->mean[c];
        variance = n->variance[c];
        running_variance = variance * count / (count > 1 ? count - 1 : 1);
    } else {
        mean = running_mean = tensor_f32(kernel_in(call, 3))[c];
        variance = running_variance = tensor_f32(kernel_in(call, 4))[c];
    }
    if (training && factor != 1) {
        running_mean = (1 - factor) * tensor_f32(kernel_in(call, 3))[c] + factor * mean;
        running_variance =
            (1 - factor) * tensor_f32(kernel_in(call, 4))[c] + factor * running_variance;
    }
    double slope = tensor_f32(kernel_in(call, 1))[c] / sqrt(variance + epsilon);
    n->slope[c] = (float)slope;
    n->shift[c] = (float)(tensor_f32(kernel_in(call, 2))[c] - mean * slope);
    out[1][c] = (float)running_mean;
    out[2][c] = (float)running_variance;
    out[3][c] = (float)mean;
    out[4][c] = (float)variance;
}

static bool norm_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *x = kernel_in(call, 0);
    bool training = node_attr_bool(call->node, "is_training", true);
    double factor = node_attr_float(call->node, "exponential_avg_factor", 1);
    if (!check_inputs(call, training, factor, err))
        return false;
    struct norm n = {.channels = x->shape.dims[3], .x = tensor_f32(x)};
    n.rows = n.channels ? x->count / n.channels : 0;
    n.threads = parallel_threads(call, x->count);
    n.relu = !strcmp(node_attr_string(call->node, "activation_mode", "Identity"), "Relu");
    size_t channels = (size_t)n.channels;
    n.sums = kernel_scratch(call, (size_t)(n.threads + 3) * channels * sizeof(double), err);
    if (!n.sums)
        return false;
    n.mean = n.sums + (size_t)n.threads * channels;
    n.variance = n.mean + channels;
    n.slope = (float *)(void *)(n.variance + channels);
    n.shift = n.slope + channels;

    float *out[6] = {0};
    for (int i = 0; i < call->node->outputs_count; i++) {
        const struct shape small = i < 5 ? SHAPE(n.channels) : SHAPE_SCALAR;
        struct tensor *made =
            i ? kernel_output(call, i, &small, err) : kernel_output(call, 0, &x->shape, err);
        if (!made)
            return false;
        out[i] = tensor_f32_mut(made);
        if (i == 5)
            *out[i] = 0;
    }
    n.y = out[0];
    if (training) {
        sum_channels(&n, NULL, false, n.mean);
        sum_channels(&n, n.mean, true, n.variance);
    }
    for (int64_t c = 0; c < n.channels; c++)
        finish_channel(call, &n, c, training, factor, out);
    normalise(&n);
    return true;
}

#define NORM(name, op_name)                                                                    \
    const struct kernel kernel_##name##_cpu = {.op = op_name,                                  \
                                               .device = CPU,                                  \
                                               .dtypes = BIT(F32),                             \
                                               .accepts = norm_accepts,                        \
                                               .run = norm_run};

NORM(fused_batch_norm, "FusedBatchNorm")
NORM(fused_batch_norm_v2, "FusedBatchNormV2")
NORM(fused_batch_norm_v3, "FusedBatchNormV3")
NORM(fused_batch_norm_ex, "_FusedBatchNormEx")
