/* scheduler_node.c - nodes: what they say, and what their silence means. */

#include "base/alloc.h"
#include "base/arena.h"
#include "scheduler/internal.h"

bool scheduler_node_offers(const struct node *node)
{
    return node->session && node->state == NODE_JOINED && !node->draining &&
           !node->ghosts_count;
}

static void node_changed(const struct node *node, const char *text,
                         struct scheduler_actions *actions)
{
    struct scheduler_action *action = scheduler_act(actions, DO_NODE);
    action->node = node->id;
    action->node_state = node->state;
    action->draining = node->draining;
    action->text = text;
}

static struct task *find_task(const struct job *job, const char *role, int index)
{
    for (int i = 0; i < job->tasks_count; i++) {
        if (job->tasks[i].index == index && strcmp(job->tasks[i].role, role) == 0)
            return &job->tasks[i];
    }
    return NULL;
}

/*
 * The task that a report is about, when it is one of the attempt that lives, and on this node.
 * One that was given up with its silent node, and yet lives, is none of ours any more.
 */
static struct task *reported_task(const struct scheduler *s, const struct node *node,
                                  const struct scheduler_report *report, struct job **job)
{
    *job = scheduler_find_job(s, report->job);
    struct task *task = *job ? find_task(*job, report->role, report->index) : NULL;
    if (!task || task->epoch != report->epoch || task->node != node)
        return NULL;
    return task->state == TASK_EXITED && report->state != TASK_EXITED ? NULL : task;
}

/* --- ghosts --- */

static int ghost_index(const struct node *node, const struct scheduler_report *report)
{
    for (int i = 0; i < node->ghosts_count; i++) {
        const struct ghost *ghost = &node->ghosts[i];
        if (ghost->job == report->job && ghost->epoch == report->epoch &&
            ghost->index == report->index && strcmp(ghost->role, report->role) == 0)
            return i;
    }
    return -1;
}

static void ghost_add(struct node *node, const struct scheduler_report *report)
{
    if (ghost_index(node, report) >= 0)
        return;
    node->ghosts = alloc_grow(node->ghosts, node->ghosts_count, &node->ghosts_capacity,
                              sizeof(*node->ghosts));
    struct ghost *ghost = &node->ghosts[node->ghosts_count++];
    *ghost = (struct ghost){.job = report->job, .epoch = report->epoch, .index = report->index};
    memcpy(ghost->role, report->role, sizeof(ghost->role));
}

/* Starts what was placed on the node, but had to wait until the last ghost was gone. */
static void start_waiting(const struct scheduler *s, const struct node *node,
                          struct scheduler_actions *actions)
{
    for (int i = 0; i < s->jobs_count; i++) {
        const struct job *job = s->jobs[i];
        for (int t = 0; t < job->tasks_count && job->state != JOB_STOPPING; t++) {
            if (job->tasks[t].node == node && job->tasks[t].state == TASK_WAITING)
                scheduler_job_send_start(job, &job->tasks[t], actions);
        }
    }
}

static void ghost_remove(struct scheduler *s, struct node *node,
                         const struct scheduler_report *report,
                         struct scheduler_actions *actions)
{
    int at = ghost_index(node, report);
    if (at < 0)
        return;
    node->ghosts[at] = node->ghosts[--node->ghosts_count];
    s->dirty = true;
    if (!node->ghosts_count)
        start_waiting(s, node, actions);
}

/* --- reports --- */

static struct scheduler_action *answer(enum scheduler_action_kind kind, const struct node *node,
                                       const struct scheduler_report *report,
                                       struct scheduler_actions *actions)
{
    struct scheduler_action *action = scheduler_act(actions, kind);
    action->job = report->job;
    action->epoch = action->task_epoch = report->epoch;
    action->node = node->id;
    memcpy(action->role, report->role, sizeof(action->role));
    action->index = report->index;
    return action;
}

/* A task that nobody waits for: an exit is acknowledged, a living one is killed. */
static void report_unknown(struct scheduler *s, struct node *node,
                           const struct scheduler_report *report, bool joining,
                           struct scheduler_actions *actions)
{
    if (report->state == TASK_EXITED) {
        answer(DO_ACKNOWLEDGE, node, report, actions);
        ghost_remove(s, node, report, actions);
        return;
    }
    ghost_add(node, report);
    if (joining)
        answer(DO_DISCARD, node, report, actions);
    else
        answer(DO_STOP, node, report, actions)->kill = true;
}

/* One report of a task of ours.  A late one, of a state it has left already, changes nothing.
 */
static void report_known(struct scheduler *s, struct job *job, struct task *task,
                         const struct scheduler_report *report, uint64_t now_us,
                         struct scheduler_actions *actions)
{
    if (report->state == TASK_EXITED) {
        answer(DO_ACKNOWLEDGE, task->node, report, actions);
        ghost_remove(s, task->node, report, actions);
        if (task->state != TASK_EXITED) {
            enum exit_reason reason = report->reason == EXIT_NONE ? EXIT_CRASH : report->reason;
            scheduler_job_task_exits(s, job, task, reason, report, actions);
            scheduler_job_review(s, job, now_us, actions);
        }
        return;
    }
    task->ended = task->ended || report->ended_us;
    if (report->state <= task->state)
        return;
    task->state = report->state;
    struct scheduler_action *action = answer(DO_TASK, task->node, report, actions);
    action->epoch = job->epoch;
    action->task_state = task->state;
    action->resources = task->resources;
    action->gpu_share = task->gpu_share;
    action->gpu_mask = task->gpu_mask;
    action->report = report;
    scheduler_job_review(s, job, now_us, actions);
}

void scheduler_node_seen(struct scheduler *s, struct node *node, uint64_t now_us,
                         struct scheduler_actions *actions)
{
    node->seen_us = now_us;
    if (node->state != NODE_SUSPECT)
        return;
    node->state = NODE_JOINED;
    s->dirty = true;
    node_changed(node, "heard of again", actions);
}

void scheduler_node_reports(struct scheduler *s, struct node *node,
                            const struct scheduler_event *event, uint64_t now_us,
                            struct scheduler_actions *actions)
{
    scheduler_node_seen(s, node, now_us, actions);
    if (event->asked_us && event->asked_us <= node->reported_us)
        return; /* overtaken: what it says of a task may be no longer so */
    node->reported_us = event->asked_us;
    for (int i = 0; i < event->reports_count; i++) {
        const struct scheduler_report *report = &event->reports[i];
        struct job *job;
        struct task *task = reported_task(s, node, report, &job);
        if (task)
            report_known(s, job, task, report, now_us, actions);
        else
            report_unknown(s, node, report, false, actions);
    }
}

/* --- joining --- */

static bool inventory_has(const struct scheduler_event *event, const struct job *job,
                          const struct task *task)
{
    for (int i = 0; i < event->reports_count; i++) {
        const struct scheduler_report *report = &event->reports[i];
        if (report->job == job->number && report->epoch == task->epoch &&
            report->index == task->index && strcmp(report->role, task->role) == 0)
            return true;
    }
    return false;
}

/*
 * A task of ours that the joining node does not speak of.  If nobody ever did, it was not
 * started, and now is, unless its GPUs went away meanwhile; if it had been started, it is gone.
 */
static void absent_task(struct scheduler *s, struct job *job, struct task *task,
                        struct scheduler_actions *actions)
{
    bool away = task->gpu_mask & task->node->gpus_away;
    if (task->state == TASK_WAITING && job->state != JOB_STOPPING && !away) {
        if (!task->node->ghosts_count)
            scheduler_job_send_start(job, task, actions);
    } else {
        scheduler_job_task_exits(s, job, task,
                                 task->state == TASK_WAITING ? EXIT_STOPPED : EXIT_LOST, NULL,
                                 actions);
    }
}

static bool job_uses(const struct job *job, const struct node *node)
{
    for (int i = 0; i < job->tasks_count; i++) {
        if (job->tasks[i].node == node && job->tasks[i].state != TASK_EXITED)
            return true;
    }
    return false;
}

/* What the node's inventory says of a job's tasks there, by what it leaves out. */
static void join_job(struct scheduler *s, struct job *job, const struct node *node,
                     const struct scheduler_event *event, uint64_t now_us,
                     struct scheduler_actions *actions)
{
    for (int i = 0; i < job->tasks_count; i++) {
        struct task *task = &job->tasks[i];
        if (task->node != node || task->state == TASK_EXITED)
            continue;
        if (!inventory_has(event, job, task))
            absent_task(s, job, task, actions);
        else if (job->state == JOB_STOPPING)
            scheduler_job_send_stop(s, job, task, actions); /* the first one may be lost */
    }
    scheduler_job_review(s, job, now_us, actions);
}

/* A node of a kind that was not known: what suits whom is asked anew. */
static void kind_is_new(struct scheduler *s)
{
    for (int i = 0; i < s->jobs_count; i++) {
        struct job *job = s->jobs[i];
        scheduler_books_suits_free(job->suits, job->needs_count);
        job->suits = scheduler_books_suits(s, job->needs, job->needs_count);
    }
}

void scheduler_node_asked(struct scheduler *s, struct node *node,
                          const struct scheduler_node_info *info)
{
    int kinds_count = s->match.count;
    node->kind = match_kind_of(&s->match, info);
    if (s->match.count != kinds_count)
        kind_is_new(s);
    free(node->boot_id);
    node->boot_id = alloc_text(info->boot_id ? info->boot_id : "");
    node->asked_us = info->asked_us;
    node->reported_us = 0;
}

/*
 * A join that was overtaken on its way: since it was asked for, the node has joined again, and
 * its inventory is old.  To take it would be to give up tasks that run.
 */
static bool join_is_stale(const struct node *node, const struct scheduler_node_info *info)
{
    return info->asked_us && info->asked_us <= node->asked_us && info->boot_id &&
           strcmp(info->boot_id, node->boot_id) == 0;
}

void scheduler_node_join(struct scheduler *s, const struct scheduler_event *event,
                         uint64_t now_us, struct scheduler_actions *actions)
{
    struct node *node = scheduler_find_node(s, event->node->id);
    if (node && join_is_stale(node, event->node))
        return;
    if (!node) {
        scheduler_load_node(s, event->node, now_us);
        node = scheduler_find_node(s, event->node->id);
    }
    scheduler_node_asked(s, node, event->node);
    node->capacity = event->node->capacity;
    node->gpus_away = event->node->gpus_away;
    scheduler_share_total(s);
    node->epoch = ++s->epoch;
    node->session = true;
    node->state = NODE_JOINED;
    node->seen_us = now_us;
    node->ghosts_count = 0; /* the inventory tells anew */
    s->dirty = true;

    struct scheduler_action *action = scheduler_act(actions, DO_JOINED);
    action->node = node->id;
    action->epoch = node->epoch;
    action->node_state = NODE_JOINED;
    action->draining = node->draining;
    action->text = "joined";

    for (int i = 0; i < event->reports_count; i++) {
        struct job *job;
        struct task *task = reported_task(s, node, &event->reports[i], &job);
        if (task)
            report_known(s, job, task, &event->reports[i], now_us, actions);
        else
            report_unknown(s, node, &event->reports[i], true, actions);
    }
    /* Backwards: a job that ends leaves the list. */
    for (int i = s->jobs_count - 1; i >= 0; i--) {
        if (job_uses(s->jobs[i], node))
            join_job(s, s->jobs[i], node, event, now_us, actions);
    }
}

/* --- draining and silence --- */

void scheduler_node_drain(struct scheduler *s, struct node *node, bool drain, const char *why,
                          struct scheduler_actions *actions)
{
    if (node->draining == drain)
        return;
    node->draining = drain;
    s->dirty = true;
    node_changed(node, why, actions);
}

uint64_t scheduler_node_next_us(const struct scheduler *s, const struct node *node)
{
    switch (node->state) {
    case NODE_JOINED:
        return node->seen_us + s->options.suspect_us;
    case NODE_SUSPECT:
        return node->seen_us + s->options.lost_us;
    case NODE_LOST:
        break;
    }
    return UINT64_MAX;
}

static void node_lost(struct scheduler *s, struct node *node, const char *why, uint64_t now_us,
                      struct scheduler_actions *actions)
{
    node->state = NODE_LOST;
    node->session = false;
    node->ghosts_count = 0;
    node_changed(node, arena_printf(actions->arena, "lost: %s; its tasks are given up", why),
                 actions);
    for (int i = s->jobs_count - 1; i >= 0; i--) {
        struct job *job = s->jobs[i];
        if (!job_uses(job, node))
            continue;
        for (int t = 0; t < job->tasks_count; t++) {
            if (job->tasks[t].node == node && job->tasks[t].state != TASK_EXITED)
                scheduler_job_task_exits(s, job, &job->tasks[t], EXIT_LOST, NULL, actions);
        }
        scheduler_job_review(s, job, now_us, actions);
    }
}

void scheduler_node_tick(struct scheduler *s, struct node *node, uint64_t now_us,
                         struct scheduler_actions *actions)
{
    if (now_us < scheduler_node_next_us(s, node))
        return;
    const char *why = arena_printf(actions->arena, "silent for %.1f s",
                                   (double)(now_us - node->seen_us) / 1e6);
    if (node->state == NODE_JOINED) {
        node->state = NODE_SUSPECT;
        node_changed(node, why, actions);
    }
    if (now_us - node->seen_us >= s->options.lost_us)
        node_lost(s, node, why, now_us, actions);
}

void scheduler_node_gone(struct scheduler *s, struct node *node, const char *why,
                         uint64_t now_us, struct scheduler_actions *actions)
{
    if (node->state == NODE_LOST)
        return;
    node_lost(s, node, why, now_us, actions);
    s->dirty = true;
}
