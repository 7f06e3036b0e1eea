/* pooling.c - Max and average pooling over windows of one, two or three dimensions. */

#include "runtime/model/layer.h"

#define POOL_ARGUMENTS(dims)                                                                   \
    {CONFIG_ARG("pool_size", CONFIG_INTS, "2"), CONFIG_RANGE(1, LAYER_WINDOW_MAX),             \
     .count = (dims)},                                                                         \
        {CONFIG_ARG("strides", CONFIG_INTS, "null"), CONFIG_RANGE(1, LAYER_WINDOW_MAX),        \
         .count = (dims)},                                                                     \
        LAYER_PADDING, LAYER_DATA_FORMAT

static const struct config_argument arguments_1d[] = {POOL_ARGUMENTS(1)};
static const struct config_argument arguments_2d[] = {POOL_ARGUMENTS(2)};
static const struct config_argument arguments_3d[] = {POOL_ARGUMENTS(3)};

/* What has one dimension is an image of height 1. */
static void pool(struct layer_call *call, int dims, const char *op, const char *wanted)
{
    struct build *m = call->m;
    const struct config *config = call->config;
    const struct shape *input = layer_examples(call, dims + 1, wanted);
    if (!input)
        return;
    const int64_t *size = config_ints(config, "pool_size", NULL);
    const int64_t *step = config_ints(config, "strides", NULL);
    bool same = !strcmp(config_choice(config, "padding"), "same");
    int64_t sizes[5] = {1, 1, 1, 1, 1}, strides[5] = {1, 1, 1, 1, 1};
    int first = dims == 1 ? 2 : 1, rank = dims == 3 ? 5 : 4;
    for (int i = 0; i < dims; i++) {
        sizes[first + i] = size[i];
        strides[first + i] = step ? step[i] : size[i];
        if (!same && input->dims[i + 1] < size[i]) {
            char text[120];
            snprintf(text, sizeof(text),
                     "at least %lld for a window with padding \"valid\" (dimension %d)",
                     (long long)size[i], i);
            layer_refuse(call, text);
            return;
        }
    }
    struct edge x = call->inputs[0];
    if (dims == 1)
        x = build_expand(m, x, 1);
    x = builder_add(&m->b, op, op, INPUTS(x),
                    ATTRS(attr_int_list("ksize", sizes, rank),
                          attr_int_list("strides", strides, rank),
                          attr_string("padding", same ? "SAME" : "VALID")));
    layer_give(call, dims == 1 ? build_squeeze(m, x, 1) : x);
}

#define SEQUENCE "steps, channels (a sequence)"
#define IMAGE "height, width, channels (images, not after Flatten or Dense)"
#define VOLUME "depth, height, width, channels (volumes)"

#define POOLING(name_, class_, alias_, dims_, op_, wanted_)                                    \
    static void name_(struct layer_call *call)                                                 \
    {                                                                                          \
        pool(call, dims_, op_, wanted_);                                                       \
    }                                                                                          \
    const struct layer_class layer_##name_ = {                                                 \
        .config = {.name = class_,                                                             \
                   .aliases = (const char *const[]){alias_, NULL},                             \
                   CONFIG_ARGUMENTS(arguments_##dims_##d)},                                    \
        .call = name_};

POOLING(max_pooling1d, "MaxPooling1D", "MaxPool1D", 1, "MaxPool", SEQUENCE)
POOLING(max_pooling2d, "MaxPooling2D", "MaxPool2D", 2, "MaxPool", IMAGE)
POOLING(max_pooling3d, "MaxPooling3D", "MaxPool3D", 3, "MaxPool3D", VOLUME)
POOLING(average_pooling1d, "AveragePooling1D", "AvgPool1D", 1, "AvgPool", SEQUENCE)
POOLING(average_pooling2d, "AveragePooling2D", "AvgPool2D", 2, "AvgPool", IMAGE)
POOLING(average_pooling3d, "AveragePooling3D", "AvgPool3D", 3, "AvgPool3D", VOLUME)
