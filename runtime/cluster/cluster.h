/*
 * cluster.h - a session whose graph lies on the devices of several tasks.
 *
 * The master's half of distributed steps: the whole graph is placed when it comes, so a
 * variable stays where it is; for each signature of feeds, fetches and targets it is pruned,
 * cut by task, and registered with each task's worker; a step runs all parts at once and
 * gathers what was fetched.  The counterpart of session.h, with the same errors; a worker's
 * error says which task it is from, and when one part fails, the others are cancelled.
 */
#pragma once

#include "base/base.h"

struct cancel;
struct cluster_session;
struct device;
struct error;
struct graph;
struct session_run;
struct str;
struct tensor;
struct worker_link;

struct cluster_options {
    struct worker_link *const *links; /* one for each task; borrowed */
    int links_count;
    int home;                   /* whose first device is the client's; never filtered out */
    const char *const *filters; /* partial device names: only tasks that one of them meets */
    int filters_count;          /* 0: all tasks */
    bool soft_placement;
    bool compress; /* floats travel as bfloat16 */
    bool isolate;  /* variables of its own */
    bool shaped;   /* variables have the shapes that they declare: nobody assigns others; so
                      what is worked out from them, and from feeds, travels with a known shape */
    bool by_cost;  /* nodes that may be on several devices go where a step is done soonest, by
                      what traced runs have measured; else to the first */

    /* Waits for tasks that cannot be reached yet, and logs which, until this; NULL: fails. */
    struct cancel *wait;
};

/*
 * Asks each task for its devices and makes a session there.  `handle` is unique in the cluster.
 * Fails as the tasks do: UNAVAILABLE when one cannot be reached, CANCELLED when it waited for
 * one; INVALID when a task says that it is another one.
 */
struct cluster_session *cluster_session_new(const struct cluster_options *options,
                                            const char *handle, struct error *err) CHECKED;

/* Ends all runs with CANCELLED and returns when none is left; later ones fail. */
void cluster_session_close(struct cluster_session *session);
void cluster_session_free(struct cluster_session *session); /* closes; NULL is fine */

/* The devices of all tasks that are not filtered out, the client's first; borrowed. */
const struct device *cluster_session_devices(const struct cluster_session *session, int *count);

/* Adds a serialized GraphDef, or the nodes of another graph, and places them: all or nothing.
 */
bool cluster_session_extend(struct cluster_session *session, const void *graph_def, size_t size,
                            struct error *err) CHECKED;
bool cluster_session_extend_graph(struct cluster_session *session, const struct graph *graph,
                                  struct error *err) CHECKED;

/* The graph as extended so far, with devices; borrowed, valid until the next extend. */
const struct graph *cluster_session_graph(const struct cluster_session *session);

/* Appends why each node is where it is, as session_explain_placement() does. */
void cluster_session_explain_placement(struct cluster_session *session, struct str *json);

/* As session_run(); statistics are those of all tasks. */
bool cluster_session_run(struct cluster_session *session, const struct session_run *run,
                         struct tensor *fetched, struct error *err) CHECKED;

/* Makes all ready for such runs; fails as they would that cannot. */
bool cluster_session_prepare(struct cluster_session *session, const struct session_run *run,
                             struct error *err) CHECKED;

/* --- tasks that are started again while the session goes on --- */

enum cluster_task {
    CLUSTER_TASK_SAME,    /* the process that it was */
    CLUSTER_TASK_ANOTHER, /* it was started again: it has nothing of the session */
    CLUSTER_TASK_AWAY     /* it cannot be reached; the error says why */
};

/* How a task of the session ("/job:worker/replica:0/task:1") stands now. */
enum cluster_task cluster_session_look(struct cluster_session *session, const char *task,
                                       struct error *err) CHECKED;

/*
 * Lets a task that was started again take part: what has a part there is made ready anew when
 * it next runs.  What the task kept (variables, queues) is gone; runs that have a part there
 * fail until then, the others go on.  Fails as the task does, INVALID when it has other
 * devices.
 */
bool cluster_session_rejoin(struct cluster_session *session, const char *task,
                            struct error *err) CHECKED;

/* --- a run in several calls: see partial.h --- */

struct cluster_partial;

/* Begins with its first call; `names` is copied.  Ended before the session is freed. */
struct cluster_partial *cluster_partial_new(struct cluster_session *session,
                                            const struct session_run *names,
                                            struct error *err) CHECKED;
void cluster_partial_free(struct cluster_partial *partial); /* NULL is fine */
bool cluster_partial_run(struct cluster_partial *partial, const struct session_run *run,
                         struct tensor *fetched, struct error *err) CHECKED;
bool cluster_partial_is_done(const struct cluster_partial *partial);

/*
 * Appends the serialized GraphDefs of the parts that `run` has, with devices: one for each
 * task; `*sizes` (to be freed) says where they end.
 */
bool cluster_session_parts(struct cluster_session *session, const struct session_run *run,
                           struct str *graph_defs, size_t **sizes, int *count,
                           struct error *err) CHECKED;
