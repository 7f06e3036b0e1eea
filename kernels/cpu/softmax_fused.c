/*
 * softmax_fused.c - what programs write around a softmax, row by row in the cache: its
 * gradient, and the sum of labels times its logarithm.
 *
 * The inner loops are those of the ops that this stands for, in their order, so the bits are
 * the same: also the infinities and NaNs of a logarithm whose softmax is 0.
 */
#include "base/error.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/reduce.h"
#include "kernels/cpu/spread.h"
#include "kernels/list.h"

/* An exponential costs as much as this many plain elements. */
#define WEIGHT 8

/* --- gradients --- */

struct grad {
    int64_t rows, columns;
    const float *dy, *y;
    float *out;
};

/* Rows that are done at a time: as many as the first cache holds. */
static int64_t block_rows(int64_t columns)
{
    enum { TILE = 2048 };
    return columns < TILE ? TILE / columns : 1;
}

static void fill_row(float *row, int64_t count, float value)
{
    for (int64_t i = 0; i < count; i++)
        row[i] = value;
}

/* (dy - Sum(dy * y)) * y */
static void softmax_grad_rows(const struct grad *g, int64_t row, int64_t rows, float *spare)
{
    int64_t columns = g->columns, count = rows * columns;
    const float *dy = g->dy + row * columns, *y = g->y + row * columns;
    float *out = g->out + row * columns;
    isa()->binary(ISA_MUL, count, dy, false, y, false, spare);
    for (int64_t i = 0; i < rows; i++)
        fill_row(spare + i * columns, columns,
                 reduce_sum_row(g->rows, columns, spare + i * columns));
    isa()->binary(ISA_SUB, count, dy, false, spare, false, out);
    isa()->binary(ISA_MUL, count, out, false, y, false, out);
}

/* dy - Sum(dy) * Exp(y) */
static void log_softmax_grad_rows(const struct grad *g, int64_t row, int64_t rows, float *spare)
{
    int64_t columns = g->columns, count = rows * columns;
    const float *dy = g->dy + row * columns, *y = g->y + row * columns;
    float *sums = spare + count;
    for (int64_t i = 0; i < rows; i++)
        fill_row(sums + i * columns, columns,
                 reduce_sum_row(g->rows, columns, dy + i * columns));
    isa()->unary(ISA_EXP, count, y, spare);
    isa()->binary(ISA_MUL, count, sums, false, spare, false, spare);
    isa()->binary(ISA_SUB, count, dy, false, spare, false, g->out + row * columns);
}

static bool run_grad(struct kernel_call *call,
                     void (*run_rows)(const struct grad *g, int64_t row, int64_t rows,
                                      float *spare),
                     struct error *err)
{
    const struct tensor *dy = kernel_in(call, 0), *y = kernel_in(call, 1);
    struct shape shape;
    if (!shape_broadcast(&dy->shape, &y->shape, &shape, err))
        return false;
    if (shape.rank < 1)
        return fail(err, INVALID, "a softmax has >= 1 dimension, got []");
    struct tensor *out = kernel_output_reuse(call, 0, 0, &shape, err);
    if (!out || out->count == 0)
        return out;
    int64_t columns = shape.dims[shape.rank - 1];
    struct grad g = {out->count / columns, columns, NULL, NULL, tensor_f32_mut(out)};
    int threads = parallel_threads(call, out->count);
    int64_t block = block_rows(columns), each = 2 * block * columns;
    float *spare = kernel_scratch(call, (size_t)(threads * each) * sizeof(*spare), err);
    g.dy = spare ? spread(call, tensor_f32(dy), &dy->shape, &shape, err) : NULL;
    g.y = g.dy ? spread(call, tensor_f32(y), &y->shape, &shape, err) : NULL;
    if (!g.y)
        return false;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        struct range r = parallel_range(g.rows, 1, threads, t);
        for (int64_t row = r.from; row < r.to; row += block)
            run_rows(&g, row, r.to - row < block ? r.to - row : block, spare + t * each);
    }
    return true;
}

static bool softmax_grad_run(struct kernel_call *call, struct error *err)
{
    return run_grad(call, softmax_grad_rows, err);
}

static bool log_softmax_grad_run(struct kernel_call *call, struct error *err)
{
    return run_grad(call, log_softmax_grad_rows, err);
}

/* --- labels times the logarithm --- */

struct entropy {
    int64_t rows, columns;
    bool logarithm; /* what is kept is the logarithm */
    const float *logits, *labels;
    float *kept; /* NULL: nobody wants it */
    float *sums;
};

static void entropy_rows(const struct entropy *e, int64_t row, int64_t rows, float *spare)
{
    int64_t columns = e->columns, count = rows * columns;
    const float *logits = e->logits + row * columns;
    float *kept = e->kept ? e->kept + row * columns : spare;
    isa()->softmax(rows, columns, logits, e->logarithm, kept);
    if (!e->logarithm)
        isa()->unary(ISA_LOG, count, kept, spare);
    isa()->binary(ISA_MUL, count, e->labels + row * columns, false, e->logarithm ? kept : spare,
                  false, spare);
    for (int64_t i = 0; i < rows; i++)
        e->sums[row + i] = reduce_sum_row(e->rows, columns, spare + i * columns);
}

/* Labels of another shape: all at once, as the ops do it. */
static bool run_spread(struct kernel_call *call, struct entropy *e, const struct tensor *logits,
                       const struct tensor *labels, const struct shape *shape,
                       struct error *err)
{
    int64_t count = logits->count, classes = logits->shape.dims[logits->shape.rank - 1];
    int64_t all = e->rows * e->columns;
    float *logs = kernel_scratch(call, (size_t)count * sizeof(*logs) + 1, err);
    float *product = logs ? kernel_scratch(call, (size_t)all * sizeof(*logs) + 1, err) : NULL;
    if (!product)
        return false;
    float *kept = e->kept ? e->kept : logs;
    isa()->softmax(count / classes, classes, e->logits, e->logarithm, kept);
    if (!e->logarithm)
        isa()->unary(ISA_LOG, count, kept, logs);
    const float *x = spread(call, e->logarithm ? kept : logs, &logits->shape, shape, err);
    const float *y = x ? spread(call, e->labels, &labels->shape, shape, err) : NULL;
    if (!y)
        return false;
    isa()->binary(ISA_MUL, all, y, false, x, false, product);
    for (int64_t row = 0; row < e->rows; row++)
        e->sums[row] = reduce_sum_row(e->rows, e->columns, product + row * e->columns);
    return true;
}

static bool run_rows(struct kernel_call *call, const struct entropy *e, struct error *err)
{
    int threads = parallel_threads(call, e->rows * e->columns * WEIGHT);
    int64_t block = block_rows(e->columns), each = block * e->columns;
    float *spare = kernel_scratch(call, (size_t)(threads * each) * sizeof(*spare), err);
    if (!spare)
        return false;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        struct range r = parallel_range(e->rows, 1, threads, t);
        for (int64_t row = r.from; row < r.to; row += block)
            entropy_rows(e, row, r.to - row < block ? r.to - row : block, spare + t * each);
    }
    return true;
}

static bool cross_entropy_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *logits = kernel_in(call, 0), *labels = kernel_in(call, 1);
    bool keeps = node_attr_bool(call->node, "keeps", true);
    char text[SHAPE_TEXT_BYTES];
    struct shape shape, reduced;
    if (logits->shape.rank < 1)
        return fail(err, INVALID, "logits must have >= 1 dimension, got %s",
                    shape_text(&logits->shape, text, sizeof(text)));
    if (!shape_broadcast(&logits->shape, &labels->shape, &shape, err))
        return false;
    reduced = shape;
    if (node_attr_bool(call->node, "keep_dims", false))
        reduced.dims[shape.rank - 1] = 1;
    else
        reduced.rank--;
    struct tensor *sums = kernel_output(call, 0, &reduced, err);
    struct tensor *kept =
        sums ? kernel_output(call, 1, keeps ? &logits->shape : &SHAPE(0), err) : NULL;
    if (!kept)
        return false;
    struct entropy e = {.rows = sums->count,
                        .columns = shape.dims[shape.rank - 1],
                        .logarithm = node_attr_bool(call->node, "logarithm", false),
                        .logits = tensor_f32(logits),
                        .labels = tensor_f32(labels),
                        .kept = keeps ? tensor_f32_mut(kept) : NULL,
                        .sums = tensor_f32_mut(sums)};
    if (logits->count == 0 || e.columns == 0) {
        memset(e.sums, 0, (size_t)sums->count * sizeof(*e.sums));
        return true;
    }
    if (shape_equal(&logits->shape, &labels->shape))
        return run_rows(call, &e, err);
    return run_spread(call, &e, logits, labels, &shape, err);
}

#define FUSED(name_, run_)                                                                     \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = BIT(F32), .run = run_                            \
    }

const struct kernel kernel_softmax_grad_cpu = FUSED("_SoftmaxGrad", softmax_grad_run);
const struct kernel kernel_log_softmax_grad_cpu =
    FUSED("_LogSoftmaxGrad", log_softmax_grad_run);
const struct kernel kernel_cross_entropy_cpu = FUSED("_CrossEntropySum", cross_entropy_run);
