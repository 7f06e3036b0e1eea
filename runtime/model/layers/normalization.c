/* normalization.c - LayerNormalization, RMSNormalization, GroupNormalization,
 * UnitNormalization. */

#include "runtime/model/layer.h"

#define SCALED                                                                                 \
    LAYER_FLAG("center", "true"), LAYER_FLAG("scale", "true"), LAYER_WEIGHT("gamma", "ones"),  \
        LAYER_WEIGHT("beta", "zeros")
#define EPSILON(initial)                                                                       \
    {                                                                                          \
        CONFIG_ARG("epsilon", CONFIG_REAL, initial), CONFIG_RANGE(0, 1)                        \
    }
#define AXES                                                                                   \
    {                                                                                          \
        CONFIG_ARG("axis", CONFIG_INTS, "-1"), CONFIG_RANGE(-7, 7)                             \
    }

static const struct config_argument layer_arguments[] = {
    AXES, EPSILON("0.001"), LAYER_FLAG("rms_scaling", "false"), SCALED};
static const struct config_argument rms_arguments[] = {AXES, EPSILON("1e-6")};
static const struct config_argument group_arguments[] = {
    {CONFIG_ARG("groups", CONFIG_INT, "32"), CONFIG_RANGE(-1, LAYER_UNITS_MAX)},
    {CONFIG_ARG("axis", CONFIG_INT, "-1"), CONFIG_RANGE(-7, 7)},
    EPSILON("0.001"),
    SCALED};
static const struct config_argument unit_arguments[] = {AXES};

/* Axes counted from the front, smallest first; false after refusing. */
static bool axes_of(struct layer_call *call, int rank, int64_t *axes, int *count)
{
    const int64_t *given = config_ints(call->config, "axis", count);
    unsigned seen = 0;
    for (int i = 0; i < *count; i++) {
        int64_t axis = given[i] < 0 ? given[i] + rank : given[i];
        if (axis < 1 || axis >= rank || seen & 1u << axis) {
            layer_refuse(call, "the dimensions that \"axis\" names");
            return false;
        }
        seen |= 1u << axis;
    }
    *count = 0;
    for (int axis = 0; axis < rank; axis++) {
        if (seen & 1u << axis)
            axes[(*count)++] = axis;
    }
    return true;
}

/* A weight of the normalised dimensions, in a shape that broadcasts. */
static struct edge scale_weight(struct layer_call *call, const char *what,
                                const struct shape *input, const int64_t *axes, int count)
{
    struct shape own = {.rank = count}, wide = {.rank = input->rank};
    for (int i = 0; i < input->rank; i++)
        wide.dims[i] = 1;
    for (int i = 0; i < count; i++)
        wide.dims[axes[i]] = own.dims[i] = input->dims[axes[i]];
    /* Keras starts every scale with ones; a class that names an initialiser says it itself. */
    const char *initial = !strcmp(what, "beta") ? "zeros" : "ones";
    struct edge weight =
        build_weight_read(call->m, layer_state(call, what, &own, initial, true));
    if (count == 1 && axes[0] == input->rank - 1)
        return weight;
    return build_reshape(call->m, weight, wide.dims, wide.rank);
}

/* 1 / sqrt(x + epsilon) */
static struct edge inverse_root(struct layer_call *call, struct edge x)
{
    double epsilon = config_real(call->config, "epsilon");
    return build_unary(call->m, "Rsqrt", build_with_number(call->m, "AddV2", x, epsilon));
}

static struct edge mean_square(struct build *m, struct edge x, const int64_t *axes, int count)
{
    return build_reduce(m, "Mean", build_unary(m, "Square", x), axes, count, true);
}

static void normalize(struct layer_call *call)
{
    struct build *m = call->m;
    const struct shape input = *layer_shape(call, 0);
    int64_t axes[LIMIT_TENSOR_RANK];
    int count;
    struct edge x = call->inputs[0], gamma = {0}, beta = {0};
    if (!build_ok(m) || !axes_of(call, input.rank, axes, &count))
        return;
    if (config_bool(call->config, "scale"))
        gamma = scale_weight(call, "gamma", &input, axes, count);
    if (config_bool(call->config, "center"))
        beta = scale_weight(call, "beta", &input, axes, count);
    if (config_bool(call->config, "rms_scaling")) {
        struct edge mean = build_reduce(m, "Mean", x, axes, count, true);
        struct edge variance = mean_square(m, build_binary(m, "Sub", x, mean), axes, count);
        x = build_binary(m, "Mul", x, inverse_root(call, variance));
        layer_give(call, gamma.from ? build_binary(m, "Mul", x, gamma) : x);
        return;
    }
    bool last = count == 1 && axes[0] == input.rank - 1;
    if (call->training && build_dtype(x) == F32 && last && gamma.from && beta.from) {
        double epsilon = config_real(call->config, "epsilon");
        layer_give(call, builder_add(&m->b, "_LayerNorm", "LayerNorm", INPUTS(x, gamma, beta),
                                     ATTRS(attr_float("epsilon", (float)epsilon))));
        return;
    }
    x = build_binary(m, "Sub", x, build_reduce(m, "Mean", x, axes, count, true));
    struct edge by = inverse_root(call, mean_square(m, x, axes, count));
    if (gamma.from)
        by = build_binary(m, "Mul", by, gamma);
    x = build_binary(m, "Mul", x, by);
    layer_give(call, beta.from ? build_binary(m, "AddV2", x, beta) : x);
}

static void rms_normalization(struct layer_call *call)
{
    struct build *m = call->m;
    const struct shape input = *layer_shape(call, 0);
    int64_t axes[LIMIT_TENSOR_RANK];
    int count;
    struct edge x = call->inputs[0];
    if (!build_ok(m) || !axes_of(call, input.rank, axes, &count))
        return;
    struct edge gamma = scale_weight(call, "scale", &input, axes, count);
    x = build_binary(m, "Mul", x, inverse_root(call, mean_square(m, x, axes, count)));
    layer_give(call, build_binary(m, "Mul", x, gamma));
}

/* Each group of channels of an example by its own mean and deviation. */
static void group_normalization(struct layer_call *call)
{
    struct build *m = call->m;
    const struct shape input = *layer_shape(call, 0);
    int rank = input.rank, axes_count = 0;
    int64_t axis = config_int(call->config, "axis"), axes[LIMIT_TENSOR_RANK],
            dims[LIMIT_TENSOR_RANK];
    if (!build_ok(m))
        return;
    if ((axis < 0 ? axis + rank : axis) != rank - 1 || rank >= LIMIT_TENSOR_RANK) {
        layer_refuse(call, "channels last (\"axis\": -1)");
        return;
    }
    int64_t channels = input.dims[rank - 1], groups = config_int(call->config, "groups");
    if (groups < 1)
        groups = channels;
    if (channels % groups) {
        layer_refuse(call, "channels that groups divides");
        return;
    }
    struct edge gamma = {0}, beta = {0}, x = call->inputs[0];
    const int64_t last = rank - 1;
    if (config_bool(call->config, "scale"))
        gamma = scale_weight(call, "gamma", &input, &last, 1);
    if (config_bool(call->config, "center"))
        beta = scale_weight(call, "beta", &input, &last, 1);
    for (int i = 1; i < rank - 1; i++) {
        dims[i - 1] = input.dims[i];
        axes[axes_count++] = i;
    }
    dims[rank - 2] = groups;
    dims[rank - 1] = channels / groups;
    axes[axes_count++] = rank;
    x = build_reshape_examples(m, x, dims, rank);
    x = build_binary(m, "Sub", x, build_reduce(m, "Mean", x, axes, axes_count, true));
    x = build_binary(m, "Mul", x, inverse_root(call, mean_square(m, x, axes, axes_count)));
    x = build_reshape_examples(m, x, input.dims + 1, rank - 1);
    if (gamma.from)
        x = build_binary(m, "Mul", x, gamma);
    layer_give(call, beta.from ? build_binary(m, "AddV2", x, beta) : x);
}

static void unit_normalization(struct layer_call *call)
{
    struct build *m = call->m;
    const struct shape input = *layer_shape(call, 0);
    int64_t axes[LIMIT_TENSOR_RANK];
    int count;
    struct edge x = call->inputs[0];
    if (!build_ok(m) || !axes_of(call, input.rank, axes, &count))
        return;
    struct edge sum = build_reduce(m, "Sum", build_unary(m, "Square", x), axes, count, true);
    struct edge by = build_unary(m, "Rsqrt", build_with_number(m, "Maximum", sum, 1e-12));
    layer_give(call, build_binary(m, "Mul", x, by));
}

const struct layer_class layer_layer_normalization = {
    .config = {.name = "LayerNormalization", CONFIG_ARGUMENTS(layer_arguments)},
    .call = normalize,
    .passes_mask = true};
const struct layer_class layer_rms_normalization = {
    .config = {.name = "RMSNormalization", CONFIG_ARGUMENTS(rms_arguments)},
    .call = rms_normalization};
const struct layer_class layer_group_normalization = {
    .config = {.name = "GroupNormalization", CONFIG_ARGUMENTS(group_arguments)},
    .call = group_normalization,
    .passes_mask = true};
const struct layer_class layer_unit_normalization = {
    .config = {.name = "UnitNormalization", CONFIG_ARGUMENTS(unit_arguments)},
    .call = unit_normalization,
    .passes_mask = true};
