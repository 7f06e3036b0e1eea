/* random_categorical.c - classes drawn by their unscaled log-probabilities. */

#include "kernels/ref/random.h"

#include <math.h>

/* The sums of exp(logit - greatest) up to each class; returns the last. */
static double cumulate(const struct tensor *logits, int64_t row, int64_t classes, double *sums)
{
    double greatest = -HUGE_VAL, total = 0;
    for (int64_t c = 0; c < classes; c++) {
        double logit = tensor_number(logits, row * classes + c);
        if (isfinite(logit) && logit > greatest)
            greatest = logit;
    }
    for (int64_t c = 0; c < classes; c++) {
        double logit = tensor_number(logits, row * classes + c);
        if (isfinite(logit))
            total += exp(logit - greatest);
        sums[c] = total;
    }
    return total;
}

/* The first class whose sum is above `to_find`. */
static int64_t class_of(const double *sums, int64_t classes, double to_find)
{
    int64_t low = 0, high = classes;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (sums[middle] > to_find)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static bool check(const struct kernel_call *call, int64_t *samples, struct error *err)
{
    const struct tensor *logits = kernel_in(call, 0);
    char text[SHAPE_TEXT_BYTES];
    if (logits->shape.rank != 2)
        return fail(err, INVALID, "logits should be a matrix, got shape %s",
                    shape_text(&logits->shape, text, sizeof(text)));
    if (kernel_in(call, 1)->shape.rank != 0)
        return fail(err, INVALID, "num_samples should be a scalar, got shape %s",
                    shape_text(&kernel_in(call, 1)->shape, text, sizeof(text)));
    *samples = tensor_integer(kernel_in(call, 1), 0);
    if (*samples < 0)
        return fail(err, INVALID, "num_samples should be non-negative, got %lld",
                    (long long)*samples);
    if (logits->shape.dims[1] <= 0)
        return fail(err, INVALID, "num_classes should be positive, got %lld",
                    (long long)logits->shape.dims[1]);
    return true;
}

static bool draw(struct kernel_call *call, const struct philox *philox, struct tensor *out,
                 struct error *err)
{
    const struct tensor *logits = kernel_in(call, 0);
    int64_t classes = logits->shape.dims[1], samples = out->shape.dims[1];
    double *sums = kernel_scratch(call, (size_t)classes * sizeof(*sums) + 1, err);
    if (!sums)
        return false;
    struct random_words words = {.philox = *philox};
    for (int64_t row = 0; row < out->shape.dims[0]; row++) {
        double total = samples ? cumulate(logits, row, classes, sums) : 0;
        for (int64_t s = 0; s < samples; s++)
            tensor_set_number(
                out, row * samples + s,
                (double)class_of(sums, classes, kernel_random_double(&words) * total));
    }
    return true;
}

static bool multinomial_run(struct kernel_call *call, struct error *err)
{
    int64_t samples = 0;
    if (!check(call, &samples, err))
        return false;
    int64_t rows = kernel_in(call, 0)->shape.dims[0];
    struct tensor *out = kernel_output(call, 0, &SHAPE(rows, samples), err);
    if (!out)
        return false;
    /* Two words for each sample, samples counted by fours. */
    uint64_t numbers = (uint64_t)rows * (((uint64_t)samples + 3) / 4 * 4) * 2;
    struct philox philox = {0};
    if (out->count)
        philox = kernel_stream_take(call->state, numbers * RANDOM_BLOCKS_PER_NUMBER);
    return draw(call, &philox, out, err);
}

static bool stateless_multinomial_run(struct kernel_call *call, struct error *err)
{
    int64_t samples = 0;
    struct philox philox;
    if (!kernel_random_seeds(call, 2, &philox, err) || !check(call, &samples, err))
        return false;
    int64_t rows = kernel_in(call, 0)->shape.dims[0];
    struct tensor *out = kernel_output(call, 0, &SHAPE(rows, samples), err);
    return out && draw(call, &philox, out, err);
}

const struct kernel kernel_multinomial_ref = {.op = "Multinomial",
                                              .device = CPU,
                                              .dtypes = DTYPES_FLOAT,
                                              .prepare = kernel_stream_prepare,
                                              .release = kernel_stream_release,
                                              .run = multinomial_run};
const struct kernel kernel_stateless_multinomial_ref = {.op = "StatelessMultinomial",
                                                        .device = CPU,
                                                        .dtypes = DTYPES_FLOAT,
                                                        .run = stateless_multinomial_run};
