/*
 * scheduler_reserve.c - when the first job that must wait can start, by the time limits of
 * those that hold what it needs; and what is left beside it then.
 */

#include "base/alloc.h"
#include "base/limits.h"
#include "scheduler/internal.h"

struct holder {
    uint64_t ends_us;
    const struct job *job;
};

static uint64_t left_us(const struct scheduler *s, const struct job *job)
{
    return (job->stop_us > job->ran_us ? job->stop_us - job->ran_us : 0) + s->options.grace_us;
}

uint64_t scheduler_reserve_end_us(const struct scheduler *s, const struct job *job,
                                  uint64_t now_us)
{
    uint64_t end_us = UINT64_MAX;
    if (job->state == JOB_STOPPING && job->unkillable_us != UINT64_MAX)
        end_us = job->unkillable_us - s->options.unkillable_us;
    else if (job->state != JOB_STOPPING && job->stop_us)
        end_us = (job->runs ? job->running_us : now_us) + left_us(s, job);
    return end_us < now_us ? now_us : end_us;
}

static int by_end(const void *left, const void *right)
{
    const struct holder *a = left, *b = right;
    if (a->ends_us != b->ends_us)
        return a->ends_us < b->ends_us ? -1 : 1;
    return a->job->number < b->job->number ? -1 : 1;
}

static struct holder *holders_by_end(const struct scheduler *s, uint64_t now_us, int *count)
{
    struct holder *holders = alloc_array((size_t)s->jobs_count, sizeof(*holders));
    *count = 0;
    for (int i = 0; i < s->jobs_count; i++) {
        const struct job *job = s->jobs[i];
        if (job->state != JOB_QUEUED)
            holders[(*count)++] =
                (struct holder){scheduler_reserve_end_us(s, job, now_us), job};
    }
    qsort(holders, (size_t)*count, sizeof(*holders), by_end);
    return holders;
}

void scheduler_reserve_give(struct fit *fit, const struct job *job)
{
    for (int i = 0; i < job->tasks_count; i++) {
        const struct task *task = &job->tasks[i];
        if (task->state != TASK_EXITED)
            fit_give(&fit->nodes[task->node->at], &task->resources, task->gpu_share,
                     task->gpu_mask);
    }
}

/* Takes room for the head out of what is free once the first `count` holders have ended. */
static bool fits_after(struct scheduler *s, const struct job *head,
                       const struct holder *holders, int count)
{
    struct fit_place places[LIMIT_JOB_TASKS];
    struct fit_ask ask = scheduler_books_ask(head);
    scheduler_books_offers(s, &s->spare);
    for (int i = 0; i < count; i++)
        scheduler_reserve_give(&s->spare, holders[i].job);
    fit_ready(&s->spare);
    return fit_job(&ask, &s->spare, places);
}

bool scheduler_reserve(struct scheduler *s, const struct job *head, uint64_t now_us,
                       uint64_t *start_us)
{
    int count;
    struct holder *holders = holders_by_end(s, now_us, &count);
    int low = 0, high = count;
    bool possible = fits_after(s, head, holders, count);
    while (possible && low < high) {
        int middle = low + (high - low) / 2;
        if (fits_after(s, head, holders, middle))
            high = middle;
        else
            low = middle + 1;
    }
    possible = possible && fits_after(s, head, holders, low);
    *start_us = low ? holders[low - 1].ends_us : now_us;
    for (int i = low; possible && i < count && holders[i].ends_us <= *start_us; i++)
        scheduler_reserve_give(&s->spare, holders[i].job);
    free(holders);
    return possible;
}

void scheduler_reserve_limit(struct scheduler *s, int node)
{
    struct fit_node *out = &s->later.nodes[node];
    const struct fit_node *a = &s->fit.nodes[node], *b = &s->spare.nodes[node];
    *out = *a;
    if (b->free.cpu_millis < out->free.cpu_millis)
        out->free.cpu_millis = b->free.cpu_millis;
    if (b->free.memory_bytes < out->free.memory_bytes)
        out->free.memory_bytes = b->free.memory_bytes;
    out->free.gpus = 0;
    for (int g = 0; g < out->gpus_count; g++) {
        if (b->gpu_free[g] < out->gpu_free[g])
            out->gpu_free[g] = b->gpu_free[g];
        out->free.gpus += out->gpu_free[g] == SCHEDULER_GPU_WHOLE;
    }
}
