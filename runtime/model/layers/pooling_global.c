/* pooling_global.c - the mean or maximum over all places. */

#include "runtime/model/layer.h"

static const struct config_argument arguments[] = {LAYER_DATA_FORMAT,
                                                   LAYER_FLAG("keepdims", "false")};

/* The mean over the steps that are there. */
static bool pool_masked(struct layer_call *call)
{
    struct build *m = call->m;
    struct edge mask = layer_mask(call, 0);
    bool keep = config_bool(call->config, "keepdims");
    const int64_t steps = 1;
    if (!mask.from || build_shape(m, call->inputs[0])->rank != 3)
        return false;
    struct edge at = build_expand(m, mask, -1), x = call->inputs[0];
    x = build_select(m, at, x, build_unary(m, "ZerosLike", x));
    struct edge count =
        build_reduce(m, "Sum", build_cast(m, at, build_dtype(x)), &steps, 1, keep);
    layer_give(call,
               build_binary(m, "RealDiv", build_reduce(m, "Sum", x, &steps, 1, keep), count));
    return true;
}

static void pool(struct layer_call *call, int dims, const char *op, const char *wanted)
{
    const int64_t axes[3] = {1, 2, 3};
    if (dims == 1 && !strcmp(op, "Mean") && pool_masked(call))
        return;
    if (layer_examples(call, dims + 1, wanted))
        layer_give(call, build_reduce(call->m, op, call->inputs[0], axes, dims,
                                      config_bool(call->config, "keepdims")));
}

#define GLOBAL(name_, class_, alias_, dims_, op_, wanted_)                                     \
    static void name_(struct layer_call *call)                                                 \
    {                                                                                          \
        pool(call, dims_, op_, wanted_);                                                       \
    }                                                                                          \
    const struct layer_class layer_##name_ = {                                                 \
        .config = {.name = class_,                                                             \
                   .aliases = (const char *const[]){alias_, NULL},                             \
                   CONFIG_ARGUMENTS(arguments)},                                               \
        .call = name_};

GLOBAL(global_max_pooling1d, "GlobalMaxPooling1D", "GlobalMaxPool1D", 1, "Max",
       "steps, channels (a sequence)")
GLOBAL(global_max_pooling2d, "GlobalMaxPooling2D", "GlobalMaxPool2D", 2, "Max",
       "height, width, channels (images)")
GLOBAL(global_max_pooling3d, "GlobalMaxPooling3D", "GlobalMaxPool3D", 3, "Max",
       "depth, height, width, channels (volumes)")
GLOBAL(global_average_pooling1d, "GlobalAveragePooling1D", "GlobalAvgPool1D", 1, "Mean",
       "steps, channels (a sequence)")
GLOBAL(global_average_pooling2d, "GlobalAveragePooling2D", "GlobalAvgPool2D", 2, "Mean",
       "height, width, channels (images)")
GLOBAL(global_average_pooling3d, "GlobalAveragePooling3D", "GlobalAvgPool3D", 3, "Mean",
       "depth, height, width, channels (volumes)")
