/*
 * lstm.c - BlockLSTM and its gradient in float: a sequence through LSTM cells.
 *
 * What the inputs add to the gates is one large product for all steps; what the step before
 * adds is a product with packed weights, panel by panel, and the gates of a panel's cells are
 * finished while its sums are in the cache.  A thread keeps its cells through the whole
 * sequence and waits for the others once a step, when all need the whole state.  Each sum is
 * made in the same order however many threads there are.
 *
 * Peepholes are left to the reference.
 */
#include "kernels/ref/lstm.h"
#include "base/error.h"
#include "kernels/cpu/columns.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"
#include "kernels/list.h"
#include "kernels/ref/numbers.h"

enum { GATE_I, GATE_CS, GATE_F, GATE_O, GATE_CI, GATE_CO, GATE_H, GATES };
enum { GATES_OF_WEIGHTS = 4 };
enum { STEP_WORK = 60000 }; /* multiplications of a step that are worth a second thread */

struct sequence {
    struct kernel_lstm is;
    int64_t steps, length;   /* in all; those before seq_len_max */
    int64_t state;           /* batch * cells */
    const float *w, *cs, *h; /* cs and h before the first step */
    float *out[GATES];       /* (steps, batch, cells) each */
    float *panels;           /* the recurrent weights, packed */
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

static bool read_sequence(struct kernel_call *call, struct sequence *s, struct error *err)
{
    int64_t length;
    *s = (struct sequence){0};
    if (!kernel_scalar(call, 0, "seq_len_max", &length, err) ||
        !kernel_lstm_read(call, 1, 3, &s->is, err))
        return false;
    s->steps = kernel_in(call, 1)->shape.dims[0];
    s->length = length < 0 ? 0 : length < s->steps ? length : s->steps;
    s->state = s->is.batch * s->is.cells;
    s->cs = tensor_f32(kernel_in(call, 2));
    s->h = tensor_f32(kernel_in(call, 3));
    s->w = tensor_f32(kernel_in(call, 4));
    s->block[GATE_F] = s->is.f;
    s->block[GATE_CI] = s->is.ci;
    s->block[GATE_O] = 3;
    s->threads = s->state * s->is.cells * GATES_OF_WEIGHTS < STEP_WORK ? 1 : call->threads;
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
        struct gemm gemm = {.m = s->length * s->is.batch,
                            .n = cells,
                            .k = s->is.inputs,
                            .a = tensor_f32(kernel_in(call, 1)),
                            .a_row = s->is.inputs,
                            .a_column = 1,
                            .b = s->w + column,
                            .b_row = 4 * cells,
                            .b_column = 1,
                            .c = s->out[gates_of_weights[g]],
                            .c_row = cells,
                            .alpha = 1,
                            .bias = tensor_f32(kernel_in(call, 8)) + column};
        void *room = kernel_scratch(call, gemm_scratch(&gemm, call->threads), err);
        if (!room)
            return false;
        gemm_run(&gemm, call->threads, room);
    }
    return true;
}

/* Step t of the cells [from,to). */
static void step_cells(const struct sequence *s, int64_t t, int64_t from, int64_t to)
{
    int64_t cells = s->is.cells, width = isa()->tile_columns, at = t * s->state;
    const float *before = t ? s->out[GATE_H] + at - s->state : s->h;
    size_t pack = gemm_pack_bytes(cells, cells) / sizeof(float);
    for (int64_t j = from; j < to; j += width) {
        int64_t end = j + width < to ? j + width : to;
        for (int g = 0; g < GATES_OF_WEIGHTS; g++)
            gemm_packed_run(&(struct gemm_packed){.m = s->is.batch,
                                                  .n = cells,
                                                  .k = cells,
                                                  .a = before,
                                                  .a_row = cells,
                                                  .panels = s->panels + (size_t)g * pack,
                                                  .c = s->out[gates_of_weights[g]] + at,
                                                  .c_row = cells,
                                                  .add = true},
                            j, end);
        isa()->lstm_gates(&(struct isa_lstm){
            .rows = s->is.batch,
            .columns = end - j,
            .row = cells,
            .i = s->out[GATE_I] + at + j,
            .f = s->out[GATE_F] + at + j,
            .ci = s->out[GATE_CI] + at + j,
            .o = s->out[GATE_O] + at + j,
            .cs_prev = (t ? s->out[GATE_CS] + at - s->state : s->cs) + j,
            .forget_bias = (float)s->is.forget_bias,
            .clip = (float)s->is.clip,
            .cs = s->out[GATE_CS] + at + j,
            .co = s->out[GATE_CO] + at + j,
            .h = s->out[GATE_H] + at + j,
        });
    }
}

static bool block_lstm_run(struct kernel_call *call, struct error *err)
{
    struct sequence s;
    if (!read_sequence(call, &s, err))
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
    if (!s.panels || !project(call, &s, err))
        return false;
    for (int g = 0; g < GATES_OF_WEIGHTS; g++)
        gemm_pack(s.panels + (size_t)g * pack, cells, cells,
                  s.w + s.is.inputs * 4 * cells + s.block[gates_of_weights[g]] * cells,
                  4 * cells, 1);
    for (int64_t t = 0; t < s.length; t++) {
#pragma omp parallel for num_threads(s.threads) schedule(static) if (s.threads > 1)
        for (int part = 0; part < s.threads; part++) {
            struct range r = parallel_range(cells, isa()->tile_columns, s.threads, part);
            step_cells(&s, t, r.from, r.to);
        }
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

/* From the gradients of step t's cells [from,to) to those of the gates' sums. */
static void finish_cells(const struct sequence *s, const struct back *b, int64_t t,
                         int64_t from, int64_t to)
{
    int64_t cells = s->is.cells, at = t * s->state + from;
    float *sums = b->sums + t * s->state * 4 + from;
    isa()->lstm_gates_grad(&(struct isa_lstm_grad){
        .rows = s->is.batch,
        .columns = to - from,
        .row = cells,
        .i = s->out[GATE_I] + at,
        .f = s->out[GATE_F] + at,
        .ci = s->out[GATE_CI] + at,
        .o = s->out[GATE_O] + at,
        .co = s->out[GATE_CO] + at,
        .cs_prev = t ? s->out[GATE_CS] + at - s->state : s->cs + from,
        .h_grad = b->h_grad + at,
        .cs_grad = b->cs_grad + at,
        .h_carried = b->h_carried + from,
        .cs_carried = b->cs_carried + from,
        .di = sums,
        .df = sums + s->is.f * cells,
        .dci = sums + s->is.ci * cells,
        .d_o = sums + 3 * cells,
        .gates_row = 4 * cells,
    });
}

/* Carries the gradient from the sums of step t to h before it, and goes on with that step. */
static void step_back(const struct sequence *s, const struct back *b, int64_t t, int64_t from,
                      int64_t to)
{
    if (t < s->length)
        gemm_packed_run(&(struct gemm_packed){.m = s->is.batch,
                                              .n = s->is.cells,
                                              .k = 4 * s->is.cells,
                                              .a = b->sums + t * s->state * 4,
                                              .a_row = 4 * s->is.cells,
                                              .panels = s->panels,
                                              .c = b->h_carried,
                                              .c_row = s->is.cells},
                        from, to);
    if (t > 0)
        finish_cells(s, b, t - 1, from, to);
}

static bool multiply(struct kernel_call *call, const struct gemm *gemm, struct error *err)
{
    void *room = kernel_scratch(call, gemm_scratch(gemm, call->threads), err);
    if (room)
        gemm_run(gemm, call->threads, room);
    return room != NULL;
}

/* C (k,n), rows of 4 cells, is or gets added A^T B of `rows` rows: a weight's gradient. */
static bool weight_grad(struct kernel_call *call, int64_t rows, const float *a, int64_t k,
                        const float *sums, int64_t n, float *c, bool add, struct error *err)
{
    return multiply(call,
                    &(struct gemm){.m = k,
                                   .n = n,
                                   .k = rows,
                                   .a = a,
                                   .a_row = 1,
                                   .a_column = k,
                                   .b = sums,
                                   .b_row = n,
                                   .b_column = 1,
                                   .c = c,
                                   .c_row = n,
                                   .alpha = 1,
                                   .beta = add ? 1 : 0},
                    err);
}

/* The gradients of x, w and b, from those of the sums of all steps. */
static bool finish_weights(struct kernel_call *call, const struct sequence *s,
                           const struct back *b, struct error *err)
{
    int64_t cells = s->is.cells, inputs = s->is.inputs, columns = 4 * cells;
    int64_t rows = s->length * s->is.batch;
    const struct tensor *x = kernel_in(call, 1);
    struct tensor *x_grad = kernel_output(call, 0, &x->shape, err);
    struct tensor *w_grad = kernel_output(call, 3, &kernel_in(call, 4)->shape, err);
    struct tensor *b_grad = kernel_output(call, 7, &SHAPE(columns), err);
    if (!x_grad || !w_grad || !b_grad)
        return false;
    memset(tensor_f32_mut(x_grad) + rows * inputs, 0,
           (size_t)(x->count - rows * inputs) * sizeof(float));
    float *to_h = tensor_f32_mut(w_grad) + inputs * columns;
    int64_t first = s->length ? s->is.batch : 0;
    return multiply(call,
                    &(struct gemm){.m = rows,
                                   .n = inputs,
                                   .k = columns,
                                   .a = b->sums,
                                   .a_row = columns,
                                   .a_column = 1,
                                   .b = s->w,
                                   .b_row = 1,
                                   .b_column = columns,
                                   .c = tensor_f32_mut(x_grad),
                                   .c_row = inputs,
                                   .alpha = 1},
                    err) &&
           weight_grad(call, rows, tensor_f32(x), inputs, b->sums, columns,
                       tensor_f32_mut(w_grad), false, err) &&
           weight_grad(call, first, s->h, cells, b->sums, columns, to_h, false, err) &&
           weight_grad(call, rows - first, s->out[GATE_H], cells, b->sums + first * columns,
                       columns, to_h, true, err) &&
           columns_sum(call, rows, columns, b->sums, NULL, NULL, tensor_f32_mut(b_grad), err);
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
    struct tensor *cs = b->sums ? kernel_output(call, 1, &state, err) : NULL;
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

static bool block_lstm_grad_run(struct kernel_call *call, struct error *err)
{
    struct sequence s;
    struct back b;
    if (!read_sequence(call, &s, err) || !read_back(call, &s, &b, err))
        return false;
    int64_t cells = s.is.cells;
    gemm_pack(s.panels, 4 * cells, cells, s.w + s.is.inputs * 4 * cells, 1, 4 * cells);
    for (int64_t t = s.length; t >= 0; t--) {
#pragma omp parallel for num_threads(s.threads) schedule(static) if (s.threads > 1)
        for (int part = 0; part < s.threads; part++) {
            struct range r = parallel_range(cells, isa()->tile_columns, s.threads, part);
            step_back(&s, &b, t, r.from, r.to);
        }
    }
    return finish_weights(call, &s, &b, err);
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
