/*
 * link.h - the worker of a task as masters and other workers reach it.
 *
 * Two kinds: in this process (link_local.c), and another process over gRPC (link_rpc.c).
 * Callable from any thread.
 */
#pragma once

#include "runtime/device.h"
#include "runtime/rendezvous.h"

struct error;
struct rpc_tls;
struct str;
struct worker;
struct worker_link;
struct waits;

enum { WORKER_HANDLE_BYTES = 17 };

/*
 * A part of a step to be run.  Borrowed until `done`, which is called once, by any thread.
 *
 * In several calls, `partial` in each: the first starts the part, each gives what it sends and
 * waits for what it receives alone, the `last` one until the part has ended.
 */
struct worker_run {
    const char *session;
    const char *graph; /* the handle of worker_register_graph() */
    int64_t step_id;
    const char *const *send_keys;
    const struct tensor *sends;
    int sends_count;
    const char *const *receive_keys;
    struct tensor *received; /* filled when it went well: owned by the caller */
    int receives_count;
    struct str *step_stats; /* NULL, or a serialized StepStats is appended */
    struct waits *waits;    /* NULL, or filled */
    struct str *graph_def;  /* NULL, or the part's GraphDef is appended, as it was registered */
    bool partial, last;     /* (a partial one fills none of the three above) */
    bool may_end;           /* the step may end there as soon as nothing is left of it, */
    bool ended;             /* ... and has: there is nothing to clean up */
    void (*done)(struct worker_run *run, const struct error *err); /* NULL: it went well */
    void *arg;
};

struct worker_link_kind {
    bool (*status)(struct worker_link *link, struct device *devices, int devices_max,
                   int *count, struct error *err);
    bool (*create_session)(struct worker_link *link, const char *session, bool isolate,
                           struct error *err);
    bool (*delete_session)(struct worker_link *link, const char *session, struct error *err);
    bool (*register_graph)(struct worker_link *link, const char *session, const void *graph_def,
                           size_t size, char handle[WORKER_HANDLE_BYTES], struct error *err);
    bool (*deregister_graph)(struct worker_link *link, const char *session, const char *handle,
                             struct error *err);
    void (*run_graph)(struct worker_link *link, struct worker_run *run);
    /* The same by the calling thread: it is done when this returns.  (optional) */
    void (*run_graph_here)(struct worker_link *link, struct worker_run *run);
    /*
     * Waits no more for a run that may have ended already: a worker whose kernels wait on, as
     * TensorFlow's do after a cleanup, gives them up.  (optional)
     */
    void (*abandon_run)(struct worker_link *link, const struct worker_run *run);
    /* Ends the step there: what still runs is cancelled, what still waits is told. */
    void (*cleanup_graph)(struct worker_link *link, int64_t step_id);
    bool (*cleanup_all)(struct worker_link *link, const char *const *containers, int count,
                        struct error *err);
    /* A tensor of the step that the task sends; see rendezvous.h. */
    void (*receive)(struct worker_link *link, int64_t step_id, const char *key,
                    rendezvous_receiver *receiver, void *arg);
    /* Gives the step what its part there receives from its client.  (optional) */
    bool (*send)(struct worker_link *link, int64_t step_id, const char *key,
                 const struct tensor *value, struct error *err);
    void (*free)(struct worker_link *link);
};

struct worker_link {
    const struct worker_link_kind *kind;
    char task[96]; /* "/job:ps/replica:0/task:0" */
};

/* A worker of this process, borrowed. */
struct worker_link *link_local_new(struct worker *worker);

/* The worker that serves `address`, with `tls` (NULL: in the clear); connects when first
 * needed. */
struct worker_link *link_rpc_new(const char *task, const char *address,
                                 const struct rpc_tls *tls, struct error *err) CHECKED;

static inline void link_free(struct worker_link *link)
{
    if (link)
        link->kind->free(link);
}
