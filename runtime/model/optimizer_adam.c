/* optimizer_adam.c - Adam. */

#include "base/arena.h"
#include "runtime/model/optimizer.h"

static const struct config_argument adam_arguments[] = {
    {CONFIG_ARG("beta_1", CONFIG_REAL, "0.9"), CONFIG_RANGE(0, 0.9999999)},
    {CONFIG_ARG("beta_2", CONFIG_REAL, "0.999"), CONFIG_RANGE(0, 0.9999999)},
    {CONFIG_ARG("epsilon", CONFIG_REAL, "1e-7"), CONFIG_RANGE(0, 1)},
};

struct adam { /* of one optimizer_build(), in the arena */
    struct edge beta_1, beta_2, epsilon;
    struct edge power_1, power_2; /* handles: beta to the power of the steps so far and one */
    struct edge value_1, value_2;
};

static struct edge read_power(struct optimizer_call *call, const char *name, struct edge handle)
{
    struct build *m = call->m;
    return builder_add(&m->b, "ReadVariableOp",
                       arena_printf(m->arena, "Adam/%s/ReadVariableOp", name), INPUTS(handle),
                       ATTRS(attr_type("dtype", F32)));
}

static void adam_begin(struct optimizer_call *call)
{
    const struct config *config = call->config;
    struct builder *b = &call->m->b;
    struct adam *adam = arena_alloc(call->m->arena, sizeof(*adam));
    double beta_1 = config_real(config, "beta_1"), beta_2 = config_real(config, "beta_2");
    adam->beta_1 = builder_scalar(b, "Adam/beta_1", F32, beta_1);
    adam->beta_2 = builder_scalar(b, "Adam/beta_2", F32, beta_2);
    adam->epsilon = builder_scalar(b, "Adam/epsilon", F32, config_real(config, "epsilon"));
    adam->power_1 = optimizer_scalar(call, "beta_1_power", beta_1);
    adam->power_2 = optimizer_scalar(call, "beta_2_power", beta_2);
    adam->value_1 = read_power(call, "beta_1_power", adam->power_1);
    adam->value_2 = read_power(call, "beta_2_power", adam->power_2);
    call->state = adam;
}

static void adam_update(struct optimizer_call *call)
{
    const struct adam *adam = call->state;
    struct edge m = optimizer_slot(call, "Adam", 0), v = optimizer_slot(call, "Adam_1", 0);
    optimizer_update(call, "ResourceApplyAdam",
                     INPUTS(call->variable, m, v, adam->value_1, adam->value_2, call->rate,
                            adam->beta_1, adam->beta_2, adam->epsilon, call->gradient),
                     NO_ATTRS);
}

/* Multiplies the power by beta, once all variables have been updated with the old one. */
static void advance(struct optimizer_call *call, struct edge handle, struct edge value,
                    struct edge beta, int updates)
{
    struct edge next = build_binary(call->m, "Mul", value, beta);
    optimizer_update(call, "AssignVariableOp", INPUTS(handle, next),
                     ATTRS(attr_type("dtype", F32)));
    for (int i = 0; i < updates && build_ok(call->m); i++)
        graph_add_control(call->m->b.graph, call->updates[call->updates_count - 1],
                          call->updates[i]);
}

static void adam_end(struct optimizer_call *call)
{
    const struct adam *adam = call->state;
    int updates = call->updates_count;
    const char *outside = build_enter(call->m, "Adam");
    advance(call, adam->power_1, adam->value_1, adam->beta_1, updates);
    advance(call, adam->power_2, adam->value_2, adam->beta_2, updates);
    build_leave(call->m, outside);
}

const struct optimizer_class optimizer_adam = {
    .config = {.name = "Adam", CONFIG_ARGUMENTS(adam_arguments)},
    .learning_rate = 0.001,
    .begin = adam_begin,
    .update = adam_update,
    .end = adam_end};
