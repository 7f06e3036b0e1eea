/*
 * forecast.h - when jobs that wait will start, if nothing new comes: the scheduler itself,
 * played on in a time of its own.
 *
 * Every job is taken to run as long as it may (its time limit, and the grace it has to stop),
 * and one without a limit for ever: an estimate that is more often too late than too early, as
 * long as no jobs of higher rank come.  Ends that lie close together are taken together, at the
 * last of them: that makes a start later by a sixteenth at most, but jobs may fill gaps in
 * another order then.  Nodes that are silent stay as they are.
 *
 * Pure, and bounded by work, not by time: the same state gives the same answer.
 */
#pragma once

#include "base/base.h"

struct arena;
struct scheduler;

/* One pass costs as many as there are jobs and nodes. */
#define FORECAST_WORK 200000

#define FORECAST_NEVER UINT64_MAX

struct forecast_job {
    int64_t number;
    uint64_t start_us;   /* from now: its first start; FORECAST_NEVER: none was seen */
    int64_t node;        /* of its first task, when it starts; 0 */
    int nodes_count;     /* over which its tasks are spread; 0 */
    uint64_t preempt_us; /* from now: it is stopped for another; FORECAST_NEVER: it is not */
};

struct forecast {
    struct forecast_job *jobs; /* those that wait now, or are preempted, by number */
    int count;
    bool complete;     /* it was played until nothing changes any more */
    uint64_t until_us; /* from now: so far it was looked */
};

/*
 * Plays a scheduler on, from its state at `now_us` until the job `number` has started (0: until
 * all have that can), or `*work` is used up, and takes what it used from that.  The scheduler
 * stays as it is then, the job just placed: give it a copy.  The list lives in the arena.
 */
void forecast_play(struct scheduler *copy, uint64_t now_us, int64_t number, int64_t *work,
                   struct arena *arena, struct forecast *out);

/* The job's row; NULL: it did not wait, and is not preempted. */
const struct forecast_job *forecast_find(const struct forecast *forecast, int64_t number);
