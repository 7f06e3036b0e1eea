/* augment_light.c - RandomBrightness, RandomContrast. */

#include "runtime/dataset/augment_internal.h"

#define RANGE                                                                                  \
    {                                                                                          \
        CONFIG_ARG("value_range", CONFIG_REALS, "[0, 1]"), .count = 2                          \
    }

static const struct config_argument brightness_arguments[] = {
    {CONFIG_ARG("factor", CONFIG_REALS, NULL), CONFIG_RANGE(-1, 1),
     .wanted = "which share of the range to add, at most"},
    RANGE};
static const struct config_argument contrast_arguments[] = {
    {CONFIG_ARG("factor", CONFIG_REALS, NULL), CONFIG_RANGE(0, 1),
     .wanted = "by which share to change contrast, at most"},
    RANGE};

static bool check_range(const struct config *config, struct error *err)
{
    int count;
    const double *range = config_reals(config, "value_range", &count);
    if (range[0] >= range[1])
        return error_at(err, config->pointer, INVALID,
                        "%s's value_range must be two numbers, the lower one first",
                        config->class->name);
    config_reals(config, "factor", &count);
    return count == 1 || count == 2 ||
           error_at(err, config->pointer, INVALID,
                    "%s's factor has %d numbers, allowed: one or two", config->class->name,
                    count);
}

static float clip(float value, const double *range)
{
    return value < (float)range[0]   ? (float)range[0]
           : value > (float)range[1] ? (float)range[1]
                                     : value;
}

/* Adds the same to all. */
static void brighten(const struct augment_step *step, struct augment_draw *draw,
                     const float *from, float *to)
{
    int count, two;
    const double *range = config_reals(step->config, "value_range", &two);
    const double *factor = config_reals(step->config, "factor", &count);
    double low = count == 1 ? -factor[0] : factor[0], high = factor[count - 1];
    float more = (float)((low + augment_uniform(draw) * (high - low)) * (range[1] - range[0]));
    int64_t all = shape_count(&step->from);
    for (int64_t i = 0; i < all; i++)
        to[i] = clip(from[i] + more, range);
}

/* Moves each channel away from its mean, or towards it. */
static void contrast(const struct augment_step *step, struct augment_draw *draw,
                     const float *from, float *to)
{
    int count, two;
    const double *range = config_reals(step->config, "value_range", &two);
    const double *factor = config_reals(step->config, "factor", &count);
    double low = 1 - factor[0], high = 1 + factor[count - 1];
    float by = (float)(low + augment_uniform(draw) * (high - low));
    int64_t depth = step->from.dims[2], pixels = step->from.dims[0] * step->from.dims[1];
    for (int64_t c = 0; c < depth; c++) {
        double sum = 0;
        for (int64_t i = 0; i < pixels; i++)
            sum += from[i * depth + c];
        float mean = (float)(sum / (double)pixels);
        for (int64_t i = 0; i < pixels; i++)
            to[i * depth + c] = clip((from[i * depth + c] - mean) * by + mean, range);
    }
}

const struct augment_class augment_random_brightness = {
    .config = {.name = "RandomBrightness",
               CONFIG_ARGUMENTS(brightness_arguments),
               .check = check_range},
    .run = brighten};
const struct augment_class augment_random_contrast = {
    .config = {.name = "RandomContrast",
               CONFIG_ARGUMENTS(contrast_arguments),
               .check = check_range},
    .run = contrast};
