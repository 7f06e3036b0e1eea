/* scheduler.c - the state, how it is loaded, and one step of it. */

#include "base/alloc.h"
#include "base/arena.h"
#include "scheduler/internal.h"

#define SECOND UINT64_C(1000000)

const struct scheduler_options scheduler_defaults = {
    .suspect_us = 6 * SECOND,
    .lost_us = 300 * SECOND,
    .grace_us = 30 * SECOND,
    .unkillable_us = 60 * SECOND,
    .backoff_us = 10 * SECOND,
    .backoff_max_us = 360 * SECOND,
    .overtake_us = 600 * SECOND,
    .stall_us = 3 * SECOND,
    .half_us = 24 * 3600 * SECOND,
    .turn_us = 600 * SECOND,
};

/* --- actions --- */

void scheduler_actions_clear(struct scheduler_actions *actions)
{
    actions->count = 0;
}

void scheduler_actions_release(struct scheduler_actions *actions)
{
    free(actions->list);
    *actions = (struct scheduler_actions){0};
}

struct scheduler_action *scheduler_act(struct scheduler_actions *actions,
                                       enum scheduler_action_kind kind)
{
    actions->list =
        alloc_grow(actions->list, actions->count, &actions->capacity, sizeof(*actions->list));
    struct scheduler_action *action = &actions->list[actions->count++];
    *action = (struct scheduler_action){.kind = kind, .reason = "", .text = ""};
    return action;
}

/* --- the state --- */

struct scheduler *scheduler_new(const struct scheduler_options *options, uint64_t now_us)
{
    struct scheduler *s = alloc_bytes(sizeof(*s));
    s->options = *options;
    s->ticked_us = now_us;
    s->dirty = true;
    return s;
}

static void job_free(struct job *job)
{
    scheduler_books_suits_free(job->suits, job->needs_count);
    scheduler_books_needs_free(job->needs, job->needs_count);
    free(job->after);
    free(job->failures);
    free(job->excluded);
    free(job->tasks);
    free(job);
}

void scheduler_free(struct scheduler *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->jobs_count; i++)
        job_free(s->jobs[i]);
    for (int i = 0; i < s->nodes_count; i++) {
        free(s->nodes[i]->name);
        free(s->nodes[i]->boot_id);
        free(s->nodes[i]->ghosts);
        free(s->nodes[i]);
    }
    queue_release(&s->queue);
    free(s->jobs);
    free(s->ended);
    free(s->nodes);
    fit_release(&s->fit);
    fit_release(&s->spare);
    fit_release(&s->later);
    scheduler_share_free(s);
    match_release(&s->match);
    free(s);
}

/* How many jobs have a smaller number. */
static int jobs_below(const struct scheduler *s, int64_t number)
{
    int low = 0, high = s->jobs_count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (s->jobs[middle]->number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct job *scheduler_find_job(const struct scheduler *s, int64_t number)
{
    int at = jobs_below(s, number);
    return at < s->jobs_count && s->jobs[at]->number == number ? s->jobs[at] : NULL;
}

static int nodes_below(const struct scheduler *s, int64_t id)
{
    int low = 0, high = s->nodes_count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (s->nodes[middle]->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct node *scheduler_find_node(const struct scheduler *s, int64_t id)
{
    int at = nodes_below(s, id);
    return at < s->nodes_count && s->nodes[at]->id == id ? s->nodes[at] : NULL;
}

void scheduler_drop_job(struct scheduler *s, struct job *job)
{
    assert(db_job_state_final(job->state));
    int at = jobs_below(s, job->number);
    assert(s->jobs[at] == job);
    scheduler_after_note(s, job->number, job->state);
    s->after_count -= job->after_count > 0;
    s->jobs_count--;
    memmove(&s->jobs[at], &s->jobs[at + 1], (size_t)(s->jobs_count - at) * sizeof(*s->jobs));
    job_free(job);
}

/* --- loading --- */

void scheduler_load_epoch(struct scheduler *s, int64_t epoch)
{
    assert(epoch >= s->epoch);
    s->epoch = epoch;
}

void scheduler_load_node(struct scheduler *s, const struct scheduler_node_info *info,
                         uint64_t now_us)
{
    int at = nodes_below(s, info->id);
    assert(at == s->nodes_count || s->nodes[at]->id != info->id);
    s->nodes = alloc_grow(s->nodes, s->nodes_count, &s->nodes_capacity, sizeof(*s->nodes));
    memmove(&s->nodes[at + 1], &s->nodes[at],
            (size_t)(s->nodes_count - at) * sizeof(*s->nodes));
    s->nodes_count++;
    for (int i = at + 1; i < s->nodes_count; i++)
        s->nodes[i]->at = i;

    struct node *node = alloc_bytes(sizeof(*node));
    s->nodes[at] = node;
    node->id = info->id;
    node->at = at;
    node->name = alloc_text(info->name);
    node->state = info->state;
    node->draining = info->draining;
    node->capacity = info->capacity;
    scheduler_node_asked(s, node, info);
    node->seen_us = now_us; /* it gets the full time to come back */
    scheduler_share_total(s);
}

/* Those that wait stand in another order now. */
static void sort_again(struct scheduler *s)
{
    struct queue before = s->queue;
    s->queue = (struct queue){0};
    for (int i = 0; i < before.count; i++)
        queue_add(&s->queue, before.jobs[i]);
    queue_release(&before);
    s->dirty = true;
}

void scheduler_load_queue(struct scheduler *s, const struct scheduler_queue_info *info)
{
    struct lane *lane = scheduler_share_lane(s, info->name);
    lane->priority = info->priority;
    lane->weight = info->weight;
    lane->preempt = info->preempt;
    sort_again(s);
}

static void set_project(struct scheduler *s, const struct scheduler_project_info *info)
{
    struct project *project = scheduler_share_project(s, info->name);
    project->weight = info->weight;
    project->quota = info->quota;
    s->dirty = true;
}

void scheduler_load_project(struct scheduler *s, const struct scheduler_project_info *info,
                            uint64_t now_us)
{
    struct project *project = scheduler_share_project(s, info->name);
    set_project(s, info);
    project->usage = scheduler_share_faded(info->usage, info->usage_age_us, s->options.half_us);
    project->usage_us = now_us;
}

static void change_priority(struct scheduler *s, struct job *job, int priority,
                            struct scheduler_actions *actions)
{
    if (!job || job->state != JOB_QUEUED || job->priority == priority)
        return;
    queue_remove(&s->queue, job);
    job->priority = priority;
    queue_add(&s->queue, job);
    s->dirty = true;
    struct scheduler_action *action = scheduler_act(actions, DO_PRIORITY);
    action->job = job->number;
    action->attempt = job->attempt;
    action->priority = priority;
}

/* What a job asks for, as it was submitted or is edited. */
static void set_asked(struct scheduler *s, struct job *job,
                      const struct scheduler_job_info *info)
{
    job->lane = scheduler_share_lane(s, info->queue ? info->queue : "default");
    job->project = scheduler_share_project(s, info->project ? info->project : "default");
    job->priority = info->priority;
    job->needs = scheduler_books_needs(info->needs, info->needs_count);
    job->needs_count = info->needs_count;
    scheduler_books_asks(s, job);
    job->spread = info->spread;
    job->restart_max = info->restart_max;
    job->retry_on = info->retry_on ? info->retry_on : EXIT_REASONS_RETRIED;
    job->exclude_bad = info->exclude_bad;
    job->stop_us = info->stop_us;
}

static void edit_job(struct scheduler *s, const struct scheduler_event *event,
                     struct scheduler_actions *actions)
{
    const struct scheduler_job_info *info = event->job;
    struct job *job = scheduler_find_job(s, info->number);
    if (!job || job->state != JOB_QUEUED || job->attempt != info->attempt)
        return;
    queue_remove(&s->queue, job);
    scheduler_books_suits_free(job->suits, job->needs_count);
    job->suits = NULL;
    scheduler_books_needs_free(job->needs, job->needs_count);
    set_asked(s, job, info);
    if (job->restart_max < job->restarts)
        job->restart_max = job->restarts; /* those were made already */
    if (!job->exclude_bad)
        job->failures_count = job->excluded_count = 0;
    for (int i = 0; i < job->failures_count; i++)
        scheduler_failure_note(job, job->failures[i].node, job->failures[i].count);
    queue_add(&s->queue, job);
    s->dirty = true;
    struct scheduler_action *action = scheduler_act(actions, DO_EDIT);
    action->job = job->number;
    action->attempt = job->attempt;
    action->edit = event->edit;
}

static void load_tasks(struct scheduler *s, struct job *job,
                       const struct scheduler_job_info *info)
{
    job->tasks = alloc_array((size_t)info->tasks_count, sizeof(*job->tasks));
    job->tasks_count = info->tasks_count;
    for (int i = 0; i < info->tasks_count; i++) {
        const struct scheduler_task_info *from = &info->tasks[i];
        struct task *task = &job->tasks[i];
        memcpy(task->role, from->role, sizeof(task->role));
        task->index = from->index;
        task->epoch = from->epoch ? from->epoch : info->epoch;
        task->away = task->told = from->away;
        task->state = from->state;
        task->reason = from->reason;
        task->resources = from->resources;
        task->gpu_share = from->gpu_share;
        task->gpu_mask = from->gpu_mask;
        task->node = scheduler_find_node(s, from->node);
        assert(task->node);
        if (task->state == TASK_EXITED) {
            if (task->reason != EXIT_OK && !task->away && !job->first_bad)
                job->first_bad = task;
            continue;
        }
        scheduler_books_take(task->node, task);
    }
}

void scheduler_load_job(struct scheduler *s, const struct scheduler_job_info *info,
                        uint64_t now_us)
{
    assert(!db_job_state_final(info->state));
    assert(info->needs_count > 0);
    int at = jobs_below(s, info->number);
    if (at < s->jobs_count && s->jobs[at]->number == info->number)
        return; /* told twice */
    s->jobs = alloc_grow(s->jobs, s->jobs_count, &s->jobs_capacity, sizeof(*s->jobs));
    memmove(&s->jobs[at + 1], &s->jobs[at], (size_t)(s->jobs_count - at) * sizeof(*s->jobs));
    s->jobs_count++;

    struct job *job = alloc_bytes(sizeof(*job));
    s->jobs[at] = job;
    job->number = info->number;
    job->state = info->state;
    set_asked(s, job, info);
    job->paused = info->paused;
    scheduler_after_load(s, job, info);
    for (int i = 0; i < info->failures_count; i++)
        scheduler_failure_note(job, info->failures[i].node, info->failures[i].count);
    job->restarts = info->restarts;
    job->preemptions = info->preemptions;
    job->attempt = info->attempt;
    job->epoch = info->epoch;
    job->ran_us = info->ran_us;
    job->unkillable_us = UINT64_MAX;

    if (info->state == JOB_QUEUED) {
        job->queued_us = now_us > info->waited_us ? now_us - info->waited_us : 0;
        job->retry_us = info->retry_in_us ? now_us + info->retry_in_us : 0;
        queue_add(&s->queue, job);
        s->dirty = true;
        return;
    }
    load_tasks(s, job, info);
    scheduler_share_take(job, now_us > info->held_us ? now_us - info->held_us : 0);
    job->runs = info->state == JOB_RUNNING;
    job->running_us = now_us;
    if (info->state == JOB_STOPPING) {
        job->intent = scheduler_intent(info->reason, &job->killed);
        job->unkillable_us = now_us + s->options.grace_us + s->options.unkillable_us;
    }
}

/* --- a step --- */

/*
 * When we slept (stopped, suspended, moved to another machine), no heartbeat could be heard:
 * nobody is blamed for that time.
 */
static void forgive_stall(struct scheduler *s, uint64_t now_us)
{
    uint64_t gap_us = now_us - s->ticked_us;
    s->ticked_us = now_us;
    if (gap_us < s->options.stall_us)
        return;
    for (int i = 0; i < s->nodes_count; i++) {
        s->nodes[i]->seen_us += gap_us;
        if (s->nodes[i]->seen_us > now_us)
            s->nodes[i]->seen_us = now_us;
    }
}

static void tick(struct scheduler *s, uint64_t now_us, struct scheduler_actions *actions)
{
    forgive_stall(s, now_us);
    for (int i = 0; i < s->nodes_count; i++)
        scheduler_node_tick(s, s->nodes[i], now_us, actions);
    for (int i = s->jobs_count - 1; i >= 0; i--) {
        scheduler_alone_tick(s, s->jobs[i], now_us);
        scheduler_job_tick(s, s->jobs[i], now_us, actions);
    }
    scheduler_after_settle(s, now_us, actions);
    if (s->dirty)
        scheduler_pass(s, now_us, actions);
}

void scheduler_step(struct scheduler *s, const struct scheduler_event *event, uint64_t now_us,
                    struct scheduler_actions *actions)
{
    struct job *job = event->number ? scheduler_find_job(s, event->number) : NULL;
    struct node *node = event->id ? scheduler_find_node(s, event->id) : NULL;
    bool session = node && node->session && node->epoch == event->epoch;

    switch (event->kind) {
    case ON_SUBMIT:
        scheduler_load_job(s, event->job, now_us);
        break;
    case ON_CANCEL:
        if (job)
            scheduler_job_cancel(s, job, event->kill, now_us, actions);
        break;
    case ON_JOIN:
        scheduler_node_join(s, event, now_us, actions);
        break;
    case ON_SEEN:
        if (session)
            scheduler_node_seen(s, node, now_us, actions);
        break;
    case ON_REPORT:
        if (session)
            scheduler_node_reports(s, node, event, now_us, actions);
        break;
    case ON_DRAIN:
        if (node)
            scheduler_node_drain(s, node, event->drain, event->drain ? "drained" : "undrained",
                                 actions);
        s->dirty = true;
        break;
    case ON_GONE:
        if (node)
            scheduler_node_gone(s, node, event->text, now_us, actions);
        break;
    case ON_PAUSE:
        if (job)
            scheduler_job_pause(s, job, event->pause, now_us, actions);
        break;
    case ON_EDIT:
        edit_job(s, event, actions);
        break;
    case ON_PRIORITY:
        change_priority(s, job, event->priority, actions);
        break;
    case ON_QUEUE:
        scheduler_load_queue(s, event->queue);
        break;
    case ON_PROJECT:
        set_project(s, event->project);
        break;
    case ON_TICK:
        tick(s, now_us, actions);
        break;
    }
}

uint64_t scheduler_next_us(const struct scheduler *s)
{
    if (s->dirty)
        return 0;
    uint64_t next = UINT64_MAX;
    for (int i = 0; i < s->nodes_count; i++) {
        /* While nodes are watched ticks come so often that a stall of ours shows as one. */
        if (s->nodes[i]->state != NODE_LOST)
            next = s->ticked_us + s->options.stall_us / 3;
    }
    for (int i = 0; i < s->nodes_count; i++) {
        uint64_t node_next = scheduler_node_next_us(s, s->nodes[i]);
        next = node_next < next ? node_next : next;
    }
    for (int i = 0; i < s->jobs_count; i++) {
        uint64_t job_next = scheduler_job_next_us(s, s->jobs[i]);
        uint64_t alone_next = scheduler_alone_next_us(s->jobs[i]);
        next = job_next < next ? job_next : next;
        next = alone_next < next ? alone_next : next;
    }
    return next;
}

/* --- looking --- */

int64_t scheduler_epoch(const struct scheduler *s)
{
    return s->epoch;
}

bool scheduler_job_state(const struct scheduler *s, int64_t number, enum job_state *state)
{
    const struct job *job = scheduler_find_job(s, number);
    if (job)
        *state = job->state;
    return job != NULL;
}

bool scheduler_job_is_paused(const struct scheduler *s, int64_t number)
{
    const struct job *job = scheduler_find_job(s, number);
    return job && job->paused;
}

struct scheduler_amount scheduler_project_held(const struct scheduler *s, const char *name)
{
    for (int i = 0; i < s->projects_count; i++) {
        if (strcmp(s->projects[i]->name, name) == 0)
            return s->projects[i]->held;
    }
    return (struct scheduler_amount){0};
}

int scheduler_nodes_count(const struct scheduler *s)
{
    return s->nodes_count;
}

static int gpus_free(const struct node *node)
{
    int count = 0;
    for (int g = 0; g < node->capacity.gpus && g < SCHEDULER_GPUS_MAX; g++)
        count += !node->gpu_held[g] && !(node->gpus_away >> g & 1);
    return count;
}

void scheduler_node_view(const struct scheduler *s, int index, struct scheduler_node_view *view)
{
    assert(index >= 0 && index < s->nodes_count);
    const struct node *node = s->nodes[index];
    *view = (struct scheduler_node_view){
        .id = node->id,
        .name = node->name,
        .state = node->state,
        .session = node->session,
        .cleaning = node->ghosts_count > 0,
        .draining = node->draining,
        .capacity = node->capacity,
        .used = node->used,
        .gpus_free = gpus_free(node),
        .tasks_count = node->tasks_count,
        .seen_us = node->seen_us,
    };
}
