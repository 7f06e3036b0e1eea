/* reshaping.c - Flatten, Reshape, Permute, RepeatVector. */

#include "runtime/model/layer.h"

static const struct config_argument flatten_arguments[] = {LAYER_DATA_FORMAT};
static const struct config_argument reshape_arguments[] = {
    {CONFIG_ARG("target_shape", CONFIG_INTS, NULL), CONFIG_RANGE(-1, 1e9),
     .wanted = "the dimensions of one example"}};
static const struct config_argument permute_arguments[] = {
    {CONFIG_ARG("dims", CONFIG_INTS, NULL), CONFIG_RANGE(1, LIMIT_TENSOR_RANK),
     .wanted = "the new order of the dimensions, counted from 1"}};
static const struct config_argument repeat_arguments[] = {{CONFIG_ARG("n", CONFIG_INT, NULL),
                                                           CONFIG_RANGE(1, LAYER_UNITS_MAX),
                                                           .wanted = "how many times"}};

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

static void permute(struct layer_call *call)
{
    int count;
    const int64_t *dims = config_ints(call->config, "dims", &count);
    int64_t order[LIMIT_TENSOR_RANK + 1] = {0};
    unsigned seen = 0;
    for (int i = 0; i < count && i < LIMIT_TENSOR_RANK; i++) {
        order[i + 1] = dims[i];
        seen |= 1u << dims[i];
    }
    if (count >= LIMIT_TENSOR_RANK || seen != (2u << count) - 2 ||
        build_shape(call->m, call->inputs[0])->rank != count + 1) {
        layer_refuse(call, "as many dimensions as \"dims\" names, each once");
        return;
    }
    layer_give(call, build_transpose(call->m, call->inputs[0], order, count + 1));
}

static void repeat(struct layer_call *call)
{
    const int64_t times[3] = {1, config_int(call->config, "n"), 1};
    if (!layer_examples(call, 1, "one vector"))
        return;
    struct edge x = build_expand(call->m, call->inputs[0], 1);
    layer_give(call, build_binary(call->m, "Tile", x, build_ints(call->m, times, 3)));
}

const struct layer_class layer_flatten = {
    .config = {.name = "Flatten", CONFIG_ARGUMENTS(flatten_arguments)}, .call = flatten};
const struct layer_class layer_reshape = {
    .config = {.name = "Reshape", CONFIG_ARGUMENTS(reshape_arguments)}, .call = reshape};
const struct layer_class layer_permute = {
    .config = {.name = "Permute", CONFIG_ARGUMENTS(permute_arguments)}, .call = permute};
const struct layer_class layer_repeat_vector = {
    .config = {.name = "RepeatVector", CONFIG_ARGUMENTS(repeat_arguments)}, .call = repeat};
