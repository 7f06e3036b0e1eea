/*
 * main.c - trains one case for a while and prints a line of JSON.
 *
 *   cases CASE THREADS [SECONDS] [bfloat16]      {"case": "mlp", "ex_per_s": ...}
 *   cases CASE THREADS losses STEPS [bfloat16]   the loss before each step, one a line
 *
 * The step is a callable of a session, as in a training job; the loss is looked at only at the
 * beginning and the end.
 */
#include <sys/resource.h>
#include <time.h>

#include "base/error.h"
#include "kernels/list.h"
#include "runtime/session.h"
#include "tests/bench/cases.h"
#include "tests/bench/peak.h"

enum { SAMPLES_MAX = 4096, WARM_STEPS = 3 };
#define CHUNK_SECONDS 0.03 /* steps are timed in chunks of about this */

struct run {
    const struct bench_case *c;
    int precision;
    struct session *session;
    struct callable *train, *train_and_loss;
    struct tensor feeds[2];
    struct error *err;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static struct callable *prepare(struct run *r, bool loss)
{
    struct session_run run = {.feeds = (const char *const[]){BENCH_IMAGES, BENCH_LABELS},
                              .feed_values = r->feeds,
                              .feeds_count = 2,
                              .fetches = (const char *const[]){BENCH_LOSS},
                              .fetches_count = loss,
                              .targets = (const char *const[]){BENCH_TRAIN},
                              .targets_count = 1};
    return session_prepare(r->session, &run, r->err);
}

static bool open_session(struct run *r, int threads)
{
    kernels_add(false);
    struct session_options options = {.threads = threads, .precision = r->precision};
    r->session = session_new(&options, r->err);
    struct graph *graph = r->session ? bench_case_build(r->c, r->err) : NULL;
    bool ok = graph && session_extend_graph(r->session, graph, r->err) &&
              bench_case_data(r->c, &r->feeds[0], &r->feeds[1], r->err);
    graph_free(graph);
    struct session_run init = {.targets = (const char *const[]){BENCH_INIT},
                               .targets_count = 1};
    ok = ok && session_run(r->session, &init, NULL, r->err);
    if (!ok)
        return false;
    r->train = prepare(r, false);
    r->train_and_loss = r->train ? prepare(r, true) : NULL;
    return r->train_and_loss;
}

static bool step(struct run *r)
{
    return session_call(r->session, r->train, r->feeds, NULL, NULL, r->err);
}

static bool step_with_loss(struct run *r, double *loss)
{
    struct tensor value;
    if (!session_call(r->session, r->train_and_loss, r->feeds, &value, NULL, r->err))
        return false;
    *loss = tensor_number(&value, 0);
    tensor_release(&value);
    return true;
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static bool time_chunk(struct run *r, int steps, double *seconds)
{
    double start = now();
    for (int i = 0; i < steps; i++) {
        if (!step(r))
            return false;
    }
    *seconds = (now() - start) / steps;
    return true;
}

/* Seconds per step: median and tenth percentile of chunks. */
static bool measure(struct run *r, double seconds, double *median, double *best)
{
    static double samples[SAMPLES_MAX];
    double one;
    if (!time_chunk(r, WARM_STEPS, &one))
        return false;
    int warm = (int)(0.2 / one) + 1;
    if (!time_chunk(r, warm, &one))
        return false;
    int steps = (int)(CHUNK_SECONDS / one);
    steps = steps < 1 ? 1 : steps;
    int count = 0;
    double start = now();
    while ((now() - start < seconds || count < 5) && count < SAMPLES_MAX) {
        if (!time_chunk(r, steps, &samples[count++]))
            return false;
    }
    qsort(samples, (size_t)count, sizeof(samples[0]), compare);
    *median = samples[count / 2];
    *best = samples[count / 10];
    return true;
}

static bool report(struct run *r, int threads, double seconds)
{
    double first_loss, last_loss, median, best, start = now();
    if (!step_with_loss(r, &first_loss) || !step(r))
        return false;
    double first = now() - start;
    if (!measure(r, seconds, &median, &best) || !step_with_loss(r, &last_loss))
        return false;
    double gflops = r->c->flop / median * 1e-9;
    double peak = bench_peak(threads, r->precision == BF16);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    int64_t arena_bytes, variable_bytes;
    session_memory(r->session, &arena_bytes, &variable_bytes);
    printf("{\"case\": \"%s\", \"tag\": \"%s\", \"threads\": %d, \"ex_per_s\": %.1f, "
           "\"step_us\": %.2f, \"p10_step_us\": %.2f, \"gflops\": %.2f, \"of_peak\": %.3f, "
           "\"flop_per_step\": %.0f, "
           "\"first_step_s\": %.3f, \"loss0\": %.4f, \"loss_end\": %.4f, \"arena_mb\": %.1f, "
           "\"variables_mb\": %.1f, \"maxrss_mb\": %ld}\n",
           r->c->name, r->precision == BF16 ? "trainyard bf16" : "trainyard", threads,
           (double)r->c->examples / median, median * 1e6, best * 1e6, gflops, gflops / peak,
           r->c->flop, first, first_loss, last_loss, (double)arena_bytes / 1048576,
           (double)variable_bytes / 1048576, usage.ru_maxrss >> 10);
    return true;
}

static bool print_losses(struct run *r, long steps)
{
    for (long i = 0; i < steps; i++) {
        double loss;
        if (!step_with_loss(r, &loss))
            return false;
        printf("%.9g\n", loss);
    }
    return true;
}

int main(int argc, char **argv)
{
    struct error err;
    struct run r = {.err = &err};
    if (argc > 3 && !strcmp(argv[argc - 1], "bfloat16")) {
        r.precision = BF16;
        argc--;
    }
    if (argc < 3 || !(r.c = bench_case_find(argv[1]))) {
        fprintf(stderr,
                "usage: cases CASE THREADS [SECONDS | losses STEPS] [bfloat16]\ncases:");
        for (const struct bench_case *c = bench_cases; c->name; c++)
            fprintf(stderr, " %s", c->name);
        fprintf(stderr, "\n");
        return 2;
    }
    int threads = (int)strtol(argv[2], NULL, 10);
    bool losses = argc > 4 && !strcmp(argv[3], "losses");
    bool ok = open_session(&r, threads) &&
              (losses ? print_losses(&r, strtol(argv[4], NULL, 10))
                      : report(&r, threads, argc > 3 ? strtod(argv[3], NULL) : 2));
    if (!ok)
        fprintf(stderr, "cases: %s: %s\n", error_code_name(err.code), err.text);
    tensor_release(&r.feeds[0]);
    tensor_release(&r.feeds[1]);
    session_free(r.session);
    return ok ? 0 : 1;
}
