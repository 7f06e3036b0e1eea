/*
 * losses.h - the losses of a benchmark's case, step by step, against those that
 * tests/bench/losses.py recorded, whatever the threads and the optimiser.
 */
#pragma once

#include <math.h>

#include "kernels/list.h"
#include "runtime/session.h"
#include "tests/bench/cases.c"
#include "tests/bench/making.c"
#include "tests/bench/making_mnist.c"
#include "tests/bench/making_optimizer.c"
#include "tests/bench/making_resnet.c"
#include "tests/bench/models.c"
#include "tests/unit/test.h"

enum { STEPS_MAX = 20 };

static inline int read_recorded(const char *name, double *losses)
{
    char path[128];
    snprintf(path, sizeof(path), "tests/bench/losses/%s.txt", name);
    FILE *file = fopen(path, "r");
    if (!file)
        CHECK_STOP("cannot open %s (run from the top of the tree)", path);
    int count = 0;
    while (count < STEPS_MAX && fscanf(file, "%lf", &losses[count]) == 1)
        count++;
    fclose(file);
    return count;
}

/* Losses of `steps` steps. */
static inline void train(const char *name, const struct session_options *options, int steps,
                         double *losses)
{
    static bool added;
    if (!added) {
        kernels_add(false);
        added = true;
    }
    struct error err;
    const struct bench_case *c = bench_case_find(name);
    struct session *session = session_new(options, &err);
    struct graph *graph = bench_case_build(c, &err);
    struct tensor feeds[2];
    CHECK_OK(graph, &err);
    CHECK_OK(session_extend_graph(session, graph, &err), &err);
    CHECK_OK(bench_case_data(c, &feeds[0], &feeds[1], &err), &err);
    struct session_run init = {.targets = (const char *const[]){BENCH_INIT},
                               .targets_count = 1};
    CHECK_OK(session_run(session, &init, NULL, &err), &err);
    struct session_run run = {.feeds = (const char *const[]){BENCH_IMAGES, BENCH_LABELS},
                              .feed_values = feeds,
                              .feeds_count = 2,
                              .fetches = (const char *const[]){BENCH_LOSS},
                              .fetches_count = 1,
                              .targets = (const char *const[]){BENCH_TRAIN},
                              .targets_count = 1};
    struct callable *step = session_prepare(session, &run, &err);
    CHECK_OK(step, &err);
    for (int i = 0; i < steps; i++) {
        struct tensor loss;
        CHECK_OK(session_call(session, step, feeds, &loss, NULL, &err), &err);
        losses[i] = tensor_number(&loss, 0);
        tensor_release(&loss);
    }
    tensor_release(&feeds[0]);
    tensor_release(&feeds[1]);
    graph_free(graph);
    session_free(session);
}

/*
 * The first `exact` losses differ by rounding alone; later ones by what training makes of it:
 * Adam divides by the size of a gradient, so where that is next to nothing its rounding
 * decides; and a step of 0.1 through 19 layers multiplies a difference by hundreds.
 */
static inline void check_case(const char *name, int steps, int exact, double loose)
{
    double recorded[STEPS_MAX], losses[STEPS_MAX], again[STEPS_MAX];
    CHECK_INT(read_recorded(name, recorded), STEPS_MAX);
    for (int threads = 1; threads <= 2; threads++) {
        const struct session_options options = {.threads = threads};
        train(name, &options, steps, losses);
        for (int i = 0; i < steps; i++) {
            double tolerance = (i < exact ? 1e-5 : loose) * recorded[i];
            if (fabs(losses[i] - recorded[i]) > tolerance)
                CHECK_STOP("%s, %d threads, step %d: loss %.9g, TensorFlow has %.9g", name,
                           threads, i, losses[i], recorded[i]);
        }
        train(name, &options, exact, again);
        CHECK(!memcmp(losses, again, (size_t)exact * sizeof(losses[0])));
    }
    const struct session_options plain = {.threads = 1, .no_optimise = true};
    train(name, &plain, exact, again);
    for (int i = 0; i < exact; i++)
        CHECK(fabs(losses[i] - again[i]) <= 1e-5 * again[i]);
}
