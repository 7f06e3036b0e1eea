/* merging.c - Add, Multiply, Concatenate: several inputs become one. */

#include "runtime/model/layer.h"

static const struct config_argument concatenate_arguments[] = {
    {CONFIG_ARG("axis", CONFIG_INT, "-1"), CONFIG_RANGE(-7, 7)}};

static void merge(struct layer_call *call, const char *op)
{
    struct edge x = call->inputs[0];
    for (int i = 1; i < call->inputs_count; i++)
        x = build_binary(call->m, op, x, call->inputs[i]);
    layer_give(call, x);
}

static void add(struct layer_call *call)
{
    merge(call, "AddV2");
}

static void multiply(struct layer_call *call)
{
    merge(call, "Mul");
}

static void concatenate(struct layer_call *call)
{
    layer_give(call, build_concat(call->m, call->inputs, call->inputs_count,
                                  config_int(call->config, "axis")));
}

const struct layer_class layer_add = {
    .config = {.name = "Add"}, .inputs_min = 2, .inputs_max = -1, .call = add};
const struct layer_class layer_multiply = {
    .config = {.name = "Multiply"}, .inputs_min = 2, .inputs_max = -1, .call = multiply};
const struct layer_class layer_concatenate = {
    .config = {.name = "Concatenate", CONFIG_ARGUMENTS(concatenate_arguments)},
    .inputs_min = 1,
    .inputs_max = -1,
    .call = concatenate};
