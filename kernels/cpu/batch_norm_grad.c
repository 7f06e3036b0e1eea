/*
 * batch_norm_grad.c - the gradient of batch normalisation in float, channels last, perhaps
 * through the Relu behind it and to the image that was added before.
 *
 * Two passes: sums of the gradient and of its product with x, per channel; then the gradient of
 * x, which is d * slope + x * a + b.  Where nothing was added, what Relu let through follows
 * from x, so the result need not be read.
 */
#include <math.h>

#include "base/error.h"
#include "kernels/cpu/batch_norm.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"
#include "kernels/list.h"
#include "kernels/ref/batch_norm.h"

struct norm_grad {
    struct batch_norm_cut cut;
    struct isa_norm_grad whole; /* block by block its rows and pointers move on */
    float *dx;
    float *mean, *slope, *shift, *of_x, *constant; /* (columns) */
    float *parts;                                  /* (blocks, 2, columns) */
    double *sum, *weighted;                        /* (channels) */
    int threads;
};

static bool grad_accepts(const struct node *node)
{
    const char *mode = node_attr_string(node, "activation_mode", "Identity");
    return !strcmp(node_attr_string(node, "data_format", "NHWC"), "NHWC") &&
           (!strcmp(mode, "Relu") || !strcmp(mode, "Identity")) &&
           node_attr_int(node, "num_side_inputs", 0) <= 1 &&
           (!node_attr(node, "U") || node_attr_type(node, "U") == F32);
}

static struct isa_norm_grad part_of(const struct norm_grad *n, int64_t index)
{
    struct batch_norm_block block = batch_norm_block(&n->cut, index);
    struct isa_norm_grad part = n->whole;
    part.rows = block.rows;
    part.columns = block.columns;
    part.grad += block.at;
    part.x += block.at;
    if (part.mask == ISA_NORM_BY_Y) {
        part.y += block.at;
        part.masked += block.at;
    }
    return part;
}

static void add_up(struct norm_grad *n)
{
    int64_t columns = n->cut.columns;
#pragma omp parallel for num_threads(n->threads) schedule(static) if (n->threads > 1)
    for (int t = 0; t < n->threads; t++) {
        struct range r = parallel_range(n->cut.blocks, 1, n->threads, t);
        for (int64_t b = r.from; b < r.to; b++) {
            struct isa_norm_grad part = part_of(n, b);
            float *sums = n->parts + b * 2 * columns;
            isa()->norm_sums(&part, sums, sums + columns);
        }
    }
    batch_norm_gather(&n->cut, n->parts, 2 * columns, n->sum);
    batch_norm_gather(&n->cut, n->parts + columns, 2 * columns, n->weighted);
}

static void apply(const struct norm_grad *n)
{
#pragma omp parallel for num_threads(n->threads) schedule(static) if (n->threads > 1)
    for (int t = 0; t < n->threads; t++) {
        struct range r = parallel_range(n->cut.blocks, 1, n->threads, t);
        for (int64_t b = r.from; b < r.to; b++) {
            struct isa_norm_grad part = part_of(n, b);
            if (part.mask == ISA_NORM_BY_Y) {
                part.grad = part.masked;
                part.mask = ISA_NORM_PLAIN;
            }
            isa()->norm_grad(&part, n->of_x, n->constant,
                             n->dx + batch_norm_block(&n->cut, b).at);
        }
    }
}

static bool make_room(struct kernel_call *call, struct norm_grad *n, struct error *err)
{
    size_t channels = (size_t)n->cut.channels, columns = (size_t)n->cut.columns;
    n->sum = kernel_scratch(call, 2 * channels * sizeof(double), err);
    n->mean =
        kernel_scratch(call, (5 + 2 * (size_t)n->cut.blocks) * columns * sizeof(float), err);
    if (!n->sum || !n->mean)
        return false;
    n->weighted = n->sum + channels;
    n->slope = n->mean + columns;
    n->shift = n->slope + columns;
    n->of_x = n->shift + columns;
    n->constant = n->of_x + columns;
    n->parts = n->constant + columns;
    n->whole.mean = n->mean;
    n->whole.slope = n->slope;
    n->whole.shift = n->shift;
    return true;
}

/* As the forward kernel found them. */
static void find_slopes(const struct kernel_call *call, struct norm_grad *n, double epsilon)
{
    const float *scale = tensor_f32(kernel_in(call, 2)), *mean = tensor_f32(kernel_in(call, 3));
    const float *variance = tensor_f32(kernel_in(call, 4));
    const float *offset =
        n->whole.mask == ISA_NORM_PLAIN ? NULL : tensor_f32(kernel_in(call, 6));
    for (int64_t c = 0; c < n->cut.channels; c++) {
        double slope = scale[c] / sqrt(variance[c] + epsilon);
        n->mean[c] = mean[c];
        n->slope[c] = (float)slope;
        n->shift[c] = offset ? (float)(offset[c] - mean[c] * slope) : 0;
    }
    batch_norm_spread(&n->cut, n->mean);
    batch_norm_spread(&n->cut, n->slope);
    batch_norm_spread(&n->cut, n->shift);
}

static void finish(const struct kernel_call *call, struct norm_grad *n, double epsilon,
                   float *dscale, float *doffset)
{
    const float *scale = tensor_f32(kernel_in(call, 2)), *mean = tensor_f32(kernel_in(call, 3));
    const float *variance = tensor_f32(kernel_in(call, 4));
    bool training = node_attr_bool(call->node, "is_training", true);
    double count = (double)n->cut.rows;
    for (int64_t c = 0; c < n->cut.channels; c++) {
        /* A row that is its own mean: dx is exactly 0. */
        bool alone = training && n->cut.rows == 1 && n->weighted[c] == 0;
        double spread = variance[c] + epsilon, slope = alone ? 0 : scale[c] / sqrt(spread);
        n->slope[c] = alone ? 0 : n->slope[c];
        double of_x = training ? -slope * n->weighted[c] / count / spread : 0;
        double constant = training ? -slope * n->sum[c] / count - of_x * mean[c] : 0;
        dscale[c] = (float)(n->weighted[c] / sqrt(spread));
        doffset[c] = (float)n->sum[c];
        n->of_x[c] = (float)of_x;
        n->constant[c] = (float)constant;
    }
    batch_norm_spread(&n->cut, n->of_x);
    batch_norm_spread(&n->cut, n->constant);
}

static bool grad_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *x = kernel_in(call, 1);
    int rank = x->shape.rank;
    if (!kernel_batch_norm_grad_check(call, rank ? x->shape.dims[rank - 1] : 0, err))
        return false;
    double epsilon = node_attr_float(call->node, "epsilon", 0.0001f);
    int64_t channels = x->shape.dims[x->shape.rank - 1];
    bool relu = !strcmp(node_attr_string(call->node, "activation_mode", "Identity"), "Relu");
    bool side = node_attr_int(call->node, "num_side_inputs", 0) > 0;
    struct norm_grad n = {.cut = batch_norm_cut(channels ? x->count / channels : 0, channels),
                          .threads = parallel_threads(call, x->count)};
    n.whole.mask = !relu ? ISA_NORM_PLAIN : side ? ISA_NORM_BY_Y : ISA_NORM_BY_X;
    n.whole.grad = tensor_f32(kernel_in(call, 0));
    n.whole.x = tensor_f32(x);
    if (!make_room(call, &n, err))
        return false;
    struct tensor *out[6] = {0};
    for (int i = 0; i < call->node->outputs_count; i++) {
        const struct shape vector = SHAPE(i < 3 ? channels : 0);
        out[i] = i == 0   ? kernel_output_reuse(call, 0, side, &x->shape, err)
                 : i == 5 ? kernel_output_reuse(call, 5, 0, &x->shape, err)
                          : kernel_output(call, i, &vector, err);
        if (!out[i])
            return false;
    }
    n.dx = tensor_f32_mut(out[0]);
    if (side) {
        n.whole.y = tensor_f32(kernel_in(call, 7));
        n.whole.masked = tensor_f32_mut(out[5]);
    }
    find_slopes(call, &n, epsilon);
    add_up(&n);
    finish(call, &n, epsilon, tensor_f32_mut(out[1]), tensor_f32_mut(out[2]));
    apply(&n);
    return true;
}

#define NORM(name, op_name)                                                                    \
    const struct kernel kernel_##name##_cpu = {.op = op_name,                                  \
                                               .device = CPU,                                  \
                                               .dtypes = BIT(F32),                             \
                                               .accepts = grad_accepts,                        \
                                               .run = grad_run};

NORM(fused_batch_norm_grad, "FusedBatchNormGrad")
NORM(fused_batch_norm_grad_v2, "FusedBatchNormGradV2")
NORM(fused_batch_norm_grad_v3, "FusedBatchNormGradV3")
NORM(fused_batch_norm_grad_ex, "_FusedBatchNormGradEx")
