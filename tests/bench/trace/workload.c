/* workload.c - draws the jobs. */

#include "tests/bench/trace/workload.h"

#include <math.h>

#include "base/alloc.h"
#include "tests/sim/random.h"

#define MINUTE UINT64_C(60000000)

/* How many of a thousand jobs are of a size, and what they ask for. */
static const struct size {
    const char *name;
    int per_mille;
    int replicas;
    int gpus;
    double minutes; /* half of them run no longer */
} sizes[] = {
    {"no GPU", 100, 1, 0, 15},     {"1 GPU", 610, 1, 1, 25},    {"2 GPUs", 80, 1, 2, 40},
    {"4 GPUs", 80, 1, 4, 60},      {"8 GPUs", 75, 1, 8, 90},    {"16 GPUs", 30, 2, 8, 120},
    {"32-64 GPUs", 19, 6, 8, 180}, {"128 GPUs", 6, 16, 8, 240},
};

const char *workload_size_name(int size)
{
    return sizes[size].name;
}

/* From 0 up to below 1. */
static double part(struct random *random)
{
    return (double)(random_next(random) >> 11) / 9007199254740992.0;
}

/* Around 0, as the normal distribution has it. */
static double normal(struct random *random)
{
    double a = part(random), b = part(random);
    return sqrt(-2 * log(1 - a)) * cos(6.283185307179586 * b);
}

static int draw_size(struct random *random)
{
    int at = random_below(random, 1000), size = 0;
    while (at >= sizes[size].per_mille)
        at -= sizes[size++].per_mille;
    return size;
}

/* More by day than by night, three to one. */
static uint64_t draw_submit(struct random *random, uint64_t span_us)
{
    for (;;) {
        double at = part(random);
        double day = at * (double)span_us / 86400e6;
        if (part(random) < 0.5 - 0.25 * cos(6.283185307179586 * day) + 0.25)
            return (uint64_t)(at * (double)span_us);
    }
}

static void draw(struct random *random, uint64_t span_us, int limited, struct workload_job *job)
{
    int size = draw_size(random);
    double minutes = sizes[size].minutes * exp(2.0 * normal(random));
    minutes = minutes < 0.2 ? 0.2 : minutes > 7 * 24 * 60 ? 7 * 24 * 60 : minutes;
    *job = (struct workload_job){.submit_us = draw_submit(random, span_us),
                                 .work_us = (uint64_t)(minutes * (double)MINUTE),
                                 .gpus = sizes[size].gpus,
                                 .replicas = sizes[size].replicas,
                                 .size = size};
    job->cpus = job->gpus ? 6 * job->gpus : 1 + random_below(random, 16);
    if (size == WORKLOAD_CLASSES - 2)
        job->replicas = random_chance(random, 60) ? 4 : 8;
    if (random_chance(random, limited)) /* people guess, and guess too much */
        job->limit_us = (uint64_t)(minutes * (1 + 4 * part(random)) / 10 + 1) * 10 * MINUTE;
    /* A tenth of the projects submits most of the jobs. */
    double skewed = part(random) * part(random) * part(random);
    job->project = (int)(skewed * WORKLOAD_PROJECTS);
    job->queue = random_chance(random, 5) ? 1 : random_chance(random, 10) ? 2 : 0;
    job->fails = random_chance(random, 8) ? 1 + random_below(random, 2) : 0;
}

static int by_submit(const void *left, const void *right)
{
    const struct workload_job *a = left, *b = right;
    return a->submit_us < b->submit_us ? -1 : a->submit_us > b->submit_us;
}

struct workload_job *workload_make(uint64_t seed, int count, uint64_t span_us, int limited)
{
    struct random random;
    struct workload_job *jobs = alloc_array((size_t)count, sizeof(*jobs));
    random_init(&random, seed);
    for (int i = 0; i < count; i++)
        draw(&random, span_us, limited, &jobs[i]);
    qsort(jobs, (size_t)count, sizeof(*jobs), by_submit);
    return jobs;
}
