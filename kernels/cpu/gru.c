/*
 * gru.c - _GRUSequence, _RNNSequence, the same of inputs that are looked up in a table, and
 * their gradients in float; the steps go as those of lstm.c.
 */
#include "base/error.h"
#include "kernels/cpu/columns.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/sequence.h"
#include "kernels/list.h"
#include "kernels/ref/numbers.h"
#include "kernels/ref/recurrent.h"

enum { GRU_GATES = 3 };

/* One sequence: cells with `is.gates` gates, forward and back. */
struct sequence {
    struct kernel_recurrent is;
    struct sequence_in in;
    int states_end; /* the inputs before the table */
    int64_t state;  /* batch * cells */
    const float *first, *kernel, *recurrent, *bias;
    float *h, *gates[GRU_GATES], *inner; /* of a GRU: z, r, candidate, and its state's part */
    float *panels;                       /* the recurrent weights, packed */
    size_t pack;                         /* floats of one gate's panels */
    float *room;                         /* of sequence_room() */
    const float *h_grad;
    float *sums;       /* (steps, batch, gates * cells): gradients of the inputs' part, */
    float *inner_sums; /* and of the state's product; of a simple cell the same */
    float *h_carried;
    int threads;
};

static float *scratch(struct kernel_call *call, int64_t count, struct error *err)
{
    return kernel_scratch(call, (size_t)count * sizeof(float) + 1, err);
}

/* The last input is the table whose rows are looked up, if the op has one. */
static bool read_sequence(struct kernel_call *call, struct sequence *s, struct error *err)
{
    struct shape x;
    bool looks_up = strstr(call->node->op->name, "Lookup");
    int table = looks_up ? call->in_count - 1 : -1;
    *s = (struct sequence){.states_end = call->in_count - looks_up};
    if (!sequence_in_shape(call, 0, table, &x, err) ||
        !kernel_recurrent_read(call, &x, s->states_end, &s->is, err) ||
        !sequence_in_read(call, 0, table, &s->in, err))
        return false;
    const float **const inputs[] = {&s->first, &s->kernel, &s->recurrent, &s->bias};
    for (int i = 0; i < ARRAY_LEN(inputs); i++)
        *inputs[i] = tensor_f32(kernel_in(call, 1 + i));
    s->state = s->is.batch * s->is.cells;
    s->threads = sequence_threads(call, s->is.batch, s->state * s->is.cells * s->is.gates);
    return true;
}

/* The state before step t, of the examples from `from` on. */
static const float *before(const struct sequence *s, int64_t t, int64_t from)
{
    return (t ? s->h + (t - 1) * s->state : s->first) + from * s->is.cells;
}

/* The product of the state before step t, of the examples [from,to), by weights to come. */
static struct gemm_packed of_state(const struct sequence *s, int64_t t, int64_t from,
                                   int64_t to)
{
    struct gemm_packed product = {
        .m = to - from, .n = s->is.cells, .k = s->is.cells, .c_row = s->is.cells};
    sequence_factor(&product, before(s, t, from), s->is.cells,
                    sequence_room_at(s->room, from, s->is.cells));
    return product;
}

/* Columns [j,end) of c = or += the state by the weights of gate g. */
static void multiply_state(const struct sequence *s, struct gemm_packed *product, int g,
                           bool add, float *c, int64_t j, int64_t end)
{
    product->panels = s->panels + (size_t)g * s->pack;
    product->c = c;
    product->add = add;
    gemm_packed_run(product, j, end);
}

static void gru_step(const struct sequence *s, int64_t t, int64_t from, int64_t to)
{
    int64_t cells = s->is.cells, width = isa()->tile_columns, at = t * s->state + from * cells;
    struct gemm_packed product = of_state(s, t, from, to);
    for (int64_t j = 0; j < cells; j += width) {
        int64_t end = j + width < cells ? j + width : cells;
        multiply_state(s, &product, 0, true, s->gates[0] + at, j, end);
        multiply_state(s, &product, 1, true, s->gates[1] + at, j, end);
        multiply_state(s, &product, 2, false, s->inner + at, j, end);
        isa()->gru_gates(&(struct isa_gru){.rows = to - from,
                                           .columns = end - j,
                                           .row = cells,
                                           .h_prev = before(s, t, from) + j,
                                           .z = s->gates[0] + at + j,
                                           .r = s->gates[1] + at + j,
                                           .candidate = s->gates[2] + at + j,
                                           .inner = s->inner + at + j,
                                           .inner_bias = s->bias + 5 * cells + j,
                                           .h = s->h + at + j});
    }
}

static void simple_step(const struct sequence *s, int64_t t, int64_t from, int64_t to)
{
    float *h = s->h + t * s->state + from * s->is.cells;
    struct gemm_packed product = of_state(s, t, from, to);
    multiply_state(s, &product, 0, true, h, 0, s->is.cells);
    isa()->unary(ISA_TANH, (to - from) * s->is.cells, h, h);
}

/* All steps, the examples shared among threads. */
static void each_step(const struct sequence *s,
                      void (*step)(const struct sequence *s, int64_t t, int64_t from,
                                   int64_t to),
                      bool back)
{
#pragma omp parallel for num_threads(s->threads) schedule(static) if (s->threads > 1)
    for (int part = 0; part < s->threads; part++) {
        struct range r = parallel_range(s->is.batch, 1, s->threads, part);
        for (int64_t i = 0; i < s->is.steps; i++)
            step(s, back ? s->is.steps - 1 - i : i, r.from, r.to);
    }
}

static bool forward(struct kernel_call *call, struct error *err)
{
    struct sequence s;
    if (!read_sequence(call, &s, err))
        return false;
    int64_t cells = s.is.cells, columns = s.is.gates * cells;
    bool gru = s.is.gates == GRU_GATES;
    float **const outputs[] = {&s.h, &s.gates[0], &s.gates[1], &s.gates[2], &s.inner};
    for (int i = 0; i < (gru ? 5 : 1); i++) {
        struct tensor *out = kernel_output(call, i, &SHAPE(s.is.steps, s.is.batch, cells), err);
        if (!out)
            return false;
        *outputs[i] = tensor_f32_mut(out);
    }
    s.pack = gemm_pack_bytes(cells, cells) / sizeof(float);
    s.panels = scratch(call, (int64_t)s.pack * s.is.gates, err);
    float *bias = s.panels ? scratch(call, columns, err) : NULL;
    if (!bias || !sequence_room(call, s.is.batch, cells, &s.room, err))
        return false;
    /* What both biases add to z and r goes in with the inputs. */
    for (int64_t i = 0; i < columns; i++)
        bias[i] = s.bias[i] + (gru && i < 2 * cells ? s.bias[columns + i] : 0);
    for (int g = 0; g < s.is.gates; g++) {
        sequence_pack(call, s.panels + (size_t)g * s.pack, cells, cells,
                      s.recurrent + g * cells, columns, 1);
        if (!sequence_project(call, &s.in, cells, s.kernel + g * cells, columns,
                              bias + g * cells, gru ? s.gates[g] : s.h, err))
            return false;
    }
    each_step(&s, gru ? gru_step : simple_step, false);
    return true;
}

/* --- backward --- */

/* From the gradients of step t's states to those of its sums. */
static void finish_rows(const struct sequence *s, int64_t t, int64_t from, int64_t to)
{
    int64_t cells = s->is.cells, at = t * s->state + from * cells, sums = at * s->is.gates;
    float *carried = s->h_carried + from * cells;
    if (s->is.gates == GRU_GATES)
        isa()->gru_gates_grad(&(struct isa_gru_grad){.rows = to - from,
                                                     .columns = cells,
                                                     .row = cells,
                                                     .z = s->gates[0] + at,
                                                     .r = s->gates[1] + at,
                                                     .candidate = s->gates[2] + at,
                                                     .inner = s->inner + at,
                                                     .h_prev = before(s, t, from),
                                                     .h_grad = s->h_grad + at,
                                                     .h_carried = carried,
                                                     .sums_row = GRU_GATES * cells,
                                                     .gate = cells,
                                                     .sums = s->sums + sums,
                                                     .inner_sums = s->inner_sums + sums});
    else
        isa()->tanh_grad((to - from) * cells, s->h + at, s->h_grad + at, carried,
                         s->sums + sums);
}

/* Step t, and on to the gradient of the state before it. */
static void step_back(const struct sequence *s, int64_t t, int64_t from, int64_t to)
{
    int64_t cells = s->is.cells, columns = s->is.gates * cells;
    finish_rows(s, t, from, to);
    struct gemm_packed product = {.m = to - from,
                                  .n = cells,
                                  .k = columns,
                                  .panels = s->panels,
                                  .c = s->h_carried + from * cells,
                                  .c_row = cells,
                                  .add = s->is.gates == GRU_GATES};
    sequence_factor(&product, s->inner_sums + (t * s->is.batch + from) * columns, columns,
                    sequence_room_at(s->room, from, columns));
    gemm_packed_run(&product, 0, cells);
}

/* The gradients of what goes in, weights and bias. */
static bool finish_weights(struct kernel_call *call, const struct sequence *s,
                           struct error *err)
{
    int64_t cells = s->is.cells, columns = s->is.gates * cells;
    float *grads[5] = {NULL};
    for (int i = 2; i < 5; i++) {
        struct tensor *out = kernel_output(call, i, &kernel_in(call, i)->shape, err);
        if (!out)
            return false;
        grads[i] = tensor_f32_mut(out);
    }
    bool gru = s->is.gates == GRU_GATES;
    return sequence_in_grads(call, &s->in, &SHAPE(s->is.steps, s->is.batch, s->is.inputs),
                             columns, s->sums, s->kernel, grads[2], grads[4], err) &&
           sequence_states_grad(call, s->is.steps, s->is.batch, cells, columns, s->first, s->h,
                                s->inner_sums, grads[3], err) &&
           (!gru || columns_sum(call, s->in.rows, columns, s->inner_sums, NULL, NULL,
                                grads[4] + columns, err));
}

static bool backward(struct kernel_call *call, struct error *err)
{
    struct sequence s;
    if (!read_sequence(call, &s, err))
        return false;
    bool gru = s.is.gates == GRU_GATES;
    int64_t cells = s.is.cells, columns = s.is.gates * cells;
    int64_t count = s.is.steps * s.is.batch * columns;
    float **const given[] = {&s.h, &s.gates[0], &s.gates[1], &s.gates[2], &s.inner};
    for (int i = 0; i < (gru ? 5 : 1); i++)
        *given[i] = (float *)tensor_f32(kernel_in(call, 5 + i));
    s.h_grad = tensor_f32(kernel_in(call, s.states_end - 1));
    s.panels = kernel_scratch(call, gemm_pack_bytes(columns, cells) + 1, err);
    s.sums = s.panels ? scratch(call, gru ? 2 * count : count, err) : NULL;
    bool room = s.sums && sequence_room(call, s.is.batch, columns, &s.room, err);
    struct tensor *first =
        room ? kernel_output(call, 1, &kernel_in(call, 1)->shape, err) : NULL;
    if (!first)
        return false;
    s.inner_sums = gru ? s.sums + count : s.sums;
    s.h_carried = tensor_f32_mut(first);
    memset(s.h_carried, 0, (size_t)s.state * sizeof(float));
    sequence_pack(call, s.panels, columns, cells, s.recurrent, 1, columns);
    each_step(&s, step_back, true);
    return finish_weights(call, &s, err);
}

#define SEQUENCE(name_, run_)                                                                  \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = BIT(F32), .run = run_                            \
    }

const struct kernel kernel_gru_sequence_cpu = SEQUENCE("_GRUSequence", forward);
const struct kernel kernel_gru_sequence_grad_cpu = SEQUENCE("_GRUSequenceGrad", backward);
const struct kernel kernel_rnn_sequence_cpu = SEQUENCE("_RNNSequence", forward);
const struct kernel kernel_rnn_sequence_grad_cpu = SEQUENCE("_RNNSequenceGrad", backward);
const struct kernel kernel_lookup_gru_sequence_cpu = SEQUENCE("_LookupGRUSequence", forward);
const struct kernel kernel_lookup_gru_sequence_grad_cpu =
    SEQUENCE("_LookupGRUSequenceGrad", backward);
const struct kernel kernel_lookup_rnn_sequence_cpu = SEQUENCE("_LookupRNNSequence", forward);
const struct kernel kernel_lookup_rnn_sequence_grad_cpu =
    SEQUENCE("_LookupRNNSequenceGrad", backward);
