/*
 * lstm.c - BlockLSTM and its gradient in float: a sequence through LSTM cells; and the same
 * of inputs that are looked up in a table (_LookupBlockLSTM).
 *
 * What the inputs add to the gates is one large product for all steps; what the step before
 * adds is a product with packed weights, panel by panel, and the gates of a panel's cells are
 * finished while its sums are in the cache.  Threads share the examples of the batch, so that
 * none has to wait for another before the sequence ends.  Each sum is made in the same order
 * however many threads there are.
 *
 * Peepholes are left to the reference.
 */
#include "kernels/ref/lstm.h"
#include "base/error.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/sequence.h"
#include "kernels/list.h"
#include "kernels/ref/numbers.h"

enum { GATE_I, GATE_CS, GATE_F, GATE_O, GATE_CI, GATE_CO, GATE_H, GATES };
enum { GATES_OF_WEIGHTS = 4 };
enum { TABLE = 9, TABLE_OF_GRAD = 18 }; /* inputs of the _Lookup ops, behind the others' */

struct sequence {
    struct kernel_lstm is;
    struct sequence_in in;
    int64_t steps, length;   /* in all; those before seq_len_max */
    int64_t state;           /* batch * cells */
    const float *w, *cs, *h; /* cs and h before the first step */
    float *out[GATES];       /* (steps, batch, cells) each */
    float *panels;           /* the recurrent weights, packed */
    float *room;             /* of sequence_room() */
    int block[GATES];        /* of w's columns, for i, f, o, ci */
    int threads;
};

static bool accepts(const struct node *node)
{
    return !node_attr_bool(node, "use_peephole", false);
}

static float *scratch(struct kernel_call *call, int64_t count, struct error *err)
{
    return kernel_scratch(call, (size_t)count * sizeof(float) + 1, err);
}

/* Input `table` is the one whose rows are looked up; -1: there is none. */
static bool read_sequence(struct kernel_call *call, int table, struct sequence *s,
                          struct error *err)
{
    int64_t length;
    struct shape x;
    *s = (struct sequence){0};
    if (!kernel_scalar(call, 0, "seq_len_max", &length, err) ||
        !sequence_in_shape(call, 1, table, &x, err) ||
        !kernel_lstm_read(call, 1, &x, 3, &s->is, err) ||
        !sequence_in_read(call, 1, table, &s->in, err))
        return false;
    s->steps = kernel_in(call, 1)->shape.dims[0];
    s->length = length < 0 ? 0 : length < s->steps ? length : s->steps;
    s->in.rows = s->length * s->is.batch;
    s->state = s->is.batch * s->is.cells;
    s->cs = tensor_f32(kernel_in(call, 2));
    s->h = tensor_f32(kernel_in(call, 3));
    s->w = tensor_f32(kernel_in(call, 4));
    s->block[GATE_F] = s->is.f;
    s->block[GATE_CI] = s->is.ci;
    s->block[GATE_O] = 3;
    s->threads = sequence_threads(call, s->is.batch, s->state * s->is.cells * GATES_OF_WEIGHTS);
    return true;
}

/* --- forward --- */

static const int gates_of_weights[GATES_OF_WEIGHTS] = {GATE_I, GATE_F, GATE_CI, GATE_O};

/* x w + b of all steps, into the outputs of the gates. */
static bool project(struct kernel_call *call, const struct sequence *s, struct error *err)
{
    int64_t cells = s->is.cells;
    for (int g = 0; g < GATES_OF_WEIGHTS; g++) {
        int64_t column = s->block[gates_of_weights[g]] * cells;
        if (!sequence_project(call, &s->in, cells, s->w + column, 4 * cells,
                              tensor_f32(kernel_in(call, 8)) + column,
                              s->out[gates_of_weights[g]], err))
            return false;
    }
    return true;
}

/* Step t of the examples [from,to). */
static void step_rows(const struct sequence *s, int64_t t, int64_t from, int64_t to)
{
    int64_t cells = s->is.cells, width = isa()->tile_columns;
    int64_t at = t * s->state + from * cells, back = at - s->state;
    const float *before = t ? s->out[GATE_H] + back : s->h + from * cells;
    const float *cs_before = t ? s->out[GATE_CS] + back : s->cs + from * cells;
    size_t pack = gemm_pack_bytes(cells, cells) / sizeof(float);
    struct gemm_packed product = {
        .m = to - from, .n = cells, .k = cells, .c_row = cells, .add = true};
    sequence_factor(&product, before, cells, sequence_room_at(s->room, from, cells));
    for (int64_t j = 0; j < cells; j += width) {
        int64_t end = j + width < cells ? j + width : cells;
        for (int g = 0; g < GATES_OF_WEIGHTS; g++) {
            product.panels = s->panels + (size_t)g * pack;
            product.c = s->out[gates_of_weights[g]] + at;
            gemm_packed_run(&product, j, end);
        }
        isa()->lstm_gates(&(struct isa_lstm){
            .rows = to - from,
            .columns = end - j,
            .row = cells,
            .i = s->out[GATE_I] + at + j,
            .f = s->out[GATE_F] + at + j,
            .ci = s->out[GATE_CI] + at + j,
            .o = s->out[GATE_O] + at + j,
            .cs_prev = cs_before + j,
            .forget_bias = (float)s->is.forget_bias,
            .clip = (float)s->is.clip,
            .cs = s->out[GATE_CS] + at + j,
            .co = s->out[GATE_CO] + at + j,
            .h = s->out[GATE_H] + at + j,
        });
    }
}

static bool forward(struct kernel_call *call, int table, struct error *err)
{
    struct sequence s;
    if (!read_sequence(call, table, &s, err))
        return false;
    int64_t cells = s.is.cells;
    size_t pack = gemm_pack_bytes(cells, cells) / sizeof(float);
    struct shape shape = SHAPE(s.steps, s.is.batch, cells);
    for (int gate = 0; gate < GATES; gate++) {
        struct tensor *out = kernel_output(call, gate, &shape, err);
        if (!out)
            return false;
        s.out[gate] = tensor_f32_mut(out);
        memset(s.out[gate] + s.length * s.state, 0,
               (size_t)((s.steps - s.length) * s.state) * sizeof(float));
    }
    s.panels = scratch(call, (int64_t)pack * GATES_OF_WEIGHTS, err);
    if (!s.panels || !sequence_room(call, s.is.batch, cells, &s.room, err) ||
        !project(call, &s, err))
        return false;
    for (int g = 0; g < GATES_OF_WEIGHTS; g++)
        sequence_pack(call, s.panels + (size_t)g * pack, cells, cells,
                      s.w + s.is.inputs * 4 * cells + s.block[gates_of_weights[g]] * cells,
                      4 * cells, 1);
#pragma omp parallel for num_threads(s.threads) schedule(static) if (s.threads > 1)
    for (int part = 0; part < s.threads; part++) {
        struct range r = parallel_range(s.is.batch, 1, s.threads, part);
        for (int64_t t = 0; t < s.length; t++)
            step_rows(&s, t, r.from, r.to);
    }
    return true;
}

/* --- backward --- */

/* What flows back, beside the sequence. */
struct back {
    const float *cs_grad, *h_grad; /* (steps, batch, cells), from outside */
    float *sums;                   /* (steps, batch, 4 cells): gradients of the gates' sums */
    float *cs_carried, *h_carried; /* (batch, cells): to the state before the step in work */
};

/* From the gradients of step t of the examples [from,to) to those of the gates' sums. */
static void finish_rows(const struct sequence *s, const struct back *b, int64_t t, int64_t from,
                        int64_t to)
{
    int64_t cells = s->is.cells, at = t * s->state + from * cells;
    float *sums = b->sums + 4 * at;
    isa()->lstm_gates_grad(&(struct isa_lstm_grad){
        .rows = to - from,
        .columns = cells,
        .row = cells,
        .i = s->out[GATE_I] + at,
        .f = s->out[GATE_F] + at,
        .ci = s->out[GATE_CI] + at,
        .o = s->out[GATE_O] + at,
        .co = s->out[GATE_CO] + at,
        .cs_prev = t ? s->out[GATE_CS] + at - s->state : s->cs + from * cells,
        .h_grad = b->h_grad + at,
        .cs_grad = b->cs_grad + at,
        .h_carried = b->h_carried + from * cells,
        .cs_carried = b->cs_carried + from * cells,
        .di = sums,
        .df = sums + s->is.f * cells,
        .dci = sums + s->is.ci * cells,
        .d_o = sums + 3 * cells,
        .gates_row = 4 * cells,
    });
}

/* All steps of the examples [from,to); at the end what is carried is the state's gradient. */
static void steps_back(const struct sequence *s, const struct back *b, int64_t from, int64_t to)
{
    int64_t cells = s->is.cells;
    for (int64_t t = s->length - 1; t >= 0; t--) {
        finish_rows(s, b, t, from, to);
        struct gemm_packed product = {.m = to - from,
                                      .n = cells,
                                      .k = 4 * cells,
                                      .panels = s->panels,
                                      .c = b->h_carried + from * cells,
                                      .c_row = cells};
        sequence_factor(&product, b->sums + 4 * (t * s->state + from * cells), 4 * cells,
                        sequence_room_at(s->room, from, 4 * cells));
        gemm_packed_run(&product, 0, cells);
    }
}

/* The gradients of x or the table, w and b, from those of the sums of all steps. */
static bool finish_weights(struct kernel_call *call, const struct sequence *s,
                           const struct back *b, struct error *err)
{
    int64_t cells = s->is.cells, inputs = s->is.inputs, columns = 4 * cells;
    struct tensor *w_grad = kernel_output(call, 3, &kernel_in(call, 4)->shape, err);
    struct tensor *b_grad = w_grad ? kernel_output(call, 7, &SHAPE(columns), err) : NULL;
    return b_grad &&
           sequence_in_grads(call, &s->in, &SHAPE(s->steps, s->is.batch, inputs), columns,
                             b->sums, s->w, tensor_f32_mut(w_grad), tensor_f32_mut(b_grad),
                             err) &&
           sequence_states_grad(call, s->length, s->is.batch, cells, columns, s->h,
                                s->out[GATE_H], b->sums,
                                tensor_f32_mut(w_grad) + inputs * columns, err);
}

/* Inputs as BlockLSTM's, then its outputs, then cs_grad and h_grad. */
static bool read_back(struct kernel_call *call, struct sequence *s, struct back *b,
                      struct error *err)
{
    int64_t cells = s->is.cells;
    struct shape shape = SHAPE(s->steps, s->is.batch, cells), state = SHAPE(s->is.batch, cells);
    for (int i = 9; i < 18; i++)
        if (!kernel_lstm_check(call, i, "a sequence", &shape, err))
            return false;
    for (int gate = 0; gate < GATES; gate++)
        s->out[gate] = (float *)tensor_f32(kernel_in(call, 9 + gate));
    b->cs_grad = tensor_f32(kernel_in(call, 16));
    b->h_grad = tensor_f32(kernel_in(call, 17));
    s->panels = kernel_scratch(call, gemm_pack_bytes(4 * cells, cells) + 1, err);
    b->sums = s->panels ? scratch(call, s->length * s->state * 4, err) : NULL;
    bool room = b->sums && sequence_room(call, s->is.batch, 4 * cells, &s->room, err);
    struct tensor *cs = room ? kernel_output(call, 1, &state, err) : NULL;
    struct tensor *h = cs ? kernel_output(call, 2, &state, err) : NULL;
    if (!h)
        return false;
    b->cs_carried = tensor_f32_mut(cs);
    b->h_carried = tensor_f32_mut(h);
    memset(b->cs_carried, 0, (size_t)s->state * sizeof(float));
    memset(b->h_carried, 0, (size_t)s->state * sizeof(float));
    for (int i = 4; i < 7; i++) {
        struct tensor *hole = kernel_output(call, i, &SHAPE(cells), err);
        if (!hole)
            return false;
        memset(hole->data, 0, (size_t)cells * sizeof(float));
    }
    return true;
}

static bool backward(struct kernel_call *call, int table, struct error *err)
{
    struct sequence s;
    struct back b;
    if (!read_sequence(call, table, &s, err) || !read_back(call, &s, &b, err))
        return false;
    int64_t cells = s.is.cells;
    sequence_pack(call, s.panels, 4 * cells, cells, s.w + s.is.inputs * 4 * cells, 1,
                  4 * cells);
#pragma omp parallel for num_threads(s.threads) schedule(static) if (s.threads > 1)
    for (int part = 0; part < s.threads; part++) {
        struct range r = parallel_range(s.is.batch, 1, s.threads, part);
        steps_back(&s, &b, r.from, r.to);
    }
    return finish_weights(call, &s, &b, err);
}

static bool block_lstm_run(struct kernel_call *call, struct error *err)
{
    return forward(call, -1, err);
}

static bool block_lstm_grad_run(struct kernel_call *call, struct error *err)
{
    return backward(call, -1, err);
}

static bool lookup_lstm_run(struct kernel_call *call, struct error *err)
{
    return forward(call, TABLE, err);
}

static bool lookup_lstm_grad_run(struct kernel_call *call, struct error *err)
{
    return backward(call, TABLE_OF_GRAD, err);
}

#define LSTM(name_, run_)                                                                      \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = BIT(F32), .accepts = accepts, .run = run_        \
    }

const struct kernel kernel_block_lstm_cpu = LSTM("BlockLSTM", block_lstm_run);
const struct kernel kernel_block_lstm_v2_cpu = LSTM("BlockLSTMV2", block_lstm_run);
const struct kernel kernel_block_lstm_grad_cpu = LSTM("BlockLSTMGrad", block_lstm_grad_run);
const struct kernel kernel_block_lstm_grad_v2_cpu =
    LSTM("BlockLSTMGradV2", block_lstm_grad_run);
const struct kernel kernel_lookup_block_lstm_cpu = LSTM("_LookupBlockLSTM", lookup_lstm_run);
const struct kernel kernel_lookup_block_lstm_v2_cpu =
    LSTM("_LookupBlockLSTMV2", lookup_lstm_run);
const struct kernel kernel_lookup_block_lstm_grad_cpu =
    LSTM("_LookupBlockLSTMGrad", lookup_lstm_grad_run);
const struct kernel kernel_lookup_block_lstm_grad_v2_cpu =
    LSTM("_LookupBlockLSTMGradV2", lookup_lstm_grad_run);
