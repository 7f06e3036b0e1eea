/* scheduler_failure.c - how often a job has failed on a node, and where it does not go again.
 */

#include "base/alloc.h"
#include "scheduler/internal.h"

void scheduler_failure_note(struct job *job, int64_t node, int count)
{
    int at = 0;
    while (at < job->failures_count && job->failures[at].node != node)
        at++;
    if (at == job->failures_count) {
        job->failures = alloc_grow(job->failures, job->failures_count, &job->failures_capacity,
                                   sizeof(*job->failures));
        job->excluded = alloc_resize(job->excluded,
                                     (size_t)job->failures_capacity * sizeof(*job->excluded));
        job->failures_count++;
    }
    job->failures[at] = (struct scheduler_failure){node, count};
    job->excluded_count = 0;
    for (int i = 0; i < job->failures_count; i++) {
        if (job->failures[i].count >= job->exclude_bad)
            job->excluded[job->excluded_count++] = job->failures[i].node;
    }
}

void scheduler_failure_blame(struct job *job, const struct task *culprit,
                             struct scheduler_actions *actions)
{
    int count = 1;
    if (!job->exclude_bad || culprit->reason == EXIT_USER)
        return;
    for (int i = 0; i < job->failures_count; i++) {
        if (job->failures[i].node == culprit->node->id)
            count += job->failures[i].count;
    }
    scheduler_failure_note(job, culprit->node->id, count);
    struct scheduler_action *action = scheduler_act(actions, DO_FAILURE);
    action->job = job->number;
    action->node = culprit->node->id;
    action->count = count;
}
