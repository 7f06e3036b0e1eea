/*
 * fit.h - finds a node for every task of a job, or for none.
 */
#pragma once

#include "scheduler/scheduler.h"

struct fit_node {
    bool offered;
    struct scheduler_resources free;
};

/*
 * Places the tasks of `needs` (in their order, replicas in a row), or says that they do not
 * fit: half a job only holds what another job could have finished on.
 *
 * Larger tasks are placed first, each where it leaves the fewest GPUs idle, then the fewest
 * CPUs, which keeps large holes whole for large jobs; ties go to the lower index, so equal
 * inputs give equal placements.  It is no search: rarely, a packing that exists is missed.
 *
 * Reads `nodes`; `scratch` has room for as many; writes placement[0 .. tasks), which means
 * nothing when this returns false.
 */
bool fit_job(const struct scheduler_need *needs, int needs_count, const struct fit_node *nodes,
             int nodes_count, struct fit_node *scratch, int *placement);

/* True when one such task fits into `free`. */
bool fit_task(const struct scheduler_resources *task, const struct scheduler_resources *free);
