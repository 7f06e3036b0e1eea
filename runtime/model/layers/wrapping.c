/* wrapping.c - Bidirectional, TimeDistributed: layers around a layer. */

#include "base/arena.h"
#include "runtime/model/layer.h"

static const char *const merge_modes[] = {"concat", "sum", "ave", "mul", NULL};

static const struct config_argument bidirectional_arguments[] = {
    {CONFIG_ARG("layer", CONFIG_OBJECT, NULL), .family = &layer_family,
     .wanted = "a recurrent layer", .spelled = "wrapped"},
    {CONFIG_ARG("backward_layer", CONFIG_OBJECT, "null"), .family = &layer_family},
    LAYER_CHOICE("merge_mode", "\"concat\"", merge_modes)};
static const struct config_argument distributed_arguments[] = {
    {CONFIG_ARG("layer", CONFIG_OBJECT, NULL), .family = &layer_family, .wanted = "a layer",
     .spelled = "wrapped"}};

/* Calls the inner layer on `x` under a name inside of this one's. */
static struct layer_call inner_call(struct layer_call *call, const struct config *config,
                                    const char *name, const struct edge *x,
                                    const struct edge *mask)
{
    struct build *m = call->m;
    struct layer_call inner = {.m = m,
                               .class = layer_of(config->class),
                               .config = config,
                               .name = arena_printf(m->arena, "%s/%s", call->name, name),
                               .inputs = x,
                               .inputs_count = 1,
                               .masks = mask->from ? mask : NULL,
                               .training = call->training,
                               .trainable = call->trainable};
    const char *outside = build_enter(m, name);
    layer_run(&inner);
    build_leave(m, outside);
    return inner;
}

static bool bidirectional_check(const struct config *config, struct error *err)
{
    const struct config *layer = config_object(config, "layer");
    if (config_has(layer, "go_backwards"))
        return true;
    return error_at(err, config->pointer, INVALID, "layer is %s, allowed: a recurrent layer",
                    layer->class->name);
}

static struct edge reverse(struct build *m, struct edge x, int64_t axis)
{
    return build_binary(m, "ReverseV2", x, build_ints(m, &axis, 1));
}

static void bidirectional(struct layer_call *call)
{
    struct build *m = call->m;
    const struct config *forward = config_object(call->config, "layer");
    const struct config *backward = config_object(call->config, "backward_layer");
    const char *mode = config_choice(call->config, "merge_mode");
    if (build_shape(m, call->inputs[0])->rank != 3) {
        layer_refuse(call, "steps, numbers (a sequence)");
        return;
    }
    struct edge mask = layer_mask(call, 0), turned_mask = mask;
    struct layer_call a = inner_call(call, forward, "forward", call->inputs, &mask);
    /* Without a layer of its own the way back is the same one on the sequence turned round. */
    struct edge turned = backward ? call->inputs[0] : reverse(m, call->inputs[0], 1);
    if (mask.from && !backward)
        turned_mask = reverse(m, mask, 1);
    struct layer_call b =
        inner_call(call, backward ? backward : forward, "backward", &turned, &turned_mask);
    if (!build_ok(m))
        return;
    struct edge x = a.outputs[0], y = b.outputs[0];
    if (config_bool(forward, "return_sequences"))
        y = reverse(m, y, 1);
    if (!mode || !strcmp(mode, "concat"))
        x = build_concat(m, (struct edge[]){x, y}, 2, -1);
    else
        x = build_binary(m, strcmp(mode, "mul") ? "AddV2" : "Mul", x, y);
    if (mode && !strcmp(mode, "ave"))
        x = build_with_number(m, "Mul", x, 0.5);
    layer_give(call, x);
    if (config_bool(forward, "return_sequences"))
        layer_give_mask(call, 0, mask);
    for (int i = 1; i < a.outputs_count; i++)
        layer_give(call, a.outputs[i]);
    for (int i = 1; i < b.outputs_count; i++)
        layer_give(call, b.outputs[i]);
}

/* Every step is an example of its own. */
static void time_distributed(struct layer_call *call)
{
    struct build *m = call->m;
    const struct shape shape = *layer_shape(call, 0);
    if (!build_ok(m))
        return;
    if (shape.rank < 3 || shape.dims[1] < 0) {
        layer_refuse(call, "a sequence of steps");
        return;
    }
    int64_t dims[LIMIT_TENSOR_RANK] = {shape.dims[0] < 0 ? -1 : shape.dims[0] * shape.dims[1]};
    memcpy(dims + 1, shape.dims + 2, (size_t)(shape.rank - 2) * sizeof(*dims));
    struct edge x = build_reshape(m, call->inputs[0], dims, shape.rank - 1), none = {0};
    struct layer_call inner =
        inner_call(call, config_object(call->config, "layer"), "layer", &x, &none);
    if (!build_ok(m))
        return;
    const struct shape given = *build_shape(m, inner.outputs[0]);
    dims[0] = shape.dims[1];
    memcpy(dims + 1, given.dims + 1, (size_t)(given.rank - 1) * sizeof(*dims));
    layer_give(call, build_reshape_examples(m, inner.outputs[0], dims, given.rank));
}

const struct layer_class layer_bidirectional = {
    .config = {.name = "Bidirectional",
               CONFIG_ARGUMENTS(bidirectional_arguments),
               .check = bidirectional_check},
    .call = bidirectional};
const struct layer_class layer_time_distributed = {
    .config = {.name = "TimeDistributed", CONFIG_ARGUMENTS(distributed_arguments)},
    .call = time_distributed,
    .passes_mask = true};
