/* scheduler_check.c - the state does not contradict itself. */

#include "scheduler/internal.h"

static void check_job(const struct scheduler *s, const struct job *job)
{
    assert(!db_job_state_final(job->state));
    assert(job->restarts >= 0 && job->restarts <= job->restart_max);
    assert(job->attempt <= 1 + job->restart_max + job->preemptions);
    assert(job->epoch <= s->epoch);
    bool waits = job->state == JOB_QUEUED;
    assert(waits == (queue_position(&s->queue, job) >= 0));
    assert(waits == (job->tasks_count == 0));
    assert((job->state == JOB_STOPPING) == (job->intent != INTENT_NONE));
    assert(waits || !job->after_count);
    int alive = 0;
    for (int i = 0; i < job->tasks_count; i++) {
        const struct task *task = &job->tasks[i];
        alive += task->state != TASK_EXITED;
        assert(task->epoch >= job->epoch && task->epoch <= s->epoch);
        assert(!task->away || task->state == TASK_EXITED);
        assert(task->index > 0 || (!task->away && task->epoch == job->epoch));
    }
    assert(waits || alive > 0);
}

static void check_node(const struct scheduler *s, const struct node *node)
{
    struct scheduler_resources used = {0};
    int held[SCHEDULER_GPUS_MAX] = {0};
    int tasks_count = 0;
    for (int j = 0; j < s->jobs_count; j++) {
        for (int t = 0; t < s->jobs[j]->tasks_count; t++) {
            const struct task *task = &s->jobs[j]->tasks[t];
            if (task->node != node || task->state == TASK_EXITED)
                continue;
            used.cpu_millis += task->resources.cpu_millis;
            used.memory_bytes += task->resources.memory_bytes;
            for (int g = 0; g < SCHEDULER_GPUS_MAX; g++)
                if (task->gpu_mask >> g & 1)
                    held[g] += task->gpu_share ? task->gpu_share : SCHEDULER_GPU_WHOLE;
            tasks_count++;
        }
    }
    for (int g = 0; g < SCHEDULER_GPUS_MAX; g++) {
        assert(held[g] == node->gpu_held[g]);
        used.gpus += held[g] > 0;
    }
    assert(used.cpu_millis == node->used.cpu_millis);
    assert(used.memory_bytes == node->used.memory_bytes);
    assert(used.gpus == node->used.gpus);
    assert(tasks_count == node->tasks_count);
    assert(node->state != NODE_LOST || (!node->session && !tasks_count));
}

static void check_project(const struct scheduler *s, const struct project *project)
{
    struct scheduler_amount held = {0};
    for (int i = 0; i < s->jobs_count; i++) {
        const struct job *job = s->jobs[i];
        if (job->project != project || job->state == JOB_QUEUED)
            continue;
        held.cpu_millis += job->asks.cpu_millis;
        held.memory_bytes += job->asks.memory_bytes;
        held.gpu_millis += job->asks.gpu_millis;
        held.jobs++;
    }
    assert(held.cpu_millis == project->held.cpu_millis);
    assert(held.memory_bytes == project->held.memory_bytes);
    assert(held.gpu_millis == project->held.gpu_millis);
    assert(held.jobs == project->held.jobs);
}

void scheduler_check(const struct scheduler *s)
{
    int after_count = 0;
    for (int i = 0; i < s->jobs_count; i++)
        after_count += s->jobs[i]->after_count > 0;
    assert(after_count == s->after_count);
    for (int i = 0; i < s->jobs_count; i++) {
        assert(i == 0 || s->jobs[i - 1]->number < s->jobs[i]->number);
        check_job(s, s->jobs[i]);
    }
    for (int i = 0; i < s->nodes_count; i++) {
        assert(s->nodes[i]->at == i);
        check_node(s, s->nodes[i]);
    }
    for (int i = 0; i < s->projects_count; i++)
        check_project(s, s->projects[i]);
}
