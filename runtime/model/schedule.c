/* schedule.c - learning rates that change with the step. */

#include "runtime/model/optimizer.h"

static const struct config_argument constant_arguments[] = {
    {CONFIG_ARG("value", CONFIG_REAL, NULL), CONFIG_RANGE(0, 1e6),
     .wanted = "the learning rate"}};

static const struct config_class classes[] = {
    {.name = "Constant", CONFIG_ARGUMENTS(constant_arguments)},
};

static const struct config_class *class_at(int index)
{
    return index < ARRAY_LEN(classes) ? &classes[index] : NULL;
}

const struct config_family schedule_family = {
    .what = "learning rate schedule", .key = "name", .number = "Constant", .at = class_at};

struct edge schedule_build(struct build *m, const struct config *schedule, struct edge step)
{
    (void)step;
    return build_number(m, F32, config_real(schedule, "value"));
}
