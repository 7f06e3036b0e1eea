/* loop_commit.c - stores what the scheduler has decided. */

#include "base/clock.h"
#include "db/jobs_change.h"
#include "db/queues.h"
#include "scheduler/loop_state.h"

struct commit {
    const struct scheduler_actions *actions;
    int64_t epoch_before;
    int64_t epoch;
    struct loop_join *const *joins;
    int joins_count;
    int64_t now_us; /* wall */
};

static bool commit_job(struct db_conn *conn, const struct commit *commit,
                       const struct scheduler_action *action, struct error *err)
{
    struct db_job_change change = {
        .job = action->job,
        .from = action->from,
        .to = action->to,
        .reason = action->reason,
        .text = action->text,
        .attempt = action->attempt,
        .epoch = action->epoch,
        .restarts = action->restarts,
        .preemptions = action->preemptions,
        .retry_us = action->retry_in_us ? commit->now_us + (int64_t)action->retry_in_us : 0,
        .now_us = commit->now_us,
    };
    return db_jobs_change(conn, &change, err);
}

static bool commit_task(struct db_conn *conn, const struct commit *commit,
                        const struct scheduler_action *action, struct error *err)
{
    struct db_task task = {
        .epoch = action->epoch,
        .job = action->job,
        .role = action->role,
        .index = action->index,
        .node_id = action->node,
        .state = action->task_state,
        .cpu_millis = action->resources.cpu_millis,
        .memory_bytes = action->resources.memory_bytes,
        .gpus = (int)action->resources.gpus,
        .gpu_share = action->gpu_share,
        .gpu_mask = action->gpu_mask,
        .placed = action->task_epoch,
        .away = action->away,
        .reason = action->exit,
        .error = "",
        .step = -1,
    };
    const struct scheduler_report *report = action->report;
    if (report) {
        task.pid = report->pid;
        task.started_us = report->started_us;
        task.ended_us = report->ended_us;
        task.exit_code = report->exit_code;
        task.signal = report->signal;
        task.error = report->error;
        task.step = report->step;
    }
    if (task.state == TASK_EXITED && !task.ended_us)
        task.ended_us = commit->now_us;
    return db_tasks_set(conn, &task, commit->now_us, err);
}

static bool commit_join(struct db_conn *conn, const struct commit *commit,
                        const struct scheduler_action *action, struct error *err)
{
    const struct loop_join *join = NULL;
    for (int i = 0; i < commit->joins_count; i++) {
        if (commit->joins[i]->node_epoch == action->epoch)
            join = commit->joins[i];
    }
    assert(join);
    struct db_node node = {
        .id = join->node_id,
        .name = join->name,
        .identity = join->identity,
        .boot_id = join->boot_id,
        .version = join->version,
        .labels = join->labels,
        .epoch = join->node_epoch,
        .state = NODE_JOINED,
        .draining = action->draining,
        .cpu_millis = join->capacity.cpu_millis,
        .memory_bytes = join->capacity.memory_bytes,
        .gpus = (int)join->capacity.gpus,
        .gpu_type = join->gpu_type,
        .gpu_memory_bytes = join->gpu_memory_bytes,
        .joined_us = commit->now_us,
        .asked_us = join->asked_us,
    };
    return db_nodes_set(conn, &node, action->text, commit->now_us, err);
}

static bool commit_action(struct db_conn *conn, const struct commit *commit,
                          const struct scheduler_action *action, struct error *err)
{
    struct db_attempt attempt = {.epoch = action->epoch,
                                 .job = action->job,
                                 .attempt = action->attempt,
                                 .created_us = commit->now_us};
    switch (action->kind) {
    case DO_JOB:
        return commit_job(conn, commit, action, err);
    case DO_NOTE:
        return db_jobs_note(conn, action->job, action->attempt, action->restarts,
                            action->reason, action->text, commit->now_us, err);
    case DO_ATTEMPT:
        return db_attempts_add(conn, &attempt, err);
    case DO_ATTEMPT_RUNS:
        return db_attempts_start(conn, action->epoch, commit->now_us, err);
    case DO_ATTEMPT_ENDS:
        return db_attempts_end(conn, action->epoch, action->exit, action->text, commit->now_us,
                               err);
    case DO_TASK:
        return commit_task(conn, commit, action, err);
    case DO_NODE:
        return db_nodes_state(conn, action->node, action->node_state, action->draining,
                              action->text, commit->now_us, err);
    case DO_PRIORITY:
        return db_jobs_priority(conn, action->job, action->attempt, action->priority,
                                commit->now_us, err);
    case DO_EDIT:
        return db_jobs_edit(conn, action->job, action->attempt, action->edit, commit->now_us,
                            err);
    case DO_PAUSE:
        return db_jobs_pause(conn, action->job, action->attempt, action->pause, action->reason,
                             action->text, commit->now_us, err);
    case DO_FAILURE:
        return db_failures_set(conn, action->job,
                               &(struct db_failure){action->node, action->count}, err);
    case DO_USAGE:
        return db_projects_charge(conn, action->project, (int64_t)action->usage, action->cpu_ms,
                                  action->gpu_ms, commit->now_us, err);
    case DO_JOINED:
        return commit_join(conn, commit, action, err);
    case DO_START:
    case DO_STOP:
    case DO_ACKNOWLEDGE:
    case DO_DISCARD:
        break;
    }
    return true;
}

static bool commit_run(struct db_conn *conn, void *arg, struct error *err)
{
    const struct commit *commit = arg;
    if (commit->epoch != commit->epoch_before && !db_epoch_write(conn, commit->epoch, err))
        return false;
    for (int i = 0; i < commit->actions->count; i++) {
        if (!commit_action(conn, commit, &commit->actions->list[i], err))
            return false;
    }
    return true;
}

static bool is_stored(const struct scheduler_action *action)
{
    return action->kind <= DO_JOINED;
}

/* What attempts before this one still have to say must not mix with what it says. */
static bool commit_fences(struct db *db, const struct scheduler_actions *actions,
                          struct error *err)
{
    for (int i = 0; i < actions->count; i++) {
        const struct scheduler_action *action = &actions->list[i];
        if (action->kind == DO_ATTEMPT && action->attempt > 1 &&
            !db_ship_fence(db, action->job, action->epoch, err))
            return false;
    }
    return true;
}

bool loop_commit(struct db *db, const struct scheduler_actions *actions, int64_t epoch_before,
                 int64_t epoch, struct loop_join *const *joins, int joins_count,
                 struct error *err)
{
    bool any = epoch != epoch_before;
    for (int i = 0; i < actions->count && !any; i++)
        any = is_stored(&actions->list[i]);
    if (!any)
        return true;
    struct commit commit = {actions, epoch_before, epoch,
                            joins,   joins_count,  (int64_t)clock_wall_us()};
    return db_write(db, DB_CONTROL, commit_run, &commit, err) &&
           commit_fences(db, actions, err);
}
