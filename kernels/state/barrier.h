/*
 * barrier.h - tuples whose components come one by one, under a key.
 *
 * A tuple is ready when all its components are there; ready ones are taken in the order in
 * which their first component came.
 */
#pragma once

#include "kernels/state/queue.h"

#define BARRIER_KIND "barrier"

struct barrier;

struct barrier_spec {
    int components;
    const int *types;
    const struct shape *shapes;
};

/* Copies the spec; one reference. */
struct barrier *kernel_barrier_new(const struct barrier_spec *spec, const char *name,
                                   struct error *err) CHECKED;
struct resource *kernel_barrier_resource(struct barrier *barrier);
const char *kernel_barrier_name(const struct barrier *barrier);
const struct barrier_spec *kernel_barrier_spec(const struct barrier *barrier);

/*
 * Gives each key a value for `component`: row i of `values` to element i of `keys`.  The ends
 * are as those of a queue: INVALID when a key has one already, CANCELLED for new keys once the
 * barrier is closed.
 */
void kernel_barrier_put(struct barrier *barrier, const struct tensor *keys, int component,
                        const struct tensor *values, struct cancel *cancel, queue_ended *ended,
                        void *arg);

/*
 * Takes `count` ready tuples: indices, keys and the components, stacked.  OUT_OF_RANGE when the
 * barrier is closed and so many will not come; `small_batch`: then what there is.
 */
void kernel_barrier_take(struct barrier *barrier, int64_t count, bool small_batch,
                         struct cancel *cancel, queue_ended *ended, void *arg);

/* No new keys; `cancel_pending`: and what is incomplete is forgotten. */
void kernel_barrier_shut(struct barrier *barrier, bool cancel_pending, struct cancel *cancel,
                         queue_ended *ended, void *arg);

int64_t kernel_barrier_ready(struct barrier *barrier);
int64_t kernel_barrier_incomplete(struct barrier *barrier);
