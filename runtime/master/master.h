/*
 * master.h - the sessions that clients have at this task.
 *
 * The counterpart of TensorFlow's MasterService; service.c speaks its messages.  In a cluster
 * of one task a session runs its graph here (session.h); in a larger one it is cut over the
 * tasks (cluster.h).  Callable from any thread.
 */
#pragma once

#include "base/base.h"

struct cancel;
struct device;
struct error;
struct master;
struct master_session;
struct resources;
struct session_run;
struct str;
struct tensor;
struct worker_link;

enum { MASTER_HANDLE_BYTES = 17 };

struct master_options {
    struct worker_link *const *links; /* one for each task of the cluster; borrowed */
    int links_count;
    int home;                    /* which of them is this task */
    const struct device *device; /* of this task */
    int threads;                 /* for kernels; 0: as many as the process may use */
    struct resources *resources; /* of this task, borrowed */
};

struct master_cluster_task {
    const char *job;
    int task;
    const char *address;
};

/* What a client's ConfigProto asks for. */
struct master_config {
    const char *const *device_filters;
    int device_filters_count;
    bool soft_placement;
    bool isolate;     /* variables of its own */
    bool compress;    /* floats travel between tasks as bfloat16 */
    bool by_cost;     /* nodes without a wish go where a step is done soonest */
    bool own_threads; /* use_per_session_threads or pools of its own: refused */
    const struct master_cluster_task *cluster; /* of the session alone: refused */
    int cluster_count;
    const char *target; /* by which the client calls this task: "grpc://..." */
    int64_t timeout_ms; /* of steps that say none; 0: none */
};

struct master *master_new(const struct master_options *options);
/* Closes all sessions; those that are made later fail with UNAVAILABLE. */
void master_stop(struct master *master);
void master_free(struct master *master); /* stops; nobody else uses it; NULL is fine */

const char *master_task(const struct master *master); /* "/job:ps/replica:0/task:0" */

/*
 * Makes a session with its first graph, and its handle.  Waits for tasks of the cluster that
 * cannot be reached yet, until `cancel`.  Fails as extending does.
 */
bool master_create(struct master *master, const struct master_config *config,
                   const void *graph_def, size_t size, struct cancel *cancel,
                   char handle[MASTER_HANDLE_BYTES], struct error *err) CHECKED;

/* How long no client has used any session: made one, run a step, closed it. */
uint64_t master_idle_us(struct master *master);

/* To be given back with master_release(); ABORTED "Session H is not found." */
struct master_session *master_find(struct master *master, const char *handle,
                                   struct error *err) CHECKED;
void master_release(struct master_session *session);

/* Ends its steps with CANCELLED and forgets it. */
bool master_close(struct master *master, const char *handle, struct error *err) CHECKED;

/* Closes all sessions and forgets what is in these containers of every task. */
bool master_reset(struct master *master, const char *const *containers, int count,
                  struct error *err) CHECKED;

/*
 * Whether this number has come for the first time among the last MASTER_REQUESTS_KEPT; 0 always
 * has.  A client that tries again sends the same one: ABORTED.
 */
enum { MASTER_REQUESTS_KEPT = 10000 };
bool master_first_time(struct master *master, int64_t request, struct error *err) CHECKED;

/* --- a session --- */

/* Adds a GraphDef; `expected` is the version that the client knows.  All or nothing. */
bool master_extend(struct master_session *session, int64_t expected, const void *graph_def,
                   size_t size, int64_t *version, struct error *err) CHECKED;

/* As session_run(); without a time limit of its own it has the session's. */
bool master_run(struct master_session *session, const struct session_run *run,
                struct tensor *fetched, struct error *err) CHECKED;

/*
 * Appends what a run executes to a serialized RunMetadata: a partition graph for each task.
 */
bool master_add_parts(struct master_session *session, const struct session_run *run,
                      struct str *metadata, struct error *err) CHECKED;

/* Its devices, those of this task first; borrowed while the session is held. */
const struct device *master_devices(const struct master_session *session, int *count,
                                    int *local_count);

/* --- runs in several calls --- */

bool master_partial_setup(struct master_session *session, const struct session_run *names,
                          int64_t *handle, struct error *err) CHECKED;
bool master_partial_run(struct master_session *session, int64_t handle,
                        const struct session_run *run, struct tensor *fetched,
                        struct error *err) CHECKED;

/* --- callables: names that are told once --- */

bool master_callable_make(struct master_session *session, const struct session_run *names,
                          int64_t *handle, struct error *err) CHECKED;

/* What a callable fetched: `count` tensors, owned by the caller, as is the array. */
struct callable_result {
    struct tensor *fetched;
    int count;
};

/*
 * Runs it with `feeds` in the order of its names; of `how` only cancel and statistics count.
 * Fails with INVALID "No such callable handle", or for another number of feeds than it takes.
 */
bool master_callable_run(struct master_session *session, int64_t handle,
                         const struct tensor *feeds, int feeds_count,
                         const struct session_run *how, struct callable_result *result,
                         struct error *err) CHECKED;
void master_callable_release(struct master_session *session, int64_t handle);
