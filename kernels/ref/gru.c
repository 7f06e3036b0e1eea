/*
 * gru.c - a cell of GRU networks in one operation, and its gradient.
 *
 * All in double in scratch memory.  w_ru is (inputs + cells, 2 cells): reset, then update gate;
 * w_c is (inputs + cells, cells): the candidate.
 */

#include "base/error.h"
#include "kernels/ref/doubles.h"
#include "runtime/op.h"

#include <math.h>

struct gru {
    int64_t batch, inputs, cells;
    double *x, *h_prev, *w_ru, *w_c, *b_ru, *b_c; /* in the order of the inputs */
};

/* Rank and sizes of one input, in TensorFlow's words for them. */
struct wanted {
    const char *name, *sizes[2];
    struct shape shape;
};

static bool check_input(const struct kernel_call *call, int index, const struct wanted *wanted,
                        struct error *err)
{
    const struct shape *is = &kernel_in(call, index)->shape;
    if (is->rank != wanted->shape.rank)
        return fail(err, INVALID, "Rank of %s must be %d, got %d", wanted->name,
                    wanted->shape.rank, is->rank);
    for (int d = 0; d < is->rank; d++)
        if (is->dims[d] != wanted->shape.dims[d])
            return fail(err, INVALID, "%s: %lld vs. %lld", wanted->sizes[d],
                        (long long)is->dims[d], (long long)wanted->shape.dims[d]);
    return true;
}

static double *load_checked(struct kernel_call *call, int index, const struct shape *wanted,
                            struct error *err)
{
    const struct tensor *in = kernel_in(call, index);
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    if (!shape_equal(&in->shape, wanted))
        return fail_null(err, INVALID, "input %d of %s has shape %s, expected %s", index,
                         call->node->op->name, shape_text(&in->shape, a, sizeof(a)),
                         shape_text(wanted, b, sizeof(b)));
    return kernel_doubles_load(call, index, err);
}

static bool read_gru(struct kernel_call *call, struct gru *g, struct error *err)
{
    const struct shape *x = &kernel_in(call, 0)->shape, *h = &kernel_in(call, 1)->shape;
    if (x->rank != 2 || h->rank != 2)
        return fail(err, INVALID, "Rank of %s must be 2, got %d", x->rank != 2 ? "x" : "h_prev",
                    x->rank != 2 ? x->rank : h->rank);
    g->batch = x->dims[0];
    g->inputs = x->dims[1];
    g->cells = h->dims[1];
    int64_t all = g->inputs + g->cells;
    const struct wanted wanted[] = {
        {"x", {"", ""}, SHAPE(g->batch, g->inputs)},
        {"h_prev", {"h_prev.dims(0) != batch_size", ""}, SHAPE(g->batch, g->cells)},
        {"w_ru_",
         {"w_ru.dim_size(0) != input_size + cell_size", "w_ru.dim_size(1) != cell_size * 2"},
         SHAPE(all, 2 * g->cells)},
        {"w_c",
         {"w_c.dim_size(0) != input_size + cell_size", "w_c.dim_size(1) != cell_size"},
         SHAPE(all, g->cells)},
        {"b_ru", {"b_ru.dim_size(0) != cell_size * 2"}, SHAPE(2 * g->cells)},
        {"b_c", {"b_c.dim_size(0) != cell_size"}, SHAPE(g->cells)}};
    double **arrays[] = {&g->x, &g->h_prev, &g->w_ru, &g->w_c, &g->b_ru, &g->b_c};
    for (int i = 0; i < ARRAY_LEN(arrays); i++)
        if (!check_input(call, i, &wanted[i], err) ||
            !(*arrays[i] = kernel_doubles_load(call, i, err)))
            return false;
    return true;
}

/* out (batch, columns) = [x, h] w + bias; h (batch, cells). */
static void affine(const struct gru *g, const double *h, const double *w, const double *bias,
                   int64_t columns, double *out)
{
    for (int64_t r = 0; r < g->batch; r++)
        for (int64_t c = 0; c < columns; c++) {
            double sum = bias[c];
            for (int64_t k = 0; k < g->inputs; k++)
                sum += g->x[r * g->inputs + k] * w[k * columns + c];
            for (int64_t k = 0; k < g->cells; k++)
                sum += h[r * g->cells + k] * w[(g->inputs + k) * columns + c];
            out[r * columns + c] = sum;
        }
}

static bool gru_block_cell_run(struct kernel_call *call, struct error *err)
{
    struct gru g;
    if (!read_gru(call, &g, err))
        return false;
    int64_t size = g.batch * g.cells;
    double *out = kernel_scratch(call, (size_t)(7 * size) * sizeof(*out) + 1, err);
    if (!out)
        return false;
    double *r = out, *u = r + size, *c = u + size, *h = c + size, *reset = h + size;
    double *gates = reset + size;
    affine(&g, g.h_prev, g.w_ru, g.b_ru, 2 * g.cells, gates);
    for (int64_t i = 0; i < size; i++) {
        const double *row = gates + i / g.cells * 2 * g.cells + i % g.cells;
        r[i] = 1 / (1 + exp(-row[0]));
        u[i] = 1 / (1 + exp(-row[g.cells]));
        reset[i] = g.h_prev[i] * r[i];
    }
    affine(&g, reset, g.w_c, g.b_c, g.cells, c);
    for (int64_t i = 0; i < size; i++) {
        c[i] = tanh(c[i]);
        h[i] = u[i] * g.h_prev[i] + (1 - u[i]) * c[i];
    }
    struct shape shape = SHAPE(g.batch, g.cells);
    for (int i = 0; i < 4; i++)
        if (!kernel_doubles_store(call, i, &shape, out + i * size, err))
            return false;
    return true;
}

/* (d_x, d_h) of (batch, inputs + cells) += d (batch, columns) times w transposed. */
static void affine_back(const struct gru *g, const double *d, const double *w, int64_t columns,
                        double *d_x, double *d_h)
{
    for (int64_t r = 0; r < g->batch; r++)
        for (int64_t k = 0; k < g->inputs + g->cells; k++) {
            double *to =
                k < g->inputs ? d_x + r * g->inputs + k : d_h + r * g->cells + k - g->inputs;
            for (int64_t c = 0; c < columns; c++)
                *to += d[r * columns + c] * w[k * columns + c];
        }
}

/* Inputs as the cell's, then its r, u, c, and the gradient of h. */
static bool gru_block_cell_grad_run(struct kernel_call *call, struct error *err)
{
    struct gru g;
    double *state[4];
    if (!read_gru(call, &g, err))
        return false;
    struct shape shape = SHAPE(g.batch, g.cells), wide = SHAPE(g.batch, 2 * g.cells);
    for (int i = 0; i < 4; i++)
        if (!(state[i] = load_checked(call, 6 + i, &shape, err)))
            return false;
    int64_t size = g.batch * g.cells, total = 5 * size + g.batch * g.inputs;
    double *d_x = kernel_scratch(call, (size_t)total * sizeof(*d_x) + 1, err);
    if (!d_x)
        return false;
    memset(d_x, 0, (size_t)total * sizeof(*d_x));
    double *d_h = d_x + g.batch * g.inputs, *d_c = d_h + size, *d_ru = d_c + size;
    double *d_reset = d_ru + 2 * size;
    const double *r = state[0], *u = state[1], *c = state[2], *d = state[3];
    for (int64_t i = 0; i < size; i++) {
        int64_t at = i / g.cells * 2 * g.cells + i % g.cells;
        d_c[i] = d[i] * (1 - u[i]) * (1 - c[i] * c[i]);
        d_ru[at + g.cells] = d[i] * (g.h_prev[i] - c[i]) * u[i] * (1 - u[i]);
    }
    affine_back(&g, d_c, g.w_c, g.cells, d_x, d_reset);
    for (int64_t i = 0; i < size; i++) {
        int64_t at = i / g.cells * 2 * g.cells + i % g.cells;
        d_ru[at] = d_reset[i] * g.h_prev[i] * r[i] * (1 - r[i]);
        d_h[i] = d_reset[i] * r[i] + d[i] * u[i];
    }
    affine_back(&g, d_ru, g.w_ru, 2 * g.cells, d_x, d_h);
    return kernel_doubles_store(call, 0, &SHAPE(g.batch, g.inputs), d_x, err) &&
           kernel_doubles_store(call, 1, &shape, d_h, err) &&
           kernel_doubles_store(call, 2, &shape, d_c, err) &&
           kernel_doubles_store(call, 3, &wide, d_ru, err);
}

#define GRU(name_, run_)                                                                       \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = BIT(F32), .run = run_                            \
    }

const struct kernel kernel_gru_block_cell_ref = GRU("GRUBlockCell", gru_block_cell_run);
const struct kernel kernel_gru_block_cell_grad_ref =
    GRU("GRUBlockCellGrad", gru_block_cell_grad_run);
