/* optimizer_adaptive.c - a rate for each number by its gradients: Adagrad, RMSprop, Adadelta,
 * Ftrl. */

#include "runtime/model/optimizer.h"

#define EPSILON                                                                                \
    {                                                                                          \
        CONFIG_ARG("epsilon", CONFIG_REAL, "1e-7"), CONFIG_RANGE(0, 1)                         \
    }
#define START                                                                                  \
    {                                                                                          \
        CONFIG_ARG("initial_accumulator_value", CONFIG_REAL, "0.1"), CONFIG_RANGE(0, 1e6)      \
    }
#define STRENGTH(name)                                                                         \
    {                                                                                          \
        CONFIG_ARG(name, CONFIG_REAL, "0"), CONFIG_RANGE(0, 1e6)                               \
    }

static const struct config_argument adagrad_arguments[] = {START, EPSILON};
static const struct config_argument rmsprop_arguments[] = {
    {CONFIG_ARG("rho", CONFIG_REAL, "0.9"), CONFIG_RANGE(0, 1)},
    {CONFIG_ARG("momentum", CONFIG_REAL, "0"), CONFIG_RANGE(0, 1)},
    EPSILON,
    {CONFIG_ARG("centered", CONFIG_BOOL, "false")}};
static const struct config_argument adadelta_arguments[] = {
    {CONFIG_ARG("rho", CONFIG_REAL, "0.95"), CONFIG_RANGE(0, 1)}, EPSILON};
static const struct config_argument ftrl_arguments[] = {
    {CONFIG_ARG("learning_rate_power", CONFIG_REAL, "-0.5"), CONFIG_RANGE(-10, 0)},
    START,
    STRENGTH("l1_regularization_strength"),
    STRENGTH("l2_regularization_strength"),
    STRENGTH("l2_shrinkage_regularization_strength"),
    STRENGTH("beta")};

static struct edge square(struct optimizer_call *call, struct edge x)
{
    return build_unary(call->m, "Square", x);
}

/* x + epsilon */
static struct edge more(struct optimizer_call *call, struct edge x)
{
    return build_with_number(call->m, "AddV2", x, config_real(call->config, "epsilon"));
}

static void adagrad(struct optimizer_call *call)
{
    struct build *m = call->m;
    struct edge slot =
        optimizer_slot(call, "Adagrad", config_real(call->config, "initial_accumulator_value"));
    struct edge sum =
        build_binary(m, "AddV2", optimizer_read(call, slot), optimizer_squares(call));
    optimizer_assign(call, slot, sum);
    optimizer_subtract(call, build_binary(m, "RealDiv",
                                          build_binary(m, "Mul", call->rate, call->gradient),
                                          build_unary(m, "Sqrt", more(call, sum))));
}

static void rmsprop(struct optimizer_call *call)
{
    struct build *m = call->m;
    const struct config *config = call->config;
    double rho = config_real(config, "rho"), momentum = config_real(config, "momentum");
    struct edge slot = optimizer_slot(call, "RMSprop", 0);
    struct edge mean_square =
        optimizer_blend(call, rho, optimizer_read(call, slot), optimizer_squares(call));
    struct edge size = mean_square;
    optimizer_assign(call, slot, mean_square);
    if (config_bool(config, "centered")) {
        struct edge average = optimizer_slot(call, "RMSprop_1", 0);
        struct edge mean =
            optimizer_blend(call, rho, optimizer_read(call, average), call->gradient);
        optimizer_assign(call, average, mean);
        size = build_binary(m, "Sub", mean_square, square(call, mean));
    }
    struct edge change =
        build_binary(m, "Mul", build_binary(m, "Mul", call->rate, call->gradient),
                     build_unary(m, "Rsqrt", more(call, size)));
    if (momentum > 0) {
        struct edge velocity = optimizer_slot(call, "RMSprop_2", 0);
        change = build_binary(
            m, "AddV2", build_with_number(m, "Mul", optimizer_read(call, velocity), momentum),
            change);
        optimizer_assign(call, velocity, change);
    }
    optimizer_subtract(call, change);
}

static void adadelta(struct optimizer_call *call)
{
    struct build *m = call->m;
    double rho = config_real(call->config, "rho");
    struct edge gradients = optimizer_slot(call, "Adadelta", 0);
    struct edge changes = optimizer_slot(call, "Adadelta_1", 0);
    struct edge size =
        optimizer_blend(call, rho, optimizer_read(call, gradients), optimizer_squares(call));
    struct edge before = optimizer_read(call, changes);
    struct edge change = build_binary(
        m, "RealDiv",
        build_binary(m, "Mul", build_unary(m, "Sqrt", more(call, before)), call->gradient),
        build_unary(m, "Sqrt", more(call, size)));
    optimizer_assign(call, gradients, size);
    optimizer_assign(call, changes, optimizer_blend(call, rho, before, square(call, change)));
    optimizer_subtract(call, build_binary(m, "Mul", call->rate, change));
}

/* Follow the regularised leader (McMahan et al., 2013), in Keras's form. */
static void ftrl(struct optimizer_call *call)
{
    struct build *m = call->m;
    const struct config *config = call->config;
    double power = -config_real(config, "learning_rate_power");
    double l1 = config_real(config, "l1_regularization_strength");
    double shrink = config_real(config, "l2_shrinkage_regularization_strength");
    struct edge sums =
        optimizer_slot(call, "Ftrl", config_real(config, "initial_accumulator_value"));
    struct edge lines = optimizer_slot(call, "Ftrl_1", 0);
    struct edge value = optimizer_read(call, call->variable), g = call->gradient;
    struct edge old = optimizer_read(call, sums);
    struct edge sum = build_binary(m, "AddV2", old, optimizer_squares(call));
    struct edge new_root = build_with_number(m, "Pow", sum, power);
    struct edge old_root = build_with_number(m, "Pow", old, power);
    struct edge sigma =
        build_binary(m, "RealDiv", build_binary(m, "Sub", new_root, old_root), call->rate);
    if (shrink > 0)
        g = build_binary(m, "AddV2", g, build_with_number(m, "Mul", value, 2 * shrink));
    struct edge change = build_binary(m, "Sub", g, build_binary(m, "Mul", sigma, value));
    struct edge line = build_binary(m, "AddV2", optimizer_read(call, lines), change);
    /* beta / (2 rate) joins the l2 strength, and both are doubled */
    struct edge l2 = build_binary(
        m, "RealDiv", build_number(m, F32, config_real(config, "beta")), call->rate);
    l2 = build_with_number(m, "AddV2", l2,
                           2 * config_real(config, "l2_regularization_strength"));
    struct edge curve =
        build_binary(m, "AddV2", build_binary(m, "RealDiv", new_root, call->rate), l2);
    struct edge held =
        build_with_number(m, "Minimum", build_with_number(m, "Maximum", line, -l1), l1);
    optimizer_assign(call, sums, sum);
    optimizer_assign(call, lines, line);
    optimizer_assign(call, call->variable,
                     build_binary(m, "RealDiv", build_binary(m, "Sub", held, line), curve));
}

#define OPTIMIZER(name_, class_)                                                               \
    const struct optimizer_class optimizer_##name_ = {                                         \
        .config = {.name = class_, CONFIG_ARGUMENTS(name_##_arguments)},                       \
        .learning_rate = 0.001,                                                                \
        .update = name_};

OPTIMIZER(adagrad, "Adagrad")
OPTIMIZER(rmsprop, "RMSprop")
OPTIMIZER(adadelta, "Adadelta")
OPTIMIZER(ftrl, "Ftrl")
