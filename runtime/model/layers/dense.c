/* dense.c - Dense. */

#include "runtime/model/layer.h"

static const struct config_argument arguments[] = {
    {CONFIG_ARG("units", CONFIG_INT, NULL), CONFIG_RANGE(1, LAYER_UNITS_MAX),
     .wanted = "how many outputs the layer has"},
    LAYER_ACTIVATION("activation", "linear"),
    LAYER_WEIGHT("kernel", "glorot_uniform"),
    LAYER_BIAS,
    LAYER_ACTIVITY,
};

/* Multiplies the last dimension; the others are looked at as one. */
static void call(struct layer_call *call)
{
    struct build *m = call->m;
    const struct shape input = *layer_shape(call, 0);
    if (!build_ok(m))
        return;
    if (input.rank < 2) {
        layer_refuse(call, "at least one number");
        return;
    }
    int64_t units = config_int(call->config, "units"), width = input.dims[input.rank - 1];
    struct edge kernel = layer_weight(call, "kernel", &SHAPE(width, units));
    struct edge x = call->inputs[0];
    if (input.rank > 2)
        x = build_reshape(m, x, (const int64_t[]){-1, width}, 2);
    x = build_matmul(m, x, kernel, false, false);
    if (config_bool(call->config, "use_bias"))
        x = build_bias(m, x, layer_weight(call, "bias", &SHAPE(units)));
    if (input.rank > 2) {
        int64_t dims[LIMIT_TENSOR_RANK];
        memcpy(dims, input.dims + 1, (size_t)(input.rank - 1) * sizeof(*dims));
        dims[input.rank - 2] = units;
        x = build_reshape_examples(m, x, dims, input.rank - 1);
    }
    layer_give_activated(call, x);
}

const struct layer_class layer_dense = {
    .config = {.name = "Dense", CONFIG_ARGUMENTS(arguments)},
    .call = call,
    .passes_mask = true};
