/* internal.h - what the files of the cluster session share. */
#pragma once

#include "runtime/cluster/cluster.h"
#include "runtime/cost.h"
#include "runtime/internal.h"
#include "runtime/partition.h"
#include "runtime/place.h"
#include "runtime/runs.h"
#include "runtime/waits.h"
#include "runtime/worker/link.h"

enum { CLUSTER_DEVICES_MAX = 64 }; /* of one task */

struct cluster_session {
    struct worker_link **links; /* the tasks that are not filtered out */
    int links_count;
    struct device *devices; /* of all of them; [0] is the client's */
    int devices_count;
    bool soft;
    bool shaped; /* as in the options */
    bool compress;
    bool isolate;
    struct cost_model *costs; /* NULL: nodes are not placed by cost */
    char *handle;
    int pairs;                   /* of sends and receives in all plans (atomic) */
    pthread_rwlock_t graph_lock; /* guards: graph; making plans reads, extending writes */
    struct graph *graph;
    struct str reasons;   /* guarded as the graph: why its nodes are where they are, JSON */
    pthread_mutex_t lock; /* guards: plans, old_plans */
    struct map *plans;    /* by signature */
    struct cluster_plan **old_plans; /* of tasks that were started again since */
    int old_plans_count;
    int old_plans_capacity;
    struct runs runs; /* those that go on */
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
    bool *needs;                 /* of a partial run: by fetch and feed, what leads to it */
    struct str graph_defs;
    int64_t collectives; /* the key by which all who run collectives of the plan know it; 0 */
};

/* --- cluster_session.c --- */

/* How its nodes are placed: those that have a device keep it. */
struct place_options cluster_place_options(const struct cluster_session *session);

/* --- cluster_tasks.c --- */

/* Asks all tasks that are wanted for their devices, then makes a session at each. */
bool cluster_tasks_add(struct cluster_session *session, const struct cluster_options *options,
                       struct error *err) CHECKED;

/* --- cluster_plan.c --- */

/*
 * Prunes, places, cuts and registers; the graph's lock is held for reading.  `partial`: for
 * runs in several calls; `shaped`: for feeds of the shapes that are declared.
 */
struct cluster_plan *cluster_plan_new(struct cluster_session *session,
                                      const struct session_run *run, bool partial, bool shaped,
                                      struct error *err) CHECKED;
void cluster_plan_free(struct cluster_session *session, struct cluster_plan *plan);

/* Made at its first use. */
struct cluster_plan *cluster_session_plan(struct cluster_session *session,
                                          const struct session_run *run, bool partial,
                                          struct error *err) CHECKED;

/* --- cluster_step.c --- */

struct cluster_step {
    struct cluster_plan *plan;
    int64_t id;
    struct worker_link *retires; /* its id; NULL: nobody does */
    bool refused;                /* it has no id, */
    struct error why;
    uint64_t begun_ns;
    pthread_mutex_t lock;        /* guards: all that says how far it is */
    pthread_cond_t changed;      /* by the monotonic clock */
    struct attention *attention; /* of the thread that waits; NULL: it waits for `changed` */
    int running;
    bool failed;    /* a part has, or the step was ended */
    bool is_here;   /* the thread of the step runs a part itself: it cannot watch the others */
    bool abandoned; /* parts that still ran were told to give up */
    struct cluster_step_part {
        struct worker_run run;
        struct cluster_step *step;
        struct str step_stats;
        struct waits waits;
        uint64_t after_ns; /* it was over, after the step began */
        bool bad;
        struct error err;
    } * parts;
    struct tensor *received; /* by fetch of the plan */
    const char **send_keys, **receive_keys;
    struct tensor *sends; /* borrowed values */
};

/* `run` NULL: what is fed and fetched goes its own way (cluster_partial.c). */
void cluster_step_init(struct cluster_step *step, struct cluster_session *session,
                       struct cluster_plan *plan, const struct session_run *run);
void cluster_step_release(struct cluster_step *step);

/* `here`: the own part is run by this thread, which may take as long as it takes. */
void cluster_step_start(struct cluster_step *step, bool here);

/* Under its lock: until something changes, or that moment (0: never) has come (false). */
bool cluster_step_wait_locked(struct cluster_step *step, uint64_t until_ns);

/* A cancel_callback: who waits sees that the step has failed, and what it runs itself ends. */
void cluster_step_wake(void *step);

/*
 * Ends what still runs, on all tasks, and says how it went: CANCELLED when one of the two was
 * asked for, DEADLINE when it was not `in_time`, else as its parts went.
 */
bool cluster_step_finish(struct cluster_step *step, bool in_time, const struct cancel *own,
                         const struct cancel *cancel, struct error *err) CHECKED;

/* Runs all parts once. */
bool cluster_step_run(struct cluster_session *session, struct cluster_plan *plan,
                      const struct session_run *run, struct cancel *own, struct tensor *fetched,
                      struct error *err) CHECKED;

/* --- cluster_collective.c --- */

/* The key of a graph with collectives; 0: it has none. */
int64_t cluster_collective_key(const struct partition_parts *parts);

/* The step gets its id from the own task, if its graph has such a key; `refused` if not. */
void cluster_collective_begin(struct cluster_session *session, struct cluster_step *step);
void cluster_collective_end(struct cluster_step *step);

/* --- cluster_outcome.c: what is told of a step some of whose parts failed --- */

struct cluster_outcome {
    const char *task;
    const struct error *err; /* NULL: it went well */
};

/* Whether another error is its cause: it says so (EXECUTE_DERIVED), or the task cleaned up. */
bool cluster_outcome_is_derived(const struct error *err);

/*
 * True when all parts went well.  An error that is nobody else's doing is told with its task;
 * of several all are, as TensorFlow lists them.
 */
bool cluster_outcome_report(const struct cluster_outcome *parts, int count,
                            struct error *err) CHECKED;
