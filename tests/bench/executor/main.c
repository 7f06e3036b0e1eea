/*
 * main.c - what the executor costs beside the kernels: one JSON object a line.
 *
 * The graphs are those that TensorFlow is measured with: chains and groups of no-ops and scalar
 * additions, an empty step, an addition with one feed and one fetch, a graph of 100,000 nodes
 * from its GraphDef to the first result, a million nodes loaded, and a checkpoint; and while
 * loops.  Medians and 10th percentiles of many runs.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "kernels/list.h"
#include "runtime/builder.h"
#include "runtime/session.h"
#include "tests/bench/executor/checkpoint.h"
#include "tests/bench/executor/loop.h"
#include "tests/bench/executor/plain.h"

static struct error err;

static void stop(const char *what)
{
    fprintf(stderr, "%s: %s: %s\n", what, error_code_name(err.code), err.text);
    exit(1);
}

/* --- graphs --- */

struct model {
    struct graph *graph;
    struct builder b;
    struct edge p; /* a placeholder, "p" */
};

static void begin(struct model *model)
{
    model->graph = graph_new();
    model->b = (struct builder){.graph = model->graph, .scope = "", .err = &err};
    model->p = builder_add(&model->b, "Placeholder", "p", NO_INPUTS,
                           ATTRS(attr_type("dtype", F32), attr_shape("shape", &SHAPE_SCALAR)));
}

static struct node *no_op(struct model *model)
{
    return builder_add(&model->b, "NoOp", "no_op", NO_INPUTS, NO_ATTRS).from;
}

static struct edge add(struct model *model, struct edge x, struct edge y)
{
    return builder_add(&model->b, "AddV2", "add", INPUTS(x, y), NO_ATTRS);
}

/* The last node of `count` no-ops or additions, one after the other or side by side. */
static struct node *make_nodes(struct model *model, const char *shape, int count)
{
    bool chain = !strncmp(shape, "chain", 5);
    bool adds = strstr(shape, "add");
    struct node **nodes = alloc_array((size_t)count, sizeof(struct node *));
    struct edge at = model->p;
    for (int i = 0; i < count; i++) {
        if (adds) {
            at = add(model, chain ? at : model->p, model->p);
            nodes[i] = at.from;
        } else {
            nodes[i] = no_op(model);
            if (chain && i)
                graph_add_control(model->graph, nodes[i], nodes[i - 1]);
        }
    }
    struct node *last =
        chain ? nodes[count - 1] : builder_group(&model->b, "all", nodes, count);
    free(nodes);
    if (!builder_ok(&model->b))
        stop("building");
    return last;
}

/* --- measuring --- */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

struct result {
    double median_us;
    double p10_us;
};

/* Calls for about half a second, in groups long enough for the clock. */
static struct result measure(struct session *session, const struct session_run *run)
{
    enum { SAMPLES = 101 };
    double samples[SAMPLES];
    struct tensor fetched[2];
    struct callable *callable = session_prepare(session, run, &err);
    if (!callable)
        stop("preparing");
    int group = 1;
    for (int s = -3; s < SAMPLES; s++) {
        uint64_t start = clock_monotonic_ns();
        for (int i = 0; i < group; i++) {
            if (!session_call(session, callable, run->feed_values, fetched, NULL, &err))
                stop("running");
            for (int k = 0; k < run->fetches_count; k++)
                tensor_release(&fetched[k]);
        }
        double ns = (double)(clock_monotonic_ns() - start);
        if (s < 0)
            group = ns / group > 5e6 ? 1 : (int)(5e6 / (ns / group)) + 1;
        else
            samples[s] = ns / 1000 / group;
    }
    qsort(samples, SAMPLES, sizeof(*samples), compare);
    return (struct result){samples[SAMPLES / 2], samples[SAMPLES / 10]};
}

static struct session *open_session(const struct graph *graph, bool optimise)
{
    struct session *session =
        session_new(&(struct session_options){.threads = 1, .no_optimise = !optimise}, &err);
    if (!session || !session_extend_graph(session, graph, &err))
        stop("session");
    return session;
}

/* --- the benches --- */

static void bench_nodes(const char *shape, int count, const struct tensor *one)
{
    struct model model;
    begin(&model);
    const char *target = make_nodes(&model, shape, count)->name;
    struct session *session = open_session(model.graph, false);
    const struct session_run run = {.feeds = (const char *const[]){"p"},
                                    .feed_values = one,
                                    .feeds_count = 1,
                                    .targets = &target,
                                    .targets_count = 1};
    struct result result = measure(session, &run);
    printf("{\"what\":\"executor\",\"shape\":\"%s\",\"nodes\":%d,\"us_per_node\":%.5f,"
           "\"p10\":%.5f}\n",
           shape, count, result.median_us / count, result.p10_us / count);
    fflush(stdout);
    session_free(session);
    graph_free(model.graph);
}

static void bench_step(const char *what, bool fetch, const struct tensor *one)
{
    struct model model;
    begin(&model);
    const char *name = fetch ? add(&model, model.p, model.p).from->name : no_op(&model)->name;
    struct session *session = open_session(model.graph, true);
    const struct session_run run = {.feeds = (const char *const[]){"p"},
                                    .feed_values = one,
                                    .feeds_count = fetch ? 1 : 0,
                                    .fetches = &name,
                                    .fetches_count = fetch ? 1 : 0,
                                    .targets = &name,
                                    .targets_count = fetch ? 0 : 1};
    struct result result = measure(session, &run);
    printf("{\"what\":\"step\",\"call\":\"%s\",\"us\":%.4f,\"p10\":%.4f}\n", what,
           result.median_us, result.p10_us);
    fflush(stdout);
    session_free(session);
    graph_free(model.graph);
}

/* Each hundred nodes: 99 additions and their AddN. */
static void make_large(struct str *graph_def, const char **fetch)
{
    enum { NODES = 100000 };
    struct model model;
    begin(&model);
    struct edge at = model.p;
    struct edge terms[99];
    for (int i = 0; i < NODES / 100; i++) {
        for (int k = 0; k < ARRAY_LEN(terms); k++)
            terms[k] = add(&model, at, model.p);
        at = builder_add(&model.b, "AddN", "AddN", terms, ARRAY_LEN(terms), NO_ATTRS);
    }
    if (!builder_ok(&model.b))
        stop("building");
    *fetch = alloc_text(at.from->name);
    graph_export(model.graph, false, 0, graph_def);
    graph_free(model.graph);
}

static void bench_large(bool optimise, const struct tensor *one)
{
    struct str graph_def = {0};
    const char *fetch;
    make_large(&graph_def, &fetch);
    uint64_t start = clock_monotonic_ns();
    struct session *session =
        session_new(&(struct session_options){.threads = 1, .no_optimise = !optimise}, &err);
    if (!session || !session_extend(session, graph_def.data, graph_def.size, &err))
        stop("import");
    uint64_t imported = clock_monotonic_ns();
    const struct session_run run = {.feeds = (const char *const[]){"p"},
                                    .feed_values = one,
                                    .feeds_count = 1,
                                    .fetches = &fetch,
                                    .fetches_count = 1};
    struct tensor fetched;
    if (!session_run(session, &run, &fetched, &err))
        stop("first run");
    uint64_t ran = clock_monotonic_ns();
    tensor_release(&fetched);
    struct result next = measure(session, &run);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf(
        "{\"what\":\"graph of 100k nodes\",\"optimise\":%s,\"graph_def_mb\":%.2f,"
        "\"import_s\":%.4f,\"first_result_s\":%.4f,\"next_run_s\":%.5f,\"peak_rss_mb\":%ld}\n",
        optimise ? "true" : "false", (double)graph_def.size / 1e6,
        (double)(imported - start) / 1e9, (double)(ran - start) / 1e9, next.median_us / 1e6,
        usage.ru_maxrss / 1024);
    fflush(stdout);
    session_free(session);
    str_release(&graph_def);
    free((char *)fetch);
}

/* A million nodes into a session, from their GraphDef. */
static void bench_load(void)
{
    struct model model;
    struct str graph_def = {0};
    begin(&model);
    make_nodes(&model, "independent add", 1000000);
    graph_export(model.graph, false, 0, &graph_def);
    graph_free(model.graph);
    uint64_t start = clock_monotonic_ns();
    struct session *session = session_new(&(struct session_options){.threads = 1}, &err);
    if (!session || !session_extend(session, graph_def.data, graph_def.size, &err))
        stop("import");
    printf("{\"what\":\"load of 1M nodes\",\"graph_def_mb\":%.2f,\"import_s\":%.4f}\n",
           (double)graph_def.size / 1e6, (double)(clock_monotonic_ns() - start) / 1e9);
    fflush(stdout);
    session_free(session);
    str_release(&graph_def);
}

/* Arguments name the benches to run: step, nodes, loop, large, load, checkpoint; none: all. */
static bool is_wanted(int argc, char **argv, const char *name)
{
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], name))
            return true;
    return argc == 1;
}

int main(int argc, char **argv)
{
    kernels_add(false);
    struct tensor one;
    if (!tensor_init_scalar(&one, F32, 1, &err))
        stop("feed");
    if (is_wanted(argc, argv, "step")) {
        bench_step("no_op", false, &one);
        bench_step("add, 1 feed, 1 fetch", true, &one);
    }
    const char *shapes[] = {"chain of no_op", "independent no_op", "chain of add",
                            "independent add"};
    for (int i = 0; is_wanted(argc, argv, "nodes") && i < ARRAY_LEN(shapes); i++) {
        bench_nodes(shapes[i], 1000, &one);
        bench_nodes(shapes[i], 10000, &one);
    }
    if (is_wanted(argc, argv, "loop"))
        loop_bench();
    if (is_wanted(argc, argv, "large")) {
        bench_large(true, &one);
        bench_large(false, &one);
    }
    if (is_wanted(argc, argv, "load"))
        bench_load();
    if (is_wanted(argc, argv, "checkpoint")) {
        checkpoint_bench();
        plain_bench();
    }
    tensor_release(&one);
    return 0;
}
