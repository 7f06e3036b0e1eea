/* loss_binary.c - losses of answers that are yes or no. */

#include "runtime/model/loss.h"

#define SMOOTHING                                                                              \
    {                                                                                          \
        CONFIG_ARG("label_smoothing", CONFIG_REAL, "0"), CONFIG_RANGE(0, 1)                    \
    }
#define AXIS                                                                                   \
    {                                                                                          \
        CONFIG_ARG("axis", CONFIG_INT, "-1"), CONFIG_RANGE(-1, -1)                             \
    }

static const struct config_argument binary_arguments[] = {LOSS_FROM_LOGITS, SMOOTHING, AXIS};
static const struct config_argument focal_arguments[] = {
    LOSS_FROM_LOGITS,
    {CONFIG_ARG("apply_class_balancing", CONFIG_BOOL, "false")},
    {CONFIG_ARG("alpha", CONFIG_REAL, "0.25"), CONFIG_RANGE(0, 1)},
    {CONFIG_ARG("gamma", CONFIG_REAL, "2"), CONFIG_RANGE(0, 100)},
    SMOOTHING,
    AXIS};

static struct edge one_minus(struct build *m, struct edge x)
{
    return build_binary(m, "Sub", build_number(m, build_dtype(x), 1), x);
}

static struct edge targets(struct loss_call *call)
{
    struct build *m = call->m;
    double smoothing = config_real(call->config, "label_smoothing");
    struct edge y = loss_targets(call);
    if (smoothing > 0)
        y = build_with_number(m, "AddV2", build_with_number(m, "Mul", y, 1 - smoothing),
                              smoothing / 2);
    return y;
}

/* Each output's own; of logits max(x, 0) - x y + log(1 + exp(-|x|)), which cannot overflow. */
static struct edge crossentropy(struct loss_call *call, struct edge y)
{
    struct build *m = call->m;
    struct edge x = call->y_pred;
    if (call->logits) {
        struct edge far =
            build_unary(m, "Exp", build_unary(m, "Neg", build_unary(m, "Abs", x)));
        struct edge linear =
            build_binary(m, "Sub", build_unary(m, "Relu", x), build_binary(m, "Mul", x, y));
        return build_binary(m, "AddV2", linear, build_unary(m, "Log1p", far));
    }
    x = loss_clip(m, x);
    struct edge yes = build_binary(m, "Mul", y, build_unary(m, "Log", x));
    struct edge no =
        build_binary(m, "Mul", one_minus(m, y), build_unary(m, "Log", one_minus(m, x)));
    return build_unary(m, "Neg", build_binary(m, "AddV2", yes, no));
}

static struct edge binary(struct loss_call *call)
{
    return loss_mean_last(call->m, crossentropy(call, targets(call)));
}

static struct edge focal(struct loss_call *call)
{
    struct build *m = call->m;
    struct edge y = targets(call), losses = crossentropy(call, y);
    struct edge p = call->logits ? build_unary(m, "Sigmoid", call->y_pred) : call->y_pred;
    struct edge right = build_binary(m, "AddV2", build_binary(m, "Mul", y, p),
                                     build_binary(m, "Mul", one_minus(m, y), one_minus(m, p)));
    struct edge factor =
        build_with_number(m, "Pow", one_minus(m, right), config_real(call->config, "gamma"));
    losses = build_binary(m, "Mul", factor, losses);
    if (config_bool(call->config, "apply_class_balancing")) {
        double alpha = config_real(call->config, "alpha");
        struct edge weight =
            build_binary(m, "AddV2", build_with_number(m, "Mul", y, alpha),
                         build_with_number(m, "Mul", one_minus(m, y), 1 - alpha));
        losses = build_binary(m, "Mul", weight, losses);
    }
    return loss_mean_last(m, losses);
}

/* Labels 0 and 1 as -1 and 1; what is -1 and 1 already stays. */
static struct edge signs(struct loss_call *call)
{
    struct build *m = call->m;
    struct edge y = loss_targets(call);
    struct edge zero = build_with_number(m, "Equal", y, 0);
    struct edge one = build_with_number(m, "Equal", y, 1);
    struct edge binary = build_reduce_all(m, "All", build_binary(m, "LogicalOr", zero, one));
    struct edge turned = build_with_number(m, "Sub", build_with_number(m, "Mul", y, 2), 1);
    return build_select(m, binary, turned, y);
}

static struct edge hinge_of(struct loss_call *call)
{
    struct build *m = call->m;
    struct edge product = build_binary(m, "Mul", signs(call), call->y_pred);
    return build_unary(m, "Relu", one_minus(m, product));
}

static struct edge hinge(struct loss_call *call)
{
    return loss_mean_last(call->m, hinge_of(call));
}

static struct edge squared_hinge(struct loss_call *call)
{
    return loss_mean_last(call->m, build_unary(call->m, "Square", hinge_of(call)));
}

/* max(0, largest of the wrong ones - the right one + 1) */
static struct edge categorical_hinge(struct loss_call *call)
{
    struct build *m = call->m;
    const int64_t last = -1;
    struct edge y = loss_targets(call);
    struct edge right =
        build_reduce(m, "Sum", build_binary(m, "Mul", y, call->y_pred), &last, 1, false);
    struct edge wrong = build_reduce(
        m, "Max", build_binary(m, "Mul", one_minus(m, y), call->y_pred), &last, 1, false);
    struct edge margin = build_binary(m, "Sub", wrong, right);
    return build_unary(m, "Relu", build_with_number(m, "AddV2", margin, 1));
}

const struct loss_class loss_binary_crossentropy = {
    .config = {.name = "BinaryCrossentropy", CONFIG_ARGUMENTS(binary_arguments)},
    .targets = TARGETS_BINARY,
    .call = binary};
const struct loss_class loss_binary_focal_crossentropy = {
    .config = {.name = "BinaryFocalCrossentropy", CONFIG_ARGUMENTS(focal_arguments)},
    .targets = TARGETS_BINARY,
    .call = focal};
const struct loss_class loss_hinge = {
    .config = {.name = "Hinge"}, .targets = TARGETS_BINARY, .call = hinge};
const struct loss_class loss_squared_hinge = {
    .config = {.name = "SquaredHinge"}, .targets = TARGETS_BINARY, .call = squared_hinge};
const struct loss_class loss_categorical_hinge = {.config = {.name = "CategoricalHinge"},
                                                  .targets = TARGETS_ONE_HOT,
                                                  .call = categorical_hinge};
