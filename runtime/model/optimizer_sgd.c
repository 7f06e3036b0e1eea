/* optimizer_sgd.c - SGD, Lion: steps along the gradient, or along its sign. */

#include "runtime/model/optimizer.h"

static const struct config_argument sgd_arguments[] = {
    {CONFIG_ARG("momentum", CONFIG_REAL, "0"), CONFIG_RANGE(0, 1)},
    {CONFIG_ARG("nesterov", CONFIG_BOOL, "false")}};
static const struct config_argument lion_arguments[] = {
    {CONFIG_ARG("beta_1", CONFIG_REAL, "0.9"), CONFIG_RANGE(0, 1)},
    {CONFIG_ARG("beta_2", CONFIG_REAL, "0.99"), CONFIG_RANGE(0, 1)}};

static void sgd(struct optimizer_call *call)
{
    double momentum = config_real(call->config, "momentum");
    if (momentum == 0) {
        optimizer_update(call, "ResourceApplyGradientDescent",
                         INPUTS(call->variable, call->rate, call->gradient), NO_ATTRS);
        return;
    }
    struct edge velocity = optimizer_slot(call, "Momentum", 0);
    struct edge by = builder_scalar(&call->m->b, "momentum", F32, momentum);
    optimizer_update(call, "ResourceApplyKerasMomentum",
                     INPUTS(call->variable, velocity, call->rate, call->gradient, by),
                     ATTRS(attr_bool("use_nesterov", config_bool(call->config, "nesterov"))));
}

static void lion(struct optimizer_call *call)
{
    struct build *m = call->m;
    struct edge slot = optimizer_slot(call, "Lion", 0), before = optimizer_read(call, slot);
    struct edge now =
        optimizer_blend(call, config_real(call->config, "beta_1"), before, call->gradient);
    optimizer_assign(
        call, slot,
        optimizer_blend(call, config_real(call->config, "beta_2"), before, call->gradient));
    optimizer_subtract(call, build_binary(m, "Mul", call->rate, build_unary(m, "Sign", now)));
}

const struct optimizer_class optimizer_sgd = {
    .config = {.name = "SGD", CONFIG_ARGUMENTS(sgd_arguments)},
    .learning_rate = 0.01,
    .update = sgd};
const struct optimizer_class optimizer_lion = {
    .config = {.name = "Lion", CONFIG_ARGUMENTS(lion_arguments)},
    .learning_rate = 0.001,
    .update = lion};
