/* conv.c - Conv2D. */

#include "runtime/model/layer.h"

static const struct config_argument arguments[] = {
    {CONFIG_ARG("filters", CONFIG_INT, NULL), CONFIG_RANGE(1, LAYER_UNITS_MAX),
     .wanted = "how many channels the layer gives"},
    {CONFIG_ARG("kernel_size", CONFIG_INTS, NULL), CONFIG_RANGE(1, LAYER_WINDOW_MAX),
     .count = 2, .wanted = "height and width of the window"},
    {CONFIG_ARG("strides", CONFIG_INTS, "1"), CONFIG_RANGE(1, LAYER_WINDOW_MAX), .count = 2},
    LAYER_PADDING,
    LAYER_DATA_FORMAT,
    {CONFIG_ARG("dilation_rate", CONFIG_INTS, "1"), CONFIG_RANGE(1, LAYER_WINDOW_MAX),
     .count = 2},
    {CONFIG_ARG("groups", CONFIG_INT, "1"), CONFIG_RANGE(1, LAYER_UNITS_MAX)},
    LAYER_ACTIVATION("activation", "linear"),
    LAYER_WEIGHT("kernel", "glorot_uniform"),
    LAYER_BIAS,
    LAYER_ACTIVITY,
};

static bool check(const struct config *config, struct error *err)
{
    int64_t filters = config_int(config, "filters"), groups = config_int(config, "groups");
    if (filters % groups)
        return error_at(err, config->pointer, INVALID,
                        "filters is %lld and groups is %lld, allowed: a divisor of filters",
                        (long long)filters, (long long)groups);
    return true;
}

static void conv2d(struct layer_call *call)
{
    struct build *m = call->m;
    const struct config *config = call->config;
    const struct shape *input =
        layer_examples(call, 3, "height, width, channels (images, not after Flatten or Dense)");
    if (!input)
        return;
    int64_t channels = input->dims[3], filters = config_int(config, "filters");
    int64_t groups = config_int(config, "groups");
    if (channels % groups) {
        layer_refuse(call, "channels that groups divides");
        return;
    }
    const int64_t *size = config_ints(config, "kernel_size", NULL);
    const int64_t *step = config_ints(config, "strides", NULL);
    const int64_t *rate = config_ints(config, "dilation_rate", NULL);
    bool same = !strcmp(config_choice(config, "padding"), "same");
    for (int i = 0; i < 2 && !same; i++) {
        if (input->dims[i + 1] < (size[i] - 1) * rate[i] + 1) {
            char wanted[120];
            snprintf(wanted, sizeof(wanted),
                     "at least %lldx%lld for a window with padding \"valid\"",
                     (long long)((size[0] - 1) * rate[0] + 1),
                     (long long)((size[1] - 1) * rate[1] + 1));
            layer_refuse(call, wanted);
            return;
        }
    }
    struct edge kernel =
        layer_weight(call, "kernel", &SHAPE(size[0], size[1], channels / groups, filters));
    const int64_t strides[4] = {1, step[0], step[1], 1}, rates[4] = {1, rate[0], rate[1], 1};
    struct edge x = builder_add(&m->b, "Conv2D", "Conv2D", INPUTS(call->inputs[0], kernel),
                                ATTRS(attr_int_list("strides", strides, 4),
                                      attr_int_list("dilations", rates, 4),
                                      attr_string("padding", same ? "SAME" : "VALID")));
    if (config_bool(config, "use_bias"))
        x = build_bias(m, x, layer_weight(call, "bias", &SHAPE(filters)));
    layer_give_activated(call, x);
}

const struct layer_class layer_conv2d = {
    .config = {.name = "Conv2D",
               .aliases = (const char *const[]){"Convolution2D", NULL},
               CONFIG_ARGUMENTS(arguments),
               .check = check},
    .call = conv2d};
