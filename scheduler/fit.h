/*
 * fit.h - finds a node for every task of a job, or for none.
 */
#pragma once

#include "scheduler/scheduler.h"

/* What a node has free. */
struct fit_node {
    int64_t id;
    bool offered;
    int kind;                        /* match.h */
    struct scheduler_resources free; /* GPUs: those of which nobody holds a part */
    int mine;                        /* tasks of the job that is being placed */
    int gpus_count;
    uint16_t gpu_free[SCHEDULER_GPUS_MAX]; /* of each, in thousandths */
    uint64_t gpus_away;                    /* bit i: nothing is free of GPU i, whoever ends */
};

struct fit {
    struct fit_node *nodes;
    int count;
    int capacity;
    struct scheduler_resources most; /* no node offers more than this of each */
};

/* What a job asks for. */
struct fit_ask {
    const struct scheduler_need *needs;
    int needs_count;
    bool *const *suits;      /* by need, by kind; NULL, and [i] NULL: every node does */
    const int64_t *excluded; /* ids of nodes it may not go to */
    int excluded_count;
    bool spread; /* on as many nodes as possible, if that can be had; else tightly */
};

struct fit_place {
    int node;          /* index */
    uint64_t gpu_mask; /* bit i: the node's GPU i */
};

/* Makes room for the nodes of one look, all zero. */
void fit_resize(struct fit *fit, int count);
void fit_release(struct fit *fit);

/* Makes `copy` the same as `fit`. */
void fit_copy(struct fit *copy, const struct fit *fit);

/* Sets `most`; after the nodes were filled in. */
void fit_ready(struct fit *fit);

/*
 * Takes room for all tasks of the ask (needs in their order, replicas in a row), or leaves
 * everything as it was and returns false: half a job only holds what another could have
 * finished on.
 *
 * Larger tasks are placed first, each where it leaves the fewest GPUs idle, then the fewest
 * CPUs, which keeps large holes whole for large jobs; a part of a GPU goes where another part
 * is held already.  Ties go to the lower index, so equal inputs give equal placements.  It is
 * no search: rarely, a packing that exists is missed.
 */
bool fit_job(const struct fit_ask *ask, struct fit *fit, struct fit_place *places);

/* Gives back what fit_job() took. */
void fit_undo(const struct fit_ask *ask, struct fit *fit, const struct fit_place *places);

/* True when one such task fits into `free`, GPUs that are shared aside. */
bool fit_task(const struct scheduler_resources *task, const struct scheduler_resources *free);

/* Takes from a node what one task holds there; or gives it back. */
void fit_take(struct fit_node *node, const struct scheduler_resources *task, int gpu_share,
              uint64_t gpu_mask);
void fit_give(struct fit_node *node, const struct scheduler_resources *task, int gpu_share,
              uint64_t gpu_mask);
