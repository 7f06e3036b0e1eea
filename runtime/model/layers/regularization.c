/* regularization.c - Dropout and noise: what makes training harder, so that it generalises. */

#include <math.h>

#include "runtime/model/layer.h"

#define RATE                                                                                   \
    {                                                                                          \
        CONFIG_ARG("rate", CONFIG_REAL, NULL), CONFIG_RANGE(0, 0.99),                          \
            .wanted = "the share of inputs to drop, 0 to 0.99"                                 \
    }

static const struct config_argument dropout_arguments[] = {
    RATE, LAYER_SEED, {CONFIG_ARG("noise_shape", CONFIG_INTS, "null"), CONFIG_RANGE(-1, 1e9)}};
static const struct config_argument spatial_arguments[] = {RATE, LAYER_SEED, LAYER_DATA_FORMAT};
static const struct config_argument noise_arguments[] = {
    {CONFIG_ARG("stddev", CONFIG_REAL, NULL), CONFIG_RANGE(0, 1e30),
     .wanted = "the standard deviation of the noise"},
    LAYER_SEED};
static const struct config_argument gaussian_arguments[] = {RATE, LAYER_SEED};

/* Each kept value is scaled up, so that the sum stays what it was. */
static struct edge drop(struct layer_call *call, const struct shape *noise, double rate)
{
    struct build *m = call->m;
    struct edge x = call->inputs[0];
    struct edge mask = build_dropout_mask(m, x, noise, rate, call->name);
    struct edge scale = builder_scalar(&m->b, "dropout/scale", build_dtype(x), 1 / (1 - rate));
    struct edge scaled = builder_add(&m->b, "Mul", "dropout/Mul", INPUTS(x, scale), NO_ATTRS);
    return builder_add(&m->b, "Mul", "dropout/Mul_1", INPUTS(scaled, mask), NO_ATTRS);
}

static bool is_idle(struct layer_call *call, const char *argument)
{
    if (call->training && config_real(call->config, argument) > 0)
        return false;
    layer_give(call, call->inputs[0]);
    return true;
}

static void dropout(struct layer_call *call)
{
    int count;
    const int64_t *noise = config_ints(call->config, "noise_shape", &count);
    if (is_idle(call, "rate"))
        return;
    struct shape shape = *layer_shape(call, 0);
    if (noise && count != shape.rank) {
        layer_refuse(call, "as many dimensions as noise_shape has, the batch included");
        return;
    }
    for (int i = 0; noise && i < count; i++)
        shape.dims[i] = noise[i] < 0 ? shape.dims[i] : noise[i];
    layer_give(call, drop(call, &shape, config_real(call->config, "rate")));
}

/* Whole channels at once. */
static void spatial_dropout(struct layer_call *call)
{
    if (is_idle(call, "rate"))
        return;
    struct shape shape = *layer_shape(call, 0);
    for (int i = 1; i < shape.rank - 1; i++)
        shape.dims[i] = 1;
    layer_give(call, drop(call, &shape, config_real(call->config, "rate")));
}

static void gaussian_noise(struct layer_call *call)
{
    if (is_idle(call, "stddev"))
        return;
    struct edge noise = build_noise(call->m, call->inputs[0], call->name);
    noise = build_with_number(call->m, "Mul", noise, config_real(call->config, "stddev"));
    layer_give(call, build_binary(call->m, "AddV2", call->inputs[0], noise));
}

/* Times numbers of mean 1 with the deviation of Dropout at this rate. */
static void gaussian_dropout(struct layer_call *call)
{
    if (is_idle(call, "rate"))
        return;
    double rate = config_real(call->config, "rate");
    struct edge noise = build_noise(call->m, call->inputs[0], call->name);
    noise = build_with_number(call->m, "Mul", noise, sqrt(rate / (1 - rate)));
    noise = build_with_number(call->m, "AddV2", noise, 1);
    layer_give(call, build_binary(call->m, "Mul", call->inputs[0], noise));
}

#define SPATIAL(name_, class_)                                                                 \
    const struct layer_class layer_##name_ = {                                                 \
        .config = {.name = class_, CONFIG_ARGUMENTS(spatial_arguments)},                       \
        .call = spatial_dropout,                                                               \
        .passes_mask = true};

const struct layer_class layer_dropout = {
    .config = {.name = "Dropout", CONFIG_ARGUMENTS(dropout_arguments)},
    .call = dropout,
    .passes_mask = true};
SPATIAL(spatial_dropout1d, "SpatialDropout1D")
SPATIAL(spatial_dropout2d, "SpatialDropout2D")
SPATIAL(spatial_dropout3d, "SpatialDropout3D")
const struct layer_class layer_gaussian_noise = {
    .config = {.name = "GaussianNoise", CONFIG_ARGUMENTS(noise_arguments)},
    .call = gaussian_noise,
    .passes_mask = true};
const struct layer_class layer_gaussian_dropout = {
    .config = {.name = "GaussianDropout", CONFIG_ARGUMENTS(gaussian_arguments)},
    .call = gaussian_dropout,
    .passes_mask = true};
