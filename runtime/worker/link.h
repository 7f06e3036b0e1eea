/*
 * link.h - the worker of a task as masters and other workers reach it.
 *
 * Two kinds: in this process (link_local.c), and another process over gRPC (link_rpc.c).
 * Callable from any thread.
 */
#pragma once

#include "proto/rpc.h"
#include "runtime/device.h"
#include "runtime/rendezvous.h"

struct collective_group;
struct collective_wish;
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
    struct worker_link *link; /* that has it, if that wants to know */
};

struct worker_link_kind {
    bool (*status)(struct worker_link *link, struct device *devices, int devices_max,
                   int *count, struct error *err);
    bool (*create_session)(struct worker_link *link, const char *session, bool isolate,
                           struct error *err);
    bool (*delete_session)(struct worker_link *link, const char *session, struct error *err);
    /* `collectives`: the key of a graph that has any, 0: it has none. */
    bool (*register_graph)(struct worker_link *link, const char *session, const void *graph_def,
                           size_t size, int64_t collectives, char handle[WORKER_HANDLE_BYTES],
                           struct error *err);
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
    const struct worker_link_collectives *collectives; /* (optional) */
    void (*free)(struct worker_link *link);
};

/*
 * What a member of collectives has asked another task, until it is called back: once, by any
 * thread, perhaps at once.
 */
struct link_asked {
    struct rpc_sink sink; /* first: of bytes of another process */
    void (*group)(struct link_asked *asked, const struct collective_group *group);
    void (*source)(struct link_asked *asked, int source);
    void (*bytes)(struct link_asked *asked); /* they are there */
    void (*failed)(struct link_asked *asked, const struct error *err);
    int64_t step_id;
    void *into; /* for bytes */
    size_t size;
};

/* What members of collectives ask each other and their leader (collective.h). */
struct worker_link_collectives {
    /* The id of the next step of the graph with that key, the same for all who run it; and that
     * it is over.  (optional: of the own task) */
    bool (*next_step)(struct worker_link *link, int64_t graph_key, int64_t *step_id,
                      struct error *err);
    void (*retire_step)(struct worker_link *link, int64_t graph_key, int64_t step_id);
    /* The id as the leader knows it. */
    bool (*step_sequence)(struct worker_link *link, int64_t graph_key, int64_t *step_id,
                          struct error *err);
    void (*complete_group)(struct worker_link *link, const struct collective_wish *wish,
                           const struct device *device, struct link_asked *asked);
    void (*complete_instance)(struct worker_link *link, const struct collective_wish *wish,
                              const struct device *device, struct link_asked *asked);
    /* What `from` provides in the step. */
    void (*receive_buffer)(struct worker_link *link, const char *key, const struct device *from,
                           const struct device *to, struct link_asked *asked);
    /* Makes it fail with CANCELLED, unless it is being called back. */
    void (*abandon)(struct worker_link *link, struct link_asked *asked);
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

/*
 * The task of such a link is another process now, at `address`: what is under way with the one
 * before fails with CANCELLED.  With the same epoch again nothing changes; PRECONDITION with an
 * earlier one, DENIED in the clear, INVALID when the link is of another kind.
 */
bool link_rpc_move(struct worker_link *link, const char *address, int64_t epoch,
                   struct error *err) CHECKED;

static inline void link_free(struct worker_link *link)
{
    if (link)
        link->kind->free(link);
}
