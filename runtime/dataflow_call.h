/*
 * dataflow_call.h - what a run starts and what comes back to it: kernels, and values from and
 * to the other parts of its step.
 */
#pragma once

#include "runtime/dataflow_internal.h"

/* A kernel (or a receive) that has been started, with all that its call points at. */
struct dataflow_started {
    struct kernel_call call;
    struct dataflow_started *next; /* in the mailbox */
    struct dataflow_run *run;
    struct dataflow_iteration *iteration;
    const struct dataflow_node *node;
    uint64_t start_ns;
    struct error *err; /* NULL: it went well */
    const struct tensor **in;
    struct variable **refs;
    struct tensor *read;
    struct kernel_slot *slots;
    struct tensor received; /* of a receive */
    uint64_t travel_ns;     /* while that was on its way */
    bool dead;              /* what was received is */
};

/* --- dataflow_call.c --- */

/* Runs or starts the node's kernel; `*waits` when it will come back by the mailbox. */
bool dataflow_call(struct dataflow_run *run, struct dataflow_iteration *iteration,
                   const struct dataflow_node *node, bool *waits, struct error *err) CHECKED;

/*
 * One kernel that has come back, NULL if there is none; waits for one if so asked, at most to
 * the run's deadline.  `*ok` and `err` are what it said, `*dead` what a receive got.
 */
const struct dataflow_node *dataflow_call_collect(struct dataflow_run *run, bool wait,
                                                  struct dataflow_iteration **iteration,
                                                  bool *dead, bool *ok, struct error *err);

/* Puts what is done into the mailbox; `err` NULL: it went well.  On any thread. */
void dataflow_call_post(struct dataflow_started *started, const struct error *err);

void dataflow_call_init(struct dataflow_run *run);
void dataflow_call_release(struct dataflow_run *run);

/* --- dataflow_transfer.c: values from and to the other parts of the step --- */

/* The hash by which a frame's name goes into its id: TensorFlow's. */
uint64_t dataflow_transfer_hash(const char *name);

/* The id of a frame that is entered from there: the same in all parts. */
uint64_t dataflow_transfer_frame_id(const struct dataflow_frame *parent, int64_t iteration,
                                    const struct dataflow_loop *loop);

/* Gives input 0 to the rendezvous, or tells it that the node is dead. */
bool dataflow_transfer_send(struct dataflow_run *run, struct dataflow_iteration *iteration,
                            const struct dataflow_node *node, bool live,
                            struct error *err) CHECKED;

/* Begins to receive; it comes back by the mailbox. */
bool dataflow_transfer_receive(struct dataflow_run *run, struct dataflow_iteration *iteration,
                               const struct dataflow_node *node, struct error *err) CHECKED;

/* A run with a rendezvous: whatever cancels the one, aborts the other. */
bool dataflow_transfer_open(struct dataflow_run *run, struct error *err) CHECKED;
void dataflow_transfer_close(struct dataflow_run *run);
