/*
 * batch_norm.c - batch normalisation in float, channels last, perhaps with an image that is
 * added and Relu.
 *
 * Two passes over the image: the moments of each block, which are put together in double; then
 * slope and shift of each channel.
 */
#include "kernels/cpu/batch_norm.h"

#include <math.h>

#include "base/error.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"
#include "kernels/list.h"
#include "kernels/ref/batch_norm.h"

/* Columns that fill the vectors, and elements of a block. */
enum { COLUMNS_MIN = 32, BLOCK = 4096 };

struct batch_norm_cut batch_norm_cut(int64_t rows, int64_t channels)
{
    struct batch_norm_cut cut = {.rows = rows, .channels = channels, .columns = channels};
    int64_t fold = 1;
    while (channels * fold < COLUMNS_MIN && 2 * fold <= rows)
        fold *= 2;
    cut.columns = channels * fold;
    cut.lines = rows / fold;
    cut.lines_each = BLOCK / (cut.columns ? cut.columns : 1);
    cut.lines_each += cut.lines_each == 0;
    cut.blocks = (cut.lines + cut.lines_each - 1) / cut.lines_each + (rows % fold != 0);
    return cut;
}

struct batch_norm_block batch_norm_block(const struct batch_norm_cut *cut, int64_t index)
{
    int64_t line = index * cut->lines_each;
    if (line >= cut->lines) {
        int64_t done = cut->lines * (cut->columns / cut->channels);
        return (struct batch_norm_block){done * cut->channels, cut->rows - done, cut->channels};
    }
    int64_t left = cut->lines - line;
    return (struct batch_norm_block){
        line * cut->columns, left < cut->lines_each ? left : cut->lines_each, cut->columns};
}

void batch_norm_spread(const struct batch_norm_cut *cut, float *vector)
{
    for (int64_t i = cut->channels; i < cut->columns; i++)
        vector[i] = vector[i - cut->channels];
}

void batch_norm_gather(const struct batch_norm_cut *cut, const float *parts, int64_t stride,
                       double *total)
{
    for (int64_t c = 0; c < cut->channels; c++)
        total[c] = 0;
    for (int64_t b = 0; b < cut->blocks; b++) {
        int64_t columns = batch_norm_block(cut, b).columns;
        for (int64_t from = 0; from < columns; from += cut->channels)
            for (int64_t c = 0; c < cut->channels; c++)
                total[c] += parts[b * stride + from + c];
    }
}

struct norm {
    struct batch_norm_cut cut;
    const float *x, *side;
    float *y;
    double *mean, *variance; /* of the batch */
    float *parts;            /* (blocks, 2, columns): means, squared distances */
    float *slope, *shift;    /* (columns) */
    int threads;
    bool relu;
};

static bool norm_accepts(const struct node *node)
{
    const char *mode = node_attr_string(node, "activation_mode", "Identity");
    const char *format = node_attr_string(node, "data_format", "NHWC");
    return !strcmp(format, "NHWC") && (!strcmp(mode, "Relu") || !strcmp(mode, "Identity")) &&
           node_attr_int(node, "num_side_inputs", 0) <= 1 &&
           (!node_attr(node, "U") || node_attr_type(node, "U") == F32);
}

/* Mean and variance of each channel from those of the blocks. */
static void find_moments(struct norm *n)
{
    const struct batch_norm_cut *cut = &n->cut;
    int64_t channels = cut->channels, columns = cut->columns;
#pragma omp parallel for num_threads(n->threads) schedule(static) if (n->threads > 1)
    for (int t = 0; t < n->threads; t++) {
        struct range r = parallel_range(cut->blocks, 1, n->threads, t);
        for (int64_t b = r.from; b < r.to; b++) {
            struct batch_norm_block block = batch_norm_block(cut, b);
            float *part = n->parts + b * 2 * columns;
            isa()->moments(block.rows, block.columns, n->x + block.at, part, part + columns);
        }
    }
    for (int64_t c = 0; c < channels; c++)
        n->mean[c] = 0;
    for (int64_t b = 0; b < cut->blocks; b++) {
        struct batch_norm_block block = batch_norm_block(cut, b);
        const float *part = n->parts + b * 2 * columns;
        for (int64_t from = 0; from < block.columns; from += channels)
            for (int64_t c = 0; c < channels; c++)
                n->mean[c] += (double)block.rows * part[from + c];
    }
    for (int64_t c = 0; c < channels; c++)
        n->mean[c] /= (double)cut->rows;
    batch_norm_gather(cut, n->parts + columns, 2 * columns, n->variance);
    for (int64_t b = 0; b < cut->blocks; b++) {
        struct batch_norm_block block = batch_norm_block(cut, b);
        const float *part = n->parts + b * 2 * columns;
        for (int64_t from = 0; from < block.columns; from += channels)
            for (int64_t c = 0; c < channels; c++) {
                double apart = part[from + c] - n->mean[c];
                n->variance[c] += (double)block.rows * apart * apart;
            }
    }
    for (int64_t c = 0; c < channels; c++)
        n->variance[c] /= (double)cut->rows;
}

static void apply(const struct norm *n)
{
    const struct batch_norm_cut *cut = &n->cut;
#pragma omp parallel for num_threads(n->threads) schedule(static) if (n->threads > 1)
    for (int t = 0; t < n->threads; t++) {
        struct range r = parallel_range(cut->blocks, 1, n->threads, t);
        for (int64_t b = r.from; b < r.to; b++) {
            struct batch_norm_block block = batch_norm_block(cut, b);
            isa()->normalise(block.rows, block.columns, n->x + block.at, n->slope, n->shift,
                             n->side ? n->side + block.at : NULL, n->relu, n->y + block.at);
        }
    }
}

static bool check_inputs(const struct kernel_call *call, bool training, double factor,
                         struct error *err)
{
    const struct tensor *x = kernel_in(call, 0);
    char text[SHAPE_TEXT_BYTES];
    if (x->shape.rank != 4 && x->shape.rank != 5)
        return fail(err, INVALID, "input must be 4 or 5-dimensional%s",
                    shape_text(&x->shape, text, sizeof(text)));
    int64_t channels = x->shape.dims[x->shape.rank - 1];
    if (!kernel_batch_norm_check(call, channels, training, factor, err))
        return false;
    if (call->in_count > 5 && !shape_equal(&kernel_in(call, 5)->shape, &x->shape))
        return fail(err, INVALID, "side_input shape must be equal to input shape: %s",
                    shape_text(&kernel_in(call, 5)->shape, text, sizeof(text)));
    return true;
}

/*
 * Slope and shift of each channel, and what the node tells of the moments.  They come from the
 * moments as the gradient will see them, so that it finds the same slope and shift.
 */
static void finish_channel(const struct kernel_call *call, struct norm *n, int64_t c,
                           bool training, double factor, float **out)
{
    double epsilon = node_attr_float(call->node, "epsilon", 0.0001f);
    double count = (double)n->cut.rows;
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
    out[1][c] = (float)running_mean;
    out[2][c] = (float)running_variance;
    out[3][c] = (float)mean;
    out[4][c] = (float)variance;
    double slope = tensor_f32(kernel_in(call, 1))[c] / sqrt(out[4][c] + epsilon);
    n->slope[c] = (float)slope;
    n->shift[c] = (float)(tensor_f32(kernel_in(call, 2))[c] - out[3][c] * slope);
}

static bool make_room(struct kernel_call *call, struct norm *n, struct error *err)
{
    size_t channels = (size_t)n->cut.channels, columns = (size_t)n->cut.columns;
    n->mean = kernel_scratch(call, 2 * channels * sizeof(double), err);
    n->slope =
        kernel_scratch(call, (2 + 2 * (size_t)n->cut.blocks) * columns * sizeof(float), err);
    if (!n->mean || !n->slope)
        return false;
    n->variance = n->mean + channels;
    n->shift = n->slope + columns;
    n->parts = n->shift + columns;
    return true;
}

static bool norm_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *x = kernel_in(call, 0);
    bool training = node_attr_bool(call->node, "is_training", true);
    double factor = node_attr_float(call->node, "exponential_avg_factor", 1);
    if (!check_inputs(call, training, factor, err))
        return false;
    int64_t channels = x->shape.dims[x->shape.rank - 1];
    struct norm n = {.cut = batch_norm_cut(channels ? x->count / channels : 0, channels),
                     .x = tensor_f32(x),
                     .side = call->in_count > 5 ? tensor_f32(kernel_in(call, 5)) : NULL,
                     .threads = parallel_threads(call, x->count)};
    n.relu = !strcmp(node_attr_string(call->node, "activation_mode", "Identity"), "Relu");
    if (!make_room(call, &n, err))
        return false;
    float *out[6] = {0};
    for (int i = 0; i < call->node->outputs_count; i++) {
        const struct shape small = i < 5 ? SHAPE(channels) : SHAPE_SCALAR;
        struct tensor *made = i ? kernel_output(call, i, &small, err)
                                : kernel_output_reuse(call, 0, 0, &x->shape, err);
        if (!made)
            return false;
        out[i] = tensor_f32_mut(made);
        if (i == 5)
            *out[i] = 0;
    }
    n.y = out[0];
    if (training)
        find_moments(&n);
    for (int64_t c = 0; c < channels; c++)
        finish_channel(call, &n, c, training, factor, out);
    batch_norm_spread(&n.cut, n.slope);
    batch_norm_spread(&n.cut, n.shift);
    apply(&n);
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
