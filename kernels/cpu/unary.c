/* unary.c - functions of one float, element by element, and ReluGrad. */

#include "base/error.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"
#include "kernels/list.h"
#include "kernels/ref/numbers.h"

static bool run(struct kernel_call *call, enum isa_unary operation, struct error *err)
{
    const struct tensor *x = kernel_in(call, 0);
    struct tensor *out = kernel_output_reuse(call, 0, 0, &x->shape, err);
    if (!out)
        return false;
    const float *from = tensor_f32(x);
    float *to = tensor_f32_mut(out);
    int threads = parallel_threads(call, out->count);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        struct range r = parallel_range(out->count, 16, threads, t);
        isa()->unary(operation, r.to - r.from, from + r.from, to + r.from);
    }
    return true;
}

#define UNARY(name, op_name, operation)                                                        \
    static bool name##_run(struct kernel_call *call, struct error *err)                        \
    {                                                                                          \
        return run(call, operation, err);                                                      \
    }                                                                                          \
    const struct kernel kernel_##name##_cpu = {                                                \
        .op = op_name, .device = CPU, .dtypes = BIT(F32), .run = name##_run};

UNARY(neg, "Neg", ISA_NEG)
UNARY(abs, "Abs", ISA_ABS)
UNARY(square, "Square", ISA_SQUARE)
UNARY(sqrt, "Sqrt", ISA_SQRT)
UNARY(rsqrt, "Rsqrt", ISA_RSQRT)
UNARY(reciprocal, "Reciprocal", ISA_RECIPROCAL)
UNARY(relu, "Relu", ISA_RELU)
UNARY(exp, "Exp", ISA_EXP)
UNARY(log, "Log", ISA_LOG)
UNARY(tanh, "Tanh", ISA_TANH)
UNARY(sigmoid, "Sigmoid", ISA_SIGMOID)

static bool relu_grad_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *grad = kernel_in(call, 0);
    const struct tensor *features = kernel_in(call, 1);
    if (!kernel_same_shape(call, 0, 1, err))
        return false;
    struct tensor *out = kernel_output_reuse(call, 0, 0, &grad->shape, err);
    if (!out)
        return false;
    const float *g = tensor_f32(grad), *x = tensor_f32(features);
    float *to = tensor_f32_mut(out);
    int threads = parallel_threads(call, out->count);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        struct range r = parallel_range(out->count, 16, threads, t);
        isa()->binary(ISA_RELU_GRAD, r.to - r.from, g + r.from, false, x + r.from, false,
                      to + r.from);
    }
    return true;
}

const struct kernel kernel_relu_grad_cpu = {
    .op = "ReluGrad",
    .device = CPU,
    .dtypes = BIT(F32),
    .run = relu_grad_run,
};
