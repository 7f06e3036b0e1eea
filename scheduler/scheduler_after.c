/*
 * scheduler_after.c - jobs that come after others.
 *
 * A job comes after jobs of lower numbers only, so one look at all jobs in their order is
 * enough, however long the chains are.
 */

#include "base/alloc.h"
#include "base/arena.h"
#include "scheduler/internal.h"

/* How many of the jobs that have ended have a smaller number. */
static int ended_below(const struct scheduler *s, int64_t number)
{
    int low = 0, high = s->ended_count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (s->ended[middle].job < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void scheduler_after_note(struct scheduler *s, int64_t job, enum job_state state)
{
    assert(db_job_state_final(state));
    int at = ended_below(s, job);
    if (at < s->ended_count && s->ended[at].job == job)
        return;
    s->ended = alloc_grow(s->ended, s->ended_count, &s->ended_capacity, sizeof(*s->ended));
    memmove(&s->ended[at + 1], &s->ended[at],
            (size_t)(s->ended_count - at) * sizeof(*s->ended));
    s->ended[at] = (struct ended){job, state};
    s->ended_count++;
}

void scheduler_after_load(struct scheduler *s, struct job *job,
                          const struct scheduler_job_info *info)
{
    if (info->state != JOB_QUEUED || !info->after_count)
        return;
    job->after = alloc_array((size_t)info->after_count, sizeof(*job->after));
    for (int i = 0; i < info->after_count; i++) {
        assert(info->after[i].job < info->number);
        if (info->after[i].state == JOB_SUCCEEDED)
            continue;
        if (db_job_state_final(info->after[i].state))
            scheduler_after_note(s, info->after[i].job, info->after[i].state);
        job->after[job->after_count++] = info->after[i].job;
    }
    s->after_count += job->after_count > 0;
}

/* Forgets those that have succeeded; the first that has ended otherwise, or NULL. */
static const struct ended *review(const struct scheduler *s, struct job *job)
{
    int kept = 0;
    for (int i = 0; i < job->after_count; i++) {
        int at = ended_below(s, job->after[i]);
        bool has = at < s->ended_count && s->ended[at].job == job->after[i];
        if (has && s->ended[at].state != JOB_SUCCEEDED)
            return &s->ended[at];
        if (!has)
            job->after[kept++] = job->after[i];
    }
    job->after_count = kept;
    return NULL;
}

void scheduler_after_settle(struct scheduler *s, uint64_t now_us,
                            struct scheduler_actions *actions)
{
    for (int i = 0; i < s->jobs_count && s->ended_count && s->after_count;) {
        struct job *job = s->jobs[i];
        i++;
        if (!job->after_count)
            continue;
        const struct ended *bad = review(s, job);
        if (bad) {
            const char *text = arena_printf(
                actions->arena, "it was to come after job %lld, which %s", (long long)bad->job,
                bad->state == JOB_FAILED ? "has failed" : "was cancelled");
            scheduler_job_give_up(s, job, "DEPENDENCY", text, actions);
            i--; /* it is gone */
        } else if (!job->after_count) {
            s->after_count--;
            job->queued_us = now_us;
            s->dirty = true;
        }
    }
    s->ended_count = 0;
}
