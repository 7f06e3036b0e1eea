/* recurrent_cells.c - SimpleRNN, LSTM, GRU: the cells. */

#include "runtime/model/layers/recurrent.h"

static const struct config_argument simple_arguments[] = {RECURRENT_ARGUMENTS};
static const struct config_argument lstm_arguments[] = {
    RECURRENT_ARGUMENTS, LAYER_ACTIVATION("recurrent_activation", "sigmoid"),
    LAYER_FLAG("unit_forget_bias", "true")};
static const struct config_argument gru_arguments[] = {
    RECURRENT_ARGUMENTS, LAYER_ACTIVATION("recurrent_activation", "sigmoid"),
    LAYER_FLAG("reset_after", "true")};

static struct edge activate(struct recurrent *r, const char *argument, struct edge x)
{
    return build_activation(r->call->m, config_choice(r->call->config, argument), x);
}

/* --- SimpleRNN: h = activation(x W + h U + b) --- */

static void simple_step(struct recurrent *r, struct edge projected, struct edge *states)
{
    struct edge sum =
        build_binary(r->call->m, "AddV2", projected, recurrent_product(r, states[0], 0, 0));
    states[0] = activate(r, "activation", sum);
}

static void simple(struct layer_call *call)
{
    struct recurrent r;
    if (!recurrent_begin(&r, call, 1, 1))
        return;
    r.step = simple_step;
    r.whole = recurrent_whole_simple;
    r.own = true;
    if (config_bool(call->config, "use_bias"))
        r.bias = layer_weight(call, "bias", &SHAPE(r.units));
    recurrent_run(&r);
}

/* --- LSTM: gates in the order input, forget, candidate, output --- */

static void lstm_step(struct recurrent *r, struct edge projected, struct edge *states)
{
    struct build *m = r->call->m;
    struct edge sum =
        build_binary(m, "AddV2", projected, recurrent_product(r, states[0], 0, 0));
    struct edge gates = build_split(m, sum, 1, 4);
    struct edge in = activate(r, "recurrent_activation", gates);
    struct edge forget = activate(r, "recurrent_activation", builder_output(gates, 1));
    struct edge candidate = activate(r, "activation", builder_output(gates, 2));
    struct edge out = activate(r, "recurrent_activation", builder_output(gates, 3));
    states[1] = build_binary(m, "AddV2", build_binary(m, "Mul", forget, states[1]),
                             build_binary(m, "Mul", in, candidate));
    states[0] = build_binary(m, "Mul", out, activate(r, "activation", states[1]));
}

/* Zeros, but ones for the forget gate, so that a cell keeps its state at first. */
static struct edge lstm_bias(struct recurrent *r)
{
    struct layer_call *call = r->call;
    const struct shape shape = SHAPE(4 * r->units);
    const struct config *initializer = config_object(call->config, "bias_initializer");
    bool plain =
        !config_bool(call->config, "unit_forget_bias") || !config_is(initializer, "Zeros");
    if (plain)
        return layer_weight(call, "bias", &shape);
    const struct shape one = SHAPE(r->units), two = SHAPE(2 * r->units);
    return layer_weight_parts(
        call, "bias", &shape,
        (const struct layer_part[]){{"zeros", one}, {"ones", one}, {"zeros", two}}, 3);
}

static void lstm(struct layer_call *call)
{
    struct recurrent r;
    if (!recurrent_begin(&r, call, 4, 2))
        return;
    r.step = lstm_step;
    r.whole = recurrent_whole_lstm;
    if (config_bool(call->config, "use_bias"))
        r.bias = lstm_bias(&r);
    recurrent_run(&r);
}

/* --- GRU: gates in the order update, reset, candidate --- */

/* z h + (1 - z) candidate */
static void gru_finish(struct recurrent *r, struct edge update, struct edge candidate,
                       struct edge *states)
{
    struct build *m = r->call->m;
    struct edge kept = build_binary(m, "Mul", update, states[0]);
    struct edge rest = build_binary(m, "Sub", build_number(m, build_dtype(update), 1), update);
    states[0] = build_binary(m, "AddV2", kept, build_binary(m, "Mul", rest, candidate));
}

/* The reset gate works on the product of the state, which has a bias of its own. */
static void gru_reset_after(struct recurrent *r, struct edge projected, struct edge *states)
{
    struct build *m = r->call->m;
    struct edge inner = recurrent_product(r, states[0], 0, 0);
    if (r->bias.from) {
        struct edge biases =
            builder_add(&m->b, "Unpack", "unstack", INPUTS(r->bias), ATTRS(attr_int("num", 2)));
        projected = build_bias(m, projected, biases);
        inner = build_bias(m, inner, builder_output(biases, 1));
    }
    struct edge x = build_split(m, projected, 1, 3), h = build_split(m, inner, 1, 3);
    struct edge update = activate(r, "recurrent_activation", build_binary(m, "AddV2", x, h));
    struct edge reset =
        activate(r, "recurrent_activation",
                 build_binary(m, "AddV2", builder_output(x, 1), builder_output(h, 1)));
    struct edge candidate =
        activate(r, "activation",
                 build_binary(m, "AddV2", builder_output(x, 2),
                              build_binary(m, "Mul", reset, builder_output(h, 2))));
    gru_finish(r, update, candidate, states);
}

static void gru_reset_before(struct recurrent *r, struct edge projected, struct edge *states)
{
    struct build *m = r->call->m;
    struct edge x = build_split(m, projected, 1, 3);
    struct edge h = build_split(m, recurrent_product(r, states[0], 0, 2 * r->units), 1, 2);
    struct edge update = activate(r, "recurrent_activation", build_binary(m, "AddV2", x, h));
    struct edge reset =
        activate(r, "recurrent_activation",
                 build_binary(m, "AddV2", builder_output(x, 1), builder_output(h, 1)));
    struct edge inner =
        recurrent_product(r, build_binary(m, "Mul", reset, states[0]), 2 * r->units, r->units);
    struct edge candidate =
        activate(r, "activation", build_binary(m, "AddV2", builder_output(x, 2), inner));
    gru_finish(r, update, candidate, states);
}

static void gru(struct layer_call *call)
{
    struct recurrent r;
    bool after = config_bool(call->config, "reset_after");
    if (!recurrent_begin(&r, call, 3, 1))
        return;
    r.step = after ? gru_reset_after : gru_reset_before;
    r.whole = after ? recurrent_whole_gru : NULL;
    r.own = true;
    if (config_bool(call->config, "use_bias"))
        r.bias =
            layer_weight(call, "bias", after ? &SHAPE(2, 3 * r.units) : &SHAPE(3 * r.units));
    recurrent_run(&r);
}

const struct layer_class layer_simple_rnn = {.config = {.name = "SimpleRNN",
                                                        CONFIG_ARGUMENTS(simple_arguments),
                                                        .check = recurrent_check},
                                             .call = simple};
const struct layer_class layer_lstm = {
    .config = {.name = "LSTM", CONFIG_ARGUMENTS(lstm_arguments), .check = recurrent_check},
    .call = lstm};
const struct layer_class layer_gru = {
    .config = {.name = "GRU", CONFIG_ARGUMENTS(gru_arguments), .check = recurrent_check},
    .call = gru};
