/* recurrent.c - a cell carried along a sequence, see recurrent.h. */

#include "runtime/model/layers/recurrent.h"

#include "base/arena.h"

bool recurrent_check(const struct config *config, struct error *err)
{
    if (!config_bool(config, "stateful"))
        return true;
    return error_at(err, config->pointer, UNIMPLEMENTED,
                    "stateful is true: here every sequence begins anew");
}

static struct edge mask(struct recurrent *r, struct edge like, double rate, const char *what)
{
    struct build *m = r->call->m;
    const char *purpose = arena_printf(m->arena, "%s/%s", r->call->name, what);
    struct edge kept = build_dropout_mask(m, like, NULL, rate, purpose);
    return build_with_number(m, "Mul", kept, 1 / (1 - rate));
}

bool recurrent_begin(struct recurrent *r, struct layer_call *call, int gates, int states)
{
    const struct shape *input = layer_examples(call, 2, "steps, numbers (a sequence)");
    if (!input)
        return false;
    int64_t width = input->dims[2], units = config_int(call->config, "units");
    if (input->dims[1] < 1 || input->dims[1] > RECURRENT_STEPS_MAX) {
        layer_refuse(call, "1 to 4096 steps");
        return false;
    }
    *r = (struct recurrent){
        .call = call, .units = units, .gates = gates, .states_count = states};
    r->kernel = layer_weight(call, "kernel", &SHAPE(width, gates * units));
    r->recurrent = layer_weight(call, "recurrent", &SHAPE(units, gates * units));
    return build_ok(call->m);
}

struct edge recurrent_product(struct recurrent *r, struct edge state, int64_t first,
                              int64_t columns)
{
    struct build *m = r->call->m;
    struct edge weights = r->recurrent;
    if (r->state_mask.from)
        state = build_binary(m, "Mul", state, r->state_mask);
    if (columns)
        weights = build_slice(m, weights, (const int64_t[]){0, first},
                              (const int64_t[]){r->units, columns}, 2);
    return build_matmul(m, state, weights, false, false);
}

struct edge recurrent_drop_inputs(struct recurrent *r, struct edge x)
{
    struct build *m = r->call->m;
    double rate = config_real(r->call->config, "dropout");
    const struct shape input = *layer_shape(r->call, 0);
    if (!r->call->training || rate <= 0)
        return x;
    const struct shape one = SHAPE(input.dims[0], 1, input.dims[2]);
    const char *purpose = arena_printf(m->arena, "%s/inputs", r->call->name);
    struct edge kept = build_dropout_mask(m, x, &one, rate, purpose);
    return build_binary(m, "Mul", x, build_with_number(m, "Mul", kept, 1 / (1 - rate)));
}

/* (batch, steps, width) * kernel + bias as (steps, batch, gates * units). */
static struct edge project(struct recurrent *r, const struct shape *input)
{
    struct build *m = r->call->m;
    struct edge x = recurrent_drop_inputs(r, r->call->inputs[0]);
    int64_t steps = input->dims[1], width = input->dims[2], columns = r->gates * r->units;
    x = build_transpose(m, x, (const int64_t[]){1, 0, 2}, 3);
    x = build_reshape(m, x, (const int64_t[]){-1, width}, 2);
    x = build_matmul(m, x, r->kernel, false, false);
    if (r->bias.from && build_shape(m, r->bias)->rank == 1)
        x = build_bias(m, x, r->bias);
    return build_reshape(m, x, (const int64_t[]){steps, -1, columns}, 3);
}

/* Zeros of (batch, units), whatever the batch is. */
static struct edge zeros(struct recurrent *r, struct edge projected, int64_t batch)
{
    struct build *m = r->call->m;
    if (batch >= 0)
        return build_binary(m, "Fill", build_ints(m, (const int64_t[]){batch, r->units}, 2),
                            build_number(m, F32, 0));
    struct edge some =
        build_slice(m, projected, (const int64_t[]){0, 0}, (const int64_t[]){-1, r->units}, 2);
    return build_unary(m, "ZerosLike", some);
}

static void give(struct recurrent *r, struct edge *outputs, int64_t steps,
                 const struct edge *states)
{
    struct build *m = r->call->m;
    const struct config *config = r->call->config;
    if (config_bool(config, "return_sequences"))
        layer_give(r->call, builder_add(&m->b, "Pack", "stack", outputs, (int)steps,
                                        ATTRS(attr_int("N", steps), attr_int("axis", 1))));
    else
        layer_give(r->call, outputs[steps - 1]);
    for (int i = 0; config_bool(config, "return_state") && i < r->states_count; i++)
        layer_give(r->call, states[i]);
}

/* The masks of the steps, outputs of one node; without node: all steps are there. */
static struct edge steps_of_mask(struct recurrent *r, int64_t steps)
{
    struct build *m = r->call->m;
    struct edge mask = layer_mask(r->call, 0);
    if (!mask.from)
        return mask;
    return builder_add(&m->b, "Unpack", "unstack_mask", INPUTS(mask),
                       ATTRS(attr_int("num", steps), attr_int("axis", 1)));
}

/* Over a step that is not there the states stay as they were; gives the output. */
static struct edge masked_step(struct recurrent *r, struct edge mask, const struct edge *before,
                               struct edge *states)
{
    struct build *m = r->call->m;
    struct edge at = build_expand(m, mask, -1);
    for (int i = 0; i < r->states_count; i++)
        states[i] = build_select(m, at, states[i], before[i]);
    if (!config_bool(r->call->config, "zero_output_for_mask"))
        return states[0];
    return build_select(m, at, states[0], build_unary(m, "ZerosLike", states[0]));
}

void recurrent_run(struct recurrent *r)
{
    if (recurrent_is_whole(r)) {
        recurrent_run_whole(r);
        return;
    }
    struct build *m = r->call->m;
    const struct config *config = r->call->config;
    const struct shape input = *layer_shape(r->call, 0);
    int64_t steps = input.dims[1];
    bool backwards = config_bool(config, "go_backwards");
    double rate = config_real(config, "recurrent_dropout");
    struct edge states[RECURRENT_STATES_MAX];
    struct edge *outputs = arena_array(m->arena, (size_t)steps, sizeof(*outputs));
    struct edge projected = project(r, &input);
    struct edge rows = builder_add(&m->b, "Unpack", "unstack", INPUTS(projected),
                                   ATTRS(attr_int("num", steps)));
    for (int i = 0; i < r->states_count; i++)
        states[i] = zeros(r, rows, input.dims[0]);
    if (r->call->training && rate > 0)
        r->state_mask = mask(r, states[0], rate, "states");
    struct edge masks = steps_of_mask(r, steps);
    for (int64_t t = 0; t < steps && build_ok(m); t++) {
        const char *outside = build_enter(m, "step");
        int at = (int)(backwards ? steps - 1 - t : t);
        struct edge before[RECURRENT_STATES_MAX];
        memcpy(before, states, sizeof(before));
        r->step(r, builder_output(rows, at), states);
        outputs[t] =
            masks.from ? masked_step(r, builder_output(masks, at), before, states) : states[0];
        build_leave(m, outside);
        layer_check_nodes(r->call);
    }
    if (build_ok(m))
        give(r, outputs, steps, states);
    if (config_bool(config, "return_sequences"))
        layer_give_mask(r->call, 0, layer_mask(r->call, 0));
}
