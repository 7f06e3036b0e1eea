/* reshaping.c - Flatten, Reshape. */

#include "runtime/model/layer.h"

static const struct config_argument flatten_arguments[] = {LAYER_DATA_FORMAT};
static const struct config_argument reshape_arguments[] = {
    {CONFIG_ARG("target_shape", CONFIG_INTS, NULL), CONFIG_RANGE(-1, 1e9),
     .wanted = "the dimensions of one example"}};

static void flatten(struct layer_call *call)
{
    const struct shape *shape = layer_shape(call, 0);
    int64_t width = 1;
    for (int i = 1; i < shape->rank; i++)
        width = shape->dims[i] < 0 || width < 0 ? -1 : width * shape->dims[i];
    if (!build_ok(call->m))
        return;
    layer_give(call, shape->rank == 2
                         ? call->inputs[0]
                         : build_reshape_examples(call->m, call->inputs[0], &width, 1));
}

static void reshape(struct layer_call *call)
{
    int count;
    const int64_t *dims = config_ints(call->config, "target_shape", &count);
    layer_give(call, build_reshape_examples(call->m, call->inputs[0], dims, count));
}

const struct layer_class layer_flatten = {
    .config = {.name = "Flatten", CONFIG_ARGUMENTS(flatten_arguments)}, .call = flatten};
const struct layer_class layer_reshape = {
    .config = {.name = "Reshape", CONFIG_ARGUMENTS(reshape_arguments)}, .call = reshape};
