/*
 * queue.h - queues of tuples of tensors, whose users wait without a thread.
 *
 * Attempts to put are served in the order in which they came, and so are attempts to take; one
 * that needs many rows puts or takes what it can and waits for the rest.
 */
#pragma once

#include "kernels/state/queue_store.h"
#include "runtime/resource.h"

#define QUEUE_KIND "queue" /* as a resource */

struct cancel;
struct queue;

struct queue_spec {
    enum queue_kind kind;
    const char *name; /* for messages */
    int components;
    const int *types;
    const struct shape *shapes; /* NULL: elements may have any shape */
    int64_t capacity;
    int64_t min_after_dequeue; /* shuffle: this many stay until the queue is closed */
    int64_t seed, seed2;
};

/* Fails with INVALID when the spec contradicts itself. */
bool kernel_queue_check_spec(const struct queue_spec *spec, struct error *err) CHECKED;

/*
 * A queue with one reference.  Copies the spec.  Fails as kernel_queue_check_spec() does.  For
 * a priority queue the priority is the first component.
 */
struct queue *kernel_queue_new(const struct queue_spec *spec, struct error *err) CHECKED;

/* The spec as the queue keeps it. */
const struct queue_spec *kernel_queue_spec(const struct queue *queue);

struct resource *kernel_queue_resource(struct queue *queue);

/* "FIFOQueue". */
const char *kernel_queue_kind_name(enum queue_kind kind);

/*
 * How an attempt ended, told once, from any thread, while no lock is held.  What was taken is
 * in `tuple`, one tensor per component (NULL when something was put, or `err` is set); it may
 * be moved away.  CANCELLED: the run ended or the queue is closed for putting; OUT_OF_RANGE:
 * closed, with too little left.
 */
typedef void queue_ended(void *arg, struct tensor *tuple, const struct error *err);

/*
 * Puts one tuple, or every row of a tuple of batches.  Takes references to the tensors; their
 * types and shapes are the caller's affair.  The attempt holds a reference to the queue.
 */
void kernel_queue_put(struct queue *queue, const struct tensor *const *tuple, bool many,
                      struct cancel *cancel, queue_ended *ended, void *arg);

/* Takes one tuple. */
void kernel_queue_take(struct queue *queue, struct cancel *cancel, queue_ended *ended,
                       void *arg);

/*
 * Takes `count` rows, stacked; `up_to`: or what is left when the queue is closed.  A priority
 * queue then drops what is left and fails, as TensorFlow's does.
 */
void kernel_queue_take_many(struct queue *queue, int64_t count, bool up_to,
                            struct cancel *cancel, queue_ended *ended, void *arg);

/*
 * Nothing more is put: behind the attempts that wait now, or at once, cancelling those.  Ends
 * with CANCELLED if it was closed already (unless they are to be cancelled).
 */
void kernel_queue_shut(struct queue *queue, bool cancel_pending, struct cancel *cancel,
                       queue_ended *ended, void *arg);

int64_t kernel_queue_rows(struct queue *queue);
bool kernel_queue_is_shut(struct queue *queue);
