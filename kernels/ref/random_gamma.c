/*
 * random_gamma.c - gamma variates (Marsaglia and Tsang, 2000), and how they change with alpha.
 *
 * Number n starts at block 256 n of the stream, so that it does not depend on the others.
 */

#include "kernels/ref/gamma.h"
#include "kernels/ref/move.h"
#include "kernels/ref/random.h"

#include <float.h>
#include <math.h>

static double draw(struct philox stream, double alpha)
{
    struct random_pairs uniform = {.source = &stream}, normal = {.source = &stream};
    if (alpha == 1) /* exponential */
        return -log1p(-kernel_random_uniform(&uniform));
    bool small = alpha < 1; /* drawn for alpha + 1, then scaled */
    double d = alpha + (small ? 2.0 / 3 : -1.0 / 3), c = 1.0 / 3 / sqrt(d);
    if (isnan(d) || d <= 0)
        return NAN; /* nothing would ever be accepted */
    for (;;) {
        double x = kernel_random_normal(&normal), v = 1 + c * x;
        if (v <= 0)
            continue;
        v = v * v * v;
        double u = kernel_random_uniform(&uniform);
        if (u < 1 - 0.0331 * (x * x) * (x * x) || log(u) < 0.5 * x * x + d * (1 - v + log(v))) {
            double result = d * v;
            return small ? result * pow(kernel_random_uniform(&uniform), 1 / alpha) : result;
        }
    }
}

/* Sample s of alpha a is number a * samples + s of the stream and lies at s * alphas + a. */
static bool fill(struct kernel_call *call, const struct philox *philox,
                 const struct tensor *alpha, struct tensor *out, struct error *err)
{
    int64_t alphas = alpha->count, samples = alphas ? out->count / alphas : 0;
    for (int64_t n = 0; n < alphas * samples; n++) {
        int64_t a = n / samples, s = n % samples;
        if (n % RANDOM_TURNS == 0 && !kernel_go_on(call, err))
            return false;
        struct philox own = *philox;
        kernel_philox_skip(&own, (uint64_t)n * RANDOM_BLOCKS_PER_NUMBER);
        tensor_set_number(out, s * alphas + a, draw(own, tensor_number(alpha, a)));
    }
    return true;
}

static bool gamma_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *alpha = kernel_in(call, 1);
    struct tensor *out = kernel_random_output(call, 0, 1, err);
    if (!out)
        return false;
    struct philox philox =
        kernel_stream_take(call->state, (uint64_t)out->count * RANDOM_BLOCKS_PER_NUMBER);
    return fill(call, &philox, alpha, out, err);
}

static bool stateless_run(struct kernel_call *call, struct error *err)
{
    struct philox philox;
    int next;
    if (!kernel_random_stateless(call, &philox, &next, err))
        return false;
    const struct tensor *alpha = kernel_in(call, next);
    struct tensor *out = kernel_random_output(call, 0, -1, err);
    if (!out)
        return false;
    struct shape tail = {.rank = 0};
    if (out->count == 0)
        return true;
    for (int d = out->shape.rank - alpha->shape.rank; d < out->shape.rank; d++)
        tail.dims[tail.rank++] = d < 0 ? -1 : out->shape.dims[d];
    if (!shape_equal(&tail, &alpha->shape))
        return fail(err, INVALID, "Shape passed in must end with broadcasted shape.");
    return fill(call, &philox, alpha, out, err);
}

/* --- d sample / d alpha --- */

static double digamma(double x)
{
    double sum = 0;
    for (; x < 10; x++)
        sum -= 1 / x;
    double y = 1 / (x * x);
    double tail =
        y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y * (1.0 / 240 - y * (1.0 / 132)))));
    return sum + log(x) - 0.5 / x - tail;
}

#define TERMS_MAX 2000

/* By the power series of the lower incomplete gamma function, term by term. */
static double derivative_by_series(double a, double x)
{
    double term = 1, sum = 1, dterm = 0, dsum = 0, r = a;
    for (int i = 0; i < TERMS_MAX; i++) {
        r++;
        double factor = x / r;
        dterm = factor * dterm - term * x / (r * r);
        dsum += dterm;
        term *= factor;
        sum += term;
        if (fabs(dterm) <= DBL_EPSILON * fabs(dsum))
            break;
    }
    return -(dsum + sum * (log(x) - digamma(a + 1))) * x / a;
}

/* By the continued fraction of the upper one; p/q are its convergents, d their derivatives. */
static double derivative_by_fraction(double a, double x)
{
    double y = 1 - a, z = x + y + 1, c = 0;
    double p2 = 1, q2 = x, p1 = x + 1, q1 = z * x;
    double dp2 = 0, dq2 = 0, dp1 = 0, dq1 = -x;
    double value = p1 / q1, slope = (dp1 - value * dq1) / q1;
    for (int i = 0; i < TERMS_MAX; i++) {
        c++;
        y++;
        z += 2;
        double yc = y * c;
        double p = p1 * z - p2 * yc, q = q1 * z - q2 * yc;
        double dp = dp1 * z - p1 - dp2 * yc + p2 * c, dq = dq1 * z - q1 - dq2 * yc + q2 * c;
        if (q != 0) {
            double before = slope;
            value = p / q;
            slope = (dp - value * dq) / q;
            if (fabs(slope - before) <= DBL_EPSILON)
                break;
        }
        double scale = fabs(p) > 1 / DBL_EPSILON ? DBL_EPSILON : 1;
        p2 = p1 * scale, p1 = p * scale, q2 = q1 * scale, q1 = q * scale;
        dp2 = dp1 * scale, dp1 = dp * scale, dq2 = dq1 * scale, dq1 = dq * scale;
    }
    return (slope + value * (log(x) - digamma(a))) * x;
}

double kernel_gamma_sample_slope(double a, double x, double smallest)
{
    if (x == 0)
        return 0;
    if (isnan(a) || isnan(x) || x < 0 || a <= 0)
        return NAN;
    bool upper = x > 1 && x > a;
    if (exp(a * log(x) - x - lgamma(upper ? a : a + 1)) < smallest)
        return 0;
    return upper ? derivative_by_fraction(a, x) : derivative_by_series(a, x);
}

static bool grad_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *alpha = kernel_in(call, 0), *sample = kernel_in(call, 1);
    struct shape shape;
    if (!shape_broadcast(&alpha->shape, &sample->shape, &shape, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    double smallest = out->dtype == F64 ? DBL_MIN : FLT_MIN;
    struct places alphas = kernel_broadcast_places(&alpha->shape, &shape);
    struct places samples = kernel_broadcast_places(&sample->shape, &shape);
    for (int64_t i = 0; i < out->count; i++)
        tensor_set_number(
            out, i,
            kernel_gamma_sample_slope(tensor_number(alpha, kernel_place(&alphas, &shape, i)),
                                      tensor_number(sample, kernel_place(&samples, &shape, i)),
                                      smallest));
    return true;
}

const struct kernel kernel_random_gamma_ref = {.op = "RandomGamma",
                                               .device = CPU,
                                               .prepare = kernel_stream_prepare,
                                               .release = kernel_stream_release,
                                               .run = gamma_run};
const struct kernel kernel_stateless_random_gamma_v2_ref = {
    .op = "StatelessRandomGammaV2", .device = CPU, .run = stateless_run};
const struct kernel kernel_stateless_random_gamma_v3_ref = {
    .op = "StatelessRandomGammaV3", .device = CPU, .run = stateless_run};
const struct kernel kernel_random_gamma_grad_ref = {
    .op = "RandomGammaGrad", .device = CPU, .run = grad_run};
