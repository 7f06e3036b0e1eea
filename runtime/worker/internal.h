/*
 * internal.h - what the files of the worker share.
 *
 * A step holds a rendezvous and is known from the first that asks for it (a run, or another
 * task that wants a tensor) until it is cleaned up; runs hold it, too.  A run holds its graph,
 * a graph its session.
 */
#pragma once

#include "runtime/internal.h"
#include "runtime/worker/collective.h"
#include "runtime/worker/worker.h"

struct crew;
struct lent;

struct steps {
    pthread_mutex_t lock; /* guards: all below, and steps' references */
    struct worker_step **buckets;
    int count;
    int64_t *over;                   /* those that ended last, by id modulo their number */
    struct worker_partial *partials; /* whose plan has not ended */
};

struct worker {
    char task[96];
    struct device device;
    struct resources *resources;
    struct resources *own_resources; /* NULL when they are shared */
    int threads;
    bool optimise;
    uint32_t passes_off;
    int64_t memory_bytes_max;
    struct worker_link *const *peers;
    int peers_count;
    struct crew *crew;
    struct lent *lent;
    struct groups *groups; /* of collectives */
    struct sequences *sequences;
    struct worker_link *self;   /* to be asked as others are */
    struct worker_link *leader; /* of collectives: knows who takes part */
    struct steps steps;

    pthread_mutex_t lock; /* guards: sessions, and their and their graphs' references */
    struct map *sessions;
};

struct worker_session {
    int references;
    struct worker *worker;
    struct resources *own_resources;  /* NULL: the worker's */
    struct function_library *library; /* of all its graphs */
    struct plan_context context;
    pthread_mutex_t making; /* guards: library while graphs are made */
    struct map *graphs;     /* by handle */
    uint64_t last_handle;
};

struct worker_graph {
    int references;
    struct worker_session *session;
    struct graph *graph;
    struct subgraph *subgraph;
    struct plan *plan;  /* NULL: none can be made, */
    struct error fault; /* ... as each run is told */
};

struct worker_step {
    struct worker_step *next; /* of its bucket */
    int64_t id;
    int references; /* the table's and those of runs */
    struct worker *worker;
    struct rendezvous *rendezvous;
    struct cancel *cancel;
    struct collective collective;
    struct worker_partial *partial; /* NULL: it is not run in several calls */
};

/* --- worker.c --- */

bool worker_put_sends(const struct worker_run *run, const struct worker_step *step,
                      struct error *err) CHECKED;

/* --- worker_session.c --- */

/* A registered graph, to be given back by worker_session_unref_graph(). */
struct worker_graph *worker_session_graph(struct worker *worker, const char *session,
                                          const char *handle, struct error *err) CHECKED;
void worker_session_unref_graph(struct worker_graph *graph);
void worker_session_free_all(struct worker *worker);

/* --- worker_step.c --- */

void worker_step_init(struct steps *steps);
void worker_step_release(struct steps *steps); /* ends all; nothing runs */

/* The step, begun if it is new.  Fails with ABORTED when it is over, EXHAUSTED. */
struct worker_step *worker_step_ref(struct worker *worker, int64_t id,
                                    struct error *err) CHECKED;
void worker_step_hold(struct worker_step *step); /* one reference more */
void worker_step_unref(struct worker_step *step);

/* Whether it was ended, not long ago. */
bool worker_step_is_over(struct worker *worker, int64_t id);

/* Cancels its runs, tells who waits, and forgets it. */
void worker_step_end(struct worker *worker, int64_t id);

/* The same when its runs are over and nothing of it is left to be fetched; else false. */
bool worker_step_end_idle(struct worker_step *step);
void worker_step_end_all(struct worker *worker);

/* --- worker_partial.c --- */

/* One call of several, as worker_run_graph(). */
void worker_partial_run(struct worker *worker, struct worker_run *run);
void worker_partial_free(struct worker_partial *partial); /* NULL is fine */

/* Ends those of the session; NULL: those that nobody has gone on with for long. */
void worker_partial_sweep(struct worker *worker, const char *session);
