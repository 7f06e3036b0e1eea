/*
 * sample.h - one op computed by its CPU kernel and by its reference, at one and two threads.
 *
 * The tables hold copies of the CPU kernels that take only nodes named FAST, so that one
 * process computes a node both ways.
 */
#pragma once

#include <math.h>

#include "kernels/list.h"
#include "runtime/builder.h"
#include "runtime/op.h"
#include "runtime/session.h"
#include "tests/unit/test.h"

enum { INPUTS_MAX = 18, OUTPUTS_MAX = 8, KERNELS_MAX = 512 };

#define FAST "fast"
#define PLAIN "plain"

static inline bool takes_fast(const struct node *node)
{
    if (strcmp(node->name, FAST))
        return false;
    for (int i = 0; kernels_cpu[i]; i++) {
        if (!strcmp(kernels_cpu[i]->op, node->op->name))
            return !kernels_cpu[i]->accepts || kernels_cpu[i]->accepts(node);
    }
    return false;
}

static inline void add_tables(void)
{
    static struct kernel copies[KERNELS_MAX];
    static const struct kernel *table[KERNELS_MAX + 1];
    if (table[0])
        return;
    for (int i = 0; kernels_cpu[i]; i++) {
        assert(i < KERNELS_MAX);
        copies[i] = *kernels_cpu[i];
        copies[i].accepts = takes_fast;
        table[i] = &copies[i];
    }
    kernel_add_table(table);
    kernels_add(true);
}

/* --- random values --- */

static uint64_t seed = 1;

static inline uint32_t next_number(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33);
}

static inline int64_t pick(int64_t from, int64_t to)
{
    return from + next_number() % (to - from + 1);
}

static inline struct tensor make(enum dtype dtype, struct shape shape)
{
    struct tensor t;
    struct error err;
    CHECK_OK(tensor_init(&t, dtype, &shape, &err), &err);
    return t;
}

/* From -1 to 1. */
static inline struct tensor random_tensor(struct shape shape)
{
    struct tensor t = make(F32, shape);
    for (int64_t i = 0; i < t.count; i++)
        tensor_f32_mut(&t)[i] = (float)next_number() / (float)(1u << 30) - 1;
    return t;
}

/* Small whole numbers: sums are exact and maxima have ties. */
static inline struct tensor whole_tensor(struct shape shape)
{
    struct tensor t = make(F32, shape);
    for (int64_t i = 0; i < t.count; i++)
        tensor_f32_mut(&t)[i] = (float)pick(-2, 2);
    return t;
}

static inline struct tensor ints(const int64_t *values, int count)
{
    struct tensor t = make(I32, SHAPE(count));
    for (int i = 0; i < count; i++)
        tensor_set_number(&t, i, (double)values[i]);
    return t;
}

/* --- one op, by the kernel and by its reference --- */

struct sample {
    const char *op;
    struct tensor inputs[INPUTS_MAX];
    int inputs_count;
    const struct attr *attrs;
    int attrs_count;
    int outputs_count;
    double tolerance; /* of the largest magnitude in the output */
    int precision;    /* of the CPU kernel; the reference knows none */
};

static inline void check_close(const struct sample *s, const struct tensor *is,
                               const struct tensor *wanted)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    if (!shape_equal(&is->shape, &wanted->shape))
        CHECK_STOP("%s: shape %s in place of %s", s->op, shape_text(&is->shape, a, sizeof(a)),
                   shape_text(&wanted->shape, b, sizeof(b)));
    double scale = 1e-30;
    for (int64_t i = 0; i < is->count; i++) {
        double y = fabs(tensor_number(wanted, i));
        scale = isfinite(y) && y > scale ? y : scale;
    }
    for (int64_t i = 0; i < is->count; i++) {
        double x = tensor_number(is, i), y = tensor_number(wanted, i);
        if ((isnan(x) && isnan(y)) || x == y || fabs(x - y) <= s->tolerance * scale)
            continue;
        CHECK_STOP("%s: element %lld of %s is %.9g, the reference has %.9g", s->op,
                   (long long)i, shape_text(&is->shape, a, sizeof(a)), x, y);
    }
}

static inline void run_session(const struct sample *s, int threads, const char *name,
                               struct tensor *out)
{
    struct error err;
    struct session_options options = {
        .threads = threads, .precision = s->precision, .no_optimise = true};
    struct session *session = session_new(&options, &err);
    struct graph *graph = graph_new();
    struct builder b = {.graph = graph, .scope = "", .err = &err};
    struct edge inputs[INPUTS_MAX];
    char names[INPUTS_MAX][16], outputs[OUTPUTS_MAX][24];
    const char *feeds[INPUTS_MAX], *fetches[OUTPUTS_MAX];
    for (int i = 0; i < s->inputs_count; i++) {
        snprintf(names[i], sizeof(names[i]), "x%d", i);
        feeds[i] = names[i];
        inputs[i] = builder_add(&b, "Placeholder", names[i], NO_INPUTS,
                                ATTRS(attr_type("dtype", s->inputs[i].dtype)));
    }
    builder_add(&b, s->op, name, inputs, s->inputs_count, s->attrs, s->attrs_count);
    CHECK_OK(builder_ok(&b), &err);
    CHECK_OK(session_extend_graph(session, graph, &err), &err);
    for (int i = 0; i < s->outputs_count; i++) {
        snprintf(outputs[i], sizeof(outputs[i]), "%s:%d", name, i);
        fetches[i] = outputs[i];
    }
    struct session_run run = {.feeds = feeds,
                              .feed_values = s->inputs,
                              .feeds_count = s->inputs_count,
                              .fetches = fetches,
                              .fetches_count = s->outputs_count};
    CHECK_OK(session_run(session, &run, out, &err), &err);
    graph_free(graph);
    session_free(session);
}

static inline void release_all(struct tensor *tensors, int count)
{
    for (int i = 0; i < count; i++)
        tensor_release(&tensors[i]);
}

/* Compares, and checks that a second run gives the same bits.  Releases the inputs. */
static inline void check_sample(struct sample *s)
{
    add_tables();
    struct tensor wanted[OUTPUTS_MAX], is[OUTPUTS_MAX], again[OUTPUTS_MAX];
    run_session(s, 1, PLAIN, wanted);
    for (int threads = 1; threads <= 2; threads++) {
        run_session(s, threads, FAST, is);
        run_session(s, threads, FAST, again);
        for (int i = 0; i < s->outputs_count; i++) {
            check_close(s, &is[i], &wanted[i]);
            CHECK(tensor_equal(&is[i], &again[i]));
        }
        release_all(is, s->outputs_count);
        release_all(again, s->outputs_count);
    }
    release_all(wanted, s->outputs_count);
    release_all(s->inputs, s->inputs_count);
}
