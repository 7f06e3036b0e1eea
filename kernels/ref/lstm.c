/*
 * lstm.c - cells of LSTM networks in one operation, over one step or a whole sequence; with
 * their gradients.
 *
 * All in double in scratch memory, rounded when outputs are stored.  Matrices are row-major:
 * w of (inputs + cells, 4 cells) has one column block for each gate.
 */

#include "kernels/ref/lstm.h"
#include "kernels/ref/doubles.h"
#include "kernels/ref/numbers.h"

#include <math.h>

struct lstm {
    int64_t batch, inputs, cells;
    int ci, f; /* column blocks of w; i is the first, o the last */
    bool peephole;
    double forget_bias, clip;
    const double *w, *wci, *wcf, *wco, *b;
};

/* What a step computes, each (batch, cells), in the order of the outputs. */
enum gate { GATE_I, GATE_CS, GATE_F, GATE_O, GATE_CI, GATE_CO, GATE_H, GATES };

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

bool kernel_lstm_check(const struct kernel_call *call, int index, const char *name,
                       const struct shape *wanted, struct error *err)
{
    const struct shape *shape = &kernel_in(call, index)->shape;
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    return shape_equal(shape, wanted) ||
           fail(err, INVALID, "%s has shape %s, expected %s", name,
                shape_text(shape, a, sizeof(a)), shape_text(wanted, b, sizeof(b)));
}

/* A single cell's inputs: sizes first, then ranks, as TensorFlow tells them. */
static bool check_cell(const struct kernel_call *call, struct error *err)
{
    enum { X, CS, H, W, B = 7 };
    static const char *const names[] = {"x",   "cs_prev", "h_prev", "w",
                                        "wci", "wcf",     "wco",    "b"};
    const int64_t *dims[ARRAY_LEN(names)];
    for (int i = 0; i < ARRAY_LEN(names); i++) {
        dims[i] = kernel_in(call, i)->shape.dims;
        if (kernel_in(call, i)->shape.rank < (i <= W ? 2 : 1))
            return fail(err, INVALID, "%s_tensor must be rank %d but is rank %d.", names[i],
                        i <= W ? 2 : 1, kernel_in(call, i)->shape.rank);
    }
    int64_t batch = dims[X][0], cells = dims[CS][1];
    const struct {
        const char *what;
        int64_t is, wanted;
    } sizes[] = {
        {"cs_prev.dims(0) != batch_size", dims[CS][0], batch},
        {"h_prev.dims(0) != batch_size", dims[H][0], batch},
        {"h_prev.dims(1) != cell_size", dims[H][1], cells},
        {"w.dim_size(0) != input_size + cell_size", dims[W][0], dims[X][1] + cells},
        {"w.dim_size(1) != cell_size * 4", dims[W][1], 4 * cells},
        {"b.dim_size(0) != cell_size * 4", dims[B][0], 4 * cells},
    };
    for (int i = 0; i < ARRAY_LEN(sizes); i++)
        if (sizes[i].is != sizes[i].wanted)
            return fail(err, INVALID, "%s: %lld vs. %lld", sizes[i].what,
                        (long long)sizes[i].is, (long long)sizes[i].wanted);
    for (int i = 0; i < ARRAY_LEN(names); i++)
        if (kernel_in(call, i)->shape.rank != (i <= W ? 2 : 1))
            return fail(err, INVALID, "%s_tensor must be rank %d but is rank %d.", names[i],
                        i <= W ? 2 : 1, kernel_in(call, i)->shape.rank);
    return true;
}

bool kernel_lstm_read(struct kernel_call *call, int first, const struct shape *x, int rank,
                      struct kernel_lstm *l, struct error *err)
{
    const struct node *node = call->node;
    const struct shape *cs = &kernel_in(call, first + 1)->shape;
    bool second = strstr(node->op->name, "V2") != NULL;
    if (strcmp(node->op->name, "LSTMBlockCell") == 0 && !check_cell(call, err))
        return false;
    if (x->rank != rank)
        return fail(err, INVALID, "x must be %dD", rank);
    if (cs->rank != 2)
        return fail(err, INVALID, "cs_prev must be 2D");
    *l = (struct kernel_lstm){
        .batch = x->dims[rank - 2],
        .inputs = x->dims[rank - 1],
        .cells = cs->dims[1],
        .ci = second ? 2 : 1,
        .f = second ? 1 : 2,
        .peephole = node_attr_bool(node, "use_peephole", false),
        .forget_bias = node_attr_float(node, "forget_bias", second ? 0 : 1),
        .clip = node_attr_float(node, "cell_clip", second ? 0 : 3),
    };
    struct shape state = SHAPE(l->batch, l->cells), per_cell = SHAPE(l->cells);
    if (!kernel_lstm_check(call, first + 1, "cs_prev", &state, err) ||
        !kernel_lstm_check(call, first + 2, "h_prev", &state, err) ||
        !kernel_lstm_check(call, first + 3, "w", &SHAPE(l->inputs + l->cells, 4 * l->cells),
                           err) ||
        !kernel_lstm_check(call, first + 7, "b", &SHAPE(4 * l->cells), err))
        return false;
    for (int i = 0; i < 3 && l->peephole; i++)                  /* else nobody looks at them */
        if (kernel_in(call, first + 4 + i)->count < l->cells && /* more will do */
            !kernel_lstm_check(call, first + 4 + i, "a peephole", &per_cell, err))
            return false;
    return true;
}

static bool read_lstm(struct kernel_call *call, int first, int rank, struct lstm *l,
                      struct error *err)
{
    struct kernel_lstm s;
    if (!kernel_lstm_read(call, first, &kernel_in(call, first)->shape, rank, &s, err))
        return false;
    *l = (struct lstm){
        .batch = s.batch,
        .inputs = s.inputs,
        .cells = s.cells,
        .ci = s.ci,
        .f = s.f,
        .peephole = s.peephole,
        .forget_bias = s.forget_bias,
        .clip = s.clip,
    };
    l->w = kernel_doubles_load(call, first + 3, err);
    l->wci = l->w ? kernel_doubles_load(call, first + 4, err) : NULL;
    l->wcf = l->wci ? kernel_doubles_load(call, first + 5, err) : NULL;
    l->wco = l->wcf ? kernel_doubles_load(call, first + 6, err) : NULL;
    l->b = l->wco ? kernel_doubles_load(call, first + 7, err) : NULL;
    return l->b != NULL;
}

/* Column `block` of the gates at row r of the batch, cell c: [x, h] w + b. */
static double gate_sum(const struct lstm *l, const double *x, const double *h, int64_t r,
                       int64_t c, int block)
{
    int64_t columns = 4 * l->cells, column = block * l->cells + c;
    double sum = l->b[column];
    for (int64_t k = 0; k < l->inputs; k++)
        sum += x[r * l->inputs + k] * l->w[k * columns + column];
    for (int64_t k = 0; k < l->cells; k++)
        sum += h[r * l->cells + k] * l->w[(l->inputs + k) * columns + column];
    return sum;
}

/* One step; `out` has room for the gates one after the other, `stride` elements apart. */
static void lstm_step(const struct lstm *l, const double *x, const double *cs_prev,
                      const double *h_prev, double *out, int64_t stride)
{
    for (int64_t r = 0; r < l->batch; r++)
        for (int64_t c = 0; c < l->cells; c++) {
            int64_t at = r * l->cells + c;
            double old = cs_prev[at], hole[2] = {0, 0};
            if (l->peephole) {
                hole[0] = old * l->wci[c];
                hole[1] = old * l->wcf[c];
            }
            double i = sigmoid(gate_sum(l, x, h_prev, r, c, 0) + hole[0]);
            double ci = tanh(gate_sum(l, x, h_prev, r, c, l->ci));
            double f = sigmoid(gate_sum(l, x, h_prev, r, c, l->f) + l->forget_bias + hole[1]);
            double cs = ci * i + f * old;
            if (l->clip > 0)
                cs = cs > l->clip ? l->clip : (cs < -l->clip ? -l->clip : cs);
            double o =
                sigmoid(gate_sum(l, x, h_prev, r, c, 3) + (l->peephole ? cs * l->wco[c] : 0));
            double all[GATES] = {i, cs, f, o, ci, tanh(cs), o * tanh(cs)};
            for (int gate = 0; gate < GATES; gate++)
                out[gate * stride + at] = all[gate];
        }
}

static bool lstm_block_cell_run(struct kernel_call *call, struct error *err)
{
    struct lstm l;
    if (!read_lstm(call, 0, 2, &l, err))
        return false;
    int64_t size = l.batch * l.cells;
    double *x = kernel_doubles_load(call, 0, err),
           *cs = x ? kernel_doubles_load(call, 1, err) : NULL;
    double *h = cs ? kernel_doubles_load(call, 2, err) : NULL;
    double *out = h ? kernel_doubles_zeros(call, GATES * size, err) : NULL;
    if (!out)
        return false;
    lstm_step(&l, x, cs, h, out, size);
    for (int gate = 0; gate < GATES; gate++)
        if (!kernel_doubles_store(call, gate, &SHAPE(l.batch, l.cells), out + gate * size, err))
            return false;
    return true;
}

/* Steps from seq_len_max on give zeros. */
static bool block_lstm_run(struct kernel_call *call, struct error *err)
{
    struct lstm l;
    int64_t length = 0;
    if (!kernel_scalar(call, 0, "seq_len_max", &length, err) || !read_lstm(call, 1, 3, &l, err))
        return false;
    int64_t steps = kernel_in(call, 1)->shape.dims[0], size = l.batch * l.cells;
    double *x = kernel_doubles_load(call, 1, err),
           *cs = x ? kernel_doubles_load(call, 2, err) : NULL;
    double *h = cs ? kernel_doubles_load(call, 3, err) : NULL;
    double *out = h ? kernel_doubles_zeros(call, GATES * steps * size, err) : NULL;
    if (!out)
        return false;
    for (int64_t t = 0; t < steps && t < length; t++) {
        double *now = out + t * size, *before = now - size;
        lstm_step(&l, x + t * l.batch * l.inputs, t ? before + GATE_CS * steps * size : cs,
                  t ? before + GATE_H * steps * size : h, now, steps * size);
    }
    for (int gate = 0; gate < GATES; gate++)
        if (!kernel_doubles_store(call, gate, &SHAPE(steps, l.batch, l.cells),
                                  out + gate * steps * size, err))
            return false;
    return true;
}

/* --- gradients --- */

/* What one step back works on and adds to; NULL where not wanted. */
struct lstm_back {
    const double *cs_prev;     /* (batch, cells) */
    const double *gate[GATES]; /* of the step; h is not used */
    const double *cs_grad, *h_grad;
    double *cs_prev_grad;                   /* set */
    double *gates_grad;                     /* (batch, 4 cells), set: blocks as in w */
    double *wci_grad, *wcf_grad, *wco_grad; /* added to */
};

static void lstm_step_back(const struct lstm *l, const struct lstm_back *s)
{
    for (int64_t at = 0; at < l->batch * l->cells; at++) {
        int64_t c = at % l->cells;
        double i = s->gate[GATE_I][at], f = s->gate[GATE_F][at], o = s->gate[GATE_O][at];
        double ci = s->gate[GATE_CI][at], co = s->gate[GATE_CO][at], dh = s->h_grad[at];
        double d_o = o * (1 - o) * dh * co;
        double dcs = (1 - co * co) * dh * o + s->cs_grad[at];
        if (l->peephole)
            dcs += d_o * l->wco[c];
        double dci = (1 - ci * ci) * dcs * i;
        double df = f * (1 - f) * dcs * s->cs_prev[at];
        double di = i * (1 - i) * dcs * ci;
        double *gates = s->gates_grad + at / l->cells * 4 * l->cells + c;
        gates[0] = di;
        gates[l->ci * l->cells] = dci;
        gates[l->f * l->cells] = df;
        gates[3 * l->cells] = d_o;
        s->cs_prev_grad[at] = dcs * f;
        if (!l->peephole)
            continue;
        s->cs_prev_grad[at] += di * l->wci[c] + df * l->wcf[c];
        s->wci_grad[c] += di * s->cs_prev[at];
        s->wcf_grad[c] += df * s->cs_prev[at];
        s->wco_grad[c] += d_o * s->gate[GATE_CS][at];
    }
}

/* Inputs as LSTMBlockCell's, then its outputs but h, then cs_grad and h_grad. */
static bool lstm_block_cell_grad_run(struct kernel_call *call, struct error *err)
{
    struct lstm l;
    if (!read_lstm(call, 0, 2, &l, err))
        return false;
    int64_t size = l.batch * l.cells;
    for (int i = 8; i < 16; i++)
        if (!kernel_lstm_check(call, i, "a state", &SHAPE(l.batch, l.cells), err))
            return false;
    struct lstm_back s = {.cs_prev = kernel_doubles_load(call, 1, err)};
    bool ok = s.cs_prev != NULL;
    for (int gate = 0; gate < GATE_H && ok; gate++)
        ok = (s.gate[gate] = kernel_doubles_load(call, 8 + gate, err)) != NULL;
    s.cs_grad = ok ? kernel_doubles_load(call, 14, err) : NULL;
    s.h_grad = s.cs_grad ? kernel_doubles_load(call, 15, err) : NULL;
    s.cs_prev_grad = s.h_grad ? kernel_doubles_zeros(call, 5 * size + 3 * l.cells, err) : NULL;
    if (!s.cs_prev_grad)
        return false;
    s.gates_grad = s.cs_prev_grad + size;
    s.wci_grad = s.gates_grad + 4 * size;
    s.wcf_grad = s.wci_grad + l.cells;
    s.wco_grad = s.wcf_grad + l.cells;
    lstm_step_back(&l, &s);
    struct shape per_cell = SHAPE(l.cells);
    return kernel_doubles_store(call, 0, &SHAPE(l.batch, l.cells), s.cs_prev_grad, err) &&
           kernel_doubles_store(call, 1, &SHAPE(l.batch, 4 * l.cells), s.gates_grad, err) &&
           kernel_doubles_store(call, 2, &per_cell, s.wci_grad, err) &&
           kernel_doubles_store(call, 3, &per_cell, s.wcf_grad, err) &&
           kernel_doubles_store(call, 4, &per_cell, s.wco_grad, err);
}

/* From the gradient of the gates of one step to those of x, h_prev, w and b. */
static void gates_back(const struct lstm *l, const double *gates_grad, const double *x,
                       const double *h_prev, double *x_grad, double *h_prev_grad,
                       double *w_grad, double *b_grad)
{
    int64_t columns = 4 * l->cells;
    for (int64_t r = 0; r < l->batch; r++)
        for (int64_t k = 0; k < l->inputs + l->cells; k++) {
            bool is_x = k < l->inputs;
            int64_t own = is_x ? r * l->inputs + k : r * l->cells + k - l->inputs;
            double sum = 0, value = is_x ? x[own] : h_prev[own];
            for (int64_t c = 0; c < columns; c++) {
                double d = gates_grad[r * columns + c];
                sum += d * l->w[k * columns + c];
                w_grad[k * columns + c] += value * d;
            }
            *(is_x ? x_grad + own : h_prev_grad + own) = sum;
        }
    for (int64_t i = 0; i < l->batch * columns; i++)
        b_grad[i % columns] += gates_grad[i];
}

/* The arrays of the gradient of a sequence. */
struct sequence {
    int64_t steps, length;
    double *x, *cs_prev, *h_prev, *gate[GATES], *cs_grad, *h_grad;
    double *x_grad, *cs_state_grad, *h_state_grad, *w_grad, *holes_grad, *b_grad;
    double *gates_grad, *cs_now, *h_now;
};

static bool read_sequence(struct kernel_call *call, const struct lstm *l, struct sequence *s,
                          struct error *err)
{
    int64_t size = l->batch * l->cells, columns = 4 * l->cells;
    double **inputs[] = {&s->x,       &s->cs_prev, &s->h_prev,  &s->gate[0],
                         &s->gate[1], &s->gate[2], &s->gate[3], &s->gate[4],
                         &s->gate[5], &s->gate[6], &s->cs_grad, &s->h_grad};
    s->steps = kernel_in(call, 1)->shape.dims[0];
    for (int i = 0; i < ARRAY_LEN(inputs); i++) {
        int index = i < 3 ? 1 + i : 6 + i;
        if (i >= 3 && !kernel_lstm_check(call, index, "a sequence",
                                         &SHAPE(s->steps, l->batch, l->cells), err))
            return false;
        if (!(*inputs[i] = kernel_doubles_load(call, index, err)))
            return false;
    }
    struct {
        double **array;
        int64_t count;
    } results[] = {
        {&s->x_grad, s->steps * l->batch * l->inputs},
        {&s->cs_state_grad, size},
        {&s->h_state_grad, size},
        {&s->w_grad, (l->inputs + l->cells) * columns},
        {&s->holes_grad, 3 * l->cells},
        {&s->b_grad, columns},
        {&s->gates_grad, 4 * size},
        {&s->cs_now, size},
        {&s->h_now, size},
    };
    for (int i = 0; i < ARRAY_LEN(results); i++)
        if (!(*results[i].array = kernel_doubles_zeros(call, results[i].count, err)))
            return false;
    return true;
}

static void sequence_back(const struct lstm *l, struct sequence *s)
{
    int64_t size = l->batch * l->cells;
    for (int64_t t = s->steps - 1; t >= 0; t--) {
        if (t >= s->length)
            continue;
        const double *cs_prev = t ? s->gate[GATE_CS] + (t - 1) * size : s->cs_prev;
        const double *h_prev = t ? s->gate[GATE_H] + (t - 1) * size : s->h_prev;
        for (int64_t i = 0; i < size; i++) {
            s->cs_now[i] = s->cs_state_grad[i] + s->cs_grad[t * size + i];
            s->h_now[i] = s->h_state_grad[i] + s->h_grad[t * size + i];
        }
        struct lstm_back step = {.cs_prev = cs_prev,
                                 .cs_grad = s->cs_now,
                                 .h_grad = s->h_now,
                                 .cs_prev_grad = s->cs_state_grad,
                                 .gates_grad = s->gates_grad,
                                 .wci_grad = s->holes_grad,
                                 .wcf_grad = s->holes_grad + l->cells,
                                 .wco_grad = s->holes_grad + 2 * l->cells};
        for (int gate = 0; gate < GATES; gate++)
            step.gate[gate] = s->gate[gate] + t * size;
        lstm_step_back(l, &step);
        gates_back(l, s->gates_grad, s->x + t * l->batch * l->inputs, h_prev,
                   s->x_grad + t * l->batch * l->inputs, s->h_state_grad, s->w_grad, s->b_grad);
    }
}

/* Inputs as BlockLSTM's, then its outputs, then cs_grad and h_grad. */
static bool block_lstm_grad_run(struct kernel_call *call, struct error *err)
{
    struct sequence s;
    struct lstm l;
    if (!kernel_scalar(call, 0, "seq_len_max", &s.length, err) ||
        !read_lstm(call, 1, 3, &l, err) || !read_sequence(call, &l, &s, err))
        return false;
    sequence_back(&l, &s);
    struct shape state = SHAPE(l.batch, l.cells), per_cell = SHAPE(l.cells);
    return kernel_doubles_store(call, 0, &SHAPE(s.steps, l.batch, l.inputs), s.x_grad, err) &&
           kernel_doubles_store(call, 1, &state, s.cs_state_grad, err) &&
           kernel_doubles_store(call, 2, &state, s.h_state_grad, err) &&
           kernel_doubles_store(call, 3, &SHAPE(l.inputs + l.cells, 4 * l.cells), s.w_grad,
                                err) &&
           kernel_doubles_store(call, 4, &per_cell, s.holes_grad, err) &&
           kernel_doubles_store(call, 5, &per_cell, s.holes_grad + l.cells, err) &&
           kernel_doubles_store(call, 6, &per_cell, s.holes_grad + 2 * l.cells, err) &&
           kernel_doubles_store(call, 7, &SHAPE(4 * l.cells), s.b_grad, err);
}

#define LSTM(name_, run_)                                                                      \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = BIT(F32) | BIT(F16), .run = run_                 \
    }

const struct kernel kernel_lstm_block_cell_ref = LSTM("LSTMBlockCell", lstm_block_cell_run);
const struct kernel kernel_lstm_block_cell_grad_ref =
    LSTM("LSTMBlockCellGrad", lstm_block_cell_grad_run);
const struct kernel kernel_block_lstm_ref = LSTM("BlockLSTM", block_lstm_run);
const struct kernel kernel_block_lstm_v2_ref = LSTM("BlockLSTMV2", block_lstm_run);
const struct kernel kernel_block_lstm_grad_ref = LSTM("BlockLSTMGrad", block_lstm_grad_run);
const struct kernel kernel_block_lstm_grad_v2_ref =
    LSTM("BlockLSTMGradV2", block_lstm_grad_run);
