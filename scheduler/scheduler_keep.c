/*
 * scheduler_keep.c - nodes are kept for a job that needs whole ones and has long waited for
 * work without a time limit: where small jobs come and go, hardly a node is empty by itself.
 *
 * A task needs a whole node when no node has twice as much.  For each task of the job, the
 * node with the least to do yet is closed to those behind it.  How much that is, is a guess
 * where there is no time limit: what has run long runs on for long.  As nobody else comes to a
 * node that is kept, it stays the one with the least to do, or another gets ahead of it.
 */

#include "base/alloc.h"
#include "base/limits.h"
#include "scheduler/internal.h"

#define HOUR_US UINT64_C(3600000000)

static bool needs_nodes(const struct scheduler *s, const struct scheduler_need *need)
{
    const struct scheduler_resources *each = &need->each;
    struct scheduler_resources two = {2 * each->cpu_millis, 2 * each->memory_bytes,
                                      2 * each->gpus};
    return !need->gpu_share && !fit_task(&two, &s->most);
}

/* For how long the job is there yet, as far as one can guess. */
static uint64_t rest_us(const struct scheduler *s, const struct job *job, uint64_t now_us)
{
    uint64_t limit_us = scheduler_reserve_end_us(s, job, now_us) - now_us;
    uint64_t guess_us = now_us - job->held_us + HOUR_US;
    return limit_us < guess_us ? limit_us : guess_us;
}

/* What each node has to do yet, over its tasks; owned. */
static uint64_t *nodes_rest(const struct scheduler *s, uint64_t now_us)
{
    uint64_t *rests = alloc_array((size_t)s->nodes_count, sizeof(*rests));
    for (int i = 0; i < s->jobs_count; i++) {
        const struct job *job = s->jobs[i];
        uint64_t rest = job->state == JOB_QUEUED ? 0 : rest_us(s, job, now_us);
        for (int t = 0; t < job->tasks_count; t++) {
            if (job->tasks[t].state != TASK_EXITED)
                rests[job->tasks[t].node->at] += rest;
        }
    }
    return rests;
}

/* The node with the least to do that could have a task of the need; -1: none is left. */
static int soonest(const struct scheduler *s, const struct job *job, int at,
                   const uint64_t *rests)
{
    const bool *suits = job->suits[at];
    int best = -1;
    for (int n = 0; n < s->nodes_count; n++) {
        const struct fit_node *node = &s->fit.nodes[n];
        if (node->offered && (!suits || suits[node->kind]) &&
            (best < 0 || rests[n] < rests[best]) &&
            fit_task(&job->needs[at].each, &s->nodes[n]->capacity))
            best = n;
    }
    return best;
}

/* Nodes for all tasks; false when there are too few.  Those chosen are closed. */
static bool choose(struct scheduler *s, const struct job *job, uint64_t now_us, int *chosen,
                   int *count)
{
    uint64_t *rests = nodes_rest(s, now_us);
    bool enough = true;
    for (int i = 0; i < job->needs_count && enough; i++) {
        for (int r = 0; r < job->needs[i].replicas && enough; r++) {
            int node = soonest(s, job, i, rests);
            enough = node >= 0;
            if (enough)
                s->fit.nodes[chosen[(*count)++] = node].offered = false;
        }
    }
    free(rests);
    return enough;
}

bool scheduler_keep_suits(const struct scheduler *s, const struct job *job)
{
    for (int i = 0; i < job->needs_count; i++) {
        if (!needs_nodes(s, &job->needs[i]))
            return false;
    }
    return true;
}

bool scheduler_keep(struct scheduler *s, const struct job *job, uint64_t now_us)
{
    int chosen[LIMIT_JOB_TASKS], count = 0;
    bool enough = choose(s, job, now_us, chosen, &count);
    for (int i = 0; i < count && !enough; i++)
        s->fit.nodes[chosen[i]].offered = true;
    if (enough)
        s->kept_for = job->number;
    return enough;
}
