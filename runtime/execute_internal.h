/*
 * execute_internal.h - a run of a plan: its memory, how it is watched and ended.
 *
 * execute.c runs the steps of a plan in order, dataflow.c follows the values; what they share
 * is in execute_step.c.
 */
#pragma once

#include "runtime/kernel.h"
#include "runtime/tensor.h"
#include "runtime/trace.h"

struct cancel;
struct dataflow;
struct dataflow_run;
struct frame;
struct plan;
struct rendezvous;
struct resources;
struct variable;
struct waits;

/* --- execute.c: frames, and running them --- */

struct kernel_slot { /* memory of one output in one frame */
    void *data;      /* in the run's workspace, NULL for none */
    size_t capacity;
    size_t needed; /* the most asked for in this frame's life */
    enum dtype dtype;
    int element_bytes;
    int alias;   /* as in struct place_in_arena */
    int seen;    /* how it was made when last measured: an input's index, or SEEN_* */
    bool pinned; /* always on the heap, on purpose */
    bool sent;   /* to another part of the graph, perhaps of another task */
    struct variable *variable; /* of a reference */
};

enum { SEEN_NOTHING = -1, SEEN_OWN = -2, SEEN_FOREIGN = -3 };

struct scratch_block {
    struct scratch_block *next;
    size_t size;
    size_t used;
};

/* One run of a plan. */
struct step {
    int64_t memory_bytes_max;
    int misses; /* outputs that had to leave the arena */
    struct scratch_block *scratch;
    struct cancel *cancel; /* of this run alone */
    struct collective *collective;
    struct cancel *own;          /* for runs that bring none; kept for later ones */
    uint64_t parent_ticket;      /* at the cancel that ends this run from outside */
    struct resources *resources; /* __atomic; that end with the run; NULL until asked for */
    struct held *held;           /* __atomic; what kernels hold until the run ends */
};

/* A resource that a run holds. */
struct held {
    struct held *next;
    struct resource *resource;
};

/* All that one run of a plan writes to, so that runs may overlap. */
struct frame {
    struct frame *next;
    struct plan *plan;
    struct step step;
    struct kernel_call *calls; /* one per step */
    const struct tensor **in;  /* as plan->inputs */
    struct variable **refs;    /* as plan->inputs */
    struct tensor *values;
    struct kernel_slot *slots;   /* one per value */
    struct workspace *workspace; /* of this run; small ones are kept; NULL: none */
    char *laid_out;              /* the memory that slots point into */
    int layout_version;          /* 0: measuring, all on the heap */
};

/* In front of the text of an error that only says that another part of the step failed. */
#define EXECUTE_DERIVED "[_Derived_]"

/* How a run is watched, and ended from outside. */
struct execute_options {
    struct trace *trace;   /* NULL: no statistics */
    bool check_numerics;   /* fail at the first NaN or infinity (numerics.h) */
    struct cancel *cancel; /* borrowed; ends the run from outside; NULL: nobody does */
    struct cancel *own;    /* borrowed; of this run alone, which cancels it when it fails */
    uint64_t deadline_ns;  /* by the monotonic clock; 0: none */
    /* Borrowed: where the parts of the step meet; aborted when the run fails.  NULL: alone. */
    struct rendezvous *rendezvous;
    struct collective *collective; /* borrowed; for kernels of collectives; NULL: alone */
    struct waits *waits;           /* NULL: nobody asks for whom the run waits */
};

/*
 * Runs the plan.  `feeds` in the order of the signature, `fetched` gets the results. `options`
 * may be NULL.  Fails as the kernels do, with CANCELLED or DEADLINE when it is ended.
 */
bool execute_plan(struct plan *plan, const struct tensor *feeds, struct tensor *fetched,
                  const struct execute_options *options, struct error *err) CHECKED;

/* --- what execute.c and dataflow.c share --- */

/* Binds the step of a run to what ends it; false if that has happened already (CANCELLED). */
bool execute_begin(struct step *step, const struct execute_options *options,
                   struct error *err) CHECKED;
/* The counterpart: resources and scratch of the run are given back. */
void execute_end(struct step *step, const struct execute_options *options);
void execute_free_step(struct step *step);

/* Whether the run was ended from outside, or its time is up. */
bool execute_stopped(const struct step *step, const struct execute_options *options,
                     struct error *err) CHECKED;

/* After a call: scratch memory is free again. */
void execute_reset_scratch(struct step *step);

bool execute_fail_uninitialized(const struct variable *variable, struct error *err);

/* The value behind a reference, borrowed buffer and all; PRECONDITION if there is none. */
bool execute_read_ref(struct variable *variable, struct tensor *out, struct error *err) CHECKED;

/* What leaves the run: the elements moved if nobody else has them, else copied. */
bool execute_fetch(struct tensor *value, bool movable, struct tensor *out,
                   struct error *err) CHECKED;
bool execute_fetch_ref(struct variable *variable, struct tensor *out,
                       struct error *err) CHECKED;

/* Fails with INTERNAL when the feed's type is not the graph's. */
bool execute_check_feed(const struct node *arg, const struct tensor *feed,
                        struct error *err) CHECKED;

/* --- dataflow.c: a run that follows the values --- */

/*
 * Makes plan->flow for the nodes that are needed; the graph is sealed.  Fails with INVALID when
 * frames do not nest.
 */
bool dataflow_plan_new(struct plan *plan, const bool *needed, enum device_type device,
                       struct error *err) CHECKED;
void dataflow_plan_free(struct dataflow *flow); /* NULL is fine; nobody runs it */

bool dataflow_run(struct plan *plan, const struct tensor *feeds, struct tensor *fetched,
                  const struct execute_options *options, struct error *err) CHECKED;

/* A frame for the first run, so that kernels are prepared (and fail) when the plan is made. */
bool execute_prepare(struct plan *plan, struct error *err) CHECKED;
void execute_free_frame(struct frame *frame);

/*
 * A run in parts: dataflow_run_begin(), then any number of dataflow_run_feed() and
 * dataflow_run_until(), then dataflow_run_end(), which cancels what still goes on.  `options`
 * are borrowed until then.
 */
struct dataflow_run *dataflow_run_begin(struct plan *plan,
                                        const struct execute_options *options,
                                        struct error *err) CHECKED;
/* Shares the value. */
bool dataflow_run_feed(struct dataflow_run *run, int feed, const struct tensor *value,
                       struct error *err) CHECKED;
/*
 * Goes on until these fetches have come (`last`: until all is done), and gives them.  After a
 * failure the run is over: it can only be ended.
 */
bool dataflow_run_until(struct dataflow_run *run, const int *fetches, int count, bool last,
                        struct tensor *fetched, struct error *err) CHECKED;
void dataflow_run_end(struct dataflow_run *run);
