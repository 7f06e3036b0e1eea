/*
 * checkpoint.c - saving and restoring 800 MB of variables with SaveV2 and RestoreV2, in memory:
 * what TensorFlow's Saver does, in one step each.
 */

#include "tests/bench/executor/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "runtime/builder.h"
#include "runtime/session.h"
#include "runtime/tensor.h"

enum { VARIABLES = 50, FLOATS = 4000000, ROUNDS = 5 };

static struct error err;

static void stop(const char *what)
{
    fprintf(stderr, "checkpoint: %s: %s\n", what, err.text);
    exit(1);
}

/* A constant vector of strings: names ("v%d") or as many empty slices. */
static struct edge strings(struct builder *b, const char *name, bool names)
{
    struct tensor value;
    if (!tensor_init(&value, STRING, &SHAPE(VARIABLES), &err))
        stop("names");
    for (int i = 0; i < VARIABLES; i++) {
        char text[16];
        int size = names ? snprintf(text, sizeof(text), "v%d", i) : 0;
        tensor_set_string(&value, i, text, (size_t)size);
    }
    struct edge edge = builder_const(b, name, &value);
    tensor_release(&value);
    return edge;
}

static void make(struct graph *graph, const char *prefix)
{
    struct builder b = {.graph = graph, .scope = "", .err = &err};
    const struct shape shape = SHAPE(FLOATS);
    struct edge save[3 + VARIABLES] = {builder_text(&b, "prefix", prefix),
                                       strings(&b, "names", true),
                                       strings(&b, "slices", false)};
    int types[VARIABLES];
    for (int i = 0; i < VARIABLES; i++)
        types[i] = F32;
    const struct attr dtypes = attr_type_list("dtypes", types, VARIABLES);
    struct edge restored = builder_add(&b, "RestoreV2", "restore", save, 3, &dtypes, 1);
    struct node *inits[VARIABLES], *loads[VARIABLES];
    const int64_t dims[] = {FLOATS};
    struct edge size = builder_ints(&b, "size", I32, dims, 1);
    for (int i = 0; i < VARIABLES; i++) {
        struct edge v =
            builder_add(&b, "VariableV2", "v", NO_INPUTS,
                        ATTRS(attr_type("dtype", F32), attr_shape("shape", &shape)));
        struct edge random =
            builder_add(&b, "RandomUniform", "random", INPUTS(size),
                        ATTRS(attr_type("dtype", F32), attr_int("seed", 1 + i)));
        inits[i] = builder_add(&b, "Assign", "init", INPUTS(v, random), NO_ATTRS).from;
        loads[i] =
            builder_add(&b, "Assign", "load", INPUTS(v, builder_output(restored, i)), NO_ATTRS)
                .from;
        save[3 + i] = v;
    }
    builder_group(&b, "init_all", inits, VARIABLES);
    builder_group(&b, "load_all", loads, VARIABLES);
    builder_add(&b, "SaveV2", "save", save, 3 + VARIABLES, &dtypes, 1);
    if (!builder_ok(&b))
        stop("graph");
}

static double seconds(struct session *session, const char *target)
{
    const struct session_run run = {.targets = &target, .targets_count = 1};
    uint64_t start = clock_monotonic_ns();
    if (!session_run(session, &run, NULL, &err))
        stop(target);
    return (double)(clock_monotonic_ns() - start) / 1e9;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

void checkpoint_bench(void)
{
    char folder[] = "/dev/shm/trainyard-bench-XXXXXX", prefix[64], path[96];
    if (!mkdtemp(folder)) {
        printf("{\"what\":\"checkpoint 800 MB\",\"skipped\":\"no folder in memory\"}\n");
        return;
    }
    snprintf(prefix, sizeof(prefix), "%s/m", folder);
    struct graph *graph = graph_new();
    make(graph, prefix);
    struct session *session = session_new(NULL, &err);
    if (!session || !session_extend_graph(session, graph, &err))
        stop("session");
    seconds(session, "init_all");
    double save[ROUNDS], load[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        save[i] = seconds(session, "save");
        load[i] = seconds(session, "load_all");
    }
    qsort(save, ROUNDS, sizeof(*save), compare);
    qsort(load, ROUNDS, sizeof(*load), compare);
    double bytes = 4.0 * VARIABLES * FLOATS;
    printf("{\"what\":\"checkpoint 800 MB\",\"on\":\"memory\",\"save_GBps\":%.3f,"
           "\"restore_GBps\":%.3f}\n",
           bytes / save[ROUNDS / 2] / 1e9, bytes / load[ROUNDS / 2] / 1e9);
    fflush(stdout);
    session_free(session);
    graph_free(graph);
    static const char *const files[] = {"index", "data-00000-of-00001"};
    for (int i = 0; i < ARRAY_LEN(files); i++) {
        snprintf(path, sizeof(path), "%s.%s", prefix, files[i]);
        unlink(path);
    }
    rmdir(folder);
}
