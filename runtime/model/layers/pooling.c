/* pooling.c - MaxPooling2D, AveragePooling2D. */

#include "runtime/model/layer.h"

static const struct config_argument arguments[] = {
    {CONFIG_ARG("pool_size", CONFIG_INTS, "2"), CONFIG_RANGE(1, LAYER_WINDOW_MAX), .count = 2},
    {CONFIG_ARG("strides", CONFIG_INTS, "null"), CONFIG_RANGE(1, LAYER_WINDOW_MAX), .count = 2},
    LAYER_PADDING,
    LAYER_DATA_FORMAT,
};

static void pool(struct layer_call *call, const char *op)
{
    const struct config *config = call->config;
    const struct shape *input =
        layer_examples(call, 3, "height, width, channels (images, not after Flatten or Dense)");
    if (!input)
        return;
    const int64_t *size = config_ints(config, "pool_size", NULL);
    const int64_t *step = config_ints(config, "strides", NULL);
    bool same = !strcmp(config_choice(config, "padding"), "same");
    if (!step)
        step = size;
    if (!same && (input->dims[1] < size[0] || input->dims[2] < size[1])) {
        char wanted[120];
        snprintf(wanted, sizeof(wanted),
                 "at least %lldx%lld for a window with padding \"valid\"", (long long)size[0],
                 (long long)size[1]);
        layer_refuse(call, wanted);
        return;
    }
    const int64_t sizes[4] = {1, size[0], size[1], 1}, strides[4] = {1, step[0], step[1], 1};
    layer_give(call, builder_add(&call->m->b, op, op, INPUTS(call->inputs[0]),
                                 ATTRS(attr_int_list("ksize", sizes, 4),
                                       attr_int_list("strides", strides, 4),
                                       attr_string("padding", same ? "SAME" : "VALID"))));
}

static void max_pool(struct layer_call *call)
{
    pool(call, "MaxPool");
}

static void average_pool(struct layer_call *call)
{
    pool(call, "AvgPool");
}

const struct layer_class layer_max_pooling2d = {
    .config = {.name = "MaxPooling2D",
               .aliases = (const char *const[]){"MaxPool2D", NULL},
               CONFIG_ARGUMENTS(arguments)},
    .call = max_pool};

const struct layer_class layer_average_pooling2d = {
    .config = {.name = "AveragePooling2D",
               .aliases = (const char *const[]){"AvgPool2D", NULL},
               CONFIG_ARGUMENTS(arguments)},
    .call = average_pool};
