/*
 * recurrent.h - what SimpleRNN, LSTM and GRU share: a cell, carried along a sequence.
 *
 * Cells with Keras's own activations are one node for the whole sequence (recurrent_whole.c);
 * all others are written out, a group of nodes for each step (recurrent.c).
 */
#pragma once

#include "runtime/model/layer.h"

#define RECURRENT_STATES_MAX 2
#define RECURRENT_STEPS_MAX 4096

struct recurrent {
    struct layer_call *call;
    int64_t units, gates;   /* each gate is `units` numbers of a product's rows */
    int states_count;       /* h, and c of LSTM */
    struct edge kernel;     /* (inputs, gates * units) */
    struct edge recurrent;  /* (units, gates * units) */
    struct edge bias;       /* without node: none; of GRU with reset_after two rows */
    struct edge state_mask; /* (batch, units), of dropout; without node: none */
    /*
     * (optional) The whole sequence at once, from zeros: x is (steps, batch, inputs).  Sets the
     * outputs of all steps, (steps, batch, units), and the states after the last.
     */
    void (*whole)(struct recurrent *r, struct edge x, struct edge *outputs,
                  struct edge *states);
    bool own; /* by an op of our own: not where it is exported */
    /* From a row of the product with the inputs and the states to the states after it. */
    void (*step)(struct recurrent *r, struct edge projected, struct edge *states);
};

#define RECURRENT_ARGUMENTS                                                                    \
    {CONFIG_ARG("units", CONFIG_INT, NULL), CONFIG_RANGE(1, LAYER_UNITS_MAX),                  \
     .wanted = "how many numbers the state has"},                                              \
        LAYER_ACTIVATION("activation", "tanh"), LAYER_BIAS,                                    \
        LAYER_WEIGHT("kernel", "glorot_uniform"), LAYER_WEIGHT("recurrent", "orthogonal"),     \
        LAYER_ACTIVITY, {CONFIG_ARG("dropout", CONFIG_REAL, "0"), CONFIG_RANGE(0, 0.99)},      \
        {CONFIG_ARG("recurrent_dropout", CONFIG_REAL, "0"), CONFIG_RANGE(0, 0.99)},            \
        LAYER_FLAG("return_sequences", "false"), LAYER_FLAG("return_state", "false"),          \
        LAYER_FLAG("go_backwards", "false"), LAYER_FLAG("stateful", "false"),                  \
        LAYER_FLAG("unroll", "false"), LAYER_FLAG("zero_output_for_mask", "false"), LAYER_SEED

bool recurrent_check(const struct config *config, struct error *err);

/* Reads the sizes and makes kernel and recurrent kernel; false after refusing. */
bool recurrent_begin(struct recurrent *r, struct layer_call *call, int gates, int states);

/* Carries the cell along the sequence and gives the outputs that the arguments ask for. */
void recurrent_run(struct recurrent *r);

/* x with the dropout of inputs. */
struct edge recurrent_drop_inputs(struct recurrent *r, struct edge x);

/* Whether r->whole is there and can do what the arguments ask for. */
bool recurrent_is_whole(const struct recurrent *r);
void recurrent_run_whole(struct recurrent *r);

/* The functions for recurrent.whole; of GRU and SimpleRNN by ops of our own. */
void recurrent_whole_lstm(struct recurrent *r, struct edge x, struct edge *outputs,
                          struct edge *states);
void recurrent_whole_gru(struct recurrent *r, struct edge x, struct edge *outputs,
                         struct edge *states);
void recurrent_whole_simple(struct recurrent *r, struct edge x, struct edge *outputs,
                            struct edge *states);

/* state * recurrent, of `columns` columns from `first` on; all with columns 0. */
struct edge recurrent_product(struct recurrent *r, struct edge state, int64_t first,
                              int64_t columns);
