/* build_regularizer.c - penalties that weights and outputs add to the loss. */

#include "runtime/model/build.h"

static const struct config_argument l1_arguments[] = {
    {CONFIG_ARG("l1", CONFIG_REAL, "0.01"), CONFIG_RANGE(0, 1e30)}};
static const struct config_argument l2_arguments[] = {
    {CONFIG_ARG("l2", CONFIG_REAL, "0.01"), CONFIG_RANGE(0, 1e30)}};
static const struct config_argument l1_l2_arguments[] = {
    {CONFIG_ARG("l1", CONFIG_REAL, "0"), CONFIG_RANGE(0, 1e30)},
    {CONFIG_ARG("l2", CONFIG_REAL, "0"), CONFIG_RANGE(0, 1e30)}};

static const struct config_class classes[] = {
    {.name = "L1", CONFIG_ARGUMENTS(l1_arguments)},
    {.name = "L2", CONFIG_ARGUMENTS(l2_arguments)},
    {.name = "L1L2", CONFIG_ARGUMENTS(l1_l2_arguments)},
};

static const struct config_class *class_at(int index)
{
    return index < ARRAY_LEN(classes) ? &classes[index] : NULL;
}

const struct config_family build_regularizer_family = {
    .what = "regulariser", .key = "name", .at = class_at};

static double factor(const struct config *config, const char *name)
{
    return config_has(config, name) ? config_real(config, name) : 0;
}

struct edge build_regularizer(struct build *m, const struct config *regularizer, struct edge x)
{
    double l1 = factor(regularizer, "l1"), l2 = factor(regularizer, "l2");
    struct edge sum = {0};
    if (l1 > 0)
        sum = build_with_number(m, "Mul", build_reduce_all(m, "Sum", build_unary(m, "Abs", x)),
                                l1);
    if (l2 > 0 || !sum.from) {
        struct edge squares = build_with_number(
            m, "Mul", build_reduce_all(m, "Sum", build_unary(m, "Square", x)), l2);
        sum = sum.from ? build_binary(m, "AddV2", sum, squares) : squares;
    }
    return sum;
}
