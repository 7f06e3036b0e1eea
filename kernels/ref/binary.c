/* binary.c - elementwise arithmetic of two operands, which broadcast. */

#include <tgmath.h>

#include "kernels/ref/rows.h"

ROWS_FLOAT(ROW2, add, x + y)
ROWS_WRAPPED(ROW2, add, x + y)
ROWS_COMPLEX(ROW2, add, x + y)

ROWS_FLOAT(ROW2, sub, x - y)
ROWS_WRAPPED(ROW2, sub, x - y)
ROWS_COMPLEX(ROW2, sub, x - y)

ROWS_FLOAT(ROW2, mul, x *y)
ROWS_WRAPPED(ROW2, mul, x *y)
ROWS_COMPLEX(ROW2, mul, x *y)

ROWS_FLOAT(ROW2, mul_no_nan, y == 0 ? 0 : x * y)
ROWS_COMPLEX(ROW2, mul_no_nan, y == 0 ? 0 : x * y)

/* The least number by -1 wraps to itself. */
ROWS_FLOAT(ROW2, div, x / y)
ROWS_SIGNED(ROW2, div, y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y)
ROWS_UNSIGNED(ROW2, div, x / y)
ROWS_COMPLEX(ROW2, div, x / y)

ROWS_HALF(ROW2, truncate_div, trunc(dtype_f16_to_f32(dtype_f32_to_f16(x / y))))
ROWS_BFLOAT(ROW2, truncate_div, trunc(dtype_bf16_to_f32(dtype_f32_to_bf16(x / y))))
ROW2(truncate_div_f32, float, float, (float), float, (float), trunc(x / y))
ROW2(truncate_div_f64, double, double, (double), double, (double), trunc(x / y))

ROWS_FLOAT(ROW2, div_no_nan, y == 0 ? 0 : x / y)
ROWS_COMPLEX(ROW2, div_no_nan, y == 0 ? 0 : x / y)
ROWS_FLOAT(ROW2, xdivy, x == 0 ? 0 : x / y)
ROWS_COMPLEX(ROW2, xdivy, x == 0 ? 0 : x / y)

/* The quotient is rounded to the type before floor sees it. */
ROWS_HALF(ROW2, floor_div, floor(dtype_f16_to_f32(dtype_f32_to_f16(x / y))))
ROWS_BFLOAT(ROW2, floor_div, floor(dtype_bf16_to_f32(dtype_f32_to_bf16(x / y))))
ROW2(floor_div_f32, float, float, (float), float, (float), floor(x / y))
ROW2(floor_div_f64, double, double, (double), double, (double), floor(x / y))
ROWS_SIGNED(ROW2, floor_div,
            y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y - (x % y != 0 && (x < 0) != (y < 0)))

/* The sign of y, as Python has it. */
ROWS_FLOAT(ROW2, floor_mod,
           fmod(x, y) != 0 && (y < 0) != (fmod(x, y) < 0) ? fmod(x, y) + y : fmod(x, y))
ROWS_SIGNED(ROW2, floor_mod,
            y == -1 ? 0 : (x % y != 0 && (x < 0) != (y < 0) ? x % y + y : x % y))
ROWS_UNSIGNED(ROW2, floor_mod, x % y)
ROWS_FLOAT(ROW2, truncate_mod, fmod(x, y))
ROWS_SIGNED(ROW2, truncate_mod, y == -1 ? 0 : x % y)

/* A NaN on either side is the result. */
ROWS_FLOAT(ROW2, maximum, x != x || y != y ? x + y : (x > y ? x : y))
ROWS_SIGNED(ROW2, maximum, x > y ? x : y)
ROWS_UNSIGNED(ROW2, maximum, x > y ? x : y)
ROWS_FLOAT(ROW2, minimum, x != x || y != y ? x + y : (x < y ? x : y))
ROWS_SIGNED(ROW2, minimum, x < y ? x : y)
ROWS_UNSIGNED(ROW2, minimum, x < y ? x : y)

ROWS_FLOAT(ROW2, squared_difference, (x - y) * (x - y))
ROWS_WRAPPED(ROW2, squared_difference, (x - y) * (x - y))
ROWS_COMPLEX(ROW2, squared_difference, (x - y) * conj(x - y))

static uint64_t power(uint64_t base, uint64_t exponent)
{
    uint64_t result = 1;
    for (; exponent; exponent >>= 1) {
        if (exponent & 1)
            result *= base;
        base *= base;
    }
    return result;
}

ROWS_FLOAT(ROW2, pow, pow(x, y))
ROWS_WRAPPED(ROW2, pow, power(x, y))
ROWS_COMPLEX(ROW2, pow, x == 0 && y == 0 ? 1 : pow(x, y))

/* --- gradients of functions of one operand: x is the function's value, y its gradient --- */

ROWS_FLOAT(ROW2, sigmoid_grad, y *x *(1 - x))
ROWS_COMPLEX(ROW2, sigmoid_grad, y *x *(1 - x))
ROWS_FLOAT(ROW2, tanh_grad, y *(1 - x * x))
ROWS_COMPLEX(ROW2, tanh_grad, y *(1 - x * x))
ROWS_FLOAT(ROW2, sqrt_grad, y / 2 / x)
ROWS_COMPLEX(ROW2, sqrt_grad, y / 2 / conj(x))
ROWS_FLOAT(ROW2, rsqrt_grad, y / -2 * x * x * x)
ROWS_COMPLEX(ROW2, rsqrt_grad, y / -2 * conj(x * x * x))
ROWS_FLOAT(ROW2, reciprocal_grad, -y *x *x)
ROWS_COMPLEX(ROW2, reciprocal_grad, -y *conj(x *x))

static bool has_integer(const struct tensor *y, bool (*wanted)(int64_t))
{
    if (!(DTYPES_INTEGER & BIT(y->dtype)))
        return false;
    for (int64_t i = 0; i < y->count; i++)
        if (wanted(tensor_integer(y, i)))
            return true;
    return false;
}

static bool is_zero(int64_t value)
{
    return value == 0;
}

static bool is_negative(int64_t value)
{
    return value < 0;
}

static bool check_divisor(const struct tensor *y, struct error *err)
{
    return !has_integer(y, is_zero) || fail(err, INVALID, "Integer division by zero");
}

/* TensorFlow's code for the truncating division differs from the others'. */
static bool check_truncate_divisor(const struct tensor *y, struct error *err)
{
    return !has_integer(y, is_zero) ||
           fail(err, INTERNAL,
                "Unexpected error in binary operator (only integer div and mod should have "
                "errors)");
}

static bool check_exponent(const struct tensor *y, struct error *err)
{
    return !has_integer(y, is_negative) ||
           fail(err, INVALID, "Integers to negative integer powers are not allowed");
}

static const struct kernel_rows rows[] = {
    {.op = "Add", .by_type = {NUMBER_ROWS(add)}},
    {.op = "AddV2", .by_type = {NUMBER_ROWS(add)}},
    {.op = "Sub", .by_type = {NUMBER_ROWS(sub)}},
    {.op = "Mul", .by_type = {NUMBER_ROWS(mul)}},
    {.op = "MulNoNan", .by_type = {FLOAT_ROWS(mul_no_nan), COMPLEX_ROWS(mul_no_nan)}},
    {.op = "RealDiv", .by_type = {NUMBER_ROWS(div)}, .check = check_divisor},
    {.op = "Div", .by_type = {NUMBER_ROWS(div)}, .check = check_divisor},
    {.op = "DivNoNan", .by_type = {FLOAT_ROWS(div_no_nan), COMPLEX_ROWS(div_no_nan)}},
    {.op = "Xdivy", .by_type = {FLOAT_ROWS(xdivy), COMPLEX_ROWS(xdivy)}},
    {.op = "FloorDiv",
     .by_type = {FLOAT_ROWS(floor_div), SIGNED_ROWS(floor_div), UNSIGNED_ROWS(div)},
     .check = check_divisor},
    {.op = "TruncateDiv",
     .by_type = {FLOAT_ROWS(truncate_div), INTEGER_ROWS(div)},
     .check = check_truncate_divisor},
    {.op = "FloorMod", .by_type = {REAL_ROWS(floor_mod)}, .check = check_divisor},
    {.op = "TruncateMod",
     .by_type = {FLOAT_ROWS(truncate_mod), SIGNED_ROWS(truncate_mod)},
     .check = check_truncate_divisor},
    {.op = "Maximum", .by_type = {REAL_ROWS(maximum)}},
    {.op = "Minimum", .by_type = {REAL_ROWS(minimum)}},
    {.op = "SquaredDifference", .by_type = {NUMBER_ROWS(squared_difference)}},
    {.op = "Pow", .by_type = {NUMBER_ROWS(pow)}, .check = check_exponent},
    {.op = "SigmoidGrad",
     .by_type = {FLOAT_ROWS(sigmoid_grad), COMPLEX_ROWS(sigmoid_grad)},
     .same_count = true},
    {.op = "TanhGrad",
     .by_type = {FLOAT_ROWS(tanh_grad), COMPLEX_ROWS(tanh_grad)},
     .same_count = true},
    {.op = "SqrtGrad",
     .by_type = {FLOAT_ROWS(sqrt_grad), COMPLEX_ROWS(sqrt_grad)},
     .same_count = true},
    {.op = "RsqrtGrad",
     .by_type = {FLOAT_ROWS(rsqrt_grad), COMPLEX_ROWS(rsqrt_grad)},
     .same_count = true},
    {.op = "ReciprocalGrad",
     .by_type = {FLOAT_ROWS(reciprocal_grad), COMPLEX_ROWS(reciprocal_grad)},
     .same_count = true},
    {0},
};

static bool prepare(const struct node *node, void **state, struct error *err)
{
    return kernel_rows_prepare(rows, node, state, err);
}

#define BINARY(name_, dtypes_)                                                                 \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = dtypes_, .prepare = prepare, .release = free,    \
        .run = kernel_rows_binary,                                                             \
    }
#define FLOATS (DTYPES_FLOAT | DTYPES_COMPLEX)

const struct kernel kernel_add_ref = BINARY("Add", DTYPES_NUMBER);
const struct kernel kernel_add_v2_ref = BINARY("AddV2", DTYPES_NUMBER);
const struct kernel kernel_sub_ref = BINARY("Sub", DTYPES_NUMBER);
const struct kernel kernel_mul_ref = BINARY("Mul", DTYPES_NUMBER);
const struct kernel kernel_mul_no_nan_ref = BINARY("MulNoNan", FLOATS);
const struct kernel kernel_real_div_ref = BINARY("RealDiv", DTYPES_NUMBER);
const struct kernel kernel_div_ref = BINARY("Div", DTYPES_NUMBER);
const struct kernel kernel_div_no_nan_ref = BINARY("DivNoNan", FLOATS);
const struct kernel kernel_xdivy_ref = BINARY("Xdivy", FLOATS);
const struct kernel kernel_floor_div_ref = BINARY("FloorDiv", DTYPES_REAL);
const struct kernel kernel_truncate_div_ref = BINARY("TruncateDiv", DTYPES_REAL);
const struct kernel kernel_floor_mod_ref = BINARY("FloorMod", DTYPES_REAL);
const struct kernel kernel_truncate_mod_ref =
    BINARY("TruncateMod", DTYPES_FLOAT | DTYPES_SIGNED);
const struct kernel kernel_maximum_ref = BINARY("Maximum", DTYPES_REAL);
const struct kernel kernel_minimum_ref = BINARY("Minimum", DTYPES_REAL);
const struct kernel kernel_squared_difference_ref = BINARY("SquaredDifference", DTYPES_NUMBER);
const struct kernel kernel_pow_ref = BINARY("Pow", DTYPES_NUMBER);
const struct kernel kernel_sigmoid_grad_ref = BINARY("SigmoidGrad", FLOATS);
const struct kernel kernel_tanh_grad_ref = BINARY("TanhGrad", FLOATS);
const struct kernel kernel_sqrt_grad_ref = BINARY("SqrtGrad", FLOATS);
const struct kernel kernel_rsqrt_grad_ref = BINARY("RsqrtGrad", FLOATS);
const struct kernel kernel_reciprocal_grad_ref = BINARY("ReciprocalGrad", FLOATS);
