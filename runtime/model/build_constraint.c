/* build_constraint.c - what weights are held to after each update. */

#include "runtime/model/build.h"

#define CONSTRAINT_EPSILON 1e-7 /* Keras's, against division by nothing */

#define AXIS                                                                                   \
    {                                                                                          \
        CONFIG_ARG("axis", CONFIG_INTS, "0"), CONFIG_RANGE(-7, 7)                              \
    }

static const struct config_argument axis_only[] = {AXIS};
static const struct config_argument max_arguments[] = {
    {CONFIG_ARG("max_value", CONFIG_REAL, "2"), CONFIG_RANGE(0, 1e30)}, AXIS};
static const struct config_argument min_max_arguments[] = {
    {CONFIG_ARG("min_value", CONFIG_REAL, "0"), CONFIG_RANGE(0, 1e30)},
    {CONFIG_ARG("max_value", CONFIG_REAL, "1"), CONFIG_RANGE(0, 1e30)},
    {CONFIG_ARG("rate", CONFIG_REAL, "1"), CONFIG_RANGE(0, 1)},
    AXIS};

static const struct config_class classes[] = {
    {.name = "NonNeg"},
    {.name = "UnitNorm", CONFIG_ARGUMENTS(axis_only)},
    {.name = "MaxNorm", CONFIG_ARGUMENTS(max_arguments)},
    {.name = "MinMaxNorm", CONFIG_ARGUMENTS(min_max_arguments)},
};

static const struct config_class *class_at(int index)
{
    return index < ARRAY_LEN(classes) ? &classes[index] : NULL;
}

const struct config_family build_constraint_family = {
    .what = "constraint", .key = "name", .at = class_at};

static struct edge norm(struct build *m, const struct config *constraint, struct edge x)
{
    int count;
    const int64_t *axes = config_ints(constraint, "axis", &count);
    struct edge sum = build_reduce(m, "Sum", build_unary(m, "Square", x), axes, count, true);
    return build_unary(m, "Sqrt", sum);
}

static struct edge clip(struct build *m, struct edge x, double from, double to)
{
    return build_with_number(m, "Minimum", build_with_number(m, "Maximum", x, from), to);
}

struct edge build_constraint(struct build *m, const struct config *constraint, struct edge x)
{
    if (config_is(constraint, "NonNeg"))
        return build_with_number(m, "Maximum", x, 0);
    struct edge norms = norm(m, constraint, x);
    struct edge divisor = build_with_number(m, "AddV2", norms, CONSTRAINT_EPSILON);
    if (config_is(constraint, "UnitNorm"))
        return build_binary(m, "RealDiv", x, divisor);
    double max = config_real(constraint, "max_value"), min = 0, rate = 1;
    if (config_is(constraint, "MinMaxNorm")) {
        min = config_real(constraint, "min_value");
        rate = config_real(constraint, "rate");
    }
    struct edge wanted = clip(m, norms, min, max);
    if (rate < 1)
        wanted = build_binary(m, "AddV2", build_with_number(m, "Mul", wanted, rate),
                              build_with_number(m, "Mul", norms, 1 - rate));
    return build_binary(m, "Mul", x, build_binary(m, "RealDiv", wanted, divisor));
}
