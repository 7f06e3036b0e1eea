/* unary.c - elementwise functions of one operand. */

#include <tgmath.h>

#include "kernels/ref/numbers.h"
#include "kernels/ref/rows.h"

ROWS_FLOAT(ROW1, neg, -x)
ROWS_WRAPPED(ROW1, neg, 0 - x)
ROWS_COMPLEX(ROW1, neg, -x)
ROWS_COMPLEX(ROW1, conj, conj(x))

ROWS_FLOAT(ROW1, abs, fabs(x))
ROWS_SIGNED(ROW1, abs, x < 0 ? (int64_t)(0 - (uint64_t)x) : x)

/* Zeros and NaN are returned as they are. */
ROWS_FLOAT(ROW1, sign, x > 0 ? 1 : (x < 0 ? -1 : x))
ROWS_SIGNED(ROW1, sign, (x > 0) - (x < 0))
ROWS_COMPLEX(ROW1, sign, x == 0 ? 0 : x / cabs(x))

ROWS_FLOAT(ROW1, square, x *x)
ROWS_WRAPPED(ROW1, square, x *x)
ROWS_COMPLEX(ROW1, square, x *x)

ROWS_FLOAT(ROW1, sqrt, sqrt(x))
ROWS_COMPLEX(ROW1, sqrt, sqrt(x))
ROWS_FLOAT(ROW1, rsqrt, 1 / sqrt(x))
ROWS_COMPLEX(ROW1, rsqrt, 1 / sqrt(x))
ROWS_FLOAT(ROW1, reciprocal, 1 / x)
ROWS_COMPLEX(ROW1, reciprocal, 1 / x)

ROWS_FLOAT(ROW1, exp, exp(x))
ROWS_COMPLEX(ROW1, exp, exp(x))
ROWS_FLOAT(ROW1, expm1, expm1(x))
/* Real and imaginary part apart, so that nothing is lost near zero. */
ROWS_COMPLEX(ROW1, expm1,
             kernel_complex(expm1(creal(x)) * cos(cimag(x)) -
                                2 * sin(cimag(x) / 2) * sin(cimag(x) / 2),
                            exp(creal(x)) * sin(cimag(x))))
/* The addition flushes what is not normal to zero, where the processor is set so. */
ROWS_FLOAT(ROW1, log, log(x + 0))
ROWS_COMPLEX(ROW1, log, log(x))
ROWS_FLOAT(ROW1, log1p, log1p(x))
ROWS_COMPLEX(ROW1, log1p,
             kernel_complex(log1p(creal(x) * (2 + creal(x)) + cimag(x) * cimag(x)) / 2,
                            atan2(cimag(x), 1 + creal(x))))

ROWS_FLOAT(ROW1, sigmoid, 1 / (1 + exp(-x)))
ROWS_COMPLEX(ROW1, sigmoid, 1 / (1 + exp(-x)))
ROWS_FLOAT(ROW1, tanh, tanh(x))
ROWS_COMPLEX(ROW1, tanh, tanh(x))
ROWS_FLOAT(ROW1, sin, sin(x))
ROWS_COMPLEX(ROW1, sin, sin(x))
ROWS_FLOAT(ROW1, cos, cos(x))
ROWS_COMPLEX(ROW1, cos, cos(x))
ROWS_HALF(ROW1, erf, erf(x))
ROWS_BFLOAT(ROW1, erf, erf(x))
ROW1(erf_f32, float, float, , float, , erf(x))
/* TensorFlow 2.21 squares a double first: what overflows gives NaN. */
ROW1(erf_f64, double, double, , double, , isinf(x *x) ? NAN : erf(x))

ROWS_FLOAT(ROW1, floor, floor(x))
ROWS_FLOAT(ROW1, ceil, ceil(x))
/* Halves go to the even neighbour. */
ROWS_FLOAT(ROW1, round, rint(x))
/* Integers: TensorFlow 2.21 answers 0 on CPUs, whatever the number. */
ROWS_WRAPPED(ROW1, round, x ^ x)

TESTS_FLOAT(ROW1, is_nan, isnan(x))
TESTS_FLOAT(ROW1, is_inf, isinf(x))
TESTS_FLOAT(ROW1, is_finite, isfinite(x))
ROW1(logical_not, bool, bool, , bool, , !x)

#define FLOATS_AND_COMPLEX(name) FLOAT_ROWS(name), COMPLEX_ROWS(name)

static const struct kernel_rows rows[] = {
    {.op = "Neg", .by_type = {NUMBER_ROWS(neg)}},
    {.op = "Conj", .by_type = {COMPLEX_ROWS(conj)}},
    {.op = "Abs", .by_type = {FLOAT_ROWS(abs), SIGNED_ROWS(abs)}},
    {.op = "Sign", .by_type = {FLOATS_AND_COMPLEX(sign), SIGNED_ROWS(sign)}},
    {.op = "Square", .by_type = {NUMBER_ROWS(square)}},
    {.op = "Sqrt", .by_type = {FLOATS_AND_COMPLEX(sqrt)}},
    {.op = "Rsqrt", .by_type = {FLOATS_AND_COMPLEX(rsqrt)}},
    {.op = "Reciprocal", .by_type = {FLOATS_AND_COMPLEX(reciprocal)}},
    {.op = "Exp", .by_type = {FLOATS_AND_COMPLEX(exp)}},
    {.op = "Expm1", .by_type = {FLOATS_AND_COMPLEX(expm1)}},
    {.op = "Log", .by_type = {FLOATS_AND_COMPLEX(log)}},
    {.op = "Log1p", .by_type = {FLOATS_AND_COMPLEX(log1p)}},
    {.op = "Sigmoid", .by_type = {FLOATS_AND_COMPLEX(sigmoid)}},
    {.op = "Tanh", .by_type = {FLOATS_AND_COMPLEX(tanh)}},
    {.op = "Sin", .by_type = {FLOATS_AND_COMPLEX(sin)}},
    {.op = "Cos", .by_type = {FLOATS_AND_COMPLEX(cos)}},
    {.op = "Erf", .by_type = {FLOAT_ROWS(erf)}},
    {.op = "Floor", .by_type = {FLOAT_ROWS(floor)}},
    {.op = "Ceil", .by_type = {FLOAT_ROWS(ceil)}},
    {.op = "Round", .by_type = {REAL_ROWS(round)}},
    {.op = "Rint", .by_type = {FLOAT_ROWS(round)}},
    {.op = "IsNan", .by_type = {FLOAT_ROWS(is_nan)}},
    {.op = "IsInf", .by_type = {FLOAT_ROWS(is_inf)}},
    {.op = "IsFinite", .by_type = {FLOAT_ROWS(is_finite)}},
    {.op = "LogicalNot", .by_type = {[BOOL] = logical_not}},
    {0},
};

static bool prepare(const struct node *node, void **state, struct error *err)
{
    return kernel_rows_prepare(rows, node, state, err);
}

#define UNARY(name_, dtypes_)                                                                  \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = dtypes_, .prepare = prepare, .release = free,    \
        .run = kernel_rows_unary,                                                              \
    }
#define FLOATS (DTYPES_FLOAT | DTYPES_COMPLEX)

const struct kernel kernel_neg_ref = UNARY("Neg", DTYPES_NUMBER);
const struct kernel kernel_conj_ref = UNARY("Conj", DTYPES_COMPLEX);
const struct kernel kernel_abs_ref = UNARY("Abs", DTYPES_FLOAT | DTYPES_SIGNED);
const struct kernel kernel_sign_ref = UNARY("Sign", FLOATS | DTYPES_SIGNED);
const struct kernel kernel_square_ref = UNARY("Square", DTYPES_NUMBER);
const struct kernel kernel_sqrt_ref = UNARY("Sqrt", FLOATS);
const struct kernel kernel_rsqrt_ref = UNARY("Rsqrt", FLOATS);
const struct kernel kernel_reciprocal_ref = UNARY("Reciprocal", FLOATS);
const struct kernel kernel_exp_ref = UNARY("Exp", FLOATS);
const struct kernel kernel_expm1_ref = UNARY("Expm1", FLOATS);
const struct kernel kernel_log_ref = UNARY("Log", FLOATS);
const struct kernel kernel_log1p_ref = UNARY("Log1p", FLOATS);
const struct kernel kernel_sigmoid_ref = UNARY("Sigmoid", FLOATS);
const struct kernel kernel_tanh_ref = UNARY("Tanh", FLOATS);
const struct kernel kernel_sin_ref = UNARY("Sin", FLOATS);
const struct kernel kernel_cos_ref = UNARY("Cos", FLOATS);
const struct kernel kernel_erf_ref = UNARY("Erf", DTYPES_FLOAT);
const struct kernel kernel_floor_ref = UNARY("Floor", DTYPES_FLOAT);
const struct kernel kernel_ceil_ref = UNARY("Ceil", DTYPES_FLOAT);
const struct kernel kernel_round_ref = UNARY("Round", DTYPES_REAL);
const struct kernel kernel_rint_ref = UNARY("Rint", DTYPES_FLOAT);
const struct kernel kernel_is_nan_ref = UNARY("IsNan", DTYPES_FLOAT);
const struct kernel kernel_is_inf_ref = UNARY("IsInf", DTYPES_FLOAT);
const struct kernel kernel_is_finite_ref = UNARY("IsFinite", DTYPES_FLOAT);
const struct kernel kernel_logical_not_ref = UNARY("LogicalNot", 0);
