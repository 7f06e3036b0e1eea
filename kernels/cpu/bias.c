/*
 * bias.c - BiasAdd and BiasAddGrad in float, channels last; _ReluGradBiasAddGrad, which is both
 * gradients of a layer in one pass.
 */
#include "base/error.h"
#include "kernels/cpu/columns.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"
#include "kernels/list.h"

static bool channels_last(const struct node *node)
{
    return !strcmp(node_attr_string(node, "data_format", "NHWC"), "NHWC");
}

static bool bias_add_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *x = kernel_in(call, 0);
    const struct tensor *bias = kernel_in(call, 1);
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    if (x->shape.rank < 2)
        return fail(err, INVALID, "Input tensor must be at least 2D: %s",
                    shape_text(&x->shape, a, sizeof(a)));
    if (bias->shape.rank != 1)
        return fail(err, INVALID, "Biases must be 1D: %s",
                    shape_text(&bias->shape, b, sizeof(b)));
    if (bias->count != x->shape.dims[x->shape.rank - 1])
        return fail(
            err, INVALID,
            "Must provide as many biases as the last dimension of the input tensor: %s vs. %s",
            shape_text(&bias->shape, b, sizeof(b)), shape_text(&x->shape, a, sizeof(a)));
    struct tensor *out = kernel_output_reuse(call, 0, 0, &x->shape, err);
    if (!out)
        return false;
    if (out->count == 0)
        return true;
    int64_t columns = bias->count, rows = x->count / columns;
    const float *from = tensor_f32(x), *add = tensor_f32(bias);
    float *to = tensor_f32_mut(out);
    int threads = parallel_threads(call, out->count);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        struct range r = parallel_range(rows, 1, threads, t);
        isa()->bias(r.to - r.from, columns, from + r.from * columns, add, false,
                    to + r.from * columns);
    }
    return true;
}

static bool bias_add_grad_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *grad = kernel_in(call, 0);
    char a[SHAPE_TEXT_BYTES];
    if (grad->shape.rank < 2)
        return fail(err, INVALID, "Input tensor must be at least 2D: %s",
                    shape_text(&grad->shape, a, sizeof(a)));
    int64_t columns = grad->shape.dims[grad->shape.rank - 1];
    struct tensor *sums = kernel_output(call, 0, &SHAPE(columns), err);
    if (!sums)
        return false;
    return columns_sum(call, columns ? grad->count / columns : 0, columns, tensor_f32(grad),
                       NULL, NULL, tensor_f32_mut(sums), err);
}

static bool relu_bias_grad_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *grad = kernel_in(call, 0);
    const struct tensor *features = kernel_in(call, 1);
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    if (grad->shape.rank < 2 || !shape_equal(&grad->shape, &features->shape))
        return fail(err, INVALID,
                    "Inputs to operation of type ReluGrad must have the same size and shape.  "
                    "Input 0: %s != input 1: %s",
                    shape_text(&grad->shape, a, sizeof(a)),
                    shape_text(&features->shape, b, sizeof(b)));
    int64_t columns = grad->shape.dims[grad->shape.rank - 1];
    struct tensor *out = kernel_output_reuse(call, 0, 0, &grad->shape, err);
    if (!out)
        return false;
    struct tensor *sums = kernel_output(call, 1, &SHAPE(columns), err);
    if (!sums)
        return false;
    return columns_sum(call, columns ? grad->count / columns : 0, columns, tensor_f32(grad),
                       tensor_f32(features), tensor_f32_mut(out), tensor_f32_mut(sums), err);
}

const struct kernel kernel_bias_add_cpu = {
    .op = "BiasAdd",
    .device = CPU,
    .dtypes = BIT(F32),
    .accepts = channels_last,
    .run = bias_add_run,
};

const struct kernel kernel_bias_add_grad_cpu = {
    .op = "BiasAddGrad",
    .device = CPU,
    .dtypes = BIT(F32),
    .accepts = channels_last,
    .run = bias_add_grad_run,
};

const struct kernel kernel_relu_bias_grad_cpu = {
    .op = "_ReluGradBiasAddGrad",
    .device = CPU,
    .dtypes = BIT(F32),
    .run = relu_bias_grad_run,
};
