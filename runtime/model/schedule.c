/* schedule.c - learning rates that change with the step. */

#include <math.h>

#include "runtime/model/optimizer.h"
#include "runtime/tensor.h"

#define RATE(name, initial_, wanted_)                                                          \
    {                                                                                          \
        CONFIG_ARG(name, CONFIG_REAL, initial_), CONFIG_RANGE(0, 1e6), .wanted = (wanted_)     \
    }
#define STEPS(name)                                                                            \
    {                                                                                          \
        CONFIG_ARG(name, CONFIG_INT, NULL), CONFIG_RANGE(1, 1e15),                             \
            .wanted = "over how many steps"                                                    \
    }
#define FIRST RATE("initial_learning_rate", NULL, "the rate of the first step")
#define ALPHA RATE("alpha", "0", NULL)
#define STAIRCASE                                                                              \
    {                                                                                          \
        CONFIG_ARG("staircase", CONFIG_BOOL, "false")                                          \
    }

static const struct config_argument constant_arguments[] = {
    RATE("value", NULL, "the learning rate")};
static const struct config_argument exponential_arguments[] = {
    FIRST, STEPS("decay_steps"), RATE("decay_rate", NULL, "what the rate is multiplied by"),
    STAIRCASE};
static const struct config_argument piecewise_arguments[] = {
    {CONFIG_ARG("boundaries", CONFIG_REALS, NULL), CONFIG_RANGE(0, 1e15),
     .wanted = "the last steps of each rate but the last"},
    {CONFIG_ARG("values", CONFIG_REALS, NULL), CONFIG_RANGE(0, 1e6),
     .wanted = "the rates, one more than boundaries"}};
static const struct config_argument cosine_arguments[] = {
    FIRST,
    STEPS("decay_steps"),
    ALPHA,
    RATE("warmup_target", "null", NULL),
    {CONFIG_ARG("warmup_steps", CONFIG_INT, "0"), CONFIG_RANGE(0, 1e15)}};
static const struct config_argument restarts_arguments[] = {FIRST, STEPS("first_decay_steps"),
                                                            RATE("t_mul", "2", NULL),
                                                            RATE("m_mul", "1", NULL), ALPHA};
static const struct config_argument polynomial_arguments[] = {
    FIRST,
    STEPS("decay_steps"),
    RATE("end_learning_rate", "0.0001", NULL),
    RATE("power", "1", NULL),
    {CONFIG_ARG("cycle", CONFIG_BOOL, "false")}};
static const struct config_argument inverse_arguments[] = {
    FIRST, STEPS("decay_steps"), RATE("decay_rate", NULL, "how fast the rate falls"),
    STAIRCASE};

static bool piecewise_check(const struct config *config, struct error *err)
{
    int boundaries, values;
    config_reals(config, "boundaries", &boundaries);
    config_reals(config, "values", &values);
    return values == boundaries + 1 ||
           error_at(err, config->pointer, INVALID,
                    "%d values for %d boundaries, allowed: one more than boundaries", values,
                    boundaries);
}

/* --- in the graph; all numbers are float32, as Keras's --- */

struct scheduling {
    struct build *m;
    const struct config *config;
    struct edge step; /* as a float */
};

static struct edge op2(struct scheduling *s, const char *op, struct edge x, double y)
{
    return build_with_number(s->m, op, x, y);
}

static struct edge number(struct scheduling *s, double value)
{
    return build_number(s->m, F32, value);
}

/* The share of the decay that is done, in whole steps with a staircase. */
static struct edge share(struct scheduling *s)
{
    struct edge p = op2(s, "RealDiv", s->step, (double)config_int(s->config, "decay_steps"));
    return config_bool(s->config, "staircase") ? build_unary(s->m, "Floor", p) : p;
}

static struct edge exponential(struct scheduling *s)
{
    struct edge power =
        build_binary(s->m, "Pow", number(s, config_real(s->config, "decay_rate")), share(s));
    return op2(s, "Mul", power, config_real(s->config, "initial_learning_rate"));
}

static struct edge inverse(struct scheduling *s)
{
    struct edge slower =
        op2(s, "AddV2", op2(s, "Mul", share(s), config_real(s->config, "decay_rate")), 1);
    return build_binary(s->m, "RealDiv",
                        number(s, config_real(s->config, "initial_learning_rate")), slower);
}

static struct edge piecewise(struct scheduling *s)
{
    int count, values_count;
    const double *boundaries = config_reals(s->config, "boundaries", &count);
    const double *values = config_reals(s->config, "values", &values_count);
    struct edge rate = number(s, values[count]);
    for (int i = count - 1; i >= 0; i--)
        rate = build_select(s->m, op2(s, "LessEqual", s->step, boundaries[i]),
                            number(s, values[i]), rate);
    return rate;
}

/* rate ((1 - alpha) (1 + cos(pi part)) / 2 times `factor` + alpha); no node: factor 1. */
static struct edge cosine_of(struct scheduling *s, struct edge part, struct edge factor,
                             double rate)
{
    double alpha = config_real(s->config, "alpha");
    struct edge wave = build_unary(s->m, "Cos", op2(s, "Mul", part, M_PI));
    wave = op2(s, "Mul", op2(s, "AddV2", wave, 1), 0.5);
    if (factor.from)
        wave = build_binary(s->m, "Mul", wave, factor);
    wave = op2(s, "AddV2", op2(s, "Mul", wave, 1 - alpha), alpha);
    return op2(s, "Mul", wave, rate);
}

static struct edge cosine(struct scheduling *s)
{
    const struct config *config = s->config;
    double first = config_real(config, "initial_learning_rate");
    double steps = (double)config_int(config, "decay_steps");
    double warm = (double)config_int(config, "warmup_steps");
    const struct edge none = {0};
    if (config_is_null(config, "warmup_target")) {
        struct edge done = op2(s, "Minimum", s->step, steps);
        return cosine_of(s, op2(s, "RealDiv", done, steps), none, first);
    }
    double target = config_real(config, "warmup_target");
    struct edge step = op2(s, "Minimum", s->step, steps + warm);
    struct edge part = op2(s, "RealDiv", op2(s, "Sub", step, warm), steps);
    struct edge decay = cosine_of(s, part, none, target);
    if (warm == 0)
        return decay;
    struct edge rise = op2(s, "Mul", op2(s, "RealDiv", step, warm), target - first);
    return build_select(s->m, op2(s, "Less", step, warm), op2(s, "AddV2", rise, first), decay);
}

/* Each period `t_mul` times as long as the one before, `m_mul` times as high. */
static struct edge restarts(struct scheduling *s)
{
    struct build *m = s->m;
    const struct config *config = s->config;
    double longer = config_real(config, "t_mul"), higher = config_real(config, "m_mul");
    struct edge part =
        op2(s, "RealDiv", s->step, (double)config_int(config, "first_decay_steps"));
    struct edge period;
    if (longer == 1) {
        period = build_unary(m, "Floor", part);
        part = build_binary(m, "Sub", part, period);
    } else {
        struct edge inside =
            build_binary(m, "Sub", number(s, 1), op2(s, "Mul", part, 1 - longer));
        period = build_unary(m, "Floor",
                             op2(s, "RealDiv", build_unary(m, "Log", inside), log(longer)));
        struct edge power = build_binary(m, "Pow", number(s, longer), period);
        struct edge begun =
            op2(s, "RealDiv", build_binary(m, "Sub", number(s, 1), power), 1 - longer);
        part = build_binary(m, "RealDiv", build_binary(m, "Sub", part, begun), power);
    }
    return cosine_of(s, part, build_binary(m, "Pow", number(s, higher), period),
                     config_real(config, "initial_learning_rate"));
}

static struct edge polynomial(struct scheduling *s)
{
    struct build *m = s->m;
    const struct config *config = s->config;
    double first = config_real(config, "initial_learning_rate");
    double end = config_real(config, "end_learning_rate");
    double steps = (double)config_int(config, "decay_steps");
    struct edge part;
    if (config_bool(config, "cycle")) {
        struct edge cycles = build_unary(m, "Ceil", op2(s, "RealDiv", s->step, steps));
        struct edge length = op2(s, "Mul", op2(s, "Maximum", cycles, 1), steps);
        part = build_binary(m, "RealDiv", s->step, length);
    } else {
        part = op2(s, "RealDiv", op2(s, "Minimum", s->step, steps), steps);
    }
    struct edge left = build_binary(m, "Sub", number(s, 1), part);
    struct edge power = op2(s, "Pow", left, config_real(config, "power"));
    return op2(s, "AddV2", op2(s, "Mul", power, first - end), end);
}

static struct edge constant(struct scheduling *s)
{
    return number(s, config_real(s->config, "value"));
}

/* --- the table --- */

static const struct schedule_class {
    struct config_class config;
    struct edge (*call)(struct scheduling *s);
} classes[] = {
    {{.name = "Constant", CONFIG_ARGUMENTS(constant_arguments)}, constant},
    {{.name = "ExponentialDecay", CONFIG_ARGUMENTS(exponential_arguments)}, exponential},
    {{.name = "PiecewiseConstantDecay",
      CONFIG_ARGUMENTS(piecewise_arguments),
      .check = piecewise_check},
     piecewise},
    {{.name = "CosineDecay", CONFIG_ARGUMENTS(cosine_arguments)}, cosine},
    {{.name = "CosineDecayRestarts", CONFIG_ARGUMENTS(restarts_arguments)}, restarts},
    {{.name = "PolynomialDecay", CONFIG_ARGUMENTS(polynomial_arguments)}, polynomial},
    {{.name = "InverseTimeDecay", CONFIG_ARGUMENTS(inverse_arguments)}, inverse},
};

static const struct config_class *class_at(int index)
{
    return index < ARRAY_LEN(classes) ? &classes[index].config : NULL;
}

const struct config_family schedule_family = {
    .what = "learning rate schedule", .key = "name", .number = "Constant", .at = class_at};

struct edge schedule_build(struct build *m, const struct config *schedule, struct edge step)
{
    static_assert(offsetof(struct schedule_class, config) == 0, "it begins with its class");
    struct scheduling s = {m, schedule, build_cast(m, step, F32)};
    return ((const struct schedule_class *)schedule->class)->call(&s);
}
