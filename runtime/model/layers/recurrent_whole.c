/*
 * recurrent_whole.c - a cell carried along a sequence in one node.
 *
 * Time comes first inside: (steps, batch, numbers), as TensorFlow's BlockLSTMV2 has it, whose
 * order of gates is Keras's.  A mask would have to hold states where a step is masked; the ops
 * take none, so a masked layer is to be written out (recurrent_is_whole()).
 */

#include "runtime/model/layers/recurrent.h"

#include "runtime/op.h"

bool recurrent_is_whole(const struct recurrent *r)
{
    const struct config *config = r->call->config;
    const char *activation = config_choice(config, "activation");
    const char *gate = config_has(config, "recurrent_activation")
                           ? config_choice(config, "recurrent_activation")
                           : "sigmoid";
    return r->whole && !layer_mask(r->call, 0).from &&
           (r->call->training || !r->own || !r->call->m->plain) &&
           build_dtype(r->call->inputs[0]) == F32 && activation && gate &&
           !strcmp(activation, "tanh") && !strcmp(gate, "sigmoid") &&
           config_real(config, "recurrent_dropout") == 0;
}

/* Zeros of `dims`, where -1 stands for the batch of x (steps, batch, ...). */
static struct edge zeros(struct build *m, struct edge x, const int64_t *dims, int rank)
{
    struct edge shape = build_ints(m, dims, rank);
    if (dims[0] < 0) {
        struct edge batch =
            build_slice(m, build_shape_of(m, x), (const int64_t[]){1}, (const int64_t[]){1}, 1);
        shape = build_concat(m, (const struct edge[]){batch, build_ints(m, dims + 1, rank - 1)},
                             2, 0);
    }
    return build_binary(m, "Fill", shape, build_number(m, build_dtype(x), 0));
}

/* The last step of (steps, batch, units). */
static struct edge last_step(struct recurrent *r, struct edge all, int64_t steps)
{
    struct build *m = r->call->m;
    struct edge last = build_slice(m, all, (const int64_t[]){steps - 1, 0, 0},
                                   (const int64_t[]){1, -1, -1}, 3);
    return build_reshape(m, last, (const int64_t[]){-1, r->units}, 2);
}

void recurrent_whole_lstm(struct recurrent *r, struct edge x, struct edge *outputs,
                          struct edge *states)
{
    struct build *m = r->call->m;
    const struct shape input = *layer_shape(r->call, 0);
    const int64_t state[] = {input.dims[0], r->units};
    struct edge begin = zeros(m, x, state, 2);
    struct edge hole = zeros(m, x, &r->units, 1);
    const int64_t columns = 4 * r->units;
    struct edge bias = r->bias.from ? r->bias : zeros(m, x, &columns, 1);
    struct edge weights = build_concat(m, (const struct edge[]){r->kernel, r->recurrent}, 2, 0);
    struct edge steps = build_number(m, I64, (double)input.dims[1]);
    struct edge all =
        builder_add(&m->b, "BlockLSTMV2", "BlockLSTMV2",
                    INPUTS(steps, x, begin, begin, weights, hole, hole, hole, bias),
                    ATTRS(attr_float("cell_clip", 0), attr_bool(OP_OWN_GRADIENT, true)));
    *outputs = builder_output(all, 6);
    states[0] = last_step(r, builder_output(all, 6), input.dims[1]);
    states[1] = last_step(r, builder_output(all, 1), input.dims[1]);
}

/* By `op`, with a bias of `rows` rows; 0: a vector. */
static void whole_own(struct recurrent *r, const char *op, int64_t rows, struct edge x,
                      struct edge *outputs, struct edge *states)
{
    struct build *m = r->call->m;
    const struct shape input = *layer_shape(r->call, 0);
    const int64_t state[] = {input.dims[0], r->units};
    const int64_t bias[] = {rows, r->gates * r->units};
    struct edge add =
        r->bias.from ? r->bias : zeros(m, x, rows ? bias : bias + 1, 1 + (rows > 0));
    *outputs =
        builder_add(&m->b, op, op + 1,
                    INPUTS(x, zeros(m, x, state, 2), r->kernel, r->recurrent, add), NO_ATTRS);
    states[0] = last_step(r, *outputs, input.dims[1]);
}

void recurrent_whole_gru(struct recurrent *r, struct edge x, struct edge *outputs,
                         struct edge *states)
{
    whole_own(r, "_GRUSequence", 2, x, outputs, states);
}

void recurrent_whole_simple(struct recurrent *r, struct edge x, struct edge *outputs,
                            struct edge *states)
{
    whole_own(r, "_RNNSequence", 0, x, outputs, states);
}

static const int64_t swap[] = {1, 0, 2};

/* (steps, batch, numbers) of x (batch, steps, numbers); rows of a table are looked up in that
 * order at once, rather than moved. */
static struct edge time_first(struct build *m, struct edge x)
{
    const struct node *look_up = x.from;
    if (!build_ok(m) || strcmp(look_up->op->name, "ResourceGather") != 0 ||
        build_shape(m, look_up->inputs[1])->rank != 2)
        return build_transpose(m, x, swap, 3);
    struct edge rows = build_transpose(m, look_up->inputs[1], swap, 2);
    return builder_add(&m->b, "ResourceGather", "embedding_lookup",
                       INPUTS(look_up->inputs[0], rows),
                       ATTRS(attr_type("dtype", build_dtype(x))));
}

void recurrent_run_whole(struct recurrent *r)
{
    struct build *m = r->call->m;
    const struct config *config = r->call->config;
    struct edge states[RECURRENT_STATES_MAX], outputs;
    struct edge x = time_first(m, recurrent_drop_inputs(r, r->call->inputs[0]));
    if (config_bool(config, "go_backwards"))
        x = build_binary(m, "ReverseV2", x, build_ints(m, (const int64_t[]){0}, 1));
    r->whole(r, x, &outputs, states);
    if (!build_ok(m))
        return;
    layer_give(r->call, config_bool(config, "return_sequences")
                            ? build_transpose(m, outputs, swap, 3)
                            : states[0]);
    for (int i = 0; config_bool(config, "return_state") && i < r->states_count; i++)
        layer_give(r->call, states[i]);
}
