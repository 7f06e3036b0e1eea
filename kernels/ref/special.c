/* special.c - elementwise functions beyond the everyday ones. */

#include <tgmath.h>

#include "kernels/ref/rows.h"

ROWS_FLOAT(ROW1, acos, acos(x))
ROWS_COMPLEX(ROW1, acos, acos(x))
ROWS_FLOAT(ROW1, asin, asin(x))
ROWS_COMPLEX(ROW1, asin, asin(x))
ROWS_FLOAT(ROW1, atan, atan(x))
ROWS_COMPLEX(ROW1, atan, atan(x))
ROWS_FLOAT(ROW1, acosh, acosh(x))
ROWS_COMPLEX(ROW1, acosh, acosh(x))
ROWS_FLOAT(ROW1, asinh, asinh(x))
ROWS_COMPLEX(ROW1, asinh, asinh(x))
ROWS_FLOAT(ROW1, atanh, atanh(x))
ROWS_COMPLEX(ROW1, atanh, atanh(x))
ROWS_FLOAT(ROW1, cosh, cosh(x))
ROWS_COMPLEX(ROW1, cosh, cosh(x))
ROWS_FLOAT(ROW1, sinh, sinh(x))
ROWS_COMPLEX(ROW1, sinh, sinh(x))
ROWS_FLOAT(ROW1, tan, tan(x))
ROWS_COMPLEX(ROW1, tan, tan(x))
ROWS_FLOAT(ROW1, erfc, erfc(x))
ROWS_FLOAT(ROW1, lgamma, lgamma(x))
ROWS_FLOAT(ROW1, inverse, 1 / x)
ROWS_COMPLEX(ROW1, inverse, 1 / x)

/* The derivative of lgamma: steps up to where the asymptotic series holds. */
static double digamma(double x)
{
    static const double series[] = {1.0 / 12,  -1.0 / 120,     1.0 / 252, -1.0 / 240,
                                    1.0 / 132, -691.0 / 32760, 1.0 / 12,  -3617.0 / 8160};
    double reflected = 0;
    if (x <= 0) {
        if (x == floor(x))
            return NAN;
        reflected = M_PI / tan(M_PI * (x - floor(x)));
        x = 1 - x;
    }
    double sum = 0;
    for (; x < 10; x++)
        sum -= 1 / x;
    double inverse = 1 / (x * x), power = 1;
    sum += log(x) - 0.5 / x;
    for (int i = 0; i < ARRAY_LEN(series); i++)
        sum -= series[i] * (power *= inverse);
    return sum - reflected;
}

/* Hurwitz's sum of (q + k)^-x: the first terms one by one, the rest by Euler and Maclaurin. */
static double zeta(double x, double q)
{
    static const double series[] = {1.0 / 12,         -1.0 / 720,     1.0 / 30240,
                                    -1.0 / 1209600,   1.0 / 47900160, -691.0 / 1307674368000,
                                    1.0 / 74724249600};
    if (!(x > 1))
        return x == 1 ? INFINITY : NAN;
    if (q <= 0 && q == floor(q))
        return INFINITY;
    if (q <= 0 && x != floor(x))
        return NAN;
    double sum = 0;
    for (; q < 12; q++)
        sum += pow(q, -x);
    sum += pow(q, 1 - x) / (x - 1) + pow(q, -x) / 2;
    double term = x * pow(q, -x - 1);
    for (int i = 0; i < ARRAY_LEN(series); i++) {
        sum += series[i] * term;
        term *= (x + 2 * i + 1) * (x + 2 * i + 2) / (q * q);
    }
    return sum;
}

/* Derivative number n of digamma. */
static double polygamma(double n, double x)
{
    if (n != floor(n) || n < 0)
        return NAN;
    if (n == 0)
        return digamma(x);
    return (fmod(n, 2) == 0 ? -1 : 1) * tgamma(n + 1) * zeta(n + 1, x);
}

/* The x with erfc(x) = y, in (0, 2): a rough guess, then Newton's steps. */
static double erfc_inverse(double y)
{
    if (!(y > 0 && y < 2))
        return y == 0 ? INFINITY : (y == 2 ? -INFINITY : NAN);
    double less = y < 1 ? y : 2 - y, t = sqrt(-2 * log(less / 2));
    double x = (2.30753 + t * 0.27061) / (1 + t * (0.99229 + t * 0.04481)) - t;
    x *= -M_SQRT1_2;
    for (int i = 0; i < 4; i++) {
        double off = erfc(x) - less;
        x += off / (M_2_SQRTPI * exp(-x * x) - x * off);
    }
    return y < 1 ? x : -x;
}

/* The x with erf(x) = y; near 0 without the loss of 1 - y. */
static double erf_inverse(double y)
{
    if (fabs(y) > 0.5)
        return y > 0 ? erfc_inverse(1 - y) : -erfc_inverse(1 + y);
    double x = y * 0.886226925452758;
    for (int i = 0; i < 6; i++)
        x -= (erf(x) - y) / (M_2_SQRTPI * exp(-x * x));
    return x;
}

ROWS_FLOAT(ROW1, digamma, digamma(x))
ROW1(erfinv_f32, float, double, (double), float, (float), erf_inverse(x))
ROW1(erfinv_f64, double, double, , double, , erf_inverse(x))
ROW1(ndtri_f32, float, double, (double), float, (float), -M_SQRT2 *erfc_inverse(2 * x))
ROW1(ndtri_f64, double, double, , double, , -M_SQRT2 *erfc_inverse(2 * x))

/* --- of two operands --- */

ROW2(zeta_f32, float, double, (double), float, (float), zeta(x, y))
ROW2(zeta_f64, double, double, , double, , zeta(x, y))
ROW2(polygamma_f32, float, double, (double), float, (float), polygamma(x, y))
ROW2(polygamma_f64, double, double, , double, , polygamma(x, y))

ROWS_FLOAT(ROW2, atan2, atan2(x, y))
ROWS_FLOAT(ROW2, xlogy, x == 0 ? 0 : x * log(y))
ROWS_COMPLEX(ROW2, xlogy, x == 0 ? 0 : x * log(y))
ROWS_FLOAT(ROW2, xlog1py, x == 0 ? 0 : x * log1p(y))
ROWS_COMPLEX(ROW2, xlog1py, x == 0 ? 0 : x * log(1 + y))
ROW2(next_after_f32, float, float, , float, , nextafterf(x, y))
ROW2(next_after_f64, double, double, , double, , nextafter(x, y))
ROWS_FLOAT(ROW2, inverse_grad, -y *x *x)
ROWS_COMPLEX(ROW2, inverse_grad, -y *conj(x *x))
ROWS_FLOAT(ROW2, mod, fmod(x, y))
ROWS_SIGNED(ROW2, mod, y == -1 ? 0 : x % y)
ROW2(near_f32, float, float, , bool, , fabsf(x - y) <= row->number)
ROW2(near_f64, double, double, , bool, , fabs(x - y) <= (double)row->number)

/* --- bits; shifts by what the type does not have are cut to its width --- */

ROWS_WRAPPED(ROW2, bits_and, x &y)
ROWS_WRAPPED(ROW2, bits_or, x | y)
ROWS_WRAPPED(ROW2, bits_xor, x ^ y)
ROWS_WRAPPED(ROW1, bits_not, ~x)

#define SHIFT_BY(S) ((int)(y < 0 ? 0 : (y > (S)-1 ? (S)-1 : y)))
#define SHIFT(name, S, bits)                                                                   \
    ROW2(left_##name, S, int64_t, (int64_t), S, (S), (int64_t)((uint64_t)x << SHIFT_BY(bits))) \
    ROW2(right_##name, S, int64_t, (int64_t), S, (S), x >> SHIFT_BY(bits))
SHIFT(i8, int8_t, 8)
SHIFT(i16, int16_t, 16)
SHIFT(i32, int32_t, 32)
SHIFT(i64, int64_t, 64)
SHIFT(u8, uint8_t, 8)
SHIFT(u16, uint16_t, 16)
SHIFT(u32, uint32_t, 32)
#define SHIFT_BY64 ((int)(y > 63 ? 63 : y))
ROW2(left_u64, uint64_t, uint64_t, , uint64_t, , x << SHIFT_BY64)
ROW2(right_u64, uint64_t, uint64_t, , uint64_t, , x >> SHIFT_BY64)

#define COUNT_BITS(name, S, U)                                                                 \
    ROW1(count_##name, S, uint64_t, (U), uint8_t, (uint8_t), __builtin_popcountll(x))
COUNT_BITS(i8, int8_t, uint8_t)
COUNT_BITS(i16, int16_t, uint16_t)
COUNT_BITS(i32, int32_t, uint32_t)
COUNT_BITS(i64, int64_t, uint64_t)
COUNT_BITS(u8, uint8_t, uint8_t)
COUNT_BITS(u16, uint16_t, uint16_t)
COUNT_BITS(u32, uint32_t, uint32_t)
COUNT_BITS(u64, uint64_t, uint64_t)

static bool has_zero(const struct tensor *y, struct error *err)
{
    if (DTYPES_INTEGER & BIT(y->dtype))
        for (int64_t i = 0; i < y->count; i++)
            if (tensor_integer(y, i) == 0)
                return fail(err, INVALID, "Integer division by zero");
    return true;
}

#define BOTH(name) FLOAT_ROWS(name), COMPLEX_ROWS(name)

static const struct kernel_rows rows[] = {
    {.op = "Acos", .by_type = {BOTH(acos)}},
    {.op = "Asin", .by_type = {BOTH(asin)}},
    {.op = "Atan", .by_type = {BOTH(atan)}},
    {.op = "Acosh", .by_type = {BOTH(acosh)}},
    {.op = "Asinh", .by_type = {BOTH(asinh)}},
    {.op = "Atanh", .by_type = {BOTH(atanh)}},
    {.op = "Cosh", .by_type = {BOTH(cosh)}},
    {.op = "Sinh", .by_type = {BOTH(sinh)}},
    {.op = "Tan", .by_type = {BOTH(tan)}},
    {.op = "Erfc", .by_type = {FLOAT_ROWS(erfc)}},
    {.op = "Lgamma", .by_type = {FLOAT_ROWS(lgamma)}},
    {.op = "Digamma", .by_type = {FLOAT_ROWS(digamma)}},
    {.op = "Erfinv", .by_type = {[F32] = erfinv_f32, [F64] = erfinv_f64}},
    {.op = "Ndtri", .by_type = {[F32] = ndtri_f32, [F64] = ndtri_f64}},
    {.op = "Inv", .by_type = {BOTH(inverse)}},
    {.op = "InvGrad", .by_type = {BOTH(inverse_grad)}, .same_count = true},
    {.op = "Atan2", .by_type = {FLOAT_ROWS(atan2)}},
    {.op = "Xlogy", .by_type = {BOTH(xlogy)}},
    {.op = "Xlog1py", .by_type = {BOTH(xlog1py)}},
    {.op = "Zeta", .by_type = {[F32] = zeta_f32, [F64] = zeta_f64}},
    {.op = "Polygamma", .by_type = {[F32] = polygamma_f32, [F64] = polygamma_f64}},
    {.op = "NextAfter", .by_type = {[F32] = next_after_f32, [F64] = next_after_f64}},
    {.op = "Mod", .by_type = {FLOAT_ROWS(mod), SIGNED_ROWS(mod)}, .check = has_zero},
    {.op = "ApproximateEqual",
     .by_type = {[F32] = near_f32, [F64] = near_f64},
     .same_shape = true,
     .number = "tolerance"},
    {.op = "BitwiseAnd", .by_type = {INTEGER_ROWS(bits_and)}},
    {.op = "BitwiseOr", .by_type = {INTEGER_ROWS(bits_or)}},
    {.op = "BitwiseXor", .by_type = {INTEGER_ROWS(bits_xor)}},
    {.op = "Invert", .by_type = {INTEGER_ROWS(bits_not)}},
    {.op = "LeftShift", .by_type = {INTEGER_ROWS(left)}},
    {.op = "RightShift", .by_type = {INTEGER_ROWS(right)}},
    {0},
};

/* Bits set, as bytes. */
static kernel_row_function *const counts[DTYPE_COUNT] = {INTEGER_ROWS(count)};

static bool prepare(const struct node *node, void **state, struct error *err)
{
    return kernel_rows_prepare(rows, node, state, err);
}

static bool count_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *x = kernel_in(call, 0);
    struct tensor *out = kernel_output(call, 0, &x->shape, err);
    if (!out)
        return false;
    const struct kernel_row row = {
        .x = x->data, .x_step = 1, .out = out->data, .count = out->count};
    counts[x->dtype](&row);
    return true;
}

#define UNARY(name_, dtypes_)                                                                  \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = dtypes_, .prepare = prepare, .release = free,    \
        .run = kernel_rows_unary,                                                              \
    }
#define BINARY(name_, dtypes_)                                                                 \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = dtypes_, .prepare = prepare, .release = free,    \
        .run = kernel_rows_binary,                                                             \
    }
#define FLOATS (DTYPES_FLOAT | DTYPES_COMPLEX)
#define LONG (BIT(F32) | BIT(F64))

const struct kernel kernel_acos_ref = UNARY("Acos", FLOATS);
const struct kernel kernel_asin_ref = UNARY("Asin", FLOATS);
const struct kernel kernel_atan_ref = UNARY("Atan", FLOATS);
const struct kernel kernel_acosh_ref = UNARY("Acosh", FLOATS);
const struct kernel kernel_asinh_ref = UNARY("Asinh", FLOATS);
const struct kernel kernel_atanh_ref = UNARY("Atanh", FLOATS);
const struct kernel kernel_cosh_ref = UNARY("Cosh", FLOATS);
const struct kernel kernel_sinh_ref = UNARY("Sinh", FLOATS);
const struct kernel kernel_tan_ref = UNARY("Tan", FLOATS);
const struct kernel kernel_erfc_ref = UNARY("Erfc", DTYPES_FLOAT);
const struct kernel kernel_lgamma_ref = UNARY("Lgamma", DTYPES_FLOAT & ~BIT(BF16));
const struct kernel kernel_digamma_ref = UNARY("Digamma", DTYPES_FLOAT & ~BIT(BF16));
const struct kernel kernel_erfinv_ref = UNARY("Erfinv", LONG);
const struct kernel kernel_ndtri_ref = UNARY("Ndtri", LONG);
const struct kernel kernel_inv_ref = UNARY("Inv", FLOATS);
const struct kernel kernel_inv_grad_ref = BINARY("InvGrad", FLOATS);
const struct kernel kernel_atan2_ref = BINARY("Atan2", DTYPES_FLOAT);
const struct kernel kernel_xlogy_ref = BINARY("Xlogy", FLOATS);
const struct kernel kernel_xlog1py_ref = BINARY("Xlog1py", FLOATS);
const struct kernel kernel_next_after_ref = BINARY("NextAfter", LONG);
const struct kernel kernel_zeta_ref = BINARY("Zeta", LONG);
const struct kernel kernel_polygamma_ref = BINARY("Polygamma", LONG);
const struct kernel kernel_mod_ref = BINARY("Mod", LONG | BIT(I32) | BIT(I64));
const struct kernel kernel_approximate_equal_ref = BINARY("ApproximateEqual", LONG);
const struct kernel kernel_bitwise_and_ref = BINARY("BitwiseAnd", DTYPES_INTEGER);
const struct kernel kernel_bitwise_or_ref = BINARY("BitwiseOr", DTYPES_INTEGER);
const struct kernel kernel_bitwise_xor_ref = BINARY("BitwiseXor", DTYPES_INTEGER);
const struct kernel kernel_left_shift_ref = BINARY("LeftShift", DTYPES_INTEGER);
const struct kernel kernel_right_shift_ref = BINARY("RightShift", DTYPES_INTEGER);
const struct kernel kernel_invert_ref = UNARY("Invert", DTYPES_INTEGER);
const struct kernel kernel_population_count_ref = {
    .op = "PopulationCount", .device = CPU, .dtypes = DTYPES_INTEGER, .run = count_run};

/* --- complex numbers and their parts --- */

enum part { REAL, IMAGINARY, ANGLE, SIZE };

static bool part_run(struct kernel_call *call, enum part part, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    for (int64_t i = 0; out && i < out->count; i++) {
        double complex z = in->dtype == C64 ? (double complex)((float complex *)in->data)[i]
                                            : ((double complex *)in->data)[i];
        double value = part == REAL        ? creal(z)
                       : part == IMAGINARY ? cimag(z)
                       : part == ANGLE     ? carg(z)
                                           : cabs(z);
        tensor_set_number(out, i, value);
    }
    return out != NULL;
}

static bool real_run(struct kernel_call *call, struct error *err)
{
    return part_run(call, REAL, err);
}
static bool imag_run(struct kernel_call *call, struct error *err)
{
    return part_run(call, IMAGINARY, err);
}
static bool angle_run(struct kernel_call *call, struct error *err)
{
    return part_run(call, ANGLE, err);
}
static bool complex_abs_run(struct kernel_call *call, struct error *err)
{
    return part_run(call, SIZE, err);
}

static void join_f32(const struct kernel_row *row)
{
    const float *x = row->x, *y = row->y;
    float *out = row->out;
    for (int64_t i = 0; i < row->count; i++) {
        out[2 * i] = x[i * row->x_step];
        out[2 * i + 1] = y[i * row->y_step];
    }
}

static void join_f64(const struct kernel_row *row)
{
    const double *x = row->x, *y = row->y;
    double *out = row->out;
    for (int64_t i = 0; i < row->count; i++) {
        out[2 * i] = x[i * row->x_step];
        out[2 * i + 1] = y[i * row->y_step];
    }
}

static bool complex_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *x = kernel_in(call, 0), *y = kernel_in(call, 1);
    struct shape shape;
    if (!shape_broadcast(&x->shape, &y->shape, &shape, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    kernel_rows_broadcast(x->dtype == F32 ? join_f32 : join_f64, x, y, out, 0);
    return true;
}

static bool accepts_complex(const struct node *node)
{
    return (node_attr_type(node, "T") == F32) == (node_attr_type(node, "Tout") == C64);
}

#define PART(name_, dtypes_, run_)                                                             \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = dtypes_, .run = run_                             \
    }

const struct kernel kernel_real_ref = PART("Real", DTYPES_COMPLEX, real_run);
const struct kernel kernel_imag_ref = PART("Imag", DTYPES_COMPLEX, imag_run);
const struct kernel kernel_angle_ref = PART("Angle", DTYPES_COMPLEX, angle_run);
const struct kernel kernel_complex_abs_ref =
    PART("ComplexAbs", DTYPES_COMPLEX, complex_abs_run);
const struct kernel kernel_complex_ref = {.op = "Complex",
                                          .device = CPU,
                                          .dtypes = LONG,
                                          .accepts = accepts_complex,
                                          .run = complex_run};
