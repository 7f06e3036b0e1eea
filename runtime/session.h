/*
 * session.h - a graph that can be extended and run in part.
 *
 * A run names feeds, fetches and targets; only what they need is computed.  For each such
 * signature a plan is made once (optimise, place, partition, plan memory) and kept.
 *
 * Runs of different threads may overlap, and the graph may be extended meanwhile.  A failed
 * run leaves the session usable.
 */
#pragma once

#include "base/base.h"

struct account;
struct cancel;
struct device;
struct error;
struct graph;
struct memory_estimate;
struct optimise_watcher;
struct resources;
struct session;
struct str;
struct tensor;

struct session_options {
    int threads;         /* for kernels; 0: as many as the process may use */
    bool no_optimise;    /* run the graph as it is */
    uint32_t passes_off; /* of the optimiser: OPTIMISE_BIT()s of optimise.h */
    int precision;       /* BF16: products of floats round their factors to it; 0 or F32: not */
    bool check_numerics; /* a run fails at its first NaN or infinity, naming the op */
    struct resources *resources; /* shared with others, borrowed; NULL: the session's own */
    const struct device *device; /* what runs it, copied; NULL: /job:localhost's CPU */
    bool soft_placement;         /* nodes that name another device run on this one */
    int64_t memory_bytes_max;    /* 0: LIMIT_TENSOR_BYTES */
    /* What a step should fit in, with variables and all: what is cheap and would not fit is
     * computed again for gradients, not kept.  0: memory_bytes_max, if that is given. */
    int64_t memory_limit;
};

/* An empty session, owned by the caller.  NULL options: defaults. */
struct session *session_new(const struct session_options *options, struct error *err) CHECKED;

/* Closes the session and frees it.  NULL is fine. */
void session_free(struct session *session);

/*
 * Ends all runs, as their cancel would, and returns when none is left.  Those that come later
 * fail with CANCELLED "Session has been closed."  Callable from any thread, and twice.
 */
void session_close(struct session *session);

/* Ends the runs that are going on now; does not wait for them. */
void session_cancel_all(struct session *session);

/* Adds a serialized GraphDef, all or nothing. */
bool session_extend(struct session *session, const void *graph_def, size_t size,
                    struct error *err) CHECKED;

/* Adds the nodes of `graph` (copied): what our own models use. */
bool session_extend_graph(struct session *session, const struct graph *graph,
                          struct error *err) CHECKED;

/* The session's graph as extended so far; borrowed, valid until the next extend. */
const struct graph *session_graph(const struct session *session);

/* Whoever reads `to` reads `from` in its place ("w:0"). */
struct session_connection {
    const char *from, *to;
};

struct session_run {
    const char *const *feeds; /* "x:0" or "x" */
    const struct tensor *feed_values;
    int feeds_count;
    const char *const *fetches; /* "loss:0" */
    int fetches_count;
    const char *const *targets; /* nodes to run without looking at outputs */
    int targets_count;
    const struct session_connection *connections;
    int connections_count;
    bool trace;              /* record step statistics */
    struct str *statistics;  /* with trace: serialized RunMetadata is appended */
    struct cancel *cancel;   /* (optional) borrowed: cancel_now() ends the run, CANCELLED */
    int64_t timeout_ms;      /* 0: none; else the run fails with DEADLINE when it is over */
    struct account *account; /* over a cluster: is told where the time went; NULL: nobody is */
};

/*
 * Runs once.  `fetched` gets fetches_count tensors, owned by the caller (tensor_release()); on
 * failure none.  Errors are TensorFlow's: unknown names NOT_FOUND, fed twice or both fed and
 * fetched INVALID, a feed of the wrong type INTERNAL, no fetch and no target INVALID; a
 * kernel's error is prefixed with its node.
 */
bool session_run(struct session *session, const struct session_run *run, struct tensor *fetched,
                 struct error *err) CHECKED;

/*
 * The same, prepared: looks the names up once and returns a handle to the plan, owned by the
 * session until it is extended or freed.  This is what training loops use.
 */
struct callable;
struct callable *session_prepare(struct session *session, const struct session_run *run,
                                 struct error *err) CHECKED;

/* `feed_values` in the order given to session_prepare(); `statistics` NULL: no trace. */
bool session_call(struct session *session, struct callable *callable,
                  const struct tensor *feed_values, struct tensor *fetched,
                  struct str *statistics, struct error *err) CHECKED;

/*
 * A run in several calls, by names told at once; see partial.h for the calls' errors.  What is
 * set up is owned by the caller, who ends it before the session is freed; a session that was
 * closed lets no call pass.
 */
struct partial;
struct partial *session_partial_setup(struct session *session, const struct session_run *run,
                                      struct error *err) CHECKED;
bool session_partial_run(struct session *session, struct partial *partial,
                         const struct session_run *run, struct tensor *fetched,
                         struct error *err) CHECKED;

/* The state behind the session: variables by name. */
struct resources *session_resources(struct session *session);

/*
 * Appends the placement of the nodes that `callable` runs as JSON: [{"node", "op", "device",
 * "requested", "reason", "candidates": [{"device", "rejected"}]}]; and "stands_for", the names
 * of the nodes that a fused one replaces.
 */
void session_explain_placement(const struct session *session, const struct callable *callable,
                               struct str *json);

/* Appends what `run` executes as a serialized GraphDef with devices.  Fails as
 * session_prepare().
 */
bool session_export(struct session *session, const struct session_run *run, struct str *out,
                    struct error *err) CHECKED;

/*
 * Makes a plan for `run` while `watcher` looks on (optimise.h), and forgets it again.  Fails as
 * session_prepare() does.
 */
bool session_watch(struct session *session, const struct session_run *run,
                   const struct optimise_watcher *watcher, struct error *err) CHECKED;

/* What a step will take (memory.h); to be given to memory_release(). */
void session_estimate(const struct callable *callable, struct memory_estimate *out);

/* Bytes held for the tensors of runs, and of all variables, for reports. */
void session_memory(const struct session *session, int64_t *arena_bytes,
                    int64_t *variable_bytes);
