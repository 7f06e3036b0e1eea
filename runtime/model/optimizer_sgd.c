/* optimizer_sgd.c - SGD. */

#include "runtime/model/optimizer.h"

static const struct config_argument sgd_arguments[] = {
    {CONFIG_ARG("momentum", CONFIG_REAL, "0"), CONFIG_RANGE(0, 1)},
    {CONFIG_ARG("nesterov", CONFIG_BOOL, "false")}};

static void sgd(struct optimizer_call *call)
{
    double momentum = config_real(call->config, "momentum");
    if (momentum == 0) {
        optimizer_update(call, "ResourceApplyGradientDescent",
                         INPUTS(call->variable, call->rate, call->gradient), NO_ATTRS);
        return;
    }
    struct edge velocity = optimizer_slot(call, "Momentum", 0);
    struct edge by = builder_scalar(&call->m->b, "SGD/momentum", F32, momentum);
    optimizer_update(call, "ResourceApplyKerasMomentum",
                     INPUTS(call->variable, velocity, call->rate, call->gradient, by),
                     ATTRS(attr_bool("use_nesterov", config_bool(call->config, "nesterov"))));
}

const struct optimizer_class optimizer_sgd = {
    .config = {.name = "SGD", CONFIG_ARGUMENTS(sgd_arguments)},
    .learning_rate = 0.01,
    .update = sgd};
