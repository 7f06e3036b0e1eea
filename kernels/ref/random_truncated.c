/*
 * random_truncated.c - normal numbers between bounds given for each batch (Robert, 1995):
 * rejection from the normal, the uniform or the exponential distribution, whichever wastes
 * least.
 */

#include "kernels/ref/random.h"

#include <math.h>

#define ATTEMPTS_MAX 1000
#define BATCH 100 /* samples, when all have the same parameters */
#define NORMAL_REACH 1.3

/* Blocks of the stream, one after the other, and how numbers of the type are rounded. */
struct source {
    const struct philox *philox;
    uint64_t next;
    enum dtype dtype;
};

static int take(struct source *source, enum random_kind kind, double numbers[4])
{
    return kernel_random_block(source->philox, source->next++, kind, source->dtype, numbers);
}

/* What a calculation gives in the type. */
static double rounded(const struct source *source, double value)
{
    switch (source->dtype) {
    case F64:
        return value;
    case F32:
        return (float)value;
    case F16:
        return dtype_f16_to_f32(dtype_f32_to_f16((float)value));
    default:
        return dtype_bf16_to_f32(dtype_f32_to_bf16((float)value));
    }
}

/* One batch: where samples go, its parameters, the normalised bounds. */
struct batch {
    struct tensor *out;
    int64_t next, end;
    double mean, deviation;
    double low, high;
    int failures; /* in a row */
};

/* Stores an accepted sample, or counts a failure; false when there were too many. */
static bool settle(struct batch *batch, double sample, bool accepted)
{
    if (!accepted)
        return ++batch->failures <= ATTEMPTS_MAX;
    tensor_set_number(batch->out, batch->next++, sample * batch->deviation + batch->mean);
    batch->failures = 0;
    return true;
}

static bool from_normal(struct source *source, struct batch *batch)
{
    while (batch->next < batch->end) {
        double x[4];
        int count = take(source, RANDOM_NORMAL, x);
        for (int i = 0; i < count && batch->next < batch->end; i++)
            if (!settle(batch, x[i], x[i] >= batch->low && x[i] <= batch->high))
                return false;
    }
    return true;
}

static bool from_uniform(struct source *source, struct batch *batch)
{
    double plus = batch->low < 0 ? 0 : rounded(source, batch->low * batch->low);
    double width = rounded(source, batch->high - batch->low);
    while (batch->next < batch->end) {
        double z[4], g[4], u[4];
        int count = take(source, RANDOM_UNIFORM, z);
        for (int i = 0; i < count; i++) {
            z[i] = rounded(source, rounded(source, z[i] * width) + batch->low);
            g[i] = rounded(source, (plus - rounded(source, z[i] * z[i])) / 2);
        }
        take(source, RANDOM_UNIFORM, u);
        for (int i = 0; i < count && batch->next < batch->end; i++)
            if (!settle(batch, z[i], u[i] <= rounded(source, exp(g[i]))))
                return false;
    }
    return true;
}

static bool from_exponential(struct source *source, struct batch *batch)
{
    double low = batch->low;
    double alpha = rounded(source, (low + sqrt(low * low + 4)) / 2);
    while (batch->next < batch->end) {
        double u[4];
        int count = take(source, RANDOM_UNIFORM, u);
        for (int i = 0; i + 1 < count && batch->next < batch->end; i += 2) {
            double z = rounded(source, rounded(source, -log(u[i]) / alpha) + low);
            double x = low < alpha ? alpha - z : low - alpha;
            double chance = rounded(source, exp(rounded(source, -x * x / 2)));
            if (!settle(batch, z, u[i + 1] <= chance && z < batch->high))
                return false;
        }
    }
    return true;
}

static bool draw(struct source *source, struct batch *batch, double low, double high,
                 struct error *err)
{
    bool valid = batch->deviation > 0 && low < high && (isfinite(low) || isfinite(high));
    if (!valid)
        return fail(err, INVALID, "Invalid parameters");
    if ((isinf(low) && low < 0) || high < batch->mean) { /* mirrored */
        double swapped = low;
        low = high;
        high = swapped;
        batch->deviation = -batch->deviation;
    }
    batch->low = low = rounded(source, (low - batch->mean) / batch->deviation);
    batch->high = high = rounded(source, (high - batch->mean) / batch->deviation);
    double root = sqrt(low * low + 4);
    double cutoff = 2 * exp(0.5 + low * (low - root) / 4) / (low + root);
    bool ok;
    if ((low < -NORMAL_REACH && high >= 0) || (high > NORMAL_REACH && low <= 0))
        ok = from_normal(source, batch);
    else if (high - low < cutoff)
        ok = from_uniform(source, batch);
    else
        ok = from_exponential(source, batch);
    return ok || fail(err, INTERNAL, "no sample between %g and %g in %d attempts", low, high,
                      ATTEMPTS_MAX);
}

static const char *const names[] = {"means", "stddevs", "minvals", "maxvals"};

/* Parameters are scalars or vectors of one element or one for each batch; scalars alone are
 * shared by batches of another size. */
static bool check_parameters(const struct kernel_call *call, int64_t batches, bool *all_same,
                             struct error *err)
{
    char text[SHAPE_TEXT_BYTES];
    *all_same = true;
    for (int i = 0; i < 4; i++) {
        const struct tensor *parameter = kernel_in(call, 1 + i);
        if (parameter->shape.rank > 1)
            return fail(err, INVALID, "Input %s should be a scalar or vector, got shape: %s",
                        names[i], shape_text(&parameter->shape, text, sizeof(text)));
        *all_same = *all_same && parameter->shape.rank == 0;
    }
    for (int i = 0; i < 4 && !*all_same; i++) {
        const struct tensor *parameter = kernel_in(call, 1 + i);
        if (parameter->count != 1 && parameter->count != batches)
            return fail(err, INVALID,
                        "Input %s should have length 1 or shape[0], got shape: %s", names[i],
                        shape_text(&parameter->shape, text, sizeof(text)));
    }
    return true;
}

static double parameter(const struct kernel_call *call, int i, int64_t batch)
{
    const struct tensor *tensor = kernel_in(call, 1 + i);
    return tensor_number(tensor, tensor->count == 1 ? 0 : batch);
}

static bool run(struct kernel_call *call, struct error *err)
{
    bool all_same;
    struct tensor *out = kernel_random_output(call, 0, -1, err);
    if (!out)
        return false;
    if (out->shape.rank == 0)
        return fail(err, INVALID, "Shape tensor must not be empty");
    int64_t batches = out->shape.dims[0],
            samples = kernel_span(&out->shape, 1, out->shape.rank);
    if (!check_parameters(call, batches, &all_same, err))
        return false;
    if (out->count == 0)
        return true;
    if (all_same) {
        batches = (out->count + BATCH - 1) / BATCH;
        samples = BATCH;
    }
    struct philox philox = kernel_stream_take(
        call->state, (uint64_t)(batches * 2 * ATTEMPTS_MAX * (samples + 3) / 4));
    struct source source = {.philox = &philox, .dtype = out->dtype};
    for (int64_t b = 0; b < batches; b++) {
        if (!kernel_go_on(call, err))
            return false;
        struct batch batch = {.out = out,
                              .next = b * samples,
                              .end = (b + 1) * samples,
                              .mean = parameter(call, 0, b),
                              .deviation = parameter(call, 1, b)};
        if (batch.end > out->count)
            batch.end = out->count;
        if (!draw(&source, &batch, parameter(call, 2, b), parameter(call, 3, b), err))
            return false;
    }
    return true;
}

const struct kernel kernel_parameterized_truncated_normal_ref = {
    .op = "ParameterizedTruncatedNormal",
    .device = CPU,
    .dtypes = BIT(F16) | BIT(F32) | BIT(F64),
    .type_attr = "dtype",
    .prepare = kernel_stream_prepare,
    .release = kernel_stream_release,
    .run = run};
