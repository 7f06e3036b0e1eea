/* conv.c - Conv1D, Conv2D, Conv3D. */

#include "runtime/model/layer.h"

static const char *const paddings[] = {"valid", "same", "causal", NULL};

/* All but the padding, of `dims` dimensions. */
#define CONV_ARGUMENTS(dims, padding)                                                          \
    {CONFIG_ARG("filters", CONFIG_INT, NULL), CONFIG_RANGE(1, LAYER_UNITS_MAX),                \
     .wanted = "how many channels the layer gives"},                                           \
        {CONFIG_ARG("kernel_size", CONFIG_INTS, NULL), CONFIG_RANGE(1, LAYER_WINDOW_MAX),      \
         .count = (dims), .wanted = "the sizes of the window"},                                \
        {CONFIG_ARG("strides", CONFIG_INTS, "1"), CONFIG_RANGE(1, LAYER_WINDOW_MAX),           \
         .count = (dims)},                                                                     \
        padding, LAYER_DATA_FORMAT,                                                            \
        {CONFIG_ARG("dilation_rate", CONFIG_INTS, "1"), CONFIG_RANGE(1, LAYER_WINDOW_MAX),     \
         .count = (dims)},                                                                     \
        {CONFIG_ARG("groups", CONFIG_INT, "1"), CONFIG_RANGE(1, LAYER_UNITS_MAX)},             \
        LAYER_ACTIVATION("activation", "linear"), LAYER_WEIGHT("kernel", "glorot_uniform"),    \
        LAYER_BIAS, LAYER_ACTIVITY

static const struct config_argument arguments_1d[] = {
    CONV_ARGUMENTS(1, LAYER_CHOICE("padding", "\"valid\"", paddings))};
static const struct config_argument arguments_2d[] = {CONV_ARGUMENTS(2, LAYER_PADDING)};
static const struct config_argument arguments_3d[] = {CONV_ARGUMENTS(3, LAYER_PADDING)};

static bool check(const struct config *config, struct error *err)
{
    int64_t filters = config_int(config, "filters"), groups = config_int(config, "groups");
    if (filters % groups)
        return error_at(err, config->pointer, INVALID,
                        "filters is %lld and groups is %lld, allowed: a divisor of filters",
                        (long long)filters, (long long)groups);
    return true;
}

/* Refuses a window with padding "valid" that is larger than the input. */
static bool window_fits(struct layer_call *call, const struct shape *input, const int64_t *size,
                        const int64_t *rate, int dims)
{
    bool fits = true;
    char wanted[160];
    int at = snprintf(wanted, sizeof(wanted), "at least ");
    for (int i = 0; i < dims; i++) {
        int64_t window = (size[i] - 1) * rate[i] + 1;
        fits = fits && input->dims[i + 1] >= window;
        at += snprintf(wanted + at, sizeof(wanted) - (size_t)at, "%s%lld", i ? "x" : "",
                       (long long)window);
    }
    snprintf(wanted + at, sizeof(wanted) - (size_t)at, " for a window with padding \"valid\"");
    if (!fits)
        layer_refuse(call, wanted);
    return fits;
}

/* What has one dimension is an image of height 1. */
static struct edge convolve(struct layer_call *call, int dims, struct edge x,
                            struct edge kernel, const char *padding)
{
    struct build *m = call->m;
    const int64_t *step = config_ints(call->config, "strides", NULL);
    const int64_t *rate = config_ints(call->config, "dilation_rate", NULL);
    int64_t strides[5] = {1, 1, 1, 1, 1}, rates[5] = {1, 1, 1, 1, 1};
    int first = dims == 1 ? 2 : 1, rank = dims == 3 ? 5 : 4;
    for (int i = 0; i < dims; i++) {
        strides[first + i] = step[i];
        rates[first + i] = rate[i];
    }
    const char *op = dims == 3 ? "Conv3D" : "Conv2D";
    if (dims == 1)
        x = build_expand(m, x, 1);
    x = builder_add(&m->b, op, op, INPUTS(x, kernel),
                    ATTRS(attr_int_list("strides", strides, rank),
                          attr_int_list("dilations", rates, rank),
                          attr_string("padding", padding)));
    return dims == 1 ? build_squeeze(m, x, 1) : x;
}

/* As many zeros in front as make the last window end at the last element. */
static struct edge pad_causal(struct build *m, struct edge x, int64_t zeros)
{
    const int64_t sides[6] = {0, 0, zeros, 0, 0, 0};
    return build_pad(m, x, sides, 3);
}

static void conv(struct layer_call *call, int dims, const char *wanted)
{
    struct build *m = call->m;
    const struct config *config = call->config;
    const struct shape *known = layer_examples(call, dims + 1, wanted);
    if (!known)
        return;
    const struct shape input = *known;
    int64_t channels = input.dims[dims + 1], filters = config_int(config, "filters");
    int64_t groups = config_int(config, "groups");
    const int64_t *size = config_ints(config, "kernel_size", NULL);
    const int64_t *rate = config_ints(config, "dilation_rate", NULL);
    const char *padding = config_choice(config, "padding");
    bool valid = !strcmp(padding, "valid");
    if (channels % groups) {
        layer_refuse(call, "channels that groups divides");
        return;
    }
    if (valid && !window_fits(call, &input, size, rate, dims))
        return;
    struct shape shape = {.rank = dims + 2};
    memcpy(shape.dims, size, (size_t)dims * sizeof(*size));
    shape.dims[dims] = channels / groups;
    shape.dims[dims + 1] = filters;
    struct edge kernel = layer_weight(call, "kernel", &shape), x = call->inputs[0];
    if (dims == 1)
        kernel = build_expand(m, kernel, 0);
    if (!strcmp(padding, "causal"))
        x = pad_causal(m, x, (size[0] - 1) * rate[0]);
    x = convolve(call, dims, x, kernel, !strcmp(padding, "same") ? "SAME" : "VALID");
    if (config_bool(config, "use_bias"))
        x = build_bias(m, x, layer_weight(call, "bias", &SHAPE(filters)));
    layer_give_activated(call, x);
}

static void conv1d(struct layer_call *call)
{
    conv(call, 1, "steps, channels (a sequence)");
}

static void conv2d(struct layer_call *call)
{
    conv(call, 2, "height, width, channels (images, not after Flatten or Dense)");
}

static void conv3d(struct layer_call *call)
{
    conv(call, 3, "depth, height, width, channels (volumes)");
}

const struct layer_class layer_conv1d = {
    .config = {.name = "Conv1D",
               .aliases = (const char *const[]){"Convolution1D", NULL},
               CONFIG_ARGUMENTS(arguments_1d),
               .check = check},
    .call = conv1d};
const struct layer_class layer_conv2d = {
    .config = {.name = "Conv2D",
               .aliases = (const char *const[]){"Convolution2D", NULL},
               CONFIG_ARGUMENTS(arguments_2d),
               .check = check},
    .call = conv2d};
const struct layer_class layer_conv3d = {
    .config = {.name = "Conv3D",
               .aliases = (const char *const[]){"Convolution3D", NULL},
               CONFIG_ARGUMENTS(arguments_3d),
               .check = check},
    .call = conv3d};
