/* activation.c - the elementwise functions of neural networks, and their gradients. */

#include <tgmath.h>

#include "kernels/ref/rows.h"

/* "< 0", not "> 0": a NaN must pass through, or a diverging loss looks fine. */
ROWS_FLOAT(ROW1, relu, x < 0 ? 0 : x)
ROWS_SIGNED(ROW1, relu, x < 0 ? 0 : x)
ROWS_UNSIGNED(ROW1, relu, x)
ROWS_FLOAT(ROW1, relu6, x < 0 ? 0 : (x > 6 ? 6 : x))
ROWS_SIGNED(ROW1, relu6, x < 0 ? 0 : (x > 6 ? 6 : x))
ROWS_UNSIGNED(ROW1, relu6, x > 6 ? 6 : x)
ROWS_FLOAT(ROW1, elu, x < 0 ? expm1(x) : x)

#define SELU_SCALE 1.0507009873554804934193349852946
#define SELU_SCALE_ALPHA 1.7580993408473768599402175208123
ROW1(selu_f16, uint16_t, float, dtype_f16_to_f32, uint16_t, dtype_f32_to_f16,
     x < 0 ? (float)SELU_SCALE_ALPHA * expm1(x) : (float)SELU_SCALE * x)
ROW1(selu_bf16, uint16_t, float, dtype_bf16_to_f32, uint16_t, dtype_f32_to_bf16,
     x < 0 ? (float)SELU_SCALE_ALPHA * expm1(x) : (float)SELU_SCALE * x)
ROW1(selu_f32, float, float, , float, ,
     x < 0 ? (float)SELU_SCALE_ALPHA * expm1(x) : (float)SELU_SCALE * x)
ROW1(selu_f64, double, double, , double, , x < 0 ? SELU_SCALE_ALPHA * expm1(x) : SELU_SCALE * x)

ROWS_FLOAT(ROW1, leaky_relu, x > 0 ? x : (x <= 0 ? x * row->number : x))
ROWS_FLOAT(ROW1, softplus, x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)))
ROWS_FLOAT(ROW1, softsign, x / (1 + fabs(x)))

/* Gradients: x is what comes from above, y the feature or, for Elu and Selu, the output. */
/* A product, so that what is not finite shows. */
ROWS_FLOAT(ROW2, relu_grad, x *(y > 0))
ROWS_SIGNED(ROW2, relu_grad, y > 0 ? x : 0)
ROWS_UNSIGNED(ROW2, relu_grad, y > 0 ? x : 0)
ROWS_FLOAT(ROW2, relu6_grad, x *(y > 0 && y < 6))
ROWS_SIGNED(ROW2, relu6_grad, y > 0 && y < 6 ? x : 0)
ROWS_UNSIGNED(ROW2, relu6_grad, y > 0 && y < 6 ? x : 0)
ROWS_FLOAT(ROW2, elu_grad, y < 0 ? (y + 1) * x : x)
ROW2(selu_grad_f16, uint16_t, float, dtype_f16_to_f32, uint16_t, dtype_f32_to_f16,
     y < 0 ? x * (y + (float)SELU_SCALE_ALPHA) : x * (float)SELU_SCALE)
ROW2(selu_grad_bf16, uint16_t, float, dtype_bf16_to_f32, uint16_t, dtype_f32_to_bf16,
     y < 0 ? x * (y + (float)SELU_SCALE_ALPHA) : x * (float)SELU_SCALE)
ROW2(selu_grad_f32, float, float, , float, ,
     y < 0 ? x * (y + (float)SELU_SCALE_ALPHA) : x * (float)SELU_SCALE)
ROW2(selu_grad_f64, double, double, , double, ,
     y < 0 ? x * (y + SELU_SCALE_ALPHA) : x * SELU_SCALE)
ROWS_FLOAT(ROW2, leaky_relu_grad, y > 0 ? x : x * row->number)
ROWS_FLOAT(ROW2, softplus_grad, x / (1 + exp(-y)))
ROWS_FLOAT(ROW2, softsign_grad, x / ((1 + fabs(y)) * (1 + fabs(y))))

static const struct kernel_rows rows[] = {
    {.op = "Relu", .by_type = {REAL_ROWS(relu)}},
    {.op = "Relu6", .by_type = {REAL_ROWS(relu6)}},
    {.op = "Elu", .by_type = {FLOAT_ROWS(elu)}},
    {.op = "Selu", .by_type = {FLOAT_ROWS(selu)}},
    {.op = "LeakyRelu", .by_type = {FLOAT_ROWS(leaky_relu)}, .number = "alpha"},
    {.op = "Softplus", .by_type = {FLOAT_ROWS(softplus)}},
    {.op = "Softsign", .by_type = {FLOAT_ROWS(softsign)}},
    {.op = "ReluGrad", .by_type = {REAL_ROWS(relu_grad)}, .same_shape = true},
    {.op = "Relu6Grad", .by_type = {REAL_ROWS(relu6_grad)}, .same_shape = true},
    {.op = "EluGrad", .by_type = {FLOAT_ROWS(elu_grad)}, .same_shape = true},
    {.op = "SeluGrad", .by_type = {FLOAT_ROWS(selu_grad)}, .same_shape = true},
    {.op = "LeakyReluGrad",
     .by_type = {FLOAT_ROWS(leaky_relu_grad)},
     .same_shape = true,
     .number = "alpha"},
    {.op = "SoftplusGrad", .by_type = {FLOAT_ROWS(softplus_grad)}, .same_shape = true},
    {.op = "SoftsignGrad", .by_type = {FLOAT_ROWS(softsign_grad)}, .same_shape = true},
    {0},
};

static bool prepare(const struct node *node, void **state, struct error *err)
{
    return kernel_rows_prepare(rows, node, state, err);
}

#define ACTIVATION(name_, dtypes_, run_)                                                       \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = dtypes_, .prepare = prepare, .release = free,    \
        .run = run_,                                                                           \
    }

const struct kernel kernel_relu_ref = ACTIVATION("Relu", DTYPES_REAL, kernel_rows_unary);
const struct kernel kernel_relu6_ref = ACTIVATION("Relu6", DTYPES_REAL, kernel_rows_unary);
const struct kernel kernel_elu_ref = ACTIVATION("Elu", DTYPES_FLOAT, kernel_rows_unary);
const struct kernel kernel_selu_ref = ACTIVATION("Selu", DTYPES_FLOAT, kernel_rows_unary);
const struct kernel kernel_leaky_relu_ref =
    ACTIVATION("LeakyRelu", DTYPES_FLOAT, kernel_rows_unary);
const struct kernel kernel_softplus_ref =
    ACTIVATION("Softplus", DTYPES_FLOAT, kernel_rows_unary);
const struct kernel kernel_softsign_ref =
    ACTIVATION("Softsign", DTYPES_FLOAT, kernel_rows_unary);
const struct kernel kernel_relu_grad_ref =
    ACTIVATION("ReluGrad", DTYPES_REAL, kernel_rows_binary);
const struct kernel kernel_relu6_grad_ref =
    ACTIVATION("Relu6Grad", DTYPES_REAL, kernel_rows_binary);
const struct kernel kernel_elu_grad_ref =
    ACTIVATION("EluGrad", DTYPES_FLOAT, kernel_rows_binary);
const struct kernel kernel_selu_grad_ref =
    ACTIVATION("SeluGrad", DTYPES_FLOAT, kernel_rows_binary);
const struct kernel kernel_leaky_relu_grad_ref =
    ACTIVATION("LeakyReluGrad", DTYPES_FLOAT, kernel_rows_binary);
const struct kernel kernel_softplus_grad_ref =
    ACTIVATION("SoftplusGrad", DTYPES_FLOAT, kernel_rows_binary);
const struct kernel kernel_softsign_grad_ref =
    ACTIVATION("SoftsignGrad", DTYPES_FLOAT, kernel_rows_binary);
