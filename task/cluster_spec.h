/*
 * cluster_spec.h - which tasks a cluster has: {"ps": ["host:port", …], "worker": […]}.
 */
#pragma once

#include "base/base.h"

struct arena;
struct error;

#define CLUSTER_JOBS_MAX 64

struct cluster_job {
    const char *name;
    const char **addresses; /* of task 0, 1, 2 … */
    int tasks_count;
};

struct cluster_spec {
    struct cluster_job jobs[CLUSTER_JOBS_MAX];
    int jobs_count;
    const char *job; /* which of them this process is; NULL, -1: not said */
    int task;
};

/* The JSON of a file (or the text itself, if it begins with '{').  Fails with INVALID. */
bool cluster_spec_read(const char *file, struct arena *arena, struct cluster_spec *spec,
                       struct error *err) CHECKED;

/* TF_CONFIG: {"cluster": {…}, "task": {"type": "worker", "index": 0}}. */
bool cluster_spec_read_config(const char *text, struct arena *arena, struct cluster_spec *spec,
                              struct error *err) CHECKED;

int cluster_spec_tasks(const struct cluster_spec *spec);

/* The address of a task; NULL and `err` when there is none, naming what there is. */
const char *cluster_spec_address(const struct cluster_spec *spec, const char *job, int task,
                                 struct error *err) CHECKED;
