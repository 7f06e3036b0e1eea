/* runner_internal.h - the inside of a runner, shared by runner*.c. */
#pragma once

#include "runtime/session.h"
#include "runtime/train/runner.h"

struct runner_call {
    struct callable *callable; /* of a session */
    struct session_run run;    /* over a cluster; names are in the runner's arena */
};

struct runner {
    const struct model *model;
    struct session *session; /* one of the two */
    struct cluster_session *cluster;
    bool borrowed;
    struct arena *arena;     /* of calls */
    struct account *account; /* over a cluster */
    struct runner_cluster tasks;

    /* runner_state.c, over a cluster: */
    struct runner_call *get;     /* all variables */
    struct runner_call *save;    /* each task its own; fed their prefixes */
    struct runner_call *restore; /* fed one prefix for each */
    struct runner_call *look;    /* fed a file's name for each, whose bytes each tells */
    int shards_count;            /* tasks that have variables; 0: this one has all */
};

bool runner_run_cluster(struct runner *runner, const struct session_run *wanted,
                        const struct tensor *feeds, struct tensor *fetched,
                        struct str *statistics, struct error *err) CHECKED;

/* --- runner_state.c --- */

/* Adds the ops "state/..." to the graph, and prepares the calls of them. */
bool runner_state_add(struct runner *runner, struct graph *graph, struct error *err) CHECKED;

/* runner_set() over a cluster. */
bool runner_state_set(struct runner *runner, int index, struct tensor *value,
                      struct error *err) CHECKED;
