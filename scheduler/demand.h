/*
 * demand.h - how many more nodes the jobs that wait would use: the scheduler itself, on a copy
 * of its state to which they have joined.
 */
#pragma once

#include "scheduler/scheduler.h"

/* Nodes that can be brought for the jobs of one queue. */
struct demand_pool {
    const char *queue;
    struct scheduler_node_info like; /* what each has; id, name, state are not looked at */
    int coming;                      /* are on their way */
    int room;                        /* as many more may be asked for */

    int used;   /* filled: of those on their way, how many jobs are to run on */
    int wanted; /* filled: of those that may be asked for, how many jobs of the queue would use
                 */
};

/* The name of the queue of a job that has not ended, borrowed; "" for others. */
const char *demand_queue(const struct scheduler *s, int64_t number);

/* Fills the pools from the state of `s`, which stays as it is.  Pure. */
void demand_read(const struct scheduler *s, struct demand_pool *pools, int pools_count,
                 uint64_t now_us);

/* Whether the needs could be met, were `pool->room` nodes of the pool the only ones beside
 * those of `copy`, which is changed. */
bool demand_possible(struct scheduler *copy, const struct demand_pool *pool,
                     const struct scheduler_need *needs, int needs_count, uint64_t now_us);
