/*
 * matmul.c - MatMul, and with bias, Relu or a step of gradient descent at its end, in float.
 */

#include "base/alloc.h"
#include "base/error.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/update.h"
#include "kernels/list.h"
#include "kernels/ref/mat_mul.h"
#include "runtime/attr.h"
#include "runtime/resource.h"

struct matmul {
    bool transpose_a, transpose_b;
    bool bias, relu;
};

static bool matmul_prepare(const struct node *node, void **state, struct error *err)
{
    (void)err;
    struct matmul *m = alloc_bytes(sizeof(*m));
    m->transpose_a = node_attr_bool(node, "transpose_a", false);
    m->transpose_b = node_attr_bool(node, "transpose_b", false);
    const struct attr *fused = node_attr(node, "fused_ops");
    for (int i = 0; fused && i < fused->count; i++) {
        m->bias |= !strcmp(fused->strings[i].data, "BiasAdd");
        m->relu |= !strcmp(fused->strings[i].data, "Relu");
    }
    *state = m;
    return true;
}

/* BiasAdd, and Relu behind it, is what gemm.c can add. */
static bool fused_accepts(const struct node *node)
{
    const struct attr *fused = node_attr(node, "fused_ops");
    if (!fused || fused->count < 1 || fused->count > 2)
        return false;
    return !strcmp(fused->strings[0].data, "BiasAdd") &&
           (fused->count == 1 || !strcmp(fused->strings[1].data, "Relu")) &&
           node->inputs_count == 3;
}

static bool check_bias(const struct matmul *m, const struct tensor *b,
                       const struct tensor *bias, struct error *err)
{
    char text[SHAPE_TEXT_BYTES], b_text[SHAPE_TEXT_BYTES];
    if (bias->shape.rank != 1 || bias->shape.dims[0] != b->shape.dims[!m->transpose_b])
        return fail(err, INVALID, "the bias %s does not fit a product with %s",
                    shape_text(&bias->shape, text, sizeof(text)),
                    shape_text(&b->shape, b_text, sizeof(b_text)));
    return true;
}

/* The product of inputs `a` and `b`, added to (or put into) `c`. */
static bool multiply(struct kernel_call *call, const struct tensor *a, const struct tensor *b,
                     float *c, float alpha, float beta, struct error *err)
{
    const struct matmul *m = call->state;
    int64_t columns = b->shape.dims[!m->transpose_b];
    struct gemm gemm = {
        .m = a->shape.dims[m->transpose_a],
        .n = columns,
        .k = a->shape.dims[!m->transpose_a],
        .a = tensor_f32(a),
        .a_row = m->transpose_a ? 1 : a->shape.dims[1],
        .a_column = m->transpose_a ? a->shape.dims[1] : 1,
        .b = tensor_f32(b),
        .b_row = m->transpose_b ? 1 : b->shape.dims[1],
        .b_column = m->transpose_b ? b->shape.dims[1] : 1,
        .c = c,
        .c_row = columns,
        .alpha = alpha,
        .beta = beta,
        .bias = m->bias ? tensor_f32(kernel_in(call, 2)) : NULL,
        .relu = m->relu,
        .bf16 = call->precision == BF16,
    };
    void *scratch = kernel_scratch(call, gemm_scratch(&gemm, call->threads), err);
    if (!scratch)
        return false;
    gemm_run(&gemm, call->threads, scratch);
    return true;
}

static bool matmul_run(struct kernel_call *call, struct error *err)
{
    const struct matmul *m = call->state;
    const struct tensor *a = kernel_in(call, 0);
    const struct tensor *b = kernel_in(call, 1);
    if (!kernel_mat_mul_check(m->transpose_a, m->transpose_b, &a->shape, &b->shape, err) ||
        (m->bias && !check_bias(m, b, kernel_in(call, 2), err)))
        return false;
    struct shape shape = SHAPE(a->shape.dims[m->transpose_a], b->shape.dims[!m->transpose_b]);
    struct tensor *c = kernel_output(call, 0, &shape, err);
    return c && multiply(call, a, b, tensor_f32_mut(c), 1, 0, err);
}

/* A layer's gradient goes into its variable as it is made: var -= alpha * (a b). */
static bool descent_run(struct kernel_call *call, struct error *err)
{
    const struct matmul *m = call->state;
    const struct tensor *alpha = kernel_in(call, 1);
    const struct tensor *a = kernel_in(call, 2);
    const struct tensor *b = kernel_in(call, 3);
    char is[SHAPE_TEXT_BYTES];
    if (alpha->shape.rank != 0)
        return fail(err, INVALID, "alpha is not a scalar: %s",
                    shape_text(&alpha->shape, is, sizeof(is)));
    if (!kernel_mat_mul_check(m->transpose_a, m->transpose_b, &a->shape, &b->shape, err))
        return false;
    /* What the product will be: its shape, for the check against the variable's. */
    const struct tensor delta = {
        .shape = SHAPE(a->shape.dims[m->transpose_a], b->shape.dims[!m->transpose_b])};
    struct opened var;
    if (!kernel_open_variables(call, 0, 1, &delta, &var, err))
        return false;
    bool ok = multiply(call, a, b, var.data, -*tensor_f32(alpha), 1, err);
    kernel_close_variables(&var, 1);
    return ok;
}

const struct kernel kernel_matmul_cpu = {
    .op = "MatMul",
    .device = CPU,
    .dtypes = BIT(F32),
    .prepare = matmul_prepare,
    .release = free,
    .run = matmul_run,
};

const struct kernel kernel_fused_matmul_cpu = {
    .op = "_FusedMatMul",
    .device = CPU,
    .dtypes = BIT(F32),
    .accepts = fused_accepts,
    .prepare = matmul_prepare,
    .release = free,
    .run = matmul_run,
};

const struct kernel kernel_matmul_descent_cpu = {
    .op = "_MatMulApplyGradientDescent",
    .device = CPU,
    .dtypes = BIT(F32),
    .prepare = matmul_prepare,
    .release = free,
    .run = descent_run,
};
