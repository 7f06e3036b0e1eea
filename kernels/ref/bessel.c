/*
 * bessel.c - Bessel functions and integrals with names, one element at a time, in double.
 *
 * Those of integer order and real argument are libm's.  The modified ones come from their
 * integrals and power series, which have no cancellation.
 */

#include "kernels/ref/rows.h"

#include <math.h>

#define EULER 0.57721566490153286061

/* The sum of (x/2)^(2k + n) / (k! (k + n)!), times exp(-|x|). */
static double i_series(int n, double x)
{
    double quarter = x * x / 4, term = n ? x / 2 : 1, sum = term;
    for (int k = 1; fabs(term) > fabs(sum) * 1e-17; k++)
        sum += term *= quarter / ((double)k * (k + n));
    return sum * exp(-fabs(x));
}

/* Falling powers of 8x, for large x. */
static double i_asymptotic(int n, double x)
{
    double size = fabs(x), term = 1, sum = 1;
    for (int k = 1; k < 40 && fabs(term) > 1e-17; k++) {
        double odd = 2 * k - 1;
        sum += term *= -(4.0 * n * n - odd * odd) / (k * 8 * size);
    }
    sum /= sqrt(2 * M_PI * size);
    return n && x < 0 ? -sum : sum;
}

static double i_scaled(int n, double x)
{
    if (isinf(x))
        return 0;
    return fabs(x) < 30 ? i_series(n, x) : i_asymptotic(n, x);
}

static double i_whole(int n, double x)
{
    /* In two steps: exp(|x|) alone may be too large. */
    double half = exp(fabs(x) / 2);
    return isinf(x) ? (n ? x : INFINITY) : i_scaled(n, x) * half * half;
}

/*
 * exp(x) K_n(x), the integral of exp(-x (cosh t - 1)) cosh(n t) over t > 0: the trapezoid rule
 * converges at once on what falls so fast at both ends.
 */
static double k_scaled(int n, double x)
{
    if (!(x > 0))
        return x == 0 ? INFINITY : NAN;
    double step = fmin(0.125, 0.5 / sqrt(x)), sum = 0.5;
    for (int i = 1; i < 100000; i++) {
        double t = i * step, half = sinh(t / 2);
        double term = exp(-2 * x * half * half) * (n ? cosh(t) : 1);
        sum += term;
        if (term < sum * 1e-18 && 2 * x * half * half > 1)
            break;
    }
    return sum * step;
}

static double k_whole(int n, double x)
{
    return k_scaled(n, x) * exp(-x);
}

/* Of integer order; where libm says -infinity for what has no value, NaN. */
static double y_whole(int n, double x)
{
    return x < 0 ? NAN : n ? y1(x) : y0(x);
}

/* exp(-x^2) times the integral of exp(t^2) from 0 to x; Rybicki's sum. */
static double dawson(double x)
{
    const double step = 0.2;
    double size = fabs(x), sum = 0;
    if (size < 0.3) {
        double term = x;
        for (int k = 1; k < 30; k++) {
            sum += term;
            term *= -2 * x * x / (2 * k + 1);
        }
        return sum;
    }
    if (size > 1e8)
        return 0.5 / x;
    double middle = 2 * nearbyint(size / (2 * step));
    for (int k = -61; k <= 61; k += 2) {
        double n = middle + k, off = size - n * step;
        sum += exp(-off * off) / n;
    }
    return copysign(sum / sqrt(M_PI), x);
}

/* The integral of exp(t) / t up to x. */
static double exponential_integral(double x)
{
    if (x < 0)
        return NAN;
    if (x == 0)
        return -INFINITY;
    if (isinf(x) || isnan(x))
        return x;
    double sum = 0, term = 1;
    if (x > 50) {
        for (int k = 1; k < 200 && fabs(term) > 1e-17; k++) {
            sum += term;
            if (k > x)
                break;
            term *= k / x;
        }
        return exp(x - log(x)) * sum;
    }
    /* Near its zero the terms cancel: there it is a series about the zero. */
    const double zero = 0.37250741078136663446;
    for (int k = 1; k < 300 && fabs(term) > 1e-20; k++) {
        term *= x / k;
        sum += term / k;
    }
    double value = EULER + log(x) + sum;
    if (fabs(x - zero) > 0.05)
        return value;
    double off = x - zero, slope = exp(zero) / zero, power = off;
    double second = slope * (1 - 1 / zero);
    double third = slope * (1 - 2 / zero + 2 / (zero * zero));
    value = slope * power;
    value += second * (power *= off) / 2;
    value += third * (power *= off) / 6;
    return fabs(off) < 1e-4 ? value : EULER + log(x) + sum;
}

/* Fresnel's integrals: C as the real part, S as the imaginary. */
static double complex fresnel(double x)
{
    double size = fabs(x), angle = M_PI_2 * size * size;
    double complex value;
    if (size < 1.5) {
        double complex term = size, sum = 0;
        for (int k = 0; k < 60; k++) {
            sum += term / (2 * k + 1);
            term *= I * angle / (k + 1);
        }
        value = sum;
    } else if (size < 5e7) {
        /* The continued fraction of the complementary error function. */
        double n = -1;
        double complex b = 1 - I * M_PI * size * size, c = 1e300, d = 1 / b, h = d;
        for (int k = 2; k < 200; k++) {
            n += 2;
            double a = -n * (n + 1);
            b += 4;
            d = 1 / (a * d + b);
            c = b + a / c;
            double complex change = c * d;
            h *= change;
            if (fabs(creal(change) - 1) + fabs(cimag(change)) < 1e-16)
                break;
        }
        h *= size - I * size;
        value = (0.5 + 0.5 * I) * (1 - cexp(I * angle) * h);
    } else {
        value = 0.5 + 0.5 * I;
    }
    return isnan(x) ? x + I * x : x < 0 ? -value : value;
}

/* Spence's function, the dilogarithm of 1 - x. */
static double spence(double x)
{
    const double sixth = M_PI * M_PI / 6;
    if (x < 0 || isnan(x))
        return NAN;
    if (x == 0)
        return sixth;
    if (isinf(x))
        return -INFINITY;
    double other = 0, sign = 1;
    if (x > 2) {
        double l = log(x);
        other = -l * l / 2;
        sign = -1;
        x = 1 / x;
    }
    double z;
    if (x < 0.5) {
        other += sign * (sixth - log(x) * log1p(-x));
        sign = -sign;
        z = x;
    } else if (x > 1.5) {
        double l = log(x);
        other -= sign * l * l / 2;
        sign = -sign;
        z = 1 - 1 / x;
    } else {
        z = 1 - x;
    }
    double sum = 0, power = 1;
    for (int k = 1; k < 60; k++)
        sum += (power *= z) / ((double)k * k);
    return other + sign * sum;
}

#define ONE(name, f)                                                                           \
    ROW1(name##_f16, uint16_t, double, (double)dtype_f16_to_f32, uint16_t, dtype_f32_to_f16,   \
         (float)(f))                                                                           \
    ROW1(name##_f32, float, double, (double), float, (float), f)                               \
    ROW1(name##_f64, double, double, , double, , f)
ONE(i0, i_whole(0, x))
ONE(i1, i_whole(1, x))
ONE(i0e, i_scaled(0, x))
ONE(i1e, i_scaled(1, x))
ONE(k0, k_whole(0, x))
ONE(k1, k_whole(1, x))
ONE(k0e, k_scaled(0, x))
ONE(k1e, k_scaled(1, x))
ONE(bessel_j0, j0(x))
ONE(bessel_j1, j1(x))
ONE(bessel_y0, y_whole(0, x))
ONE(bessel_y1, y_whole(1, x))
ONE(dawsn, dawson(x))
ONE(expint, exponential_integral(x))
ONE(fresnel_cos, creal(fresnel(x)))
ONE(fresnel_sin, cimag(fresnel(x)))
ONE(spence, spence(x))

#define ALL(name) [F16] = name##_f16, [F32] = name##_f32, [F64] = name##_f64

static const struct kernel_rows rows[] = {
    {.op = "BesselI0", .by_type = {ALL(i0)}},
    {.op = "BesselI1", .by_type = {ALL(i1)}},
    {.op = "BesselI0e", .by_type = {ALL(i0e)}},
    {.op = "BesselI1e", .by_type = {ALL(i1e)}},
    {.op = "BesselK0", .by_type = {ALL(k0)}},
    {.op = "BesselK1", .by_type = {ALL(k1)}},
    {.op = "BesselK0e", .by_type = {ALL(k0e)}},
    {.op = "BesselK1e", .by_type = {ALL(k1e)}},
    {.op = "BesselJ0", .by_type = {ALL(bessel_j0)}},
    {.op = "BesselJ1", .by_type = {ALL(bessel_j1)}},
    {.op = "BesselY0", .by_type = {ALL(bessel_y0)}},
    {.op = "BesselY1", .by_type = {ALL(bessel_y1)}},
    {.op = "Dawsn", .by_type = {ALL(dawsn)}},
    {.op = "Expint", .by_type = {ALL(expint)}},
    {.op = "FresnelCos", .by_type = {ALL(fresnel_cos)}},
    {.op = "FresnelSin", .by_type = {ALL(fresnel_sin)}},
    {.op = "Spence", .by_type = {ALL(spence)}},
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
#define SHORT (BIT(F16) | BIT(F32) | BIT(F64))
#define LONG (BIT(F32) | BIT(F64))

const struct kernel kernel_bessel_i0_ref = UNARY("BesselI0", SHORT);
const struct kernel kernel_bessel_i1_ref = UNARY("BesselI1", SHORT);
const struct kernel kernel_bessel_i0e_ref = UNARY("BesselI0e", SHORT);
const struct kernel kernel_bessel_i1e_ref = UNARY("BesselI1e", SHORT);
const struct kernel kernel_bessel_k0_ref = UNARY("BesselK0", SHORT);
const struct kernel kernel_bessel_k1_ref = UNARY("BesselK1", SHORT);
const struct kernel kernel_bessel_k0e_ref = UNARY("BesselK0e", SHORT);
const struct kernel kernel_bessel_k1e_ref = UNARY("BesselK1e", SHORT);
const struct kernel kernel_bessel_j0_ref = UNARY("BesselJ0", SHORT);
const struct kernel kernel_bessel_j1_ref = UNARY("BesselJ1", SHORT);
const struct kernel kernel_bessel_y0_ref = UNARY("BesselY0", SHORT);
const struct kernel kernel_bessel_y1_ref = UNARY("BesselY1", SHORT);
const struct kernel kernel_dawsn_ref = UNARY("Dawsn", LONG);
const struct kernel kernel_expint_ref = UNARY("Expint", LONG);
const struct kernel kernel_fresnel_cos_ref = UNARY("FresnelCos", LONG);
const struct kernel kernel_fresnel_sin_ref = UNARY("FresnelSin", LONG);
const struct kernel kernel_spence_ref = UNARY("Spence", LONG);
