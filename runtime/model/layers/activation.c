/* activation.c - Activation, ReLU, LeakyReLU, PReLU, ELU, Softmax. */

#include "runtime/model/layer.h"

static const struct config_argument activation_arguments[] = {
    {CONFIG_ARG("activation", CONFIG_CHOICE, NULL), .choices = build_activation_names,
     .wanted = "\"relu\" for one"}};
static const struct config_argument relu_arguments[] = {
    {CONFIG_ARG("max_value", CONFIG_REAL, "null"), CONFIG_RANGE(0, 1e30)},
    {CONFIG_ARG("negative_slope", CONFIG_REAL, "0"), CONFIG_RANGE(0, 1e30)},
    {CONFIG_ARG("threshold", CONFIG_REAL, "0"), CONFIG_RANGE(0, 1e30)}};
static const struct config_argument leaky_arguments[] = {
    {CONFIG_ARG("negative_slope", CONFIG_REAL, "0.3"), CONFIG_RANGE(0, 1e30)}};
static const struct config_argument prelu_arguments[] = {
    LAYER_WEIGHT("alpha", "zeros"),
    {CONFIG_ARG("shared_axes", CONFIG_INTS, "null"), CONFIG_RANGE(1, LIMIT_TENSOR_RANK)}};
static const struct config_argument elu_arguments[] = {
    {CONFIG_ARG("alpha", CONFIG_REAL, "1"), CONFIG_RANGE(0, 1e30)}};
static const struct config_argument softmax_arguments[] = {
    {CONFIG_ARG("axis", CONFIG_INTS, "-1"), CONFIG_RANGE(-7, 7)}};

static void activation(struct layer_call *call)
{
    layer_give_activated(call, call->inputs[0]);
}

/* x from the threshold up to the maximum; below it slope * (x - threshold). */
static void relu(struct layer_call *call)
{
    struct build *m = call->m;
    const struct config *config = call->config;
    double threshold = config_real(config, "threshold");
    double slope = config_real(config, "negative_slope");
    struct edge x = call->inputs[0], y;
    if (threshold == 0) {
        y = build_unary(m, "Relu", x);
    } else {
        struct edge above = build_with_number(m, "GreaterEqual", x, threshold);
        y = build_select(m, above, x, build_number(m, build_dtype(x), 0));
    }
    if (!config_is_null(config, "max_value"))
        y = build_with_number(m, "Minimum", y, config_real(config, "max_value"));
    if (slope > 0) {
        struct edge below =
            build_with_number(m, "Minimum", build_with_number(m, "Sub", x, threshold), 0);
        y = build_binary(m, "AddV2", y, build_with_number(m, "Mul", below, slope));
    }
    layer_give(call, y);
}

static void leaky_relu(struct layer_call *call)
{
    double slope = config_real(call->config, "negative_slope");
    layer_give(call, builder_add(&call->m->b, "LeakyRelu", "LeakyRelu", INPUTS(call->inputs[0]),
                                 ATTRS(attr_float("alpha", (float)slope))));
}

static void prelu(struct layer_call *call)
{
    struct build *m = call->m;
    struct shape shape = *layer_shape(call, 0);
    if (!build_ok(m))
        return;
    shape.rank--;
    memmove(shape.dims, shape.dims + 1, (size_t)shape.rank * sizeof(*shape.dims));
    int count;
    const int64_t *shared = config_ints(call->config, "shared_axes", &count);
    for (int i = 0; shared && i < count; i++) {
        if (shared[i] > shape.rank) {
            layer_refuse(call, "the dimensions that \"shared_axes\" names");
            return;
        }
        shape.dims[shared[i] - 1] = 1;
    }
    struct edge x = call->inputs[0], alpha = layer_weight(call, "alpha", &shape);
    struct edge below = build_with_number(m, "Minimum", x, 0);
    layer_give(call, build_binary(m, "AddV2", build_unary(m, "Relu", x),
                                  build_binary(m, "Mul", alpha, below)));
}

static void elu(struct layer_call *call)
{
    struct build *m = call->m;
    double alpha = config_real(call->config, "alpha");
    struct edge x = call->inputs[0];
    struct edge y = build_unary(m, "Elu", x);
    if (alpha != 1)
        y = build_select(m, build_with_number(m, "Greater", x, 0), x,
                         build_with_number(m, "Mul", y, alpha));
    layer_give(call, y);
}

/* The last axis has an op; others, and several at once, follow the definition. */
static void softmax(struct layer_call *call)
{
    struct build *m = call->m;
    int count, rank = layer_shape(call, 0)->rank;
    const int64_t *axes = config_ints(call->config, "axis", &count);
    struct edge x = call->inputs[0];
    if (count == 1 && (axes[0] == -1 || axes[0] == rank - 1)) {
        layer_give(call, call->logits ? x : build_unary(m, "Softmax", x));
        return;
    }
    struct edge highest = build_reduce(m, "Max", x, axes, count, true);
    struct edge powers = build_unary(m, "Exp", build_binary(m, "Sub", x, highest));
    struct edge sum = build_reduce(m, "Sum", powers, axes, count, true);
    layer_give(call, build_binary(m, "RealDiv", powers, sum));
}

const struct layer_class layer_activation_layer = {
    .config = {.name = "Activation", CONFIG_ARGUMENTS(activation_arguments)},
    .call = activation,
    .passes_mask = true};
const struct layer_class layer_relu = {
    .config = {.name = "ReLU", CONFIG_ARGUMENTS(relu_arguments)},
    .call = relu,
    .passes_mask = true};
const struct layer_class layer_leaky_relu = {
    .config = {.name = "LeakyReLU", CONFIG_ARGUMENTS(leaky_arguments)},
    .call = leaky_relu,
    .passes_mask = true};
const struct layer_class layer_prelu = {
    .config = {.name = "PReLU", CONFIG_ARGUMENTS(prelu_arguments)},
    .call = prelu,
    .passes_mask = true};
const struct layer_class layer_elu = {
    .config = {.name = "ELU", CONFIG_ARGUMENTS(elu_arguments)},
    .call = elu,
    .passes_mask = true};
const struct layer_class layer_softmax = {
    .config = {.name = "Softmax", CONFIG_ARGUMENTS(softmax_arguments)},
    .call = softmax,
    .passes_mask = true};
