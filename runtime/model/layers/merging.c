/* merging.c - several inputs become one: Add, Subtract, Multiply, Average, Maximum, Minimum,
 * Concatenate, Dot. */

#include "base/arena.h"
#include "runtime/model/layer.h"

static const struct config_argument concatenate_arguments[] = {
    {CONFIG_ARG("axis", CONFIG_INT, "-1"), CONFIG_RANGE(-7, 7)}};
static const struct config_argument dot_arguments[] = {
    {CONFIG_ARG("axes", CONFIG_INTS, NULL), CONFIG_RANGE(-7, 7), .count = 2,
     .wanted = "the dimension of each input that is summed over"},
    LAYER_FLAG("normalize", "false")};

static struct edge merged(struct layer_call *call, const char *op)
{
    struct edge x = call->inputs[0];
    for (int i = 1; i < call->inputs_count; i++)
        x = build_binary(call->m, op, x, call->inputs[i]);
    return x;
}

static void average(struct layer_call *call)
{
    layer_give(call, build_with_number(call->m, "Mul", merged(call, "AddV2"),
                                       1.0 / call->inputs_count));
    layer_merge_masks(call);
}

/* As Keras: a step is there where any input has it; along the steps, one mask behind the other.
 */
static void concatenate_masks(struct layer_call *call)
{
    struct build *m = call->m;
    int rank = build_shape(m, call->inputs[0])->rank;
    int64_t axis = config_int(call->config, "axis");
    struct edge *masks = arena_array(m->arena, (size_t)call->inputs_count, sizeof(*masks));
    bool along = rank == 3 && (axis == 1 || axis == -2), all = true;
    for (int i = 0; i < call->inputs_count; i++) {
        masks[i] = layer_mask(call, i);
        all &= masks[i].from != NULL;
        if (!masks[i].from && along)
            masks[i] = build_binary(m, "GreaterEqual",
                                    build_unary(m, "ZerosLike",
                                                build_reduce(m, "Sum", call->inputs[i],
                                                             (const int64_t[]){2}, 1, false)),
                                    build_number(m, build_dtype(call->inputs[i]), 0));
    }
    if (along)
        layer_give_mask(call, 0, build_concat(m, masks, call->inputs_count, 1));
    else if (all) /* one without a mask has all steps, and so has the result */
        layer_merge_masks(call);
}

static void concatenate(struct layer_call *call)
{
    layer_give(call, build_concat(call->m, call->inputs, call->inputs_count,
                                  config_int(call->config, "axis")));
    if (call->masks)
        concatenate_masks(call);
}

/* The other dimensions first, the one that is summed over last. */
static struct edge axis_last(struct layer_call *call, int index, int64_t axis)
{
    struct build *m = call->m;
    int rank = build_shape(m, call->inputs[index])->rank;
    int64_t order[LIMIT_TENSOR_RANK];
    int count = 0;
    struct edge x = call->inputs[index];
    axis = axis < 0 ? axis + rank : axis;
    if (rank < 2 || rank > 3 || axis < 1 || axis >= rank) {
        layer_refuse(call,
                     "two or three dimensions with the batch, and axes that name one of them");
        return x;
    }
    if (config_bool(call->config, "normalize")) {
        struct edge sum = build_reduce(m, "Sum", build_unary(m, "Square", x), &axis, 1, true);
        x = build_binary(m, "Mul", x,
                         build_unary(m, "Rsqrt", build_with_number(m, "Maximum", sum, 1e-12)));
    }
    for (int i = 0; i < rank; i++) {
        if (i != axis)
            order[count++] = i;
    }
    order[count] = axis;
    x = axis == rank - 1 ? x : build_transpose(m, x, order, rank);
    return rank == 2 ? build_expand(m, x, 1) : x;
}

static void dot(struct layer_call *call)
{
    struct build *m = call->m;
    const int64_t *axes = config_ints(call->config, "axes", NULL);
    bool vectors[2];
    for (int i = 0; i < 2; i++)
        vectors[i] = build_shape(m, call->inputs[i])->rank == 2;
    struct edge x =
        build_matmul(m, axis_last(call, 0, axes[0]), axis_last(call, 1, axes[1]), false, true);
    if (vectors[1] && !vectors[0])
        x = build_squeeze(m, x, 2);
    if (vectors[0] && build_ok(m)) /* (B, 1, n), and (B, 1, 1), which stays (B, 1) */
        x = build_squeeze(m, x, 1);
    layer_give(call, x);
}

#define MERGING(name_, class_, op_)                                                            \
    static void name_(struct layer_call *call)                                                 \
    {                                                                                          \
        layer_give(call, merged(call, op_));                                                   \
        layer_merge_masks(call);                                                               \
    }                                                                                          \
    const struct layer_class layer_##name_ = {                                                 \
        .config = {.name = class_}, .inputs_min = 2, .inputs_max = -1, .call = name_};

MERGING(add, "Add", "AddV2")
MERGING(multiply, "Multiply", "Mul")
MERGING(maximum, "Maximum", "Maximum")
MERGING(minimum, "Minimum", "Minimum")
MERGING(subtract, "Subtract", "Sub")

const struct layer_class layer_average = {
    .config = {.name = "Average"}, .inputs_min = 2, .inputs_max = -1, .call = average};
const struct layer_class layer_concatenate = {
    .config = {.name = "Concatenate", CONFIG_ARGUMENTS(concatenate_arguments)},
    .inputs_min = 1,
    .inputs_max = -1,
    .call = concatenate};
const struct layer_class layer_dot = {
    .config = {.name = "Dot", CONFIG_ARGUMENTS(dot_arguments)},
    .inputs_min = 2,
    .inputs_max = 2,
    .call = dot};
