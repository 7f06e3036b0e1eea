/*
 * recurrent.c - _GRUSequence, _RNNSequence and their gradients in plain C: cell by cell, in
 * double.
 */
#include "kernels/ref/recurrent.h"

#include <math.h>

#include "kernels/ref/doubles.h"
#include "kernels/ref/numbers.h"

enum { X, FIRST, KERNEL, RECURRENT, BIAS, INPUTS };
enum { H, Z, R, CANDIDATE, INNER, STATES }; /* (steps, batch, cells) each; of an RNN only h */

static bool check(const struct kernel_call *call, int index, const struct shape *wanted,
                  struct error *err)
{
    const struct shape *shape = &kernel_in(call, index)->shape;
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    return shape_equal(shape, wanted) ||
           fail(err, INVALID, "input %d of %s has shape %s, expected %s", index,
                call->node->op->name, shape_text(shape, a, sizeof(a)),
                shape_text(wanted, b, sizeof(b)));
}

bool kernel_recurrent_read(struct kernel_call *call, const struct shape *x, int end,
                           struct kernel_recurrent *r, struct error *err)
{
    const struct shape *first = &kernel_in(call, FIRST)->shape;
    if (x->rank != 3 || first->rank != 2)
        return fail(err, INVALID, "x must be 3D and h_prev 2D");
    *r = (struct kernel_recurrent){.steps = x->dims[0],
                                   .batch = x->dims[1],
                                   .inputs = x->dims[2],
                                   .cells = first->dims[1],
                                   .gates = strstr(call->node->op->name, "GRU") ? 3 : 1};
    int64_t columns = r->gates * r->cells;
    struct shape state = SHAPE(r->steps, r->batch, r->cells);
    struct shape bias = r->gates == 3 ? SHAPE(2, columns) : SHAPE(columns);
    if (!check(call, FIRST, &SHAPE(r->batch, r->cells), err) ||
        !check(call, KERNEL, &SHAPE(r->inputs, columns), err) ||
        !check(call, RECURRENT, &SHAPE(r->cells, columns), err) ||
        !check(call, BIAS, &bias, err))
        return false;
    for (int i = INPUTS; i < end; i++)
        if (!check(call, i, &state, err))
            return false;
    return true;
}

struct cells {
    struct kernel_recurrent is;
    double *in[INPUTS], *state[STATES], *h_grad;
    double *grad[INPUTS];
};

static bool load_inputs(struct kernel_call *call, struct cells *c, struct error *err)
{
    *c = (struct cells){0};
    if (!kernel_recurrent_read(call, &kernel_in(call, X)->shape, call->in_count, &c->is, err))
        return false;
    for (int i = 0; i < INPUTS; i++)
        if (!(c->in[i] = kernel_doubles_load(call, i, err)))
            return false;
    return true;
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* Element (b, cell) of the state before step t: where it is kept. */
static double *before(const struct cells *c, int64_t t, int64_t b)
{
    int64_t cells = c->is.cells;
    return t ? c->state[H] + ((t - 1) * c->is.batch + b) * cells : c->in[FIRST] + b * cells;
}

/* The inputs' part of gate g of one cell, and the state's. */
static double inputs_part(const struct cells *c, int64_t t, int64_t b, int64_t cell, int g)
{
    int64_t column = g * c->is.cells + cell, columns = c->is.gates * c->is.cells;
    double sum = c->in[BIAS][column];
    for (int64_t k = 0; k < c->is.inputs; k++)
        sum += c->in[X][(t * c->is.batch + b) * c->is.inputs + k] *
               c->in[KERNEL][k * columns + column];
    return sum;
}

static double state_part(const struct cells *c, int64_t t, int64_t b, int64_t cell, int g)
{
    int64_t column = g * c->is.cells + cell, columns = c->is.gates * c->is.cells;
    double sum = c->is.gates == 3 ? c->in[BIAS][columns + column] : 0;
    for (int64_t k = 0; k < c->is.cells; k++)
        sum += before(c, t, b)[k] * c->in[RECURRENT][k * columns + column];
    return sum;
}

static void step(const struct cells *c, int64_t t, int64_t b, int64_t cell)
{
    int64_t at = (t * c->is.batch + b) * c->is.cells + cell;
    if (c->is.gates == 1) {
        c->state[H][at] = tanh(inputs_part(c, t, b, cell, 0) + state_part(c, t, b, cell, 0));
        return;
    }
    double z = sigmoid(inputs_part(c, t, b, cell, 0) + state_part(c, t, b, cell, 0));
    double r = sigmoid(inputs_part(c, t, b, cell, 1) + state_part(c, t, b, cell, 1));
    double inner = state_part(c, t, b, cell, 2);
    double candidate = tanh(inputs_part(c, t, b, cell, 2) + r * inner);
    c->state[Z][at] = z;
    c->state[R][at] = r;
    c->state[INNER][at] = inner;
    c->state[CANDIDATE][at] = candidate;
    c->state[H][at] = z * before(c, t, b)[cell] + (1 - z) * candidate;
}

static bool forward(struct kernel_call *call, struct error *err)
{
    struct cells c;
    if (!load_inputs(call, &c, err))
        return false;
    struct shape shape = SHAPE(c.is.steps, c.is.batch, c.is.cells);
    int states = c.is.gates == 3 ? STATES : 1;
    for (int i = 0; i < states; i++)
        if (!(c.state[i] = kernel_doubles_zeros(call, shape_count(&shape), err)))
            return false;
    for (int64_t t = 0; t < c.is.steps; t++)
        for (int64_t b = 0; b < c.is.batch; b++)
            for (int64_t cell = 0; cell < c.is.cells; cell++)
                step(&c, t, b, cell);
    for (int i = 0; i < states; i++)
        if (!kernel_doubles_store(call, i, &shape, c.state[i], err))
            return false;
    return true;
}

/* Spreads the gradient of gate g's sums: `in` of the inputs' part, `own` of the state's. */
static void spread(const struct cells *c, int64_t t, int64_t b, int64_t cell, int g, double in,
                   double own, double *carried)
{
    int64_t column = g * c->is.cells + cell, columns = c->is.gates * c->is.cells;
    for (int64_t k = 0; k < c->is.inputs; k++) {
        int64_t x = (t * c->is.batch + b) * c->is.inputs + k;
        c->grad[X][x] += in * c->in[KERNEL][k * columns + column];
        c->grad[KERNEL][k * columns + column] += in * c->in[X][x];
    }
    for (int64_t k = 0; k < c->is.cells; k++) {
        carried[b * c->is.cells + k] += own * c->in[RECURRENT][k * columns + column];
        c->grad[RECURRENT][k * columns + column] += own * before(c, t, b)[k];
    }
    c->grad[BIAS][column] += in;
    if (c->is.gates == 3)
        c->grad[BIAS][columns + column] += own;
}

/* One cell back: dh is the gradient of its state; adds to `carried`, that of the one before. */
static void step_back(const struct cells *c, int64_t t, int64_t b, int64_t cell, double dh,
                      double *carried)
{
    int64_t at = (t * c->is.batch + b) * c->is.cells + cell;
    if (c->is.gates == 1) {
        double h = c->state[H][at], sum = dh * (1 - h * h);
        spread(c, t, b, cell, 0, sum, sum, carried);
        return;
    }
    double z = c->state[Z][at], r = c->state[R][at], candidate = c->state[CANDIDATE][at];
    double dc = dh * (1 - z) * (1 - candidate * candidate);
    double dz = dh * (before(c, t, b)[cell] - candidate) * z * (1 - z);
    double dr = dc * c->state[INNER][at] * r * (1 - r);
    spread(c, t, b, cell, 0, dz, dz, carried);
    spread(c, t, b, cell, 1, dr, dr, carried);
    spread(c, t, b, cell, 2, dc, dc * r, carried);
    carried[b * c->is.cells + cell] += dh * z;
}

static bool backward(struct kernel_call *call, struct error *err)
{
    struct cells c;
    if (!load_inputs(call, &c, err))
        return false;
    int states = c.is.gates == 3 ? STATES : 1;
    int64_t state = c.is.batch * c.is.cells;
    for (int i = 0; i < states; i++)
        if (!(c.state[i] = kernel_doubles_load(call, INPUTS + i, err)))
            return false;
    if (!(c.h_grad = kernel_doubles_load(call, INPUTS + states, err)))
        return false;
    for (int i = 0; i < INPUTS; i++)
        if (!(c.grad[i] = kernel_doubles_zeros(call, kernel_in(call, i)->count, err)))
            return false;
    double *carried = kernel_doubles_zeros(call, state, err),
           *now = carried ? kernel_doubles_zeros(call, state, err) : NULL;
    if (!now)
        return false;
    for (int64_t t = c.is.steps - 1; t >= 0; t--) {
        memcpy(now, carried, (size_t)state * sizeof(*now));
        memset(carried, 0, (size_t)state * sizeof(*now));
        for (int64_t i = 0; i < state; i++)
            step_back(&c, t, i / c.is.cells, i % c.is.cells, now[i] + c.h_grad[t * state + i],
                      carried);
    }
    memcpy(c.grad[FIRST], carried, (size_t)state * sizeof(*carried));
    for (int i = 0; i < INPUTS; i++)
        if (!kernel_doubles_store(call, i, &kernel_in(call, i)->shape, c.grad[i], err))
            return false;
    return true;
}

#define SEQUENCE(name_, run_)                                                                  \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = DTYPES_FLOAT, .run = run_                        \
    }

const struct kernel kernel_gru_sequence_ref = SEQUENCE("_GRUSequence", forward);
const struct kernel kernel_gru_sequence_grad_ref = SEQUENCE("_GRUSequenceGrad", backward);
const struct kernel kernel_rnn_sequence_ref = SEQUENCE("_RNNSequence", forward);
const struct kernel kernel_rnn_sequence_grad_ref = SEQUENCE("_RNNSequenceGrad", backward);
