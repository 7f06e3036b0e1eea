/*
 * scheduler_alone.c - a task that is lost while the others go on without it is placed anew,
 * alone.
 *
 * It is another process then, with an epoch of its own: what its node, or the network, still
 * says of the one before is of a task that nobody waits for.  Each time costs one of the job's
 * restarts.  Until a node has room it is away, and the job runs.
 */

#include "base/arena.h"
#include "scheduler/internal.h"

static int need_of(const struct job *job, const struct task *task)
{
    for (int i = 0; i < job->needs_count; i++) {
        if (strcmp(job->needs[i].role, task->role) == 0)
            return i;
    }
    return -1;
}

static int away_count(const struct job *job)
{
    int count = 0;
    for (int i = 0; i < job->tasks_count; i++)
        count += job->tasks[i].away;
    return count;
}

bool scheduler_alone_may(const struct job *job, const struct task *task,
                         enum exit_reason reason)
{
    static const uint32_t faults =
        1 << EXIT_CRASH | 1 << EXIT_MEMORY | 1 << EXIT_LOST | 1 << EXIT_START;
    if (job->state != JOB_RUNNING || task->index == 0 || job->first_bad)
        return false;
    int need = need_of(job, task);
    return need >= 0 && job->needs[need].alone && (faults & job->retry_on) >> reason & 1 &&
           job->restarts + away_count(job) < job->restart_max;
}

void scheduler_alone_lose(struct scheduler *s, struct job *job, struct task *task)
{
    task->away = true;
    task->told = false;
    /* Its node is gone, or something was wrong with it there. */
    task->again_us = task->reason == EXIT_LOST
                         ? 0
                         : s->ticked_us + scheduler_job_backoff_us(s, job->restarts + 1);
    s->dirty = true;
}

static void note(const struct job *job, const char *reason, const char *text,
                 struct scheduler_actions *actions)
{
    struct scheduler_action *action = scheduler_act(actions, DO_NOTE);
    action->job = job->number;
    action->attempt = job->attempt;
    action->restarts = job->restarts;
    action->reason = reason;
    action->text = text;
}

void scheduler_alone_tell(struct job *job, struct scheduler_actions *actions)
{
    for (int i = 0; i < job->tasks_count; i++) {
        struct task *task = &job->tasks[i];
        if (!task->away || task->told)
            continue;
        task->told = true;
        scheduler_failure_blame(job, task, actions);
        note(job, "TASK_AWAY",
             arena_printf(actions->arena, "%s; the others go on without it",
                          scheduler_intent_culprit(task, actions->arena)),
             actions);
    }
}

bool scheduler_alone_is_extra(const struct job *job, const struct task *task)
{
    return task->away || task->epoch != job->epoch;
}

struct fit_ask scheduler_alone_ask(const struct job *job, const struct task *task,
                                   struct scheduler_need *need)
{
    int at = need_of(job, task);
    assert(at >= 0);
    struct fit_ask ask = scheduler_books_ask(job);
    *need = job->needs[at];
    need->replicas = 1;
    ask.needs = need;
    ask.needs_count = 1;
    ask.suits = job->suits + at;
    return ask;
}

static void place(struct scheduler *s, struct job *job, struct task *task,
                  const struct fit_place *place, struct scheduler_actions *actions)
{
    struct node *node = s->nodes[place->node];
    const char *before = task->node->name;
    job->restarts++;
    task->epoch = ++s->epoch;
    task->node = node;
    task->gpu_mask = place->gpu_mask;
    task->state = TASK_WAITING;
    task->reason = EXIT_NONE;
    task->away = task->ended = false;
    scheduler_books_take(node, task);
    assert(node->used.cpu_millis <= node->capacity.cpu_millis);
    assert(node->used.memory_bytes <= node->capacity.memory_bytes);
    assert(node->used.gpus <= node->capacity.gpus);
    scheduler_job_task_changed(job, task, NULL, actions);
    note(job, "PLACED_ANEW",
         arena_printf(actions->arena, "%s:%d is placed anew on %s; it was on %s", task->role,
                      task->index, node->name, before),
         actions);
    scheduler_job_send_start(job, task, actions);
}

/* Those that are away while their jobs run. */
static bool waits(const struct job *job, const struct task *task)
{
    return job->state == JOB_RUNNING && task->away;
}

bool scheduler_alone_any(const struct scheduler *s)
{
    for (int i = 0; i < s->jobs_count; i++) {
        for (int t = 0; t < s->jobs[i]->tasks_count; t++) {
            if (waits(s->jobs[i], &s->jobs[i]->tasks[t]))
                return true;
        }
    }
    return false;
}

void scheduler_alone_place(struct scheduler *s, uint64_t now_us,
                           struct scheduler_actions *actions)
{
    for (int i = 0; i < s->jobs_count; i++) {
        struct job *job = s->jobs[i];
        for (int t = 0; t < job->tasks_count; t++) {
            struct task *task = &job->tasks[t];
            struct scheduler_need need;
            struct fit_place found;
            if (!waits(job, task) || task->again_us > now_us)
                continue;
            struct fit_ask ask = scheduler_alone_ask(job, task, &need);
            if (fit_job(&ask, &s->fit, &found))
                place(s, job, task, &found, actions);
        }
    }
}

uint64_t scheduler_alone_next_us(const struct job *job)
{
    uint64_t next_us = UINT64_MAX;
    for (int t = 0; t < job->tasks_count; t++) {
        const struct task *task = &job->tasks[t];
        if (waits(job, task) && task->again_us && task->again_us < next_us)
            next_us = task->again_us;
    }
    return next_us;
}

void scheduler_alone_tick(struct scheduler *s, struct job *job, uint64_t now_us)
{
    for (int t = 0; t < job->tasks_count; t++) {
        struct task *task = &job->tasks[t];
        if (!task->away || !task->again_us || task->again_us > now_us)
            continue;
        task->again_us = 0;
        s->dirty = true;
    }
}
