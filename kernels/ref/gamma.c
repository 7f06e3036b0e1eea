/* gamma.c - incomplete gamma and beta functions. */

#include "kernels/ref/gamma.h"
#include "kernels/ref/rows.h"

#include <float.h>
#include <math.h>

#define TERMS_MAX 2000

/* x^a exp(-x) / gamma(a + 1), without the overflow of its parts. */
static double gamma_factor(double a, double x)
{
    return exp(a * log(x) - x - lgamma(a + 1));
}

/* The lower function by its power series. */
static double lower_series(double a, double x)
{
    double term = 1, sum = 1;
    for (int k = 1; k < TERMS_MAX && term > sum * 1e-17; k++)
        sum += term *= x / (a + k);
    return gamma_factor(a, x) * sum;
}

/* The upper one by its continued fraction (Lentz). */
static double upper_fraction(double a, double x)
{
    const double tiny = 1e-300;
    double b = x + 1 - a, c = 1 / tiny, d = 1 / b, h = d;
    for (int k = 1; k < TERMS_MAX; k++) {
        double step = -k * (k - a);
        b += 2;
        d = step * d + b;
        c = b + step / c;
        d = 1 / (fabs(d) < tiny ? tiny : d);
        c = fabs(c) < tiny ? tiny : c;
        h *= d * c;
        if (fabs(d * c - 1) < 1e-16)
            break;
    }
    return gamma_factor(a, x) * a * h;
}

static bool by_series(double a, double x)
{
    return x <= 1 || x <= a;
}

static double igamma(double a, double x)
{
    if (isnan(a) || isnan(x) || x < 0 || a <= 0)
        return NAN;
    if (x == 0)
        return 0;
    if (isinf(a))
        return isinf(x) ? NAN : 0;
    if (isinf(x))
        return 1;
    return by_series(a, x) ? lower_series(a, x) : 1 - upper_fraction(a, x);
}

static double igammac(double a, double x)
{
    if (isnan(a) || isnan(x) || x < 0 || a <= 0)
        return NAN;
    if (x == 0)
        return 1;
    if (isinf(a))
        return isinf(x) ? NAN : 1;
    if (isinf(x))
        return 0;
    return by_series(a, x) ? 1 - lower_series(a, x) : upper_fraction(a, x);
}

static double igamma_slope(double a, double x, double smallest)
{
    if (isnan(a) || isnan(x) || x < 0 || a <= 0)
        return NAN;
    if (x == 0 || isinf(x))
        return 0;
    return -kernel_gamma_sample_slope(a, x, smallest) * gamma_factor(a, x) * a / x;
}

/* The continued fraction of the incomplete beta function (Lentz). */
static double beta_fraction(double a, double b, double x)
{
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double h = d;
    for (int k = 1; k < TERMS_MAX; k++) {
        double even = k * (b - k) * x / ((a + 2 * k - 1) * (a + 2 * k));
        d = 1 + even * d;
        c = 1 + even / c;
        d = 1 / (fabs(d) < tiny ? tiny : d);
        c = fabs(c) < tiny ? tiny : c;
        h *= d * c;
        double odd = -(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1));
        d = 1 + odd * d;
        c = 1 + odd / c;
        d = 1 / (fabs(d) < tiny ? tiny : d);
        c = fabs(c) < tiny ? tiny : c;
        h *= d * c;
        if (fabs(d * c - 1) < 1e-16)
            break;
    }
    return h;
}

static double betainc(double a, double b, double x)
{
    if (isnan(a) || isnan(b) || isnan(x) || a <= 0 || b <= 0 || x < 0 || x > 1)
        return NAN;
    if (x == 0 || x == 1)
        return x;
    double factor = exp(a * log(x) + b * log1p(-x) + lgamma(a + b) - lgamma(a) - lgamma(b));
    if (x < (a + 1) / (a + b + 2))
        return factor * beta_fraction(a, b, x) / a;
    return 1 - factor * beta_fraction(b, a, 1 - x) / b;
}

ROW2(igamma_f32, float, double, (double), float, (float), igamma(x, y))
ROW2(igamma_f64, double, double, , double, , igamma(x, y))
ROW2(igammac_f32, float, double, (double), float, (float), igammac(x, y))
ROW2(igammac_f64, double, double, , double, , igammac(x, y))
ROW2(igamma_grad_a_f32, float, double, (double), float, (float), igamma_slope(x, y, FLT_MIN))
ROW2(igamma_grad_a_f64, double, double, , double, , igamma_slope(x, y, DBL_MIN))

#define BOTH(name) [F32] = name##_f32, [F64] = name##_f64

static const struct kernel_rows rows[] = {
    {.op = "Igamma", .by_type = {BOTH(igamma)}},
    {.op = "Igammac", .by_type = {BOTH(igammac)}},
    {.op = "IgammaGradA", .by_type = {BOTH(igamma_grad_a)}},
    {0},
};

static bool prepare(const struct node *node, void **state, struct error *err)
{
    return kernel_rows_prepare(rows, node, state, err);
}

/* Scalars go with operands of any shape; all others have one. */
static bool betainc_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in[3];
    const struct shape *shape = &kernel_in(call, 0)->shape;
    int named = 0;
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    for (int i = 0; i < 3; i++) {
        in[i] = kernel_in(call, i);
        if (in[i]->shape.rank == 0)
            continue;
        if (shape->rank > 0 && !shape_equal(shape, &in[i]->shape))
            return fail(err, INVALID, "Shapes of %c and %c are inconsistent: %s vs. %s",
                        "abx"[named], "abx"[i], shape_text(shape, a, sizeof(a)),
                        shape_text(&in[i]->shape, b, sizeof(b)));
        named = shape->rank > 0 ? named : i;
        shape = &in[i]->shape;
    }
    struct tensor *out = kernel_output(call, 0, shape, err);
    if (!out)
        return false;
    for (int64_t i = 0; i < out->count; i++) {
        double value[3];
        for (int k = 0; k < 3; k++)
            value[k] = tensor_number(in[k], in[k]->shape.rank == 0 ? 0 : i);
        tensor_set_number(out, i, betainc(value[0], value[1], value[2]));
    }
    return true;
}

#define BINARY(name_)                                                                          \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = BIT(F32) | BIT(F64), .prepare = prepare,         \
        .release = free, .run = kernel_rows_binary,                                            \
    }

const struct kernel kernel_igamma_ref = BINARY("Igamma");
const struct kernel kernel_igammac_ref = BINARY("Igammac");
const struct kernel kernel_igamma_grad_a_ref = BINARY("IgammaGradA");
const struct kernel kernel_betainc_ref = {
    .op = "Betainc", .device = CPU, .dtypes = BIT(F32) | BIT(F64), .run = betainc_run};
