/* scheduler_preempt.c - which attempts are ended so that a job of higher priority can start. */

#include "base/alloc.h"
#include "base/limits.h"
#include "scheduler/internal.h"

/* Those that lose the least come first: of low rank, then the youngest. */
static int by_value(const void *left, const void *right)
{
    const struct job *a = *(struct job *const *)left, *b = *(struct job *const *)right;
    int rank = scheduler_share_rank(a, b);
    if (rank)
        return rank;
    if (a->held_us != b->held_us)
        return a->held_us > b->held_us ? -1 : 1;
    return a->number > b->number ? -1 : 1;
}

static struct job **lesser_jobs(const struct scheduler *s, const struct job *head, int *count)
{
    struct job **list = alloc_array((size_t)s->jobs_count, sizeof(*list));
    *count = 0;
    for (int i = 0; i < s->jobs_count; i++) {
        struct job *job = s->jobs[i];
        if (job->state != JOB_QUEUED && job->state != JOB_STOPPING &&
            scheduler_share_rank(job, head) < 0)
            list[(*count)++] = job;
    }
    qsort(list, (size_t)*count, sizeof(*list), by_value);
    return list;
}

static bool fits(const struct job *head, struct fit *fit)
{
    struct fit_place places[LIMIT_JOB_TASKS];
    struct fit_ask ask = scheduler_books_ask(head);
    fit_ready(fit);
    bool yes = fit_job(&ask, fit, places);
    if (yes)
        fit_undo(&ask, fit, places);
    return yes;
}

static void take_again(struct fit *fit, const struct job *job)
{
    for (int i = 0; i < job->tasks_count; i++) {
        const struct task *task = &job->tasks[i];
        if (task->state != TASK_EXITED)
            fit_take(&fit->nodes[task->node->at], &task->resources, task->gpu_share,
                     task->gpu_mask);
    }
}

int scheduler_preempt_choose(struct scheduler *s, const struct job *head, struct job ***victims)
{
    int count, chosen = 0;
    *victims = lesser_jobs(s, head, &count);
    struct fit *fit = &s->spare;
    scheduler_books_offers(s, fit);
    for (int i = 0; i < s->jobs_count; i++) {
        if (s->jobs[i]->state == JOB_STOPPING)
            scheduler_reserve_give(fit, s->jobs[i]);
    }
    bool enough = fits(head, fit);
    if (enough)
        return 0; /* what it waits for is on its way already */
    while (!enough && chosen < count) {
        scheduler_reserve_give(fit, (*victims)[chosen++]);
        enough = fits(head, fit);
    }
    if (!enough)
        return 0;
    /* Of those that were added on the way, the most valuable go on if they can. */
    int kept = chosen;
    for (int i = chosen - 2; i >= 0; i--) {
        struct job *job = (*victims)[i];
        take_again(fit, job);
        if (fits(head, fit)) {
            memmove(&(*victims)[i], &(*victims)[i + 1],
                    (size_t)(kept - i - 1) * sizeof(**victims));
            kept--;
        } else {
            scheduler_reserve_give(fit, job);
        }
    }
    return kept;
}

bool scheduler_preempt(struct scheduler *s, const struct job *head, uint64_t now_us,
                       struct scheduler_actions *actions)
{
    struct job **victims;
    int count = scheduler_preempt_choose(s, head, &victims);
    for (int i = 0; i < count; i++)
        scheduler_job_preempt(s, victims[i], head, now_us, actions);
    free(victims);
    return count > 0;
}
