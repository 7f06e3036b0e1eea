/*
 * dataflow_internal.h - a run that follows the values: what decides itself which nodes run.
 *
 * DESIGN.  The plan (dataflow_plan.c) knows each node's frame: the graph itself is frame 0, and
 * each name that Enter nodes give makes a frame inside the one that their inputs are in.  Edges
 * lead to readers; a node waits for as many arrivals as it has edges that come from nodes. What
 * is there from the start (constants and feeds outside of all frames) counts for nothing.
 *
 * At run time (dataflow_frame.c) each entry of a frame makes an instance, and the instance has
 * iterations.  An iteration holds the outputs of the frame's nodes and a count of arrivals for
 * each; a node gives its outputs to the iteration where they are read, which for Enter, Exit
 * and NextIteration is another than its own.  A value knows how many readers are left, so that
 * the last one may take its memory over.  What a constant Enter gives lies beside, for all
 * iterations of its frame, and so do constants: a reader gets a pointer.
 *
 * An iteration is over when nothing in it is ready or running, no frame entered from it lives,
 * the iterations before it are over and (the first one) all Enters have arrived.  A frame is
 * over when its iterations are; those of its Exits that gave nothing then give a dead value.
 * What is over is kept for the next entry, so a loop allocates only in its first rounds.
 *
 * Nodes run on the calling thread, always the ready one of the oldest iteration that comes
 * first in the graph's order; kernels alone are parallel.  So equal runs give equal bits.
 * Kernels that wait (dataflow_call.c) hold no thread: their ends come by a mailbox, and the run
 * sleeps there only when nothing is ready.  After the first failure nothing is started any
 * more, the run's cancel wakes those that wait, and the run ends when all have come back.
 */
#pragma once

#include "runtime/internal.h"
#include "runtime/op.h"

/* --- what is fixed when the plan is made --- */

enum {
    DATAFLOW_CONTROL = -1, /* output of a control edge */
    DATAFLOW_ALL = -2,     /* not one output of several: all of them */
};

struct dataflow_edge {
    int to;     /* node */
    int output; /* of the node it comes from, or DATAFLOW_CONTROL */
    int input;  /* of `to` */
};

/* An input is a value of the iteration (>= 0), or ~index of something fixed in the frame. */
struct dataflow_node {
    const struct node *node;
    const struct plan_step *step; /* NULL: the executor itself does it */
    int loop;                     /* the frame in which it runs */
    int local;                    /* its number there */
    int gives_to;                 /* the frame of its outputs */
    int in_first;                 /* into sources */
    int out_first;                /* value, or what is fixed, of output 0 where it gives to */
    int edges_first;
    int edges_count;
    int place; /* a constant Enter's, an Exit's in its frame; the fetch of a retval; else -1 */
};

/* How many arrivals a node still waits for, and how many of those that came were dead. */
struct dataflow_state {
    int pending; /* Merge: twice the controls, and 1 until a data input decided */
    int dead;    /* Merge: ~input of the one that came alive */
};

struct dataflow_fixed {
    const struct tensor *tensor;
    struct variable *variable;
};

/* A frame as the graph has it. */
struct dataflow_loop {
    const char *name;
    uint64_t hash; /* of the name */
    int parent;
    int parallel; /* iterations at a time */
    int nodes_count;
    int values_count;
    int enters_count;
    int nexts_count;
    int constants_count;
    int switches_count;
    int *exits; /* nodes */
    int exits_count;
    int exits_capacity;
    int *constants; /* nodes: constant Enters */
    int constants_capacity;
    struct dataflow_fixed *fixed;
    int fixed_count;
    int fixed_capacity;
    int *uses; /* by value: how often it is read */
    /* By node: what it waits for; `warm` without what constant Enters give. */
    struct dataflow_state *cold, *warm;
    int *warm_roots; /* nodes that wait for constant Enters alone */
    int warm_roots_count;
    int warm_roots_capacity;
    bool never_warm; /* a constant Enter feeds a Merge */
};

struct dataflow {
    struct dataflow_node *nodes; /* in the graph's order */
    int nodes_count;
    struct dataflow_edge *edges;
    int *sources;
    struct dataflow_loop *loops;
    int loops_count;
    int loops_capacity;
    int *roots; /* nodes that wait for nothing */
    int roots_count;
    int *feeds;      /* what is fixed in frame 0, by feed */
    int *feed_nodes; /* by feed: what a partial run waits for, -1: nobody reads it */
    /* What is fixed in frame 0, by fetch: there from the start; -1: a retval brings it. */
    int *fetches;
    int inputs_max;            /* of one node */
    struct dataflow_run *idle; /* guarded by plan->lock */
};

/* The op of a fetch. */
extern const struct op dataflow_retval;

/* --- a run --- */

/* What a fetch has got. */
struct dataflow_result {
    bool came;
    bool wanted; /* by a partial run that does not go on without it */
    struct tensor tensor;
    struct variable *variable; /* of a reference, to be read at the end */
};

struct dataflow_iteration {
    struct dataflow_frame *frame;
    struct dataflow_iteration *next; /* of those that are over */
    int64_t number;
    uint64_t age;    /* lower: began earlier in this run */
    int outstanding; /* nodes ready or running */
    int children;    /* frames entered from here */
    struct dataflow_frame *entered;
    struct dataflow_state *states; /* by node */
    int *uses;                     /* by value: readers that are left */
    struct variable **variables;   /* by value, of references */
    struct tensor *tensors;        /* by value */
};

/* A value on its way to iterations that are not there yet. */
struct dataflow_held {
    const struct dataflow_node *from; /* NULL: has not come */
    bool live;
    struct tensor tensor;
    struct variable *variable;
};

struct dataflow_frame {
    const struct dataflow_loop *loop;
    uint64_t id;                             /* by which the parts of a step know it */
    struct dataflow_iteration *parent;       /* NULL: the graph itself */
    struct dataflow_frame *sibling, *before; /* entered from the same iteration */
    struct dataflow_frame *newer, *older;    /* of all that live in this run */
    struct dataflow_frame *next;             /* of those that are over */
    struct dataflow_iteration **iterations;  /* by number, modulo loop->parallel */
    int64_t first, last;                     /* numbers of those that live */
    int enters_pending;
    int constants_live; /* constant Enters that came alive */
    struct dataflow_held *constants;
    struct dataflow_held *waiting; /* NextIterations that wait for room */
    int waiting_count;
    bool *exited; /* by place */
    struct dataflow_fixed *fixed;
};

struct dataflow_item {
    uint64_t age;
    int node;
    struct dataflow_iteration *iteration;
};

/* Where kernels that have been started say that they are done. */
struct dataflow_mailbox {
    pthread_mutex_t lock;  /* guards: all below */
    pthread_cond_t filled; /* by the monotonic clock */
    struct dataflow_started *done;
    struct dataflow_started **end;
    int full;                    /* __atomic; whether `done` is not empty */
    struct attention *attention; /* of the thread that waits; NULL: it waits for `filled` */
};

struct dataflow_run {
    struct dataflow_run *next;
    struct plan *plan;
    const struct dataflow *flow;
    const struct execute_options *options;
    struct step step;
    struct kernel_call *calls; /* one per step */
    const struct tensor **in;  /* of the call that runs now, as those below */
    struct variable **refs;
    struct tensor *read;       /* values read through references */
    struct kernel_slot *slots; /* by output of a step */

    struct dataflow_item *ready; /* a heap */
    int ready_count;
    int ready_capacity;
    int started; /* kernels that have not come back */
    uint64_t age;
    struct dataflow_frame *root;
    struct dataflow_frame *frames;               /* the newest of those that live */
    struct dataflow_frame **idle_frames;         /* by loop */
    struct dataflow_frame **latest;              /* by loop: entered last */
    int *living;                                 /* by loop: frames */
    struct dataflow_iteration **idle_iterations; /* by loop */
    struct dataflow_result *results;             /* by fetch */
    struct tensor *fed;                          /* by feed, of a partial run */
    bool partial; /* stops when nothing is wanted any more, to be continued */
    int wanted;   /* results that have not come */
    bool failed;
    struct error *err;        /* of the first failure */
    uint64_t transfer_ticket; /* at the step's cancel, with a rendezvous */
    struct dataflow_mailbox mailbox;
};

/* --- dataflow_frame.c --- */

/* Makes the graph itself, with its one iteration; once per run object. */
void dataflow_frame_root(struct dataflow_run *run);

/* The iteration that an Enter in `from` gives to; the frame is made when it is the first. */
struct dataflow_iteration *dataflow_frame_enter(struct dataflow_run *run,
                                                struct dataflow_iteration *from,
                                                const struct dataflow_node *enter);

/* The next iteration of the frame, NULL when there is no room for it now. */
struct dataflow_iteration *dataflow_frame_next(struct dataflow_run *run,
                                               struct dataflow_iteration *from);

/*
 * After a node of `iteration` is done: iterations and frames that are over are taken down,
 * those that waited for room begin.
 */
void dataflow_frame_settle(struct dataflow_run *run, struct dataflow_iteration *iteration);

/* Takes all frames down, whatever they hold. */
void dataflow_frame_clear(struct dataflow_run *run);
void dataflow_frame_free_all(struct dataflow_run *run);

/* --- dataflow_run.c --- */

/* A first one, so that kernels are prepared (and fail) when the plan is made. */
bool dataflow_run_prepare(struct plan *plan, struct error *err) CHECKED;
void dataflow_run_free(struct dataflow_run *run);

/* --- dataflow.c --- */

/* Runs all that gets ready, until nothing is left or it failed. */
void dataflow_go(struct dataflow_run *run);

/* The node has all that it waits for. */
void dataflow_ready(struct dataflow_run *run, struct dataflow_iteration *iteration, int node);

/* Something came to a node along an edge. */
void dataflow_arrive(struct dataflow_run *run, struct dataflow_iteration *iteration,
                     const struct dataflow_edge *edge, bool live, bool from_enter);

/* Input `input` of the node into `out`, or `variable` when it takes a reference. */
bool dataflow_take_input(struct dataflow_run *run, struct dataflow_iteration *iteration,
                         const struct dataflow_node *node, int input, struct tensor *out,
                         struct variable **variable, struct error *err) CHECKED;

/* All that leads away from `node`; `output` says which of its outputs lives, if `live`. */
void dataflow_give(struct dataflow_run *run, struct dataflow_iteration *to,
                   const struct dataflow_node *node, bool live, int output);

/* One reader less. */
static inline void dataflow_use(struct dataflow_iteration *iteration, int value)
{
    struct tensor *tensor = &iteration->tensors[value];
    if (--iteration->uses[value] == 0 && tensor->buffer) {
        buffer_unref(tensor->buffer);
        tensor->buffer = NULL;
    }
}

/* The reference moves; only the dimensions that are there are copied. */
static inline void dataflow_move(struct tensor *to, struct tensor *from)
{
    to->dtype = from->dtype;
    to->count = from->count;
    to->data = from->data;
    to->buffer = from->buffer;
    to->shape.rank = from->shape.rank;
    for (int i = 0; i < from->shape.rank; i++)
        to->shape.dims[i] = from->shape.dims[i];
    from->buffer = NULL;
}
