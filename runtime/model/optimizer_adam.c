/* optimizer_adam.c - Adam and its family: AdamW, Adamax, Nadam. */

#include <math.h>

#include "base/arena.h"
#include "runtime/model/optimizer.h"

#define BETAS                                                                                  \
    {CONFIG_ARG("beta_1", CONFIG_REAL, "0.9"), CONFIG_RANGE(0, 0.9999999)},                    \
        {CONFIG_ARG("beta_2", CONFIG_REAL, "0.999"), CONFIG_RANGE(0, 0.9999999)},              \
    {                                                                                          \
        CONFIG_ARG("epsilon", CONFIG_REAL, "1e-7"), CONFIG_RANGE(0, 1)                         \
    }

static const struct config_argument adam_arguments[] = {
    BETAS, {CONFIG_ARG("amsgrad", CONFIG_BOOL, "false")}};
static const struct config_argument betas_only[] = {BETAS};

struct adam { /* of one optimizer_build(), in the arena */
    double beta_1, beta_2, epsilon;
    struct edge rest_1, rest_2; /* 1 - beta to the power of the updates */
    struct edge scalars[3];     /* the three numbers, as ResourceApplyAdam takes them */
    struct edge power_1, power_2;
    struct edge rate;                             /* what ResourceApplyAdam is told */
    struct edge now, next, product, product_next; /* Nadam's */
};

static struct edge number(struct optimizer_call *call, const char *name, double value)
{
    return builder_scalar(&call->m->b, name, F32, value);
}

static struct edge one_minus(struct optimizer_call *call, struct edge x)
{
    return build_binary(call->m, "Sub", build_number(call->m, F32, 1), x);
}

/*
 * ResourceApplyAdam takes 1 - beta in float, Keras in double: for 0.999 that is another
 * 1.3e-5.  Both moments differ by constant factors, which go into rate and epsilon.
 */
static double rounded(double beta)
{
    return beta == 0 ? 1 : (1 - beta) / (double)(1 - (float)beta);
}

static void begin(struct optimizer_call *call)
{
    struct build *m = call->m;
    const struct config *config = call->config;
    struct adam *a = arena_alloc(m->arena, sizeof(*a));
    *a = (struct adam){.beta_1 = config_real(config, "beta_1"),
                       .beta_2 = config_real(config, "beta_2"),
                       .epsilon = config_real(config, "epsilon")};
    a->scalars[0] = number(call, "beta_1", a->beta_1);
    a->scalars[1] = number(call, "beta_2", a->beta_2);
    a->scalars[2] = number(call, "epsilon", a->epsilon / sqrt(rounded(a->beta_2)));
    a->rate =
        build_with_number(m, "Mul", call->rate, rounded(a->beta_1) / sqrt(rounded(a->beta_2)));
    a->power_1 = build_binary(m, "Pow", a->scalars[0], call->count);
    a->power_2 = build_binary(m, "Pow", a->scalars[1], call->count);
    a->rest_1 = one_minus(call, a->power_1);
    a->rest_2 = one_minus(call, a->power_2);
    call->state = a;
}

/* x + (y - x) (1 - beta): beta x + (1 - beta) y in Keras's order of rounding. */
static struct edge approach(struct optimizer_call *call, double beta, struct edge x,
                            struct edge y)
{
    struct edge way = build_binary(call->m, "Sub", y, x);
    return build_binary(call->m, "AddV2", x, build_with_number(call->m, "Mul", way, 1 - beta));
}

/* --- Adam --- */

/* In ops of its own: `highest` keeps the largest mean square there was, AMSGrad. */
static void written_out(struct optimizer_call *call, bool highest)
{
    struct build *m = call->m;
    const struct adam *a = call->state;
    struct edge first = optimizer_slot(call, "Adam", 0),
                second = optimizer_slot(call, "Adam_1", 0);
    struct edge mean = approach(call, a->beta_1, optimizer_read(call, first), call->gradient);
    struct edge square =
        approach(call, a->beta_2, optimizer_read(call, second), optimizer_squares(call));
    struct edge top = square;
    optimizer_assign(call, first, mean);
    optimizer_assign(call, second, square);
    if (highest) {
        struct edge third = optimizer_slot(call, "Adam_2", 0);
        top = build_binary(m, "Maximum", optimizer_read(call, third), square);
        optimizer_assign(call, third, top);
    }
    struct edge alpha = build_binary(
        m, "RealDiv", build_binary(m, "Mul", call->rate, build_unary(m, "Sqrt", a->rest_2)),
        a->rest_1);
    struct edge size = build_with_number(m, "AddV2", build_unary(m, "Sqrt", top), a->epsilon);
    optimizer_subtract(call,
                       build_binary(m, "RealDiv", build_binary(m, "Mul", mean, alpha), size));
}

static void adam(struct optimizer_call *call)
{
    const struct adam *a = call->state;
    bool highest = config_bool(call->config, "amsgrad");
    if (highest || optimizer_is_looked_up(call)) {
        written_out(call, highest);
        return;
    }
    struct edge m = optimizer_slot(call, "Adam", 0), v = optimizer_slot(call, "Adam_1", 0);
    optimizer_update(call, "ResourceApplyAdam",
                     INPUTS(call->variable, m, v, a->power_1, a->power_2, a->rate,
                            a->scalars[0], a->scalars[1], a->scalars[2], call->gradient),
                     NO_ATTRS);
}

/* --- Adamax: the largest gradient in place of the mean square --- */

static void adamax(struct optimizer_call *call)
{
    struct build *m = call->m;
    const struct adam *a = call->state;
    struct edge first = optimizer_slot(call, "Adamax", 0),
                top = optimizer_slot(call, "Adamax_1", 0);
    struct edge mean = approach(call, a->beta_1, optimizer_read(call, first), call->gradient);
    struct edge size = build_binary(
        m, "Maximum", build_with_number(m, "Mul", optimizer_read(call, top), a->beta_2),
        build_unary(m, "Abs", call->gradient));
    struct edge by =
        build_binary(m, "Mul", a->rest_1, build_with_number(m, "AddV2", size, a->epsilon));
    optimizer_assign(call, first, mean);
    optimizer_assign(call, top, size);
    optimizer_subtract(
        call, build_binary(m, "RealDiv", build_binary(m, "Mul", call->rate, mean), by));
}

/* --- Nadam: Adam with Nesterov's look ahead, whose momentum grows with the steps; 1 - beta is
 * taken in float --- */

/* beta_1 (1 - 0.96^t / 2) */
static struct edge momentum(struct optimizer_call *call, struct edge t)
{
    struct build *m = call->m;
    const struct adam *a = call->state;
    struct edge power = build_binary(m, "Pow", build_number(m, F32, 0.96), t);
    return build_with_number(m, "Mul", one_minus(call, build_with_number(m, "Mul", power, 0.5)),
                             a->beta_1);
}

static void nadam_begin(struct optimizer_call *call)
{
    struct build *m = call->m;
    begin(call);
    struct adam *a = call->state;
    struct edge product = optimizer_scalar(call, "Nadam/u_product", 1);
    a->now = momentum(call, call->count);
    a->next = momentum(call, build_with_number(m, "AddV2", call->count, 1));
    a->product = build_binary(m, "Mul", optimizer_read(call, product), a->now);
    a->product_next = build_binary(m, "Mul", a->product, a->next);
    optimizer_assign(call, product, a->product);
}

static void nadam(struct optimizer_call *call)
{
    struct build *m = call->m;
    const struct adam *a = call->state;
    struct edge first = optimizer_slot(call, "Nadam", 0),
                second = optimizer_slot(call, "Nadam_1", 0);
    struct edge mean =
        approach(call, (float)a->beta_1, optimizer_read(call, first), call->gradient);
    struct edge square =
        approach(call, (float)a->beta_2, optimizer_read(call, second), optimizer_squares(call));
    struct edge ahead = build_binary(m, "RealDiv", build_binary(m, "Mul", a->next, mean),
                                     one_minus(call, a->product_next));
    struct edge here = build_binary(
        m, "RealDiv", build_binary(m, "Mul", one_minus(call, a->now), call->gradient),
        one_minus(call, a->product));
    struct edge size = build_with_number(
        m, "AddV2", build_unary(m, "Sqrt", build_binary(m, "RealDiv", square, a->rest_2)),
        a->epsilon);
    optimizer_assign(call, first, mean);
    optimizer_assign(call, second, square);
    struct edge step =
        build_binary(m, "Mul", build_binary(m, "AddV2", ahead, here), call->rate);
    optimizer_subtract(call, build_binary(m, "RealDiv", step, size));
}

const struct optimizer_class optimizer_adam = {
    .config = {.name = "Adam", CONFIG_ARGUMENTS(adam_arguments)},
    .learning_rate = 0.001,
    .begin = begin,
    .update = adam};
const struct optimizer_class optimizer_adamw = {
    .config = {.name = "AdamW", CONFIG_ARGUMENTS(adam_arguments)},
    .learning_rate = 0.001,
    .weight_decay = 0.004,
    .begin = begin,
    .update = adam};
const struct optimizer_class optimizer_adamax = {
    .config = {.name = "Adamax", CONFIG_ARGUMENTS(betas_only)},
    .learning_rate = 0.001,
    .begin = begin,
    .update = adamax};
const struct optimizer_class optimizer_nadam = {
    .config = {.name = "Nadam", CONFIG_ARGUMENTS(betas_only)},
    .learning_rate = 0.001,
    .begin = nadam_begin,
    .update = nadam};
