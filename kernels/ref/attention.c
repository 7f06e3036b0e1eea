/* attention.c - _Attention and its gradient in plain C, one query at a time. */

#include "kernels/ref/attention.h"

#include <math.h>

#include "kernels/ref/doubles.h"
#include "kernels/ref/numbers.h"

bool kernel_attention_read(struct kernel_call *call, int first, struct kernel_attention *a,
                           struct error *err)
{
    const struct shape *q = &kernel_in(call, first)->shape;
    const struct shape *k = &kernel_in(call, first + 1)->shape;
    const struct shape *v = &kernel_in(call, first + 2)->shape;
    char q_text[SHAPE_TEXT_BYTES], k_text[SHAPE_TEXT_BYTES], v_text[SHAPE_TEXT_BYTES];
    bool fits = q->rank == 4 && k->rank == 4 && v->rank == 4;
    for (int d = 0; fits && d < 4; d++)
        fits = (d == 1 || k->dims[d] == q->dims[d]) && (d == 3 || v->dims[d] == k->dims[d]);
    if (!fits)
        return fail(err, INVALID, "query %s, key %s and value %s do not fit each other",
                    shape_text(q, q_text, sizeof(q_text)),
                    shape_text(k, k_text, sizeof(k_text)),
                    shape_text(v, v_text, sizeof(v_text)));
    *a = (struct kernel_attention){
        .batch = q->dims[0],
        .heads = q->dims[2],
        .queries = q->dims[1],
        .keys = k->dims[1],
        .size = q->dims[3],
        .value_size = v->dims[3],
        .scale = node_attr_float(call->node, "scale", 1),
        .causal = node_attr_bool(call->node, "causal", false),
    };
    return true;
}

/* Inputs and outputs as doubles. */
struct arrays {
    double *q, *k, *v, *w;       /* of the forward pass */
    double *dout, *dq, *dk, *dv; /* NULL forward */
    double *out, *dw;
};

/* Element 0 of batch b, step t, head h in an array (batch, steps, heads, size). */
static int64_t at(const struct kernel_attention *a, int64_t steps, int64_t size, int64_t b,
                  int64_t t, int64_t h)
{
    return ((b * steps + t) * a->heads + h) * size;
}

static void look(const struct kernel_attention *a, const struct arrays *s, int64_t b, int64_t h,
                 int64_t i)
{
    const double *q = s->q + at(a, a->queries, a->size, b, i, h);
    double *out = s->out + at(a, a->queries, a->value_size, b, i, h);
    double *w = s->w + ((b * a->heads + h) * a->queries + i) * a->keys;
    int64_t seen = kernel_attention_seen(a, i);
    double most = -INFINITY, total = 0;
    for (int64_t j = 0; j < seen; j++) {
        const double *k = s->k + at(a, a->keys, a->size, b, j, h);
        for (int64_t d = 0; d < a->size; d++)
            w[j] += a->scale * q[d] * k[d];
        most = w[j] > most ? w[j] : most;
    }
    for (int64_t j = 0; j < seen; j++)
        total += w[j] = exp(w[j] - most);
    for (int64_t j = 0; j < seen; j++) {
        const double *v = s->v + at(a, a->keys, a->value_size, b, j, h);
        w[j] /= total;
        for (int64_t d = 0; d < a->value_size; d++)
            out[d] += w[j] * v[d];
    }
}

static void look_back(const struct kernel_attention *a, const struct arrays *s, int64_t b,
                      int64_t h, int64_t i)
{
    int64_t query = at(a, a->queries, a->size, b, i, h), seen = kernel_attention_seen(a, i);
    const double *dout = s->dout + at(a, a->queries, a->value_size, b, i, h);
    const double *w = s->w + ((b * a->heads + h) * a->queries + i) * a->keys;
    double mean = 0;
    for (int64_t j = 0; j < seen; j++) {
        int64_t value = at(a, a->keys, a->value_size, b, j, h);
        s->dw[j] = 0;
        for (int64_t d = 0; d < a->value_size; d++) {
            s->dw[j] += dout[d] * s->v[value + d];
            s->dv[value + d] += w[j] * dout[d];
        }
        mean += w[j] * s->dw[j];
    }
    for (int64_t j = 0; j < seen; j++) {
        int64_t key = at(a, a->keys, a->size, b, j, h);
        double dx = w[j] * (s->dw[j] - mean) * a->scale;
        for (int64_t d = 0; d < a->size; d++) {
            s->dq[query + d] += dx * s->k[key + d];
            s->dk[key + d] += dx * s->q[query + d];
        }
    }
}

static void each_query(const struct kernel_attention *a, const struct arrays *s,
                       void (*work)(const struct kernel_attention *a, const struct arrays *s,
                                    int64_t b, int64_t h, int64_t i))
{
    for (int64_t b = 0; b < a->batch; b++)
        for (int64_t h = 0; h < a->heads; h++)
            for (int64_t i = 0; i < a->queries; i++)
                work(a, s, b, h, i);
}

static bool attention_run(struct kernel_call *call, struct error *err)
{
    struct kernel_attention a;
    struct arrays s = {0};
    if (!kernel_attention_read(call, 0, &a, err))
        return false;
    struct shape out = SHAPE(a.batch, a.queries, a.heads, a.value_size);
    struct shape weights = SHAPE(a.batch, a.heads, a.queries, a.keys);
    bool ok = (s.q = kernel_doubles_load(call, 0, err)) &&
              (s.k = kernel_doubles_load(call, 1, err)) &&
              (s.v = kernel_doubles_load(call, 2, err)) &&
              (s.out = kernel_doubles_zeros(call, shape_count(&out), err)) &&
              (s.w = kernel_doubles_zeros(call, shape_count(&weights), err));
    if (!ok)
        return false;
    each_query(&a, &s, look);
    return kernel_doubles_store(call, 0, &out, s.out, err) &&
           kernel_doubles_store(call, 1, &weights, s.w, err);
}

static bool attention_grad_run(struct kernel_call *call, struct error *err)
{
    struct kernel_attention a;
    struct arrays s = {0};
    if (!kernel_attention_read(call, 1, &a, err))
        return false;
    struct shape out = SHAPE(a.batch, a.queries, a.heads, a.value_size);
    struct shape weights = SHAPE(a.batch, a.heads, a.queries, a.keys);
    if (!shape_equal(&kernel_in(call, 0)->shape, &out) ||
        !shape_equal(&kernel_in(call, 4)->shape, &weights))
        return fail(err, INVALID, "the gradient or the weights do not fit query and key");
    bool ok = (s.dout = kernel_doubles_load(call, 0, err)) &&
              (s.q = kernel_doubles_load(call, 1, err)) &&
              (s.k = kernel_doubles_load(call, 2, err)) &&
              (s.v = kernel_doubles_load(call, 3, err)) &&
              (s.w = kernel_doubles_load(call, 4, err)) &&
              (s.dq = kernel_doubles_zeros(call, kernel_in(call, 1)->count, err)) &&
              (s.dk = kernel_doubles_zeros(call, kernel_in(call, 2)->count, err)) &&
              (s.dv = kernel_doubles_zeros(call, kernel_in(call, 3)->count, err)) &&
              (s.dw = kernel_doubles_zeros(call, a.keys, err));
    if (!ok)
        return false;
    each_query(&a, &s, look_back);
    return kernel_doubles_store(call, 0, &kernel_in(call, 1)->shape, s.dq, err) &&
           kernel_doubles_store(call, 1, &kernel_in(call, 2)->shape, s.dk, err) &&
           kernel_doubles_store(call, 2, &kernel_in(call, 3)->shape, s.dv, err);
}

const struct kernel kernel_attention_ref = {
    .op = "_Attention", .device = CPU, .dtypes = DTYPES_FLOAT, .run = attention_run};
const struct kernel kernel_attention_grad_ref = {
    .op = "_AttentionGrad", .device = CPU, .dtypes = DTYPES_FLOAT, .run = attention_grad_run};
