/* scheduler_job.c - the life of a job, from its first attempt to its end. */

#include "base/alloc.h"
#include "base/arena.h"
#include "scheduler/internal.h"

/* Parameter servers and evaluators serve the others: they need not end by themselves. */
static bool task_serves(const struct task *task)
{
    return strcmp(task->role, "ps") == 0 || strcmp(task->role, "evaluator") == 0;
}

/* --- actions --- */

static bool edge_is_legal(enum job_state from, enum job_state to)
{
    switch (from) {
    case JOB_QUEUED:
        return to == JOB_ALLOCATED || to == JOB_FAILED || to == JOB_CANCELLED;
    case JOB_ALLOCATED:
        return to == JOB_STARTING || to == JOB_STOPPING;
    case JOB_STARTING:
        return to == JOB_RUNNING || to == JOB_STOPPING;
    case JOB_RUNNING:
        return to == JOB_STOPPING;
    case JOB_STOPPING:
        return to == JOB_QUEUED || db_job_state_final(to);
    default:
        return false;
    }
}

static struct scheduler_action *job_change(struct job *job, enum job_state to,
                                           const char *reason, const char *text,
                                           struct scheduler_actions *actions)
{
    assert(edge_is_legal(job->state, to));
    struct scheduler_action *action = scheduler_act(actions, DO_JOB);
    action->job = job->number;
    action->attempt = job->attempt;
    action->epoch = job->epoch;
    action->from = job->state;
    action->to = to;
    action->restarts = job->restarts;
    action->preemptions = job->preemptions;
    action->reason = reason;
    action->text = text;
    job->state = to;
    return action;
}

void scheduler_job_task_changed(const struct job *job, const struct task *task,
                                const struct scheduler_report *report,
                                struct scheduler_actions *actions)
{
    struct scheduler_action *action = scheduler_act(actions, DO_TASK);
    action->job = job->number;
    action->epoch = job->epoch;
    action->task_epoch = task->epoch;
    action->node = task->node->id;
    memcpy(action->role, task->role, sizeof(action->role));
    action->index = task->index;
    action->task_state = task->state;
    action->away = task->away;
    action->exit = task->reason;
    action->resources = task->resources;
    action->gpu_share = task->gpu_share;
    action->gpu_mask = task->gpu_mask;
    action->report = report;
}

static struct scheduler_action *task_command(enum scheduler_action_kind kind,
                                             const struct job *job, const struct task *task,
                                             struct scheduler_actions *actions)
{
    struct scheduler_action *action = scheduler_act(actions, kind);
    action->job = job->number;
    action->attempt = job->attempt;
    action->epoch = job->epoch;
    action->task_epoch = task->epoch;
    action->node = task->node->id;
    memcpy(action->role, task->role, sizeof(action->role));
    action->index = task->index;
    action->resources = task->resources;
    action->gpu_share = task->gpu_share;
    action->gpu_mask = task->gpu_mask;
    return action;
}

void scheduler_job_send_start(const struct job *job, const struct task *task,
                              struct scheduler_actions *actions)
{
    task_command(DO_START, job, task, actions);
}

void scheduler_job_send_stop(const struct scheduler *s, const struct job *job,
                             const struct task *task, struct scheduler_actions *actions)
{
    struct scheduler_action *action = task_command(DO_STOP, job, task, actions);
    action->kill = job->killed;
    action->grace_us = s->options.grace_us;
}

/* --- starting --- */

static void task_init(const struct job *job, struct task *task,
                      const struct scheduler_need *need, int index, struct node *node,
                      uint64_t gpu_mask)
{
    memcpy(task->role, need->role, sizeof(task->role));
    task->index = index;
    task->epoch = job->epoch;
    task->resources = need->each;
    task->gpu_share = need->gpu_share;
    task->gpu_mask = gpu_mask;
    task->node = node;
    scheduler_books_take(node, task);
    assert(node->used.cpu_millis <= node->capacity.cpu_millis);
    assert(node->used.memory_bytes <= node->capacity.memory_bytes);
    assert(node->used.gpus <= node->capacity.gpus);
}

static const char *placement_text(const struct job *job, struct arena *arena)
{
    const struct node *first = job->tasks[0].node;
    int others = 0;
    for (int i = 1; i < job->tasks_count; i++) {
        bool seen = false;
        for (int j = 0; j < i && !seen; j++)
            seen = job->tasks[j].node == job->tasks[i].node;
        others += !seen;
    }
    if (others)
        return arena_printf(arena, "attempt %d: %d tasks on %s and %d more node%s",
                            job->attempt, job->tasks_count, first->name, others,
                            others == 1 ? "" : "s");
    return arena_printf(arena, "attempt %d: %d task%s on %s", job->attempt, job->tasks_count,
                        job->tasks_count == 1 ? "" : "s", first->name);
}

void scheduler_job_start(struct scheduler *s, struct job *job, const struct fit_place *places,
                         uint64_t now_us, struct scheduler_actions *actions)
{
    assert(job->state == JOB_QUEUED);
    assert(job->retry_us <= now_us);
    assert(!scheduler_job_is_held(job));
    queue_remove(&s->queue, job);
    job->attempt++;
    job->epoch = ++s->epoch;
    scheduler_share_take(job, now_us);
    job->tasks = alloc_array((size_t)job->tasks_max, sizeof(*job->tasks));
    for (int i = 0; i < job->needs_count; i++) {
        for (int r = 0; r < job->needs[i].replicas; r++, job->tasks_count++)
            task_init(job, &job->tasks[job->tasks_count], &job->needs[i], r,
                      s->nodes[places[job->tasks_count].node],
                      places[job->tasks_count].gpu_mask);
    }

    struct scheduler_action *action = scheduler_act(actions, DO_ATTEMPT);
    action->job = job->number;
    action->attempt = job->attempt;
    action->epoch = job->epoch;
    job_change(job, JOB_ALLOCATED, "", placement_text(job, actions->arena), actions);
    for (int i = 0; i < job->tasks_count; i++)
        scheduler_job_task_changed(job, &job->tasks[i], NULL, actions);
    for (int i = 0; i < job->tasks_count; i++)
        scheduler_job_send_start(job, &job->tasks[i], actions);
}

/* --- stopping --- */

static void job_stop(struct scheduler *s, struct job *job, enum intent intent, const char *text,
                     uint64_t now_us, struct scheduler_actions *actions)
{
    assert(intent != INTENT_NONE);
    if (job->runs)
        job->ran_us += now_us - job->running_us;
    job->runs = false;
    job->intent = intent;
    job->unkillable_us = now_us + s->options.grace_us + s->options.unkillable_us;
    job_change(job, JOB_STOPPING, scheduler_intent_name(job), text, actions);
    for (int i = 0; i < job->tasks_count; i++) {
        if (job->tasks[i].state != TASK_EXITED)
            scheduler_job_send_stop(s, job, &job->tasks[i], actions);
    }
}

void scheduler_job_cancel(struct scheduler *s, struct job *job, bool kill, uint64_t now_us,
                          struct scheduler_actions *actions)
{
    const char *text = kill ? "killed by a user" : "cancelled by a user";
    if (job->state == JOB_QUEUED) {
        queue_remove(&s->queue, job);
        job_change(job, JOB_CANCELLED, "CANCELLED", text, actions);
        scheduler_drop_job(s, job);
        return;
    }
    bool kills = kill && !job->killed;
    job->killed |= kill;
    if (job->state != JOB_STOPPING) {
        job_stop(s, job, INTENT_CANCEL, text, now_us, actions);
        return;
    }

    /* It is ending already.  What has finished stays finished; the rest must not come back. */
    bool cancels = job->intent == INTENT_FAULT || job->intent == INTENT_TIME ||
                   job->intent == INTENT_PREEMPT || job->intent == INTENT_PAUSE;
    if (cancels)
        job->intent = INTENT_CANCEL;
    if (cancels || kills)
        scheduler_intent_note(job, text, actions);
    for (int i = 0; kills && i < job->tasks_count; i++) {
        if (job->tasks[i].state != TASK_EXITED)
            scheduler_job_send_stop(s, job, &job->tasks[i], actions);
    }
}

void scheduler_job_preempt(struct scheduler *s, struct job *job, const struct job *winner,
                           uint64_t now_us, struct scheduler_actions *actions)
{
    const char *text =
        arena_printf(actions->arena, "makes room for job %lld", (long long)winner->number);
    job_stop(s, job, INTENT_PREEMPT, text, now_us, actions);
}

void scheduler_job_pause(struct scheduler *s, struct job *job, bool pause, uint64_t now_us,
                         struct scheduler_actions *actions)
{
    bool ends = job->intent == INTENT_DONE || job->intent == INTENT_CANCEL;
    if (job->paused == pause || (pause && ends))
        return;
    job->paused = pause;
    struct scheduler_action *action = scheduler_act(actions, DO_PAUSE);
    action->job = job->number;
    action->attempt = job->attempt;
    action->pause = pause;
    action->reason = pause ? "PAUSED" : "";
    action->text = pause ? "paused by a user" : "";
    if (job->state == JOB_QUEUED) {
        job->queued_us = now_us;
        s->dirty = true;
    } else if (pause && job->state != JOB_STOPPING) {
        job_stop(s, job, INTENT_PAUSE, "paused by a user", now_us, actions);
    }
}

/* --- ending --- */

/* The task whose end decides: a user's error explains the crashes of the others. */
static const struct task *job_culprit(const struct job *job)
{
    for (int i = 0; i < job->tasks_count; i++) {
        if (job->tasks[i].reason == EXIT_USER)
            return &job->tasks[i];
    }
    return job->first_bad;
}

/* Every task finished, or stopped when it was asked to. */
static bool job_ended_gently(const struct job *job)
{
    for (int i = 0; i < job->tasks_count; i++) {
        const struct task *task = &job->tasks[i];
        if (!task->away && task->reason != EXIT_OK && task->reason != EXIT_STOPPED)
            return false;
    }
    return true;
}

uint64_t scheduler_job_backoff_us(const struct scheduler *s, int restarts)
{
    uint64_t wait = s->options.backoff_us;
    for (int i = 1; i < restarts && wait < s->options.backoff_max_us; i++)
        wait *= 2;
    return wait < s->options.backoff_max_us ? wait : s->options.backoff_max_us;
}

static void job_end(struct scheduler *s, struct job *job, enum job_state state,
                    const char *reason, const char *text, struct scheduler_actions *actions)
{
    job_change(job, state, reason, text, actions);
    scheduler_drop_job(s, job);
}

bool scheduler_job_is_held(const struct job *job)
{
    return job->after_count > 0 || job->paused;
}

void scheduler_job_give_up(struct scheduler *s, struct job *job, const char *reason,
                           const char *text, struct scheduler_actions *actions)
{
    assert(job->state == JOB_QUEUED);
    queue_remove(&s->queue, job);
    job_end(s, job, JOB_FAILED, reason, text, actions);
}

/* Back into the queue, for another attempt. */
static void job_waits_again(struct scheduler *s, struct job *job, uint64_t wait_us,
                            uint64_t now_us)
{
    free(job->tasks);
    job->tasks = NULL;
    job->tasks_count = 0;
    job->first_bad = NULL;
    job->intent = INTENT_NONE;
    job->killed = false;
    job->unkillable_us = UINT64_MAX;
    job->queued_us = now_us;
    job->retry_us = wait_us ? now_us + wait_us : 0;
    queue_add(&s->queue, job);
    s->dirty = true;
}

static void job_retry(struct scheduler *s, struct job *job, const char *why, uint64_t now_us,
                      struct scheduler_actions *actions)
{
    job->restarts++;
    uint64_t wait_us = scheduler_job_backoff_us(s, job->restarts);
    const char *text = arena_printf(actions->arena, "%s; attempt %d of %d in %llu s", why,
                                    job->attempt + 1, job->restart_max + job->preemptions + 1,
                                    (unsigned long long)(wait_us / 1000000));
    job_change(job, JOB_QUEUED, "RETRY", text, actions)->retry_in_us = wait_us;
    job_waits_again(s, job, wait_us, now_us);
}

/* Made room for another, or rests: that is none of its own faults, and costs it no restart. */
static void job_preempted(struct scheduler *s, struct job *job, uint64_t now_us,
                          struct scheduler_actions *actions)
{
    job->preemptions++;
    if (job->paused)
        job_change(job, JOB_QUEUED, "PAUSED", "paused by a user", actions);
    else if (job->intent == INTENT_PAUSE)
        job_change(job, JOB_QUEUED, "RESUMED", "goes on from its checkpoint", actions);
    else
        job_change(job, JOB_QUEUED, "PREEMPTED",
                   "made room for a job of higher priority; goes on from its checkpoint",
                   actions);
    job_waits_again(s, job, 0, now_us);
}

/*
 * A task was asked to stop by nobody here: by the engine that takes its pilot's machine away,
 * or somebody there.  It wrote its checkpoint, so this is none of its faults either; the wait
 * keeps one that is stopped again and again from filling the log.
 */
static void job_stopped_there(struct scheduler *s, struct job *job, const char *why,
                              uint64_t now_us, struct scheduler_actions *actions)
{
    uint64_t wait_us = scheduler_job_backoff_us(s, 1);
    job->preemptions++;
    job_change(job, JOB_QUEUED, "PREEMPTED",
               arena_printf(actions->arena, "%s; goes on from its checkpoint", why), actions)
        ->retry_in_us = wait_us;
    job_waits_again(s, job, wait_us, now_us);
}

/* A task ended badly, and it was no person's wish. */
static void job_faulted(struct scheduler *s, struct job *job, const struct task *culprit,
                        const char *why, uint64_t now_us, struct scheduler_actions *actions)
{
    static const char *const codes[EXIT_REASONS_COUNT] = {
        [EXIT_STOPPED] = "STOPPED", [EXIT_USER] = "USER", [EXIT_CRASH] = "CRASH",
        [EXIT_MEMORY] = "MEMORY",   [EXIT_LOST] = "LOST", [EXIT_START] = "START",
    };
    bool again = job->retry_on >> culprit->reason & 1;
    if (again && culprit->reason == EXIT_STOPPED) {
        job_stopped_there(s, job, why, now_us, actions);
        return;
    }
    if (again && job->restarts < job->restart_max) {
        scheduler_failure_blame(job, culprit, actions);
        job_retry(s, job, why, now_us, actions);
        return;
    }
    if (!again && culprit->reason != EXIT_USER)
        why = arena_printf(actions->arena, "%s; its spec has no restart on \"%s\"", why,
                           db_exit_reason_name(culprit->reason));
    else if (again && job->restart_max)
        why = arena_printf(actions->arena, "%s; all %d restarts are used up", why,
                           job->restart_max);
    job_end(s, job, JOB_FAILED, codes[culprit->reason], why, actions);
}

/* Those tasks that must finish by themselves have. */
static bool job_has_finished(const struct job *job)
{
    bool any = false;
    for (int i = 0; i < job->tasks_count; i++) {
        if (task_serves(&job->tasks[i]) || scheduler_alone_is_extra(job, &job->tasks[i]))
            continue;
        if (job->tasks[i].reason != EXIT_OK)
            return false;
        any = true;
    }
    return any;
}

/* Every task has exited. */
static void job_over(struct scheduler *s, struct job *job, uint64_t now_us,
                     struct scheduler_actions *actions)
{
    if (job->intent == INTENT_NONE)
        job_stop(s, job, job->first_bad ? INTENT_FAULT : INTENT_DONE, "", now_us, actions);

    const struct task *culprit = job->intent == INTENT_DONE ? NULL : job_culprit(job);
    bool clean = !culprit || (job->intent == INTENT_TIME && job_ended_gently(job));
    const char *why = culprit ? scheduler_intent_culprit(culprit, actions->arena) : "finished";
    struct scheduler_action *end = scheduler_act(actions, DO_ATTEMPT_ENDS);
    end->job = job->number;
    end->epoch = job->epoch;
    end->attempt = job->attempt;
    end->exit = culprit ? culprit->reason : EXIT_OK;
    end->text = why;
    scheduler_share_give(s, job, now_us, actions);

    const char *time = arena_printf(actions->arena, "ran for %llu s, the longest it may",
                                    (unsigned long long)(job->stop_us / 1000000));
    switch (job->intent) {
    case INTENT_CANCEL:
        job_end(s, job, JOB_CANCELLED, "CANCELLED",
                job->killed ? "killed by a user" : "cancelled by a user", actions);
        break;
    case INTENT_PREEMPT:
    case INTENT_PAUSE:
        if (clean || job_has_finished(job))
            job_end(s, job, JOB_SUCCEEDED, "", "", actions);
        else if (culprit->reason == EXIT_USER)
            job_faulted(s, job, culprit, why, now_us, actions);
        else
            job_preempted(s, job, now_us, actions);
        break;
    case INTENT_TIME:
        job_end(s, job, clean ? JOB_SUCCEEDED : JOB_FAILED, "TIME", time, actions);
        break;
    default:
        if (clean)
            job_end(s, job, JOB_SUCCEEDED, "", "", actions);
        else
            job_faulted(s, job, culprit, why, now_us, actions);
    }
}

/* --- what tasks do --- */

void scheduler_job_task_exits(struct scheduler *s, struct job *job, struct task *task,
                              enum exit_reason reason, const struct scheduler_report *report,
                              struct scheduler_actions *actions)
{
    assert(task->state != TASK_EXITED);
    assert(reason != EXIT_NONE);
    task->state = TASK_EXITED;
    task->reason = reason;
    scheduler_books_give(task->node, task);
    s->dirty = true;
    if (scheduler_alone_may(job, task, reason))
        scheduler_alone_lose(s, job, task);
    else if (reason != EXIT_OK && !job->first_bad)
        job->first_bad = task;
    scheduler_job_task_changed(job, task, report, actions);
}

/* How the tasks of a job stand. */
struct tally {
    int alive;
    int waiting;    /* not spoken of yet */
    int running;    /* or exited well */
    int unfinished; /* of those that must finish by themselves: not exited well */
    int finishing;  /* those that must */
};

static struct tally job_tally(const struct job *job)
{
    struct tally tally = {0};
    for (int i = 0; i < job->tasks_count; i++) {
        const struct task *task = &job->tasks[i];
        bool well = task->state == TASK_EXITED && task->reason == EXIT_OK;
        bool must = !task_serves(task) && !scheduler_alone_is_extra(job, task);
        tally.alive += task->state != TASK_EXITED;
        tally.waiting += task->state == TASK_WAITING;
        tally.running += task->state == TASK_RUNNING || well;
        tally.finishing += must;
        tally.unfinished += must && !well;
    }
    return tally;
}

void scheduler_job_review(struct scheduler *s, struct job *job, uint64_t now_us,
                          struct scheduler_actions *actions)
{
    struct tally tally = job_tally(job);
    if (job->state == JOB_ALLOCATED && tally.waiting < job->tasks_count)
        job_change(job, JOB_STARTING, "", "", actions);
    if (job->state == JOB_STARTING && tally.running == job->tasks_count) {
        job_change(job, JOB_RUNNING, "", "", actions);
        job->runs = true;
        job->running_us = now_us;
        struct scheduler_action *action = scheduler_act(actions, DO_ATTEMPT_RUNS);
        action->job = job->number;
        action->epoch = job->epoch;
    }

    if (tally.alive == 0) {
        job_over(s, job, now_us, actions);
        return;
    }
    if (job->state == JOB_STOPPING)
        return;
    if (job->first_bad)
        job_stop(s, job, INTENT_FAULT, scheduler_intent_culprit(job->first_bad, actions->arena),
                 now_us, actions);
    else if (tally.finishing && !tally.unfinished)
        job_stop(s, job, INTENT_DONE, "the workers have finished", now_us, actions);
    else
        scheduler_alone_tell(job, actions);
}

/* --- what time brings --- */

static uint64_t job_runs_out_us(const struct job *job)
{
    if (!job->runs || !job->stop_us)
        return UINT64_MAX;
    return job->running_us + (job->stop_us > job->ran_us ? job->stop_us - job->ran_us : 0);
}

uint64_t scheduler_job_next_us(const struct scheduler *s, const struct job *job)
{
    (void)s;
    if (job->state == JOB_QUEUED)
        return job->retry_us ? job->retry_us : UINT64_MAX;
    if (job->state == JOB_STOPPING)
        return job->unkillable_us;
    return job_runs_out_us(job);
}

/* Its tasks that still run have their nodes drained; who wonders why it goes on is told. */
static void job_cannot_be_killed(struct scheduler *s, const struct job *job,
                                 struct scheduler_actions *actions)
{
    for (int i = 0; i < job->tasks_count; i++) {
        const struct task *task = &job->tasks[i];
        if (task->state == TASK_EXITED || task->ended || !task->node->session)
            continue; /* of a silent node nothing is known; it gets its own verdict */
        scheduler_node_drain(s, task->node, true,
                             arena_printf(actions->arena,
                                          "drained: %s:%d of job %lld cannot be killed",
                                          task->role, task->index, (long long)job->number),
                             actions);
        scheduler_intent_note(
            job,
            arena_printf(actions->arena, "%s:%d cannot be killed: its node %s gets nothing new",
                         task->role, task->index, task->node->name),
            actions);
    }
}

void scheduler_job_tick(struct scheduler *s, struct job *job, uint64_t now_us,
                        struct scheduler_actions *actions)
{
    if (now_us < scheduler_job_next_us(s, job))
        return;
    if (job->state == JOB_QUEUED) {
        job->retry_us = 0;
        s->dirty = true;
    } else if (job->state == JOB_STOPPING) {
        job->unkillable_us = UINT64_MAX;
        job_cannot_be_killed(s, job, actions);
    } else {
        const char *text = arena_printf(actions->arena, "ran for %llu s, the longest it may",
                                        (unsigned long long)(job->stop_us / 1000000));
        job_stop(s, job, INTENT_TIME, text, now_us, actions);
    }
}
