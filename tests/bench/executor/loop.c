/* loop.c - while loops over scalars: a counter alone, and with ten additions in the body. */

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/error.h"
#include "base/str.h"
#include "runtime/builder.h"
#include "runtime/session.h"
#include "runtime/tensor.h"
#include "tests/bench/executor/loop.h"

enum { ROUNDS = 20 };

static struct error err;

static void stop(const char *what)
{
    fprintf(stderr, "%s: %s: %s\n", what, error_code_name(err.code), err.text);
    exit(1);
}

static struct edge enter(struct builder *b, struct edge x, bool constant)
{
    return builder_add(
        b, "Enter", "enter", INPUTS(x),
        ATTRS(attr_string("frame_name", "loop"), attr_bool("is_constant", constant)));
}

static struct edge call1(struct builder *b, const char *op, struct edge x)
{
    return builder_add(b, op, op, INPUTS(x), NO_ATTRS);
}

static struct edge call2(struct builder *b, const char *op, struct edge x, struct edge y)
{
    return builder_add(b, op, op, INPUTS(x, y), NO_ATTRS);
}

/* for (i = 0; i < n; i++) x += 1, `adds` times; the nodes of one iteration are counted. */
static struct edge build(struct builder *b, int adds, int iterations, int *nodes)
{
    struct edge zero = builder_scalar(b, "zero", F32, 0);
    struct edge one = enter(b, builder_scalar(b, "one", F32, 1), true);
    struct edge limit = enter(b, builder_scalar(b, "n", F32, iterations), true);
    struct edge first = enter(b, zero, false);
    int count = graph_count(b->graph);
    struct edge i = call2(b, "Merge", first, first);
    struct edge x = call2(b, "Merge", first, first);
    struct edge cond = call1(b, "LoopCond", call2(b, "Less", i, limit));
    struct edge split_i = call2(b, "Switch", i, cond);
    struct edge split_x = call2(b, "Switch", x, cond);
    struct edge next_x = builder_output(split_x, 1);
    for (int k = 0; k < adds; k++)
        next_x = call2(b, "AddV2", next_x, one);
    graph_set_input(
        b->graph, i.from, 1,
        call1(b, "NextIteration", call2(b, "AddV2", builder_output(split_i, 1), one)));
    graph_set_input(b->graph, x.from, 1, call1(b, "NextIteration", next_x));
    *nodes = graph_count(b->graph) - count;
    return call1(b, "Exit", split_x);
}

static uint64_t processor_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void bench(int adds, int iterations)
{
    struct graph *graph = graph_new();
    struct builder b = {.graph = graph, .scope = "", .err = &err};
    int nodes;
    const char *fetch = build(&b, adds, iterations, &nodes).from->name;
    struct str bytes = {0};
    graph_export(graph, false, 0, &bytes);
    struct session *session =
        session_new(&(struct session_options){.threads = 1, .no_optimise = true}, &err);
    if (!builder_ok(&b) || !session || !session_extend(session, bytes.data, bytes.size, &err))
        stop("graph");
    const struct session_run run = {.fetches = &fetch, .fetches_count = 1};
    uint64_t ns[ROUNDS];
    for (int i = -2; i < ROUNDS; i++) {
        struct tensor out;
        uint64_t start = processor_ns();
        if (!session_run(session, &run, &out, &err))
            stop("run");
        if (i >= 0)
            ns[i] = processor_ns() - start;
        tensor_release(&out);
    }
    qsort(ns, ROUNDS, sizeof(ns[0]), compare);
    double us = (double)ns[ROUNDS / 2] / 1e3 / iterations;
    printf("{\"what\":\"loop\",\"nodes\":%d,\"us_per_iteration\":%.4f,\"us_per_node\":%.4f}\n",
           nodes, us, us / nodes);
    fflush(stdout);
    session_free(session);
    str_release(&bytes);
    graph_free(graph);
}

void loop_bench(void)
{
    bench(1, 10000);
    bench(10, 10000);
    bench(100, 1000);
}
