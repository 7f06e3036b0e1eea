/* core.c - orders, reports and their times. */

#include "scheduler/agent/core.h"
#include "base/alloc.h"

#define RETRY_FIRST_MS 100
#define RETRY_MAX_MS 2000
#define REJOIN_US UINT64_C(1000000)       /* between two joins */
#define ROOM_AGAIN_US UINT64_C(1000000)   /* between two tries to ship to a full disk */
#define REPORT_AGAIN_US UINT64_C(2000000) /* of an end that is not acknowledged */
#define SLOW_END_US 5000000               /* what a task wrote is shipped by then, as a rule */

void core_release(struct core *core)
{
    free(core->tasks);
    core->tasks = NULL;
    core->tasks_count = core->tasks_capacity = 0;
}

/* --- tasks --- */

struct core_task *core_find(struct core *core, const struct agent_task_ref *task)
{
    for (int i = 0; i < core->tasks_count; i++) {
        if (agent_task_ref_equal(&core->tasks[i].task, task))
            return &core->tasks[i];
    }
    return NULL;
}

struct core_task *core_add(struct core *core, const struct agent_task_ref *task,
                           struct attempt *attempt, enum agent_task_state state,
                           uint64_t now_us)
{
    core->tasks =
        alloc_grow(core->tasks, core->tasks_count, &core->tasks_capacity, sizeof(*core->tasks));
    struct core_task *added = &core->tasks[core->tasks_count++];
    *added = (struct core_task){.task = *task,
                                .attempt = attempt,
                                .state = state,
                                .ended_us = state == AGENT_TASK_EXITED ? now_us : 0,
                                .to_ship = true,
                                .to_report = true};
    return added;
}

void core_remove(struct core *core, struct core_task *task)
{
    *task = core->tasks[--core->tasks_count];
}

bool core_is_last(const struct core *core, const struct core_task *task)
{
    for (int i = 0; i < core->tasks_count; i++) {
        const struct core_task *other = &core->tasks[i];
        if (other != task && other->task.job_id == task->task.job_id)
            return false;
    }
    return true;
}

bool core_sees(struct core_task *task, enum agent_task_state state, uint64_t now_us)
{
    if (state == task->state)
        return false;
    task->state = state;
    task->to_report = true;
    task->to_ship = true;
    task->ship_us = 0;
    if (state == AGENT_TASK_EXITED) {
        task->kill_at_us = 0;
        task->ended_us = now_us;
    }
    return true;
}

bool core_launches(const struct core_task *task)
{
    return task->state == AGENT_TASK_STARTING && !task->discarded;
}

static bool is_unshipped(const struct core_task *task)
{
    return task->to_ship && !task->discarded;
}

bool core_ships(const struct core_task *task, uint64_t now_us)
{
    return is_unshipped(task) && now_us >= task->ship_us;
}

void core_no_room(struct core_task *task, uint64_t now_us)
{
    task->ship_us = now_us + ROOM_AGAIN_US;
}

static enum core_order kill_now(struct core_task *task)
{
    task->kill_at_us = 0;
    switch (task->state) {
    case AGENT_TASK_STARTING:
        return CORE_CANCEL;
    case AGENT_TASK_EXITED:
        return CORE_NOTHING;
    default:
        return CORE_KILL;
    }
}

/* A task that is being asked already keeps its time. */
static enum core_order stop(struct core_task *task, int64_t grace_ms, uint64_t now_us)
{
    if (task->state == AGENT_TASK_STARTING || task->state == AGENT_TASK_EXITED)
        return kill_now(task);
    if (task->kill_at_us)
        return CORE_NOTHING;
    task->kill_at_us = now_us + (uint64_t)(grace_ms > 0 ? grace_ms : 0) * 1000;
    return CORE_TERM;
}

enum core_order core_expires(struct core_task *task, uint64_t now_us)
{
    bool due = task->kill_at_us && now_us >= task->kill_at_us;
    return due ? kill_now(task) : CORE_NOTHING;
}

/* --- what the server says --- */

enum core_order core_command(struct core *core, const struct agent_command *command,
                             uint64_t now_us, struct core_task **task)
{
    const struct agent_stop_task *stopped = &command->stop;
    *task = NULL;
    if (command->sequence <= core->commands_done)
        return CORE_NOTHING;
    core->commands_done = command->sequence;
    switch (command->kind) {
    case AGENT_COMMAND_START:
        *task = core_find(core, &command->start.task);
        if (!*task)
            return CORE_START;
        (*task)->to_report = true;
        return CORE_NOTHING;
    case AGENT_COMMAND_STOP:
        *task = core_find(core, &stopped->task);
        if (!*task)
            return CORE_UNKNOWN;
        return stopped->kill ? kill_now(*task) : stop(*task, stopped->grace_ms, now_us);
    default:
        return CORE_NOTHING; /* of a newer server */
    }
}

enum core_order core_discard(struct core_task *task)
{
    task->discarded = true;
    return kill_now(task);
}

struct core_task *core_acknowledged(struct core *core, const struct agent_task_ref *task)
{
    struct core_task *held = core_find(core, task);
    return held && held->state == AGENT_TASK_EXITED ? held : NULL;
}

void core_joined(struct core *core, int64_t epoch, uint64_t now_us)
{
    core->epoch = epoch;
    core->commands_done = 0;
    core->joined_us = now_us;
    core->retry_ms = 0;
    for (int i = 0; i < core->tasks_count; i++) {
        core->tasks[i].to_ship = true;
        core->tasks[i].to_report = true;
    }
}

/* Whether something comes before the task's end. */
static bool end_waits(const struct core_task *task)
{
    return is_unshipped(task) || task->unproven;
}

enum agent_task_state core_tells_as(const struct core_task *task)
{
    return task->state == AGENT_TASK_EXITED && end_waits(task) ? AGENT_TASK_RUNNING
                                                               : task->state;
}

void core_leave(struct core *core)
{
    core->epoch = 0;
}

/* --- what is said to the server --- */

/* When its end is to be told, or that it has ended; UINT64_MAX: not for time. */
static uint64_t end_say_us(const struct core_task *task)
{
    if (!end_waits(task))
        return task->said_us + REPORT_AGAIN_US;
    return task->discarded || task->said_ended ? UINT64_MAX : task->ended_us + SLOW_END_US;
}

bool core_is_news(const struct core_task *task, uint64_t now_us)
{
    if (task->state != AGENT_TASK_EXITED)
        return task->to_report && !task->discarded;
    return (task->to_report && !end_waits(task)) || now_us >= end_say_us(task);
}

void core_told(struct core_task *task, enum agent_task_state state, uint64_t said_us)
{
    if (task->state == state)
        task->to_report = false;
    else if (task->state == AGENT_TASK_EXITED && said_us >= task->ended_us + SLOW_END_US)
        task->said_ended = true;
    task->said_us = said_us;
}

/* --- calls --- */

bool core_is_quiet(const struct core *core, uint64_t now_us)
{
    return now_us < core->quiet_until_us;
}

void core_answered(struct core *core)
{
    core->retry_ms = 0;
    core->quiet_until_us = 0;
}

void core_back_off(struct core *core, uint64_t now_us)
{
    if (core_is_quiet(core, now_us))
        return; /* several calls fail with one server */
    core->retry_ms = core->retry_ms ? core->retry_ms * 2 : RETRY_FIRST_MS;
    if (core->retry_ms > RETRY_MAX_MS)
        core->retry_ms = RETRY_MAX_MS;
    /* So that many agents do not come at once. */
    core->random = core->random * 1103515245u + 12345u;
    int wait_ms =
        core->retry_ms / 2 + (int)((core->random >> 8) % (unsigned)(core->retry_ms / 2 + 1));
    core->quiet_until_us = now_us + (uint64_t)wait_ms * 1000;
}

void core_give_up(struct core *core)
{
    core->quiet_until_us = UINT64_MAX;
}

bool core_failed(struct core *core, enum error_code code, uint64_t now_us)
{
    if (code != PRECONDITION && code != UNAUTHENTICATED) {
        core_back_off(core, now_us);
        return false;
    }
    core_leave(core);
    if (core->joined_us + REJOIN_US > core->quiet_until_us)
        core->quiet_until_us = core->joined_us + REJOIN_US;
    return true;
}

static uint64_t task_wake_us(const struct core_task *task, bool quiet, uint64_t now_us)
{
    uint64_t until_us = task->kill_at_us ? task->kill_at_us : UINT64_MAX;
    if (quiet)
        return until_us;
    if (core_is_news(task, now_us))
        return now_us;
    if (task->state == AGENT_TASK_EXITED && end_say_us(task) < until_us)
        until_us = end_say_us(task);
    if (is_unshipped(task) && task->ship_us && task->ship_us < until_us)
        until_us = task->ship_us;
    return until_us;
}

uint64_t core_wake_us(const struct core *core, uint64_t now_us)
{
    bool quiet = core_is_quiet(core, now_us);
    uint64_t until_us = quiet ? core->quiet_until_us : UINT64_MAX;
    for (int i = 0; i < core->tasks_count; i++) {
        uint64_t at_us = task_wake_us(&core->tasks[i], quiet, now_us);
        if (at_us < until_us)
            until_us = at_us;
    }
    return until_us;
}
