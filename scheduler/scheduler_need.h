/*
 * scheduler_need.h - what the scheduler is told of: what tasks need, what nodes have, and what
 * queues and projects may.
 */
#pragma once

#include "base/base.h"

#define SCHEDULER_ROLE_BYTES 16
#define SCHEDULER_GPUS_MAX 64    /* of one node */
#define SCHEDULER_GPU_WHOLE 1000 /* parts of a GPU are counted in thousandths */

/* Of a queue, or a project, of which nothing was said. */
#define SCHEDULER_QUEUE_PRIORITY 50
#define SCHEDULER_WEIGHT 100

struct scheduler_resources {
    int64_t cpu_millis;
    int64_t memory_bytes;
    int64_t gpus; /* whole ones */
};

struct scheduler_label {
    const char *name;
    const char *value;
};

/* Tasks of one role. */
struct scheduler_need {
    char role[SCHEDULER_ROLE_BYTES];
    int replicas;
    struct scheduler_resources each;
    int gpu_share;        /* a part of one GPU, whose rest others may have; 0 with whole ones */
    const char *gpu_type; /* NULL, "": any */
    int64_t gpu_memory_bytes;             /* of each GPU (of its part) at least */
    const struct scheduler_label *labels; /* that the node must have */
    int labels_count;
    bool alone; /* each but the first may be lost, and is placed anew alone: others go on */
};

/* How often a job has failed on a node. */
struct scheduler_failure {
    int64_t node;
    int count;
};

/* What a project holds, or may: over all its jobs that are not queued. */
struct scheduler_amount {
    int64_t cpu_millis;
    int64_t memory_bytes;
    int64_t gpu_millis;
    int64_t jobs;
};
extern const struct scheduler_amount scheduler_no_quota; /* -1 of each: no bound */

/* A queue: its jobs come before those of queues of lower priority, and share with those of the
 * same by weight.  With `preempt` they may end attempts of jobs of lower rank (the queue's
 * priority, then the job's). */
struct scheduler_queue_info {
    const char *name;
    int priority;
    int weight;
    bool preempt;
};

struct scheduler_project_info {
    const char *name;
    int weight;
    struct scheduler_amount quota;
    uint64_t usage;        /* of loads alone: as it was stored ... */
    uint64_t usage_age_us; /* ... so long ago */
};
