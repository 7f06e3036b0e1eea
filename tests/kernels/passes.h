/*
 * passes.h - for tests of the optimiser's passes: graphs made op by op, and whether they give
 * the same with each pass off.
 */
#pragma once

#include <math.h>

#include "base/alloc.h"
#include "base/str.h"
#include "kernels/list.h"
#include "runtime/builder.h"
#include "runtime/optimise.h"
#include "runtime/session.h"
#include "runtime/tensor.h"
#include "tests/unit/test.h"

static struct error err;
static struct graph *graph;
static struct builder b;
static uint64_t seed;

static inline void begin(void)
{
    static bool added;
    if (!added)
        kernels_add(false);
    added = true;
    graph = graph_new();
    b = (struct builder){.graph = graph, .scope = "", .err = &err};
}

/* xorshift: the same numbers in each run. */
static inline uint64_t next(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static inline float number(void)
{
    return (float)(next() % 2000) / 1000.0f - 0.9995f;
}

static inline void fill(struct tensor *tensor, const struct shape *shape)
{
    CHECK_OK(tensor_init(tensor, F32, shape, &err), &err);
    for (int64_t i = 0; i < tensor->count; i++)
        tensor_f32_mut(tensor)[i] = number();
}

static inline struct edge placeholder(const char *name, const struct shape *shape)
{
    return builder_add(&b, "Placeholder", name, NO_INPUTS,
                       ATTRS(attr_type("dtype", F32), attr_shape("shape", shape)));
}

static inline struct edge constant(const char *name, const struct shape *shape)
{
    struct tensor value;
    fill(&value, shape);
    struct edge edge = builder_const(&b, name, &value);
    tensor_release(&value);
    return edge;
}

static inline struct edge unary(const char *op, struct edge x)
{
    return builder_add(&b, op, op, INPUTS(x), NO_ATTRS);
}

static inline struct edge binary(const char *op, struct edge x, struct edge y)
{
    return builder_add(&b, op, op, INPUTS(x, y), NO_ATTRS);
}

/* --- running --- */

enum { FETCHES_MAX = 16, ALL_OFF = 0xffff };

struct what {
    struct session_run run;
    const char *first; /* a target that is run once before, or NULL */
    int runs;
    float tolerance; /* 0: to the bit */
    uint32_t never;  /* passes that are off throughout */
    bool by_threads; /* the bits may depend on the number of threads */
};

/* How many nodes of that op the plan has, "" for all. */
static inline int count_op(struct session *session, const struct session_run *run,
                           const char *op)
{
    struct callable *callable = session_prepare(session, run, &err);
    CHECK(callable);
    struct str json = {0};
    session_explain_placement(session, callable, &json);
    char *key = alloc_printf("\"op\":\"%s%s", op, *op ? "\"" : "");
    int count = 0;
    for (const char *at = str_text(&json); (at = strstr(at, key)); at++)
        count++;
    free(key);
    str_release(&json);
    return count;
}

static inline struct session *open_session(uint32_t passes_off, int threads)
{
    const struct session_options options = {.threads = threads, .passes_off = passes_off};
    struct session *session = session_new(&options, &err);
    CHECK(session);
    if (!builder_ok(&b))
        CHECK_STOP("%s", err.text);
    CHECK_OK(session_extend_graph(session, graph, &err), &err);
    return session;
}

static inline void run_with(const struct what *what, uint32_t passes_off, int threads,
                            struct tensor *results)
{
    struct session *session = open_session(passes_off | what->never, threads);
    if (what->first) {
        const struct session_run first = {.targets = &what->first, .targets_count = 1};
        CHECK_OK(session_run(session, &first, NULL, &err), &err);
    }
    for (int i = 0; i < what->runs; i++) {
        for (int k = 0; i > 0 && k < what->run.fetches_count; k++)
            tensor_release(&results[k]);
        CHECK_OK(session_run(session, &what->run, results, &err), &err);
    }
    session_free(session);
}

static inline void compare(const struct what *what, const struct tensor *want,
                           const struct tensor *got, const char *without)
{
    for (int i = 0; i < what->run.fetches_count; i++) {
        if (!what->tolerance && !tensor_equal(&want[i], &got[i]))
            CHECK_STOP("%s differs without %s", what->run.fetches[i], without);
        CHECK(shape_equal(&want[i].shape, &got[i].shape));
        for (int64_t e = 0; what->tolerance && e < want[i].count; e++)
            CHECK(fabsf(tensor_f32(&want[i])[e] - tensor_f32(&got[i])[e]) <= what->tolerance);
    }
}

/* All passes, and all but one of [from,to), give what none gives, at one and two threads. */
static inline void check_same_without(const struct what *what, int from, int to)
{
    struct tensor plain[FETCHES_MAX] = {0};
    for (int threads = 1; threads <= 2; threads++) {
        if (threads == 1 || what->by_threads)
            run_with(what, ALL_OFF, threads, plain);
        for (int pass = from - 1; pass < to; pass++) {
            struct tensor got[FETCHES_MAX] = {0};
            bool all = pass < from;
            run_with(what, all ? 0 : OPTIMISE_BIT(pass), threads, got);
            compare(what, plain, got, all ? "any" : optimise_name(pass));
            for (int i = 0; i < what->run.fetches_count; i++)
                tensor_release(&got[i]);
        }
        for (int i = 0; i < what->run.fetches_count && (threads == 2 || what->by_threads); i++)
            tensor_release(&plain[i]);
    }
}

static inline void check_same(const struct what *what)
{
    check_same_without(what, 0, OPTIMISE_PASSES);
}

/* With the pass there are `with` nodes of that op, without it `without`. */
static inline void check_count(const struct what *what, int pass, const char *op, int with,
                               int without)
{
    struct session *on = open_session(0, 1), *off = open_session(OPTIMISE_BIT(pass), 1);
    CHECK_INT(count_op(on, &what->run, op), with);
    CHECK_INT(count_op(off, &what->run, op), without);
    session_free(on);
    session_free(off);
}
