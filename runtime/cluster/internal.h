/* internal.h - what the files of the cluster session share. */
#pragma once

#include "runtime/cluster/cluster.h"
#include "runtime/internal.h"
#include "runtime/partition.h"
#include "runtime/runs.h"
#include "runtime/worker/link.h"

struct cluster_session {
    struct worker_link **links; /* the tasks that are not filtered out */
    int links_count;
    struct device *devices; /* of all of them; [0] is the client's */
    int devices_count;
    bool soft;
    bool compress;
    char *handle;
    pthread_rwlock_t graph_lock; /* guards: graph; making plans reads, extending writes */
    struct graph *graph;
    struct str reasons;   /* guarded as the graph: why its nodes are where they are, JSON */
    pthread_mutex_t lock; /* guards: plans */
    struct map *plans;    /* by signature */
    struct runs runs;     /* those that go on */
};

/* A part that a worker has. */
struct cluster_part {
    struct worker_link *link;
    char handle[WORKER_HANDLE_BYTES]; /* "": not registered */
    bool home;                        /* feeds and fetches are here */
    size_t graph_end;                 /* in the plan's graph_defs */
};

/* A signature made ready to run. */
struct cluster_plan {
    struct cluster_part *parts;
    int parts_count;
    struct partition_parts ends; /* keys of feeds and fetches; its parts are gone */
    int fetches_count;           /* of the run */
    struct str graph_defs;
};

/* --- cluster_tasks.c --- */

/* Asks all tasks that are wanted for their devices, then makes a session at each. */
bool cluster_tasks_add(struct cluster_session *session, const struct cluster_options *options,
                       struct error *err) CHECKED;

/* --- cluster_plan.c --- */

/* Prunes, places, cuts and registers; the graph's lock is held for reading. */
struct cluster_plan *cluster_plan_new(struct cluster_session *session,
                                      const struct session_run *run, struct error *err) CHECKED;
void cluster_plan_free(struct cluster_session *session, struct cluster_plan *plan);

/* --- cluster_step.c --- */

/* Runs all parts once. */
bool cluster_step_run(struct cluster_session *session, struct cluster_plan *plan,
                      const struct session_run *run, struct cancel *own, struct tensor *fetched,
                      struct error *err) CHECKED;

/* --- cluster_outcome.c: what is told of a step some of whose parts failed --- */

struct cluster_outcome {
    const char *task;
    const struct error *err; /* NULL: it went well */
};

/* Whether another error is its cause: its text begins with EXECUTE_DERIVED. */
bool cluster_outcome_is_derived(const struct error *err);

/*
 * True when all parts went well.  An error that is nobody else's doing is told with its task;
 * of several all are, as TensorFlow lists them.
 */
bool cluster_outcome_report(const struct cluster_outcome *parts, int count,
                            struct error *err) CHECKED;
