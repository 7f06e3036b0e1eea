/* preprocessing.c - Rescaling, Normalization: inputs brought into a good range. */

#include "base/arena.h"
#include "base/error.h"
#include "runtime/model/layer.h"
#include "runtime/tensor.h"

static const struct config_argument rescaling_arguments[] = {
    {CONFIG_ARG("scale", CONFIG_REALS, NULL), .wanted = "what to multiply by"},
    {CONFIG_ARG("offset", CONFIG_REALS, "0")}};
static const struct config_argument normalization_arguments[] = {
    {CONFIG_ARG("axis", CONFIG_INTS, "-1"), CONFIG_RANGE(-7, 7)},
    {CONFIG_ARG("mean", CONFIG_REALS, "null")},
    {CONFIG_ARG("variance", CONFIG_REALS, "null")},
    LAYER_FLAG("invert", "false")};

/* One number, or as many as the last dimension has. */
static struct edge numbers(struct layer_call *call, const double *values, int count)
{
    struct build *m = call->m;
    struct tensor tensor;
    const struct shape shape = *layer_shape(call, 0);
    if (!build_ok(m))
        return (struct edge){0};
    if (count != 1 && shape.dims[shape.rank - 1] != count) {
        layer_refuse(call, "as many features as there are numbers");
        return (struct edge){0};
    }
    if (!tensor_init(&tensor, F32, count == 1 ? &SHAPE_SCALAR : &SHAPE(count), m->b.err)) {
        m->b.failed = true;
        return (struct edge){0};
    }
    for (int i = 0; i < count; i++)
        tensor_set_number(&tensor, i, values[i]);
    struct edge edge = builder_const(&m->b, "Const", &tensor);
    tensor_release(&tensor);
    return edge;
}

static void rescaling(struct layer_call *call)
{
    struct build *m = call->m;
    int scales, offsets;
    const double *scale = config_reals(call->config, "scale", &scales);
    const double *offset = config_reals(call->config, "offset", &offsets);
    struct edge x = build_cast(m, call->inputs[0], F32);
    x = build_binary(m, "Mul", x, numbers(call, scale, scales));
    if (offsets > 1 || offset[0] != 0)
        x = build_binary(m, "AddV2", x, numbers(call, offset, offsets));
    layer_give(call, x);
}

static bool normalization_check(const struct config *config, struct error *err)
{
    if (config_is_null(config, "mean") == config_is_null(config, "variance"))
        return true;
    return error_at(err, config->pointer, INVALID,
                    "one of mean and variance is given, allowed: both, or none");
}

/* A statistic that comes with the model's weights: of each feature, or without axis of all. */
static struct edge adapted(struct layer_call *call, const char *what, const char *initial)
{
    const struct shape shape = *layer_shape(call, 0);
    int axes = 0;
    const int64_t *axis = config_ints(call->config, "axis", &axes);
    if (!build_ok(call->m))
        return (struct edge){0};
    if (axis && (axes != 1 || (axis[0] != -1 && axis[0] != shape.rank - 1))) {
        build_refuse(call->m, UNIMPLEMENTED,
                     "axis of a Normalization that is adapted, allowed: -1 and null");
        return (struct edge){0};
    }
    struct shape of = axis ? SHAPE(shape.dims[shape.rank - 1]) : SHAPE_SCALAR;
    return build_weight_read(call->m, layer_state(call, what, &of, initial, false));
}

/* (x - mean) / deviation, or back; what is not said, the weights of the model say. */
static void normalization(struct layer_call *call)
{
    struct build *m = call->m;
    int means, variances;
    const double *mean = config_reals(call->config, "mean", &means);
    const double *variance = config_reals(call->config, "variance", &variances);
    struct edge x = build_cast(m, call->inputs[0], F32);
    struct edge at = mean ? numbers(call, mean, means) : adapted(call, "mean", "zeros");
    struct edge square =
        mean ? numbers(call, variance, variances) : adapted(call, "variance", "ones");
    struct edge deviation =
        build_with_number(m, "Maximum", build_unary(m, "Sqrt", square), 1e-7);
    if (config_bool(call->config, "invert"))
        x = build_binary(m, "AddV2", build_binary(m, "Mul", x, deviation), at);
    else
        x = build_binary(m, "RealDiv", build_binary(m, "Sub", x, at), deviation);
    layer_give(call, x);
}

const struct layer_class layer_rescaling = {
    .config = {.name = "Rescaling", CONFIG_ARGUMENTS(rescaling_arguments)},
    .call = rescaling,
    .passes_mask = true};
const struct layer_class layer_normalization = {
    .config = {.name = "Normalization",
               CONFIG_ARGUMENTS(normalization_arguments),
               .check = normalization_check},
    .call = normalization,
    .passes_mask = true};
