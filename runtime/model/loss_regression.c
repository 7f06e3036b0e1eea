/* loss_regression.c - losses between numbers, and between distributions. */

#include <math.h>

#include "runtime/model/loss.h"

static const struct config_argument huber_arguments[] = {
    {CONFIG_ARG("delta", CONFIG_REAL, "1"), CONFIG_RANGE(0, 1e30)}};
static const struct config_argument cosine_arguments[] = {
    {CONFIG_ARG("axis", CONFIG_INT, "-1"), CONFIG_RANGE(-7, 7)}};

static struct edge away(struct loss_call *call)
{
    return build_binary(call->m, "Sub", call->y_pred, loss_targets(call));
}

static struct edge at_least(struct build *m, struct edge x, double limit)
{
    return build_with_number(m, "Maximum", x, limit);
}

static struct edge squared(struct loss_call *call)
{
    return loss_mean_last(
        call->m, build_binary(call->m, "SquaredDifference", call->y_pred, loss_targets(call)));
}

static struct edge absolute(struct loss_call *call)
{
    return loss_mean_last(call->m, build_unary(call->m, "Abs", away(call)));
}

static struct edge percentage(struct loss_call *call)
{
    struct build *m = call->m;
    struct edge y = loss_targets(call);
    struct edge size = at_least(m, build_unary(m, "Abs", y), LOSS_EPSILON);
    struct edge part =
        build_binary(m, "RealDiv", build_binary(m, "Sub", y, call->y_pred), size);
    return build_with_number(m, "Mul", loss_mean_last(m, build_unary(m, "Abs", part)), 100);
}

static struct edge logarithmic(struct loss_call *call)
{
    struct build *m = call->m;
    struct edge x = build_unary(m, "Log1p", at_least(m, call->y_pred, LOSS_EPSILON));
    struct edge y = build_unary(m, "Log1p", at_least(m, loss_targets(call), LOSS_EPSILON));
    return loss_mean_last(m, build_binary(m, "SquaredDifference", x, y));
}

/* log(cosh(x)) = x + softplus(-2 x) - log 2 */
static struct edge log_cosh(struct loss_call *call)
{
    struct build *m = call->m;
    struct edge x = away(call);
    struct edge soft = build_unary(m, "Softplus", build_with_number(m, "Mul", x, -2));
    return loss_mean_last(
        m, build_with_number(m, "Sub", build_binary(m, "AddV2", x, soft), M_LN2));
}

/* A square up to delta, beyond it a straight line. */
static struct edge huber(struct loss_call *call)
{
    struct build *m = call->m;
    double delta = config_real(call->config, "delta");
    struct edge size = build_unary(m, "Abs", away(call));
    struct edge square = build_with_number(m, "Mul", build_unary(m, "Square", size), 0.5);
    struct edge line = build_with_number(m, "Sub", build_with_number(m, "Mul", size, delta),
                                         0.5 * delta * delta);
    struct edge near = build_with_number(m, "LessEqual", size, delta);
    return loss_mean_last(m, build_select(m, near, square, line));
}

static struct edge divergence(struct loss_call *call)
{
    struct build *m = call->m;
    const int64_t last = -1;
    struct edge y =
        build_with_number(m, "Minimum", at_least(m, loss_targets(call), LOSS_EPSILON), 1);
    struct edge x = build_with_number(m, "Minimum", at_least(m, call->y_pred, LOSS_EPSILON), 1);
    struct edge log = build_unary(m, "Log", build_binary(m, "RealDiv", y, x));
    return build_reduce(m, "Sum", build_binary(m, "Mul", y, log), &last, 1, false);
}

static struct edge poisson(struct loss_call *call)
{
    struct build *m = call->m;
    struct edge log =
        build_unary(m, "Log", build_with_number(m, "AddV2", call->y_pred, LOSS_EPSILON));
    struct edge weighted = build_binary(m, "Mul", loss_targets(call), log);
    return loss_mean_last(m, build_binary(m, "Sub", call->y_pred, weighted));
}

static struct edge unit(struct build *m, struct edge x, int64_t axis)
{
    struct edge sum = build_reduce(m, "Sum", build_unary(m, "Square", x), &axis, 1, true);
    return build_binary(m, "Mul", x, build_unary(m, "Rsqrt", at_least(m, sum, 1e-12)));
}

static struct edge cosine(struct loss_call *call)
{
    struct build *m = call->m;
    int64_t axis = config_int(call->config, "axis");
    struct edge product =
        build_binary(m, "Mul", unit(m, loss_targets(call), axis), unit(m, call->y_pred, axis));
    return build_unary(m, "Neg", build_reduce(m, "Sum", product, &axis, 1, false));
}

#define LOSS(name_, class_, call_, alias_)                                                     \
    const struct loss_class loss_##name_ = {                                                   \
        .config = {.name = class_, .aliases = (const char *const[]){alias_, NULL}},            \
        .targets = TARGETS_VALUES,                                                             \
        .call = call_};

LOSS(mean_squared_error, "MeanSquaredError", squared, "mse")
LOSS(mean_absolute_error, "MeanAbsoluteError", absolute, "mae")
LOSS(mean_absolute_percentage_error, "MeanAbsolutePercentageError", percentage, "mape")
LOSS(mean_squared_logarithmic_error, "MeanSquaredLogarithmicError", logarithmic, "msle")
LOSS(log_cosh, "LogCosh", log_cosh, "logcosh")
LOSS(kl_divergence, "KLDivergence", divergence, "kullback_leibler_divergence")
LOSS(poisson, "Poisson", poisson, "poisson")

const struct loss_class loss_huber = {
    .config = {.name = "Huber", CONFIG_ARGUMENTS(huber_arguments)},
    .targets = TARGETS_VALUES,
    .call = huber};
const struct loss_class loss_cosine_similarity = {
    .config = {.name = "CosineSimilarity", CONFIG_ARGUMENTS(cosine_arguments)},
    .targets = TARGETS_VALUES,
    .call = cosine};
