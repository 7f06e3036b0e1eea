/*
 * attention.c - _Attention and its gradient in float, a head at a time in the cache.
 *
 * Products go tile by tile over queries, keys and values where they lie, without transposed
 * copies of whole arrays; with `causal`, tiles that no query may see are left out.  In bfloat16
 * both factors of a head's product are rounded aside first, in pairs along its depth; the
 * weights that are kept stay float.
 */
#include "kernels/ref/attention.h"
#include "base/error.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"
#include "kernels/list.h"

/* One head of one example: rows of q, k, v and their gradients `row` and `value_row` apart. */
struct head {
    const struct kernel_attention *is;
    bool bf16; /* factors are rounded to it */
    int64_t row, value_row;
    const float *q, *k, *v, *dout;
    float *out, *w, *dq, *dk, *dv;
    float *panels; /* room for a right factor, as the tiles want it, */
    float *pairs;  /* and in bfloat16 for a left one */
    float *dw;     /* (queries, keys) */
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t padded(int64_t columns)
{
    int64_t width = isa()->tile_columns;
    return (columns + width - 1) / width * width;
}

/* So many steps along k does a tile make for a depth of `count`. */
static int64_t steps(const struct head *h, int64_t count)
{
    return h->bf16 ? gemm_bf16_row(count) : count;
}

static void run_tile(const struct head *h, const struct isa_tile *tile)
{
    if (h->bf16)
        isa()->bf16.tile(tile);
    else
        isa()->tile(tile);
}

/* b (depth,columns), element (p,j) at b[p * row + j * column], to the panels. */
static void pack(const struct head *h, int64_t depth, int64_t columns, const float *b,
                 int64_t row, int64_t column)
{
    if (h->bf16)
        gemm_pack_bf16(h->panels, depth, columns, b, row, column);
    else
        isa()->pack(h->panels, depth, columns, b, row, column);
}

/* (queries, keys) c = a b^T, with b (keys, size) packed as its transpose. */
static void scores(const struct head *h, const float *a, int64_t a_row, int64_t size, float *c)
{
    const struct isa *ops = isa();
    const struct kernel_attention *is = h->is;
    int64_t k = steps(h, size);
    if (h->bf16) {
        gemm_pack_a_bf16(h->pairs, is->queries, size, a, a_row);
        a = h->pairs;
        a_row = k;
    }
    for (int64_t j = 0; j < is->keys; j += ops->tile_columns) {
        struct isa_tile tile = {.columns = (int)least(is->keys - j, ops->tile_columns),
                                .k = k,
                                .a_row = a_row,
                                .a_column = 1,
                                .b = h->panels + j * k,
                                .b_row = ops->tile_columns,
                                .c_row = is->keys,
                                .alpha = 1};
        for (int64_t i = 0; i < is->queries; i += ops->tile_rows) {
            tile.rows = (int)least(is->queries - i, ops->tile_rows);
            if (kernel_attention_seen(is, i + tile.rows - 1) <= j)
                continue;
            tile.a = a + i * a_row;
            tile.c = c + i * is->keys + j;
            run_tile(h, &tile);
        }
    }
}

/* w (queries, keys) or, `turned`, its transpose as a left factor: element (i,k) of what is
 * returned at [i * *row + k * *column]. */
static const float *left_factor(const struct head *h, bool turned, const float *w, int64_t *row,
                                int64_t *column)
{
    const struct kernel_attention *is = h->is;
    *row = turned ? 1 : steps(h, is->keys);
    *column = turned ? is->keys : 1;
    if (!h->bf16)
        return w;
    if (turned)
        isa()->bf16.pair_rows(is->queries, is->keys, w, is->keys, h->pairs, is->keys);
    else
        gemm_pack_a_bf16(h->pairs, is->queries, is->keys, w, is->keys);
    return h->pairs;
}

/*
 * (rows, columns) c = a b over `depth`, where of row tile [i, i + rows) of c only the depths
 * [from, to) count: those up to the last key that its queries see (rows are queries), or from
 * the first query that sees its keys (rows are keys, `turned`); a is 0 where a pair has more.
 * The last columns of b, short of a tile, are copied aside.
 */
static void combine(const struct head *h, bool turned, const float *w, const float *b,
                    int64_t b_row, int64_t columns, float *c, int64_t c_row)
{
    const struct isa *ops = isa();
    const struct kernel_attention *is = h->is;
    int64_t rows = turned ? is->keys : is->queries, depth = turned ? is->queries : is->keys;
    struct isa_tile tile = {.c_row = c_row, .alpha = 1};
    const float *a = left_factor(h, turned, w, &tile.a_row, &tile.a_column);
    for (int64_t j = 0; j < columns; j += ops->tile_columns) {
        const float *from = b + j;
        tile.columns = (int)least(columns - j, ops->tile_columns);
        tile.b_row = b_row;
        if (h->bf16 || tile.columns < ops->tile_columns) {
            pack(h, depth, tile.columns, b + j, b_row, 1);
            from = h->panels;
            tile.b_row = ops->tile_columns;
        }
        for (int64_t i = 0; i < rows; i += ops->tile_rows) {
            tile.rows = (int)least(rows - i, ops->tile_rows);
            int64_t first = turned && is->causal ? least(i, depth) : 0;
            int64_t last = turned ? depth : kernel_attention_seen(is, i + tile.rows - 1);
            first = h->bf16 ? first / 2 : first;
            tile.k = steps(h, last) - first;
            tile.a = a + i * tile.a_row + first * tile.a_column;
            tile.b = from + first * tile.b_row;
            tile.c = c + i * c_row + j;
            run_tile(h, &tile);
        }
    }
}

static void head_forward(const struct head *h)
{
    const struct kernel_attention *is = h->is;
    pack(h, is->size, is->keys, h->k, 1, h->row);
    scores(h, h->q, h->row, is->size, h->w);
    for (int64_t i = 0; i < is->queries; i++)
        isa()->attention_weights(kernel_attention_seen(is, i), is->keys, (float)is->scale,
                                 h->w + i * is->keys);
    combine(h, false, h->w, h->v, h->value_row, is->value_size, h->out, h->value_row);
}

static void head_back(const struct head *h)
{
    const struct kernel_attention *is = h->is;
    pack(h, is->value_size, is->keys, h->v, 1, h->value_row);
    scores(h, h->dout, h->value_row, is->value_size, h->dw);
    combine(h, true, h->w, h->dout, h->value_row, is->value_size, h->dv, h->value_row);
    for (int64_t i = 0; i < is->queries; i++)
        isa()->attention_weights_grad(kernel_attention_seen(is, i), is->keys, (float)is->scale,
                                      h->w + i * is->keys, h->dw + i * is->keys);
    combine(h, false, h->dw, h->k, h->row, is->size, h->dq, h->row);
    combine(h, true, h->dw, h->q, h->row, is->size, h->dk, h->row);
}

/* Floats of the room for a right factor, and for a left one. */
static int64_t panels_floats(const struct kernel_attention *is)
{
    int64_t scores = padded(is->keys) * most(is->size, is->value_size);
    return most(scores, most(is->queries, is->keys) * isa()->tile_columns);
}

static int64_t pairs_floats(const struct kernel_attention *is)
{
    int64_t wide = most(is->keys, most(is->size, is->value_size));
    return most(is->queries * gemm_bf16_row(wide), gemm_bf16_row(is->queries) * is->keys);
}

/* Arrays of all heads; work() gets each head's part of them. */
static bool each_head(struct kernel_call *call, const struct head *all,
                      void (*work)(const struct head *h), struct error *err)
{
    const struct kernel_attention *is = all->is;
    bool bf16 = call->precision == BF16;
    int64_t heads = is->batch * is->heads, weights = is->queries * is->keys;
    int64_t panels = panels_floats(is), pairs = bf16 ? pairs_floats(is) : 0;
    int threads = parallel_threads(call, heads * weights);
    int64_t each = panels + pairs + (all->dout ? weights : 0) + 16;
    float *room = kernel_scratch(call, (size_t)(threads * each) * sizeof(*room), err);
    if (!room)
        return false;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        struct range r = parallel_range(heads, 1, threads, t);
        for (int64_t n = r.from; n < r.to; n++) {
            int64_t b = n / is->heads, one = n % is->heads;
            int64_t q = b * is->queries * all->row + one * is->size;
            int64_t k = b * is->keys * all->row + one * is->size;
            int64_t v = b * is->keys * all->value_row + one * is->value_size;
            int64_t o = b * is->queries * all->value_row + one * is->value_size;
            struct head h = {.is = is,
                             .bf16 = bf16,
                             .row = all->row,
                             .value_row = all->value_row,
                             .q = all->q + q,
                             .k = all->k + k,
                             .v = all->v + v,
                             .w = all->w + n * weights,
                             .panels = room + t * each};
            h.pairs = h.panels + panels;
            h.dw = h.pairs + pairs;
            if (all->dout) {
                h.dout = all->dout + o;
                h.dq = all->dq + q;
                h.dk = all->dk + k;
                h.dv = all->dv + v;
            } else {
                h.out = all->out + o;
            }
            work(&h);
        }
    }
    return true;
}

static bool attention_run(struct kernel_call *call, struct error *err)
{
    struct kernel_attention a;
    if (!kernel_attention_read(call, 0, &a, err))
        return false;
    struct tensor *out =
        kernel_output(call, 0, &SHAPE(a.batch, a.queries, a.heads, a.value_size), err);
    struct tensor *weights =
        out ? kernel_output(call, 1, &SHAPE(a.batch, a.heads, a.queries, a.keys), err) : NULL;
    if (!weights)
        return false;
    const struct head all = {.is = &a,
                             .row = a.heads * a.size,
                             .value_row = a.heads * a.value_size,
                             .q = tensor_f32(kernel_in(call, 0)),
                             .k = tensor_f32(kernel_in(call, 1)),
                             .v = tensor_f32(kernel_in(call, 2)),
                             .out = tensor_f32_mut(out),
                             .w = tensor_f32_mut(weights)};
    return each_head(call, &all, head_forward, err);
}

static bool attention_grad_run(struct kernel_call *call, struct error *err)
{
    struct kernel_attention a;
    if (!kernel_attention_read(call, 1, &a, err))
        return false;
    const struct tensor *dout = kernel_in(call, 0), *weights = kernel_in(call, 4);
    if (!shape_equal(&dout->shape, &SHAPE(a.batch, a.queries, a.heads, a.value_size)) ||
        !shape_equal(&weights->shape, &SHAPE(a.batch, a.heads, a.queries, a.keys)))
        return fail(err, INVALID, "the gradient or the weights do not fit query and key");
    struct tensor *grads[3];
    for (int i = 0; i < 3; i++)
        if (!(grads[i] = kernel_output(call, i, &kernel_in(call, 1 + i)->shape, err)))
            return false;
    const struct head all = {.is = &a,
                             .row = a.heads * a.size,
                             .value_row = a.heads * a.value_size,
                             .dout = tensor_f32(dout),
                             .q = tensor_f32(kernel_in(call, 1)),
                             .k = tensor_f32(kernel_in(call, 2)),
                             .v = tensor_f32(kernel_in(call, 3)),
                             .w = (float *)tensor_f32(weights),
                             .dq = tensor_f32_mut(grads[0]),
                             .dk = tensor_f32_mut(grads[1]),
                             .dv = tensor_f32_mut(grads[2])};
    return each_head(call, &all, head_back, err);
}

const struct kernel kernel_attention_cpu = {
    .op = "_Attention", .device = CPU, .dtypes = BIT(F32), .run = attention_run};
const struct kernel kernel_attention_grad_cpu = {
    .op = "_AttentionGrad", .device = CPU, .dtypes = BIT(F32), .run = attention_grad_run};
