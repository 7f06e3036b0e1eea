/*
 * internal.h - what the stages of a run hand to each other.  Only runtime/ includes it.
 *
 * prune makes a subgraph, lower and optimise change it, place says where its nodes run,
 * partition cuts it by device, plan fixes the order and finds kernels, layout packs the memory,
 * execute runs.
 * A graph with control flow, or with kernels that wait, is run by dataflow.c instead.
 */
#pragma once

#include <pthread.h>

#include "runtime/execute_internal.h"
#include "runtime/graph.h"
#include "runtime/kernel.h"
#include "runtime/optimise.h"
#include "runtime/place.h"
#include "runtime/resource.h"
#include "runtime/workspace.h"

struct cancel;
struct dataflow;
struct map;
struct session_run;
struct str;

/* --- prune.c: the part of a session's graph that one signature needs --- */

struct subgraph {
    struct graph *graph; /* a view; everything here lives in its arena */
    struct node **feeds; /* op _Arg, in the order of the run's feeds */
    int feeds_count;
    struct edge *fetches;
    int fetches_count;
    struct node **targets;
    int targets_count;
    bool partial; /* feeds come one by one while it runs: partial.h */
};

/* Owned by the caller, subgraph_free().  Errors are those of session_run(). */
struct subgraph *prune_graph(const struct graph *graph, const struct session_run *run,
                             struct error *err) CHECKED;
void prune_free(struct subgraph *subgraph); /* NULL is fine */

/* Appends what tells one signature from another. */
void prune_signature(const struct session_run *run, bool partial, struct str *out);

/*
 * Which nodes (by id) the fetches and targets still need, as the graph is now.  To be freed.
 */
bool *prune_needed(const struct subgraph *subgraph);

/* Marks the feeds (by index) that lead to that fetch. */
void prune_feeds_of(const struct subgraph *subgraph, int fetch, bool *needed);

/* The op of a fed value: no inputs, one output. */
extern const struct op prune_arg;

/* The name of the node whose output is fed by `arg`; `*size` bytes, borrowed. */
const char *prune_fed_name(const struct node *arg, int *size);

/* --- lower.c: bodies of functions in place of their calls --- */

struct attr_func;
struct function_library;
struct function_set;

/* A While that was lowered: what it was given, and what its results are now. */
struct lowered {
    const struct edge *inputs;
    int inputs_count;
    const struct edge *results;
    int results_count;
    const struct lowered *next;
};

/*
 * Lowers all calls in the graph, or only those of the nodes `wanted` (by id; NULL: all).  A
 * function that calls itself stays a call there.  Errors are those of a run: an unknown
 * function or op is NOT_FOUND, a body that does not fit INVALID, too many nodes EXHAUSTED.
 * `loops`, if not NULL, gets the Whiles among them, in the graph's arena.
 */
bool lower_graph(struct graph *graph, struct function_library *library, const bool *wanted,
                 const struct lowered **loops, struct error *err) CHECKED;

/*
 * All calls of a subgraph.  A call that runs computes all its results: some become targets.
 * Calls of functions on one of `devices` (RemoteCall) have their bodies there.
 */
bool lower_subgraph(struct subgraph *subgraph, struct function_library *library,
                    const struct device *devices, int devices_count, struct error *err) CHECKED;

/* A function by itself: placeholders for arguments, the body with its calls lowered. */
struct lower_function {
    struct edge *args; /* all live in the graph's arena */
    int args_count;
    struct edge *results;
    int results_count;
    struct node **effects;
    int effects_count;
};

/* Fills an empty graph (no view) with the body of `func`.  Fails as lower_graph(). */
bool lower_function(struct graph *graph, struct function_library *library,
                    const struct attr_func *func, struct lower_function *out,
                    struct error *err) CHECKED;

/* --- optimise.c: the same results with less work --- */

struct plan_context;
/* `by_shapes`: feeds will have the shapes that their placeholders declare. */
bool optimise_graph(struct subgraph *subgraph, struct plan_context *context, bool by_shapes,
                    struct error *err) CHECKED;

/* The same, watched: NULL for nobody. */
bool optimise_graph_watched(struct subgraph *subgraph, struct plan_context *context,
                            bool by_shapes, const struct optimise_watcher *watcher,
                            struct error *err) CHECKED;

/* Its passes; each in a file of its own.  They work through rewrite.h. */
struct pass {
    struct subgraph *subgraph;
    struct plan_context *context;
    bool by_shapes; /* feeds will have the shapes that their placeholders declare */
};
void optimise_identity(struct subgraph *subgraph);
void optimise_shape(struct subgraph *subgraph);
bool optimise_lift(struct subgraph *subgraph, struct error *err) CHECKED;
bool optimise_layout(struct pass *pass, struct error *err) CHECKED;
bool optimise_arithmetic(struct pass *pass, struct error *err) CHECKED;
void optimise_fold(struct subgraph *subgraph, struct plan_context *context);
void optimise_merge(struct subgraph *subgraph);
bool optimise_fuse(struct subgraph *subgraph, struct error *err) CHECKED;
bool optimise_lookup(struct pass *pass, struct error *err) CHECKED;
bool optimise_norm(struct pass *pass, struct error *err) CHECKED;
bool optimise_winograd(struct pass *pass, struct error *err) CHECKED;
bool optimise_softmax(struct pass *pass, struct error *err) CHECKED;
bool optimise_chain(struct pass *pass, struct error *err) CHECKED;
bool optimise_update(struct pass *pass, struct error *err) CHECKED;
bool optimise_recompute(struct pass *pass, struct error *err) CHECKED;

/* What they share: an op of control flow (Switch, Merge, Enter ...); */
bool optimise_is_flow(const struct node *node);

/*
 * by node id, whether a node may be dead or run more than once: it is below one of those.  To
 * be freed; NULL when there are none.
 */
bool *optimise_inner(const struct subgraph *subgraph, const int *order);

/* --- partition.c: one part per device --- */

struct partition {
    const struct device *device;
    struct subgraph *subgraph; /* borrowed */
};

/* Cuts `whole`; `*parts` is an array to be freed. */
bool partition_graph(struct subgraph *whole, struct partition **parts, int *count,
                     struct error *err) CHECKED;

/* --- plan.c: the order of calls, and which value each call reads and writes --- */

/* A kernel of a stateful op: one per session and node. */
struct stateful {
    const struct kernel *kernel;
    void *state;
};

/* What the plans of a session share. */
struct plan_context {
    struct resources *resources;
    pthread_mutex_t lock;             /* guards: stateful */
    struct map *stateful;             /* struct stateful by node name */
    struct workspace_pool workspaces; /* for the tensors of runs */
    int threads;
    int64_t memory_bytes_max;
    int64_t memory_limit; /* what a step should fit in, so that it is recomputed; 0: none */
    uint32_t passes_off;  /* of the optimiser, see optimise.h */
    int precision;        /* for kernel_call */
    struct function_set *functions; /* that kernels may call; NULL: none */
};

void plan_context_init(struct plan_context *context, struct resources *resources, int threads,
                       int64_t memory_bytes_max);
void plan_context_release(struct plan_context *context);

enum { STEP_HAS_REFS = 1 };

/*
 * One kernel call.  `values` of a plan are numbered: constants and feeds first, then the
 * outputs of the steps, then copies of references that are read as values.
 */
struct plan_step {
    bool (*run)(struct kernel_call *call, struct error *err);
    int flags;
    int release_first; /* into plan->releases: values whose last use this is */
    int release_count;
    int in_first; /* into plan->inputs and plan->sources */
    int in_count;
    int out_first;     /* value */
    uint64_t reusable; /* inputs whose memory may become an output's */
    const struct node *node;
    const struct kernel *kernel;
    struct stateful *stateful; /* NULL: each frame has its own state */
};

struct plan_constant {
    int value;
    const struct tensor *tensor;
};

struct plan_fetch {
    int value;
    const struct node *node; /* whose output it is, for messages */
    bool is_ref;
    bool movable; /* the value is a step's, and no later fetch wants it */
};

/* Where an output goes in the arena of a frame. */
struct place_in_arena {
    int64_t offset; /* -1: on the heap */
    size_t size;
    int alias; /* input of the step whose memory it shares, -1 for none */
};

struct plan {
    struct subgraph *subgraph; /* borrowed */
    struct plan_context *context;
    struct plan_step *steps;
    int steps_count;
    struct dataflow
        *flow;    /* NULL: execute.c runs the steps in order; else all below is unused */
    int *inputs;  /* the value that a call sees */
    int *sources; /* the value that was produced: differs for references */
    int *releases;
    int values_count;
    int owned_first; /* values from here on are made by steps */
    int *defined_by; /* step of a value from owned_first on */
    int *last_use;   /* step */
    bool *fetched;
    const int **types_of_value; /* points at the output's type */
    struct plan_constant *constants;
    int constants_count;
    int *feeds; /* values */
    int feeds_count;
    struct plan_fetch *fetches;
    int fetches_count;

    pthread_mutex_t lock;          /* guards: all below */
    struct frame *idle;            /* frames that nobody uses */
    struct place_in_arena *layout; /* by value; NULL until measured */
    size_t *needed;                /* most bytes seen, by value */
    size_t arena_size;
    int layout_version; /* of `layout`; 0: the next run measures, on the heap */
    int measured;       /* how often; the version of the newest layout */
};

struct plan *plan_new(struct subgraph *subgraph, const struct device *device,
                      struct plan_context *context, struct error *err) CHECKED;
void plan_free(struct plan *plan); /* NULL is fine; nobody runs it */

/* Whether no plan could be made for want of a feed, which TensorFlow only misses in a run. */
bool plan_lacks_feed(const struct error *err);

/* Steps of their own, for dataflow_plan.c: what can be told before a run, a kernel, a constant.
 */
bool plan_check_runnable(const struct node *node, struct error *err) CHECKED;
bool plan_init_step(struct plan *plan, struct plan_step *step, const struct node *node,
                    enum device_type device, struct error *err) CHECKED;
const struct tensor *plan_constant(const struct node *node, struct error *err) CHECKED;

/* --- layout.c: memory of a frame, packed from what a run was seen to need --- */

/* Makes or renews plan->layout from a frame that has just measured; plan->lock is held. */
void layout_measure_locked(struct plan *plan, const struct frame *frame);
