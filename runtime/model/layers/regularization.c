/* regularization.c - Dropout. */

#include "runtime/model/layer.h"

static const struct config_argument dropout_arguments[] = {
    {CONFIG_ARG("rate", CONFIG_REAL, NULL), CONFIG_RANGE(0, 0.99),
     .wanted = "the share of inputs to drop, 0 to 0.99"},
    LAYER_SEED,
    {CONFIG_ARG("noise_shape", CONFIG_INTS, "null"), CONFIG_RANGE(-1, 1e9)},
};

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

static void dropout(struct layer_call *call)
{
    double rate = config_real(call->config, "rate");
    int count;
    const int64_t *noise = config_ints(call->config, "noise_shape", &count);
    if (!call->training || rate == 0) {
        layer_give(call, call->inputs[0]);
        return;
    }
    struct shape shape = *layer_shape(call, 0);
    if (noise && count != shape.rank) {
        layer_refuse(call, "as many dimensions as noise_shape has, the batch included");
        return;
    }
    for (int i = 0; noise && i < count; i++)
        shape.dims[i] = noise[i] < 0 ? shape.dims[i] : noise[i];
    layer_give(call, drop(call, &shape, rate));
}

const struct layer_class layer_dropout = {
    .config = {.name = "Dropout", CONFIG_ARGUMENTS(dropout_arguments)}, .call = dropout};
