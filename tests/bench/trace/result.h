/*
 * result.h - what became of the jobs of a replay: waits, use of the nodes, fairness.
 */
#pragma once

#include "tests/bench/trace/workload.h"

#define TRACE_TASKS_MAX 16

struct trace_job {
    int64_t epoch;
    int64_t nodes[TRACE_TASKS_MAX]; /* of its tasks; [0] 0: it does not run */
    uint64_t began_us;              /* the attempt */
    uint64_t started_us;            /* the first one */
    uint64_t ended_us;              /* 0: not yet */
    uint64_t left_us;
    int fails_left;
    int attempts;
};

/* What is held, and who waits, over time. */
struct trace_use {
    uint64_t span_us; /* counted so far, until no more jobs come */
    int gpus_total;
    int cpus_total;
    int64_t gpus;
    int64_t cpus;
    int64_t projects[WORKLOAD_PROJECTS]; /* GPUs held */
    int waiting[WORKLOAD_PROJECTS];      /* jobs */
    double gpu_us, cpu_us;
    double all_gpu_us, all_cpu_us; /* had all been held */
    double contended_us;           /* somebody waited for longer than a batch */
    double busy_gpu_us;            /* ... and held then */
    double fair_us;                /* times Jain's index of GPUs held among those who wait */
};

void trace_use_starts(struct trace_use *use, const struct workload_job *job);
void trace_use_ends(struct trace_use *use, const struct workload_job *job);
void trace_use_passes(struct trace_use *use, uint64_t from_us, uint64_t to_us);

struct trace_passes {
    uint64_t *took_us; /* sorted by printing */
    int count;
    long attempts;
    long preempted;
    double took_s; /* all of the replay */
};

bool trace_all_ended(const struct trace_job *jobs, int count);

void trace_result_print(int nodes, const struct workload_job *plan,
                        const struct trace_job *jobs, int count, const struct trace_use *use,
                        struct trace_passes *passes);
