/* conv_transpose.c - Conv2DTranspose: from what a convolution gives to what it takes. */

#include "runtime/model/layer.h"

static const struct config_argument arguments[] = {
    {CONFIG_ARG("filters", CONFIG_INT, NULL), CONFIG_RANGE(1, LAYER_UNITS_MAX),
     .wanted = "how many channels the layer gives"},
    {CONFIG_ARG("kernel_size", CONFIG_INTS, NULL), CONFIG_RANGE(1, LAYER_WINDOW_MAX),
     .count = 2, .wanted = "height and width of the window"},
    {CONFIG_ARG("strides", CONFIG_INTS, "1"), CONFIG_RANGE(1, LAYER_WINDOW_MAX), .count = 2},
    LAYER_PADDING,
    {CONFIG_ARG("output_padding", CONFIG_INTS, "null"), CONFIG_RANGE(0, LAYER_WINDOW_MAX),
     .count = 2},
    LAYER_DATA_FORMAT,
    {CONFIG_ARG("dilation_rate", CONFIG_INTS, "1"), CONFIG_RANGE(1, LAYER_WINDOW_MAX),
     .count = 2},
    LAYER_ACTIVATION("activation", "linear"),
    LAYER_WEIGHT("kernel", "glorot_uniform"),
    LAYER_BIAS,
    LAYER_ACTIVITY,
};

/* Keras's rule for the length of one dimension. */
static int64_t length(int64_t input, int64_t window, int64_t stride, bool same,
                      const int64_t *more)
{
    if (more)
        return (input - 1) * stride + window - (same ? 2 * (window / 2) : 0) + *more;
    if (same)
        return input * stride;
    return input * stride + (window > stride ? window - stride : 0);
}

/* The shape of the result as a tensor: the number of examples may not be known yet. */
static struct edge result_shape(struct layer_call *call, const struct shape *input,
                                const int64_t dims[3])
{
    struct build *m = call->m;
    if (input->dims[0] >= 0)
        return build_ints(m, (const int64_t[]){input->dims[0], dims[0], dims[1], dims[2]}, 4);
    struct edge batch = build_slice(m, build_shape_of(m, call->inputs[0]), (const int64_t[]){0},
                                    (const int64_t[]){1}, 1);
    return build_concat(m, (struct edge[]){batch, build_ints(m, dims, 3)}, 2, 0);
}

static void conv_transpose(struct layer_call *call)
{
    struct build *m = call->m;
    const struct config *config = call->config;
    const struct shape *known = layer_examples(call, 3, "height, width, channels (images)");
    if (!known)
        return;
    const struct shape input = *known;
    const int64_t *size = config_ints(config, "kernel_size", NULL);
    const int64_t *step = config_ints(config, "strides", NULL);
    const int64_t *rate = config_ints(config, "dilation_rate", NULL);
    const int64_t *more = config_ints(config, "output_padding", NULL);
    bool same = !strcmp(config_choice(config, "padding"), "same");
    int64_t filters = config_int(config, "filters"), dims[3] = {0, 0, filters};
    for (int i = 0; i < 2; i++)
        dims[i] = length(input.dims[i + 1], (size[i] - 1) * rate[i] + 1, step[i], same,
                         more ? &more[i] : NULL);
    const int64_t strides[4] = {1, step[0], step[1], 1}, rates[4] = {1, rate[0], rate[1], 1};
    struct edge kernel =
        layer_weight(call, "kernel", &SHAPE(size[0], size[1], filters, input.dims[3]));
    struct edge x = builder_add(
        &m->b, "Conv2DBackpropInput", "conv2d_transpose",
        INPUTS(result_shape(call, &input, dims), kernel, call->inputs[0]),
        ATTRS(attr_int_list("strides", strides, 4), attr_int_list("dilations", rates, 4),
              attr_string("padding", same ? "SAME" : "VALID")));
    if (build_shape(m, x)->rank &&
        build_ok(m)) /* with any number of examples, the op knows nothing by itself */
        *shapes_at(&m->shapes, x) = SHAPE(input.dims[0], dims[0], dims[1], filters);
    if (config_bool(config, "use_bias"))
        x = build_bias(m, x, layer_weight(call, "bias", &SHAPE(filters)));
    layer_give_activated(call, x);
}

const struct layer_class layer_conv2d_transpose = {
    .config = {.name = "Conv2DTranspose",
               .aliases = (const char *const[]){"Convolution2DTranspose", NULL},
               CONFIG_ARGUMENTS(arguments)},
    .call = conv_transpose};
