/*
 * agent.c - what work.c does on machines that exist.  It is decided by the production code:
 * scheduler/agent/core.c, cursor.c.
 */

#include "base/alloc.h"
#include "tests/sim/model.h"

#define MS UINT64_C(1000)
#define CALL_US (3000 * MS) /* for an answer */

static struct agent_task_ref ref_of(const struct ref *task)
{
    return (struct agent_task_ref){task->job, task->epoch, task->role, task->index};
}

/* --- what the agent does --- */

/* Whether the driver still sees processes on the task's GPUs. */
static bool is_on_gpus(const struct world *world, const struct agent *agent,
                       const struct attempt *attempt)
{
    for (int g = 0; g < SCHEDULER_GPUS_MAX; g++) {
        if (attempt->gpu_mask >> g & 1 && world->now_us < agent->gpu_free_us[g])
            return true;
    }
    return false;
}

/* It sees how the task is; as in work.c an end is proven before it is told. */
static void agent_see(const struct world *world, const struct agent *agent,
                      struct core_task *task)
{
    bool ended = core_sees(task, task->attempt->state, world->now_us) &&
                 task->state == AGENT_TASK_EXITED;
    task->unproven = (ended || task->unproven) && is_on_gpus(world, agent, task->attempt);
}

static void agent_look(const struct world *world, struct agent *agent)
{
    for (int i = 0; i < agent->core.tasks_count; i++) {
        struct core_task *task = &agent->core.tasks[i];
        int64_t bytes = attempt_written(world, task->attempt);
        agent_see(world, agent, task);
        if (bytes != task->attempt->seen)
            task->to_ship = true;
        task->attempt->seen = bytes;
    }
}

static void agent_order(struct world *world, int node, struct core_task *task,
                        enum core_order order)
{
    const struct ref *ref = &task->attempt->task;
    switch (order) {
    case CORE_CANCEL:
        assert(task->attempt->state == AGENT_TASK_STARTING);
        attempt_end(world, task->attempt, EXIT_STOPPED);
        agent_see(world, &world->agents[node], task);
        break;
    case CORE_TERM:
        process_later(world, node, ref, PROCESS_ENDS, EXIT_STOPPED,
                      random_between(&world->random, 5 * MS, 500 * MS));
        world_later(world, task->kill_at_us - world->now_us, AGENT_SYNC)->node = node;
        break;
    case CORE_KILL:
        process_later(world, node, ref, PROCESS_KILLED, EXIT_CRASH, 1 * MS);
        break;
    case CORE_NOTHING:
    case CORE_START:
    case CORE_UNKNOWN:
        break;
    }
}

/* All that it had in its memory; its calls find nobody. */
void agent_forget(struct agent *agent)
{
    agent->call = NULL;
    core_release(&agent->core);
    agent->core = (struct core){0};
    for (int i = agent->attempts_count - 1; i >= 0; i--) {
        struct attempt *attempt = agent->attempts[i];
        cursor_init(&attempt->cursor, false);
        attempt->seen = 0;
        if (attempt->unknown)
            attempt_remove(agent, attempt);
    }
}

void agent_boot(struct world *world, int node)
{
    struct agent *agent = &world->agents[node];
    if (agent->agent_up || !agent->machine_up)
        return;
    agent->agent_up = true;
    agent->core.random = (unsigned)random_next(&world->random);
    for (int i = 0; i < agent->attempts_count; i++) {
        struct attempt *attempt = agent->attempts[i];
        struct agent_task_ref ref = ref_of(&attempt->task);
        struct core_task *task =
            core_add(&agent->core, &ref, attempt, attempt->state, world->now_us);
        task->unproven = task->state == AGENT_TASK_EXITED && is_on_gpus(world, agent, attempt);
    }
}

/* Adds a task that is new here; false: the agent died over it. */
static bool agent_add(struct world *world, int node, const struct command *command, bool start)
{
    struct agent *agent = &world->agents[node];
    struct attempt *attempt =
        start ? process_start(world, node, command) : attempt_add(world, agent, &command->task);
    struct agent_task_ref ref = ref_of(&attempt->task);
    if (!start) {
        attempt->unknown = true;
        attempt->file = -1;
        attempt->state = AGENT_TASK_EXITED;
        attempt->reason = EXIT_LOST;
    }
    if (world_fault(world, FAULT_AGENT_CRASH, 1)) {
        agent_crash(world, node);
        return false;
    }
    core_add(&agent->core, &ref, attempt, attempt->state, world->now_us);
    return true;
}

static bool take_command(struct world *world, int node, const struct command *command)
{
    struct agent *agent = &world->agents[node];
    struct ref to = command->task;
    struct agent_command said = {.sequence = command->sequence,
                                 .kind =
                                     command->start ? AGENT_COMMAND_START : AGENT_COMMAND_STOP};
    if (command->start)
        said.start.task = ref_of(&to);
    else
        said.stop = (struct agent_stop_task){ref_of(&to), command->kill,
                                             (int64_t)(command->grace_us / MS)};
    struct core_task *task;
    if (command->sequence > agent->core.commands_done + 1)
        sim_broken("node %d gets command %lld after %lld", node + 1,
                   (long long)command->sequence, (long long)agent->core.commands_done);
    enum core_order order = core_command(&agent->core, &said, world->now_us, &task);
    if (order != CORE_NOTHING && world_fault(world, FAULT_AGENT_CRASH, 1)) {
        agent_crash(world, node);
        return false;
    }
    if (order == CORE_START || order == CORE_UNKNOWN)
        return agent_add(world, node, command, order == CORE_START);
    if (task)
        agent_order(world, node, task, order);
    return true;
}

/* I10: what was not superseded is forgotten when all that it wrote is stored, not before. */
static void check_stored(const struct world *world, const struct core_task *task)
{
    const struct attempt *attempt = task->attempt;
    if (task->discarded || attempt->unknown)
        return;
    int64_t whole = attempt->bytes;
    if (!file_is_log(attempt->file))
        whole -= whole % STORE_RECORD_BYTES;
    if (attempt->alive || world->store.files[attempt->file].cursor != whole)
        sim_broken("I10: %s:%d of attempt %lld is forgotten, and %lld of %lld bytes are stored",
                   attempt->task.role, attempt->task.index, (long long)attempt->task.epoch,
                   (long long)world->store.files[attempt->file].cursor, (long long)whole);
}

static void take_answer(struct world *world, int node, const struct message *message)
{
    struct agent *agent = &world->agents[node];
    core_answered(&agent->core);
    for (int i = 0; i < message->commands_count; i++) {
        if (!take_command(world, node, &message->commands[i]))
            return;
    }
    for (int i = 0; i < message->tasks_count; i++) {
        struct agent_task_ref ref = ref_of(&message->tasks[i]);
        struct core_task *task = core_acknowledged(&agent->core, &ref);
        if (!task)
            continue;
        check_stored(world, task);
        attempt_remove(agent, task->attempt);
        core_remove(&agent->core, task);
        if (world_fault(world, FAULT_AGENT_CRASH, 1)) {
            agent_crash(world, node);
            return;
        }
    }
}

static void take_told(struct agent *agent, const struct message *said)
{
    for (int i = 0; i < said->reports_count; i++) {
        const struct scheduler_report *report = &said->reports[i];
        const struct agent_task_ref ref = {report->job, report->epoch, report->role,
                                           report->index};
        struct core_task *task = core_find(&agent->core, &ref);
        if (task)
            core_told(task, (enum agent_task_state)report->state, said->asked_us);
    }
}

static void take_joined(struct world *world, int node, const struct message *message)
{
    struct agent *agent = &world->agents[node];
    core_joined(&agent->core, message->epoch, world->now_us);
    for (int i = 0; i < message->tasks_count; i++) {
        struct agent_task_ref ref = ref_of(&message->tasks[i]);
        struct core_task *task = core_find(&agent->core, &ref);
        if (task)
            agent_order(world, node, task, core_discard(task));
    }
}

static void take_shipped(const struct world *world, struct agent *agent,
                         const struct message *message)
{
    const struct message *said = message->request;
    struct attempt *attempt = attempt_find(agent, &world->files[said->file]);
    if (!attempt)
        return;
    if (attempt->cursor.at < 0) {
        attempt->cursor.at = message->stored;
        return;
    }
    switch (cursor_advance(&attempt->cursor, message->stored, attempt->seen, said->size)) {
    case CURSOR_OK:
        break;
    case CURSOR_LOST:
        (void)core_failed(&agent->core, UNAVAILABLE, world->now_us);
        break;
    case CURSOR_STUCK:
    case CURSOR_BEYOND:
        sim_broken("I10: the server has %lld bytes of %s:%d of attempt %lld, of %lld",
                   (long long)message->stored, attempt->task.role, attempt->task.index,
                   (long long)attempt->task.epoch, (long long)attempt->seen);
    }
}

void agent_message(struct world *world, const struct message *message)
{
    struct agent *agent = &world->agents[message->node];
    if (!agent->machine_up || !agent->agent_up)
        return;
    /* Only the agent itself starts a task: it knows at once which have been. */
    agent_look(world, agent);
    const struct message *call = agent->call;
    bool answers = call && (call == message->request ||
                            (message->kind == SAYS_JOINED && call->kind == SAYS_JOIN &&
                             call->asked_us == message->asked_us));
    if (answers)
        agent->call = NULL;
    if (message->kind == SAYS_JOINED && answers) {
        take_joined(world, message->node, message);
    } else if (!agent->core.epoch || message->epoch != agent->core.epoch) {
        return; /* of an earlier session */
    } else if (message->kind == SAYS_FENCED) {
        agent->call = NULL;
        (void)core_failed(&agent->core, PRECONDITION, world->now_us);
    } else if (message->kind == SAYS_SHIPPED && answers) {
        take_shipped(world, agent, message);
    } else if (message->kind == SAYS_SYNCED) {
        if (answers)
            take_told(agent, message->request);
        take_answer(world, message->node, message);
    }
    agent_turn(world, message->node, false);
}

/* --- what the agent says --- */

static struct message *new_message(struct world *world, int node, enum message_kind kind)
{
    const struct agent *agent = &world->agents[node];
    struct message *message = arena_alloc(world->arena, sizeof(*message));
    *message = (struct message){.kind = kind,
                                .node = node,
                                .epoch = agent->core.epoch,
                                .done = agent->core.commands_done};
    return message;
}

/* The agent has one thread: it waits for the answer. */
static void agent_call(struct world *world, struct message *message)
{
    message->asked_us = world->now_us;
    world->agents[message->node].call = message;
    world_send(world, true, message);
}

static void add_report(struct message *message, struct scheduler_report *reports,
                       const struct core_task *task, enum agent_task_state state)
{
    const struct attempt *attempt = task->attempt;
    struct scheduler_report *report = &reports[message->reports_count++];
    *report = (struct scheduler_report){.job = attempt->task.job,
                                        .epoch = attempt->task.epoch,
                                        .index = attempt->task.index,
                                        .state = (enum task_state)state,
                                        .reason = attempt->reason,
                                        .ended_us = (int64_t)task->ended_us,
                                        .error = ""};
    memcpy(report->role, attempt->task.role, sizeof(report->role));
    message->reports = reports;
}

static void agent_join(struct world *world, int node)
{
    struct agent *agent = &world->agents[node];
    struct message *message = new_message(world, node, SAYS_JOIN);
    struct scheduler_report *reports =
        arena_array(world->arena, (size_t)agent->core.tasks_count, sizeof(*reports));
    for (int i = 0; i < agent->core.tasks_count; i++)
        add_report(message, reports, &agent->core.tasks[i],
                   core_tells_as(&agent->core.tasks[i]));
    message->boot_id = arena_printf(world->arena, "boot%d", agent->boots);
    message->gpus_away = agent->gpus_away;
    agent_call(world, message);
}

/* True: it waits for an answer now. */
static bool agent_ship(struct world *world, int node)
{
    struct agent *agent = &world->agents[node];
    for (int i = 0; i < agent->core.tasks_count; i++) {
        struct core_task *task = &agent->core.tasks[i];
        struct attempt *attempt = task->attempt;
        if (!core_ships(task, world->now_us))
            continue;
        bool asks = !attempt->unknown && attempt->cursor.at < 0;
        size_t size =
            attempt->unknown || asks ? 0 : cursor_next(&attempt->cursor, attempt->seen);
        if (!asks && !size) {
            task->to_ship = false;
            continue;
        }
        struct message *message = new_message(world, node, SAYS_SHIP);
        message->file = attempt->file;
        if (!asks) {
            message->offset = attempt->cursor.at;
            message->bytes = attempt_read(world, attempt, attempt->cursor.at, size);
            message->size = size;
        }
        agent_call(world, message);
        return true;
    }
    return false;
}

static void agent_report(struct world *world, int node)
{
    struct agent *agent = &world->agents[node];
    int count = 0;
    for (int i = 0; i < agent->core.tasks_count; i++)
        count += core_is_news(&agent->core.tasks[i], world->now_us);
    if (!count)
        return;
    struct message *message = new_message(world, node, SAYS_SYNC);
    struct scheduler_report *reports =
        arena_array(world->arena, (size_t)count, sizeof(*reports));
    for (int i = 0; i < agent->core.tasks_count; i++) {
        const struct core_task *task = &agent->core.tasks[i];
        if (core_is_news(task, world->now_us))
            add_report(message, reports, task, core_tells_as(task));
    }
    agent_call(world, message);
}

/* What work.c does in a turn.  The heartbeat is the long poll, which another thread holds. */
void agent_turn(struct world *world, int node, bool heartbeat)
{
    struct agent *agent = &world->agents[node];
    struct core *core = &agent->core;
    if (!agent->machine_up || !agent->agent_up)
        return;
    agent_look(world, agent);
    for (int i = 0; i < core->tasks_count; i++)
        agent_order(world, node, &core->tasks[i], core_expires(&core->tasks[i], world->now_us));
    if (heartbeat && core->epoch)
        world_send(world, true, new_message(world, node, SAYS_SYNC));
    if (agent->call && world->now_us >= agent->call->asked_us + CALL_US) {
        agent->call = NULL;
        (void)core_failed(core, UNAVAILABLE, world->now_us);
    }
    if (agent->call || core_is_quiet(core, world->now_us))
        return;
    if (!core->epoch)
        agent_join(world, node);
    else if (!agent_ship(world, node))
        agent_report(world, node);
}

void agent_release(struct agent *agent)
{
    core_release(&agent->core);
    free(agent->attempts);
}

void agent_crash(struct world *world, int node)
{
    struct agent *agent = &world->agents[node];
    if (!agent->agent_up)
        return;
    world_trace(world, "node %d: agent dies", node + 1);
    agent->agent_up = false;
    agent_forget(agent);
    world_later(world, random_between(&world->random, 100 * MS, 10000 * MS), AGENT_UP)->node =
        node;
}
