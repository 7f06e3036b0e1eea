/*
 * worker.h - a task's half of distributed steps: it keeps the parts that masters registered,
 * runs them, and gives others the tensors that they send.
 *
 * The counterpart of TensorFlow's WorkerService; service.c speaks its messages.
 * Callable from any thread.
 */
#pragma once

#include "runtime/worker/buffers.h"
#include "runtime/worker/link.h"

struct groups;
struct loan;
struct fabric_keys;
struct near_place;
struct resources;
struct worker;

struct worker_options {
    const char *job; /* "worker" */
    int task;
    int threads;                 /* for kernels; 0: as many as the process may use */
    bool no_optimise;            /* run parts as they come */
    uint32_t passes_off;         /* of the optimiser: OPTIMISE_BIT()s of optimise.h */
    struct resources *resources; /* shared with others, borrowed; NULL: the worker's own */
    int64_t memory_bytes_max;    /* 0: LIMIT_TENSOR_BYTES */
    int64_t held_bytes_max;      /* between tasks, in this process: see held_set_max() */
    uint64_t incarnation;        /* 0: another one each time */
};

struct worker *worker_new(const struct worker_options *options, struct error *err) CHECKED;

/* Cancels what runs, waits for it, and frees.  NULL is fine. */
void worker_free(struct worker *worker);

/*
 * How it reaches other tasks; `links` is borrowed.  Before the first step.  Of these the first
 * chief, else the first worker, is the leader of collectives, as TensorFlow's strategies say;
 * where there is neither, the task whose name comes first.
 */
void worker_set_peers(struct worker *worker, struct worker_link *const *links, int count);

/* Another leader, the same in all tasks: "/job:worker/replica:0/task:1".  Before the first
 * step.  Fails with INVALID where there is no such task. */
bool worker_set_leader(struct worker *worker, const char *task, struct error *err) CHECKED;

const struct device *worker_device(const struct worker *worker);
const char *worker_task(const struct worker *worker); /* "/job:ps/replica:0/task:0" */

/* `isolate`: with variables of its own.  Fails with EXISTS, EXHAUSTED. */
bool worker_create_session(struct worker *worker, const char *session, bool isolate,
                           struct error *err) CHECKED;
/* Forgets the session and its graphs.  Fails with ABORTED when there is none. */
bool worker_delete_session(struct worker *worker, const char *session,
                           struct error *err) CHECKED;

/* Those that masters have made and not deleted. */
int worker_sessions_count(struct worker *worker);

/*
 * Makes a part ready to run.  Session "" is there without being made.  Fails with ABORTED for
 * an unknown session, INVALID for a bad graph, as running it alone would.
 */
bool worker_register_graph(struct worker *worker, const char *session, const void *graph_def,
                           size_t size, char handle[WORKER_HANDLE_BYTES],
                           struct error *err) CHECKED;
bool worker_deregister_graph(struct worker *worker, const char *session, const char *handle,
                             struct error *err) CHECKED;

/* Begins to run a part; run->done is called when it has ended, perhaps before this returns. */
void worker_run_graph(struct worker *worker, struct worker_run *run);
/* The same, not a partial one, by the calling thread. */
void worker_run_graph_here(struct worker *worker, struct worker_run *run);
void worker_cleanup_graph(struct worker *worker, int64_t step_id);

/* Forgets what is in these containers; none: in the default one. */
void worker_cleanup_all(struct worker *worker, const char *const *containers, int count);

/* Gives a step a tensor that its client sends.  Fails with ABORTED when it is over. */
bool worker_send(struct worker *worker, int64_t step_id, const char *key,
                 const struct tensor *value, struct error *err) CHECKED;

/*
 * A tensor that this task sends in that step, which may be yet to come.  Fails with INVALID for
 * a bad key, ABORTED when it names another incarnation of this task.
 */
void worker_receive(struct worker *worker, int64_t step_id, const char *key,
                    rendezvous_receiver *receiver, void *arg);

/*
 * Lends a tensor that a task received in that step which is near, or with `keys` (else NULL) on
 * the same fabric: see lent.h.  False when it cannot, or
 * the step is over; what is lent in a step ends with it.
 */
bool worker_lend(struct worker *worker, const struct loan *loan, const struct tensor *tensor,
                 struct near_place *place, struct fabric_keys *keys);
/* Its reader is done; whether it was held until now. */
bool worker_lend_end(struct worker *worker, int64_t request_id);
int worker_lent_count(const struct worker *worker);

/* The receiver will not be called; false if it was. */
bool worker_withdraw(struct worker *worker, int64_t step_id, const char *key, const void *arg);

/* --- collectives: see link.h --- */

struct groups *worker_collective_groups(struct worker *worker);

bool worker_collective_next_step(struct worker *worker, int64_t graph_key, int64_t *step_id,
                                 struct error *err) CHECKED;
void worker_collective_retire_step(struct worker *worker, int64_t graph_key, int64_t step_id);
/* Fails with INTERNAL where this task is not the leader. */
bool worker_collective_sequence(struct worker *worker, int64_t graph_key, int64_t *step_id,
                                struct error *err) CHECKED;

/* What kernels of the step provide, perhaps later. Fails with INVALID for another's device,
 * PRECONDITION for another incarnation (0: any) of it. */
void worker_collective_take(struct worker *worker, int64_t step_id, const char *key,
                            const char *device, uint64_t incarnation, buffers_taker *taker,
                            void *arg);
/* The taker will not be called; false if it was. */
bool worker_collective_withdraw(struct worker *worker, int64_t step_id, const void *arg);
