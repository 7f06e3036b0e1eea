/* conv_separable.c - DepthwiseConv2D, SeparableConv2D: each channel has filters of its own. */

#include "runtime/model/layer.h"

#define WINDOW_ARGUMENTS                                                                       \
    {CONFIG_ARG("kernel_size", CONFIG_INTS, NULL), CONFIG_RANGE(1, LAYER_WINDOW_MAX),          \
     .count = 2, .wanted = "height and width of the window"},                                  \
        {CONFIG_ARG("strides", CONFIG_INTS, "1"), CONFIG_RANGE(1, LAYER_WINDOW_MAX),           \
         .count = 2},                                                                          \
        LAYER_PADDING,                                                                         \
        {CONFIG_ARG("depth_multiplier", CONFIG_INT, "1"), CONFIG_RANGE(1, LAYER_UNITS_MAX)},   \
        LAYER_DATA_FORMAT,                                                                     \
        {CONFIG_ARG("dilation_rate", CONFIG_INTS, "1"), CONFIG_RANGE(1, LAYER_WINDOW_MAX),     \
         .count = 2},                                                                          \
        LAYER_ACTIVATION("activation", "linear"), LAYER_WEIGHT("depthwise", "glorot_uniform"), \
        LAYER_BIAS, LAYER_ACTIVITY

static const struct config_argument depthwise_arguments[] = {WINDOW_ARGUMENTS};
static const struct config_argument separable_arguments[] = {
    {CONFIG_ARG("filters", CONFIG_INT, NULL), CONFIG_RANGE(1, LAYER_UNITS_MAX),
     .wanted = "how many channels the layer gives"},
    WINDOW_ARGUMENTS,
    LAYER_WEIGHT("pointwise", "glorot_uniform"),
};

/*
 * The filters of each channel, side by side in the output.  With gaps in the window it is
 * the same as a convolution with a group for each channel.
 */
static struct edge depthwise(struct layer_call *call, const struct shape *input,
                             struct edge kernel)
{
    struct build *m = call->m;
    const struct config *config = call->config;
    const int64_t *size = config_ints(config, "kernel_size", NULL);
    const int64_t *step = config_ints(config, "strides", NULL);
    const int64_t *rate = config_ints(config, "dilation_rate", NULL);
    const int64_t strides[4] = {1, step[0], step[1], 1}, rates[4] = {1, rate[0], rate[1], 1};
    const char *padding = !strcmp(config_choice(config, "padding"), "same") ? "SAME" : "VALID";
    if (rate[0] == 1 && rate[1] == 1)
        return builder_add(
            &m->b, "DepthwiseConv2dNative", "depthwise", INPUTS(call->inputs[0], kernel),
            ATTRS(attr_int_list("strides", strides, 4), attr_string("padding", padding)));
    int64_t filters = input->dims[3] * config_int(config, "depth_multiplier");
    kernel = build_reshape(m, kernel, (const int64_t[]){size[0], size[1], 1, filters}, 4);
    return builder_add(&m->b, "Conv2D", "depthwise", INPUTS(call->inputs[0], kernel),
                       ATTRS(attr_int_list("strides", strides, 4),
                             attr_int_list("dilations", rates, 4),
                             attr_string("padding", padding)));
}

static struct edge depthwise_kernel(struct layer_call *call, const struct shape *input,
                                    const char *what)
{
    const int64_t *size = config_ints(call->config, "kernel_size", NULL);
    return layer_weight(
        call, what,
        &SHAPE(size[0], size[1], input->dims[3], config_int(call->config, "depth_multiplier")));
}

static void give_biased(struct layer_call *call, struct edge x, int64_t channels)
{
    if (config_bool(call->config, "use_bias"))
        x = build_bias(call->m, x, layer_weight(call, "bias", &SHAPE(channels)));
    layer_give_activated(call, x);
}

static void depthwise_conv(struct layer_call *call)
{
    const struct shape *known = layer_examples(call, 3, "height, width, channels (images)");
    if (!known)
        return;
    const struct shape input = *known;
    struct edge kernel = depthwise_kernel(call, &input, "depthwise");
    give_biased(call, depthwise(call, &input, kernel),
                input.dims[3] * config_int(call->config, "depth_multiplier"));
}

static void separable_conv(struct layer_call *call)
{
    const struct shape *known = layer_examples(call, 3, "height, width, channels (images)");
    if (!known)
        return;
    const struct shape input = *known;
    const int64_t ones[4] = {1, 1, 1, 1};
    int64_t filters = config_int(call->config, "filters");
    int64_t between = input.dims[3] * config_int(call->config, "depth_multiplier");
    struct edge kernel = depthwise_kernel(call, &input, "depthwise");
    struct edge point = layer_weight(call, "pointwise", &SHAPE(1, 1, between, filters));
    struct edge x = depthwise(call, &input, kernel);
    x = builder_add(&call->m->b, "Conv2D", "pointwise", INPUTS(x, point),
                    ATTRS(attr_int_list("strides", ones, 4), attr_string("padding", "VALID")));
    give_biased(call, x, filters);
}

const struct layer_class layer_depthwise_conv2d = {
    .config = {.name = "DepthwiseConv2D", CONFIG_ARGUMENTS(depthwise_arguments)},
    .call = depthwise_conv};
const struct layer_class layer_separable_conv2d = {
    .config = {.name = "SeparableConv2D",
               .aliases = (const char *const[]){"SeparableConvolution2D", NULL},
               CONFIG_ARGUMENTS(separable_arguments)},
    .call = separable_conv};
