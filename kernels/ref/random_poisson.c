/*
 * random_poisson.c - counts: Poisson (Knuth; Hörmann, 1993) and binomial variates (inversion;
 * Hörmann, 1993).
 *
 * Number n starts at a block of its own (256 n, 42 n), so that it does not depend on the
 * others.
 */

#include "kernels/ref/move.h"
#include "kernels/ref/random.h"

#include <float.h>
#include <math.h>

/* The largest count that a type holds. */
static double largest(enum dtype dtype)
{
    switch (dtype) {
    case I32:
        return INT32_MAX;
    case I64:
        return (double)INT64_MAX;
    case F16:
        return 65504;
    case BF16:
    case F32:
        return FLT_MAX;
    default:
        return DBL_MAX;
    }
}

/* Products of uniform numbers until they fall below exp(-rate). */
static double poisson_small(struct random_pairs *uniform, double rate, double limit)
{
    double bound = exp(-rate), product = 1;
    for (double count = 0;; count++) {
        product *= kernel_random_uniform(uniform);
        if (product <= bound && count <= limit)
            return count;
        if (count > limit)
            return limit;
    }
}

#define OVER_MAX 1000 /* draws beyond the limit, of a rate that is beyond it itself */

/* Transformed rejection. */
static double poisson_large(struct random_pairs *uniform, double rate, double limit)
{
    double b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b;
    double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), log_rate = log(rate);
    for (int over = 0; over < OVER_MAX;) {
        double u = kernel_random_uniform(uniform) - 0.5, v = kernel_random_uniform(uniform);
        double shifted = 0.5 - fabs(u);
        double k = floor((2 * a / shifted + b) * u + rate + 0.43);
        if (k > limit) {
            over++;
            continue;
        }
        if (shifted >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2))
            return k;
        if (k < 0 || (shifted < 0.013 && v > shifted))
            continue;
        double s = log(v * inverse_alpha / (a / (shifted * shifted) + b));
        if (s <= -rate + k * log_rate - lgamma(k + 1))
            return k;
    }
    return limit;
}

static double poisson(struct philox stream, double rate, enum dtype dtype)
{
    struct random_pairs uniform = {.source = &stream};
    bool whole = dtype == I32 || dtype == I64;
    if (isnan(rate) || rate == INFINITY)
        return whole ? 0 : rate;
    if (rate < 10)
        return poisson_small(&uniform, rate, largest(dtype));
    return poisson_large(&uniform, rate, largest(dtype));
}

#define BLOCKS_PER_INVERSION 42

static struct philox stream_of(const struct philox *philox, int64_t number, uint64_t blocks)
{
    struct philox own = *philox;
    kernel_philox_skip(&own, (uint64_t)number * blocks);
    return own;
}

static void set_count(struct tensor *out, int64_t index, double value)
{
    if (out->dtype == I64 && value >= (double)INT64_MAX)
        ((int64_t *)out->data)[index] = INT64_MAX;
    else
        tensor_set_number(out, index, value);
}

/* Sample s of rate r is number r * samples + s of the stream and lies at s * rates + r. */
static bool fill_poisson(struct kernel_call *call, const struct philox *philox,
                         const struct tensor *rate, struct tensor *out, struct error *err)
{
    int64_t rates = rate->count, samples = rates ? out->count / rates : 0;
    for (int64_t n = 0; n < rates * samples; n++) {
        int64_t r = n / samples, s = n % samples;
        if (n % RANDOM_TURNS == 0 && !kernel_go_on(call, err))
            return false;
        set_count(out, s * rates + r,
                  poisson(stream_of(philox, n, RANDOM_BLOCKS_PER_NUMBER),
                          tensor_number(rate, r), out->dtype));
    }
    return true;
}

static bool poisson_run(struct kernel_call *call, struct error *err)
{
    struct tensor *out = kernel_random_output(call, 0, 1, err);
    if (!out)
        return false;
    struct philox philox =
        kernel_stream_take(call->state, (uint64_t)out->count * RANDOM_BLOCKS_PER_NUMBER);
    return fill_poisson(call, &philox, kernel_in(call, 1), out, err);
}

/* Whether `shape` ends with the dimensions of `tail`. */
static bool ends_with(const struct shape *shape, const struct shape *tail)
{
    struct shape own = {.rank = tail->rank};
    if (tail->rank > shape->rank)
        return false;
    for (int d = 0; d < tail->rank; d++)
        own.dims[d] = shape->dims[shape->rank - tail->rank + d];
    return shape_equal(&own, tail);
}

static bool stateless_poisson_run(struct kernel_call *call, struct error *err)
{
    struct philox philox;
    const struct tensor *rate = kernel_in(call, 2);
    if (!kernel_random_seeds(call, 1, &philox, err))
        return false;
    struct tensor *out = kernel_random_output(call, 0, -1, err);
    if (!out)
        return false;
    if (!ends_with(&out->shape, &rate->shape))
        return fail(err, INVALID, "Shape passed in must end with broadcasted shape.");
    return fill_poisson(call, &philox, rate, out, err);
}

/* --- binomial --- */

/* Geometric variates until they add up to more than `count`. */
static double binomial_small(struct random_pairs *uniform, double count, double chance)
{
    double sum = 0, number = 0;
    for (;;) {
        sum += ceil(log(kernel_random_uniform(uniform)) / log1p(-chance));
        if (sum > count)
            return number;
        number++;
    }
}

/* What Stirling's formula for k! leaves out. */
static double stirling_tail(double k)
{
    static const double known[] = {0.0810614667953272,  0.0413406959554092, 0.0276779256849983,
                                   0.02079067210376509, 0.0166446911898211, 0.0138761288230707,
                                   0.0118967099458917,  0.0104112652619720, 0.00925546218271273,
                                   0.00833056343336287};
    if (k <= 9)
        return known[(int)k];
    double square = (k + 1) * (k + 1);
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

/* Transformed rejection. */
static double binomial_large(struct random_pairs *uniform, double count, double chance)
{
    double deviation = sqrt(count * chance * (1 - chance));
    double b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * chance;
    double c = count * chance + 0.5, tight = 0.92 - 4.2 / b, r = chance / (1 - chance);
    double alpha = (2.83 + 5.1 / b) * deviation, m = floor((count + 1) * chance);
    for (;;) {
        double u = kernel_random_uniform(uniform) - 0.5, v = kernel_random_uniform(uniform);
        double us = 0.5 - fabs(u), k = floor((2 * a / us + b) * u + c);
        if (us >= 0.07 && v <= tight)
            return k;
        if (k < 0 || k > count)
            continue;
        v = log(v * alpha / (a / (us * us) + b));
        double bound = (m + 0.5) * log((m + 1) / (r * (count - m + 1))) +
                       (count + 1) * log((count - m + 1) / (count - k + 1)) +
                       (k + 0.5) * log(r * (count - k + 1) / (k + 1)) + stirling_tail(m) +
                       stirling_tail(count - m) - stirling_tail(k) - stirling_tail(count - k);
        if (v <= bound)
            return k;
    }
}

static double binomial(const struct philox *philox, int64_t number, double count, double chance)
{
    if (isnan(count) || isnan(chance))
        return NAN;
    if (count <= 0 || chance <= 0)
        return 0;
    if (chance >= 1)
        return count;
    double rare = chance <= 0.5 ? chance : 1 - chance;
    bool large = count * rare >= 10;
    struct philox own =
        stream_of(philox, number, large ? RANDOM_BLOCKS_PER_NUMBER : BLOCKS_PER_INVERSION);
    struct random_pairs uniform = {.source = &own};
    double drawn =
        large ? binomial_large(&uniform, count, rare) : binomial_small(&uniform, count, rare);
    return chance <= 0.5 ? drawn : count - drawn;
}

/* Counts and chances are broadcast against each other to the last dimensions of the output. */
static bool fill_binomial(struct kernel_call *call, const struct philox *philox,
                          const struct tensor *counts, const struct tensor *chances,
                          struct tensor *out, struct error *err)
{
    struct shape shape;
    if (!shape_broadcast(&counts->shape, &chances->shape, &shape, err))
        return false;
    if (!ends_with(&out->shape, &shape))
        return fail(err, INVALID, "Shape passed in must end with broadcasted shape.");
    struct places at_count = kernel_broadcast_places(&counts->shape, &shape);
    struct places at_chance = kernel_broadcast_places(&chances->shape, &shape);
    int64_t batches = shape_count(&shape), samples = batches ? out->count / batches : 0;
    for (int64_t n = 0; n < batches * samples; n++) {
        int64_t b = n / samples, s = n % samples;
        double count = tensor_number(counts, kernel_place(&at_count, &shape, b));
        double chance = tensor_number(chances, kernel_place(&at_chance, &shape, b));
        if (n % RANDOM_TURNS == 0 && !kernel_go_on(call, err))
            return false;
        set_count(out, s * batches + b, binomial(philox, n, count, chance));
    }
    return true;
}

static bool stateless_binomial_run(struct kernel_call *call, struct error *err)
{
    struct philox philox;
    if (!kernel_random_seeds(call, 1, &philox, err))
        return false;
    struct tensor *out = kernel_random_output(call, 0, -1, err);
    return out &&
           fill_binomial(call, &philox, kernel_in(call, 2), kernel_in(call, 3), out, err);
}

#define THREEFRY 2 /* an algorithm of StatelessRandomGetAlg, on other devices */

static bool binomial_run(struct kernel_call *call, struct error *err)
{
    struct philox philox;
    struct shape shape;
    struct tensor *out = kernel_random_output(call, 2, -1, err);
    if (out && tensor_integer(kernel_in(call, 1), 0) == THREEFRY)
        return fail(err, INVALID, "Unsupported algorithm id: %d", THREEFRY);
    if (!out ||
        !shape_broadcast(&kernel_in(call, 3)->shape, &kernel_in(call, 4)->shape, &shape, err))
        return false;
    int64_t batches = shape_count(&shape), samples = batches ? out->count / batches : 0;
    /* How far the state moves on is agreed, not what is used up. */
    if (!kernel_random_of_variable(call, 1, batches * 2 * 100 * (samples + 3) / 4, &philox,
                                   err))
        return false;
    return fill_binomial(call, &philox, kernel_in(call, 3), kernel_in(call, 4), out, err);
}

const struct kernel kernel_random_poisson_v2_ref = {.op = "RandomPoissonV2",
                                                    .device = CPU,
                                                    .prepare = kernel_stream_prepare,
                                                    .release = kernel_stream_release,
                                                    .run = poisson_run};
const struct kernel kernel_random_poisson_ref = {.op = "RandomPoisson",
                                                 .device = CPU,
                                                 .prepare = kernel_stream_prepare,
                                                 .release = kernel_stream_release,
                                                 .run = poisson_run};
const struct kernel kernel_stateless_random_poisson_ref = {
    .op = "StatelessRandomPoisson", .device = CPU, .run = stateless_poisson_run};
const struct kernel kernel_stateless_random_binomial_ref = {.op = "StatelessRandomBinomial",
                                                            .device = CPU,
                                                            .dtypes =
                                                                BIT(F16) | BIT(F32) | BIT(F64),
                                                            .run = stateless_binomial_run};
const struct kernel kernel_stateful_random_binomial_ref = {.op = "StatefulRandomBinomial",
                                                           .device = CPU,
                                                           .dtypes =
                                                               BIT(F16) | BIT(F32) | BIT(F64),
                                                           .run = binomial_run};
