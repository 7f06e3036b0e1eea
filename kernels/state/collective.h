/*
 * collective.h - what collectives have in common: coming into their group, and their end.
 *
 *   collective.c       the kernels
 *   collective_ring.c  reduce and gather: chunks go round the ring of the members
 *   collective_tree.c  broadcast: first from task to task, then within each
 *
 * Keys, chunks and the order of members are TensorFlow's: its tasks may be members.
 */
#pragma once

#include <pthread.h>

#include "base/error.h"
#include "runtime/collective.h"
#include "runtime/deadline.h"
#include "runtime/kernel.h"

enum collective_merge { MERGE_ADD, MERGE_MUL, MERGE_MIN, MERGE_MAX };

/*
 * One collective of one run.  No thread holds it: each call that is open (collective.h of the
 * runtime) is pending, and when nothing is, it is over.
 */
struct kernel_collective {
    struct kernel_call *call;
    struct collective *collective;
    struct collective_wish wish;
    const struct collective_group *group;
    int rank;   /* of this device */
    int source; /* of a broadcast */
    char *name; /* of the wish */
    char *key;  /* "GROUP:INSTANCE:FRAME:ITERATION" */
    enum collective_merge merge;
    bool mean;      /* the sum is divided by the members */
    int64_t *rings; /* offsets of the rings among which a reduction is shared out */
    int rings_count;
    int rings_max; /* of each device; -1: one, 0: as many as seems good */
    struct tensor *out;
    void *parts; /* of ring or tree */
    uint64_t ticket;
    uint64_t timeout_ns; /* to come into the group, and once more for the work; 0: none */
    struct deadline deadline;
    pthread_mutex_t lock; /* guards: all below */
    int pending;
    bool failed;
    struct error err;
};

/* One call more that is open; one less, which may be the end of it all.  `err`: it failed, and
 * all others are given up. */
void kernel_collective_hold(struct kernel_collective *op);
void kernel_collective_drop(struct kernel_collective *op, const struct error *err);

/* Devices of the same task as that one, and the first of them. */
int kernel_collective_task(const struct collective_group *group, int rank, int *first);

/* Begin; `op` is held by the caller. */
void kernel_collective_ring(struct kernel_collective *op);
void kernel_collective_tree(struct kernel_collective *op);
