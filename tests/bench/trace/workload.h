/*
 * workload.h - a workload shaped like those of public traces of GPU clusters (Philly, Helios,
 * PAI): most jobs ask for one GPU and are short, few ask for many and run for days; they come
 * by day more than by night, and most of a project's come from few projects.
 */
#pragma once

#include "base/base.h"

#define WORKLOAD_PROJECTS 200
#define WORKLOAD_CLASSES 8 /* of sizes */

struct workload_job {
    uint64_t submit_us;
    uint64_t work_us;  /* how long it runs, if nobody stops it */
    uint64_t limit_us; /* stop.max_seconds; 0: none */
    int gpus;          /* of each task */
    int cpus;
    int replicas;
    int size; /* 0 ..: no GPU, 1, 2, 4, 8, 16, up to 64, more */
    int project;
    int queue; /* 0: default, 1: urgent, 2: night */
    int fails; /* so many attempts crash half way */
};

/* `count` jobs over `span_us`, by the time of their submit, owned; `limited` of a hundred name
 * a time limit. */
struct workload_job *workload_make(uint64_t seed, int count, uint64_t span_us, int limited);

/* "1 GPU" and so on. */
const char *workload_size_name(int size);
