/* agent.c - a model of an agent and its machine: what it promises, and nothing more. */

#include "base/alloc.h"
#include "tests/sim/model.h"

#define MS UINT64_C(1000)

static struct process *process_find(struct agent *agent, const struct ref *task)
{
    for (int i = 0; i < agent->processes_count; i++) {
        if (ref_equal(&agent->processes[i].task, task))
            return &agent->processes[i];
    }
    return NULL;
}

int agent_alive_count(const struct agent *agent)
{
    int count = 0;
    for (int i = 0; i < agent->processes_count; i++)
        count += agent->processes[i].alive;
    return count;
}

bool agent_runs(const struct agent *agent, const struct ref *task)
{
    for (int i = 0; i < agent->processes_count; i++)
        if (ref_equal(&agent->processes[i].task, task))
            return agent->processes[i].alive;
    return false;
}

/* --- processes --- */

/* I4, as the machine sees it: what runs there never needs more than it has. */
static void check_machine(const struct agent *agent, int node)
{
    struct scheduler_resources sum = {0};
    int gpus[SCHEDULER_GPUS_MAX] = {0};
    for (int i = 0; i < agent->processes_count; i++) {
        if (!agent->processes[i].alive)
            continue;
        sum.cpu_millis += agent->processes[i].resources.cpu_millis;
        sum.memory_bytes += agent->processes[i].resources.memory_bytes;
        sum.gpus += agent->processes[i].resources.gpus;
        int share = agent->processes[i].gpu_share;
        for (int g = 0; g < SCHEDULER_GPUS_MAX; g++)
            if (agent->processes[i].gpu_mask >> g & 1)
                gpus[g] += share ? share : SCHEDULER_GPU_WHOLE;
    }
    for (int g = 0; g < SCHEDULER_GPUS_MAX; g++) {
        if (gpus[g] > SCHEDULER_GPU_WHOLE)
            sim_broken("I4: two processes on node %d have GPU %d", node + 1, g);
    }
    if (sum.cpu_millis > agent->capacity.cpu_millis || sum.gpus > agent->capacity.gpus ||
        sum.memory_bytes > agent->capacity.memory_bytes)
        sim_broken("I4: node %d runs %lld of %lld CPU, %lld of %lld GPUs", node + 1,
                   (long long)sum.cpu_millis, (long long)agent->capacity.cpu_millis,
                   (long long)sum.gpus, (long long)agent->capacity.gpus);
}

static struct process *process_add(struct agent *agent, const struct ref *task)
{
    agent->processes = alloc_grow(agent->processes, agent->processes_count,
                                  &agent->processes_capacity, sizeof(*agent->processes));
    struct process *process = &agent->processes[agent->processes_count++];
    *process = (struct process){.task = *task, .to_report = true};
    return process;
}

static void process_later(struct world *world, int node, const struct ref *task,
                          enum happening_kind kind, enum exit_reason reason, uint64_t in_us)
{
    struct happening *happening = world_later(world, in_us, kind);
    happening->node = node;
    happening->task = *task;
    happening->reason = reason;
}

static void process_start(struct world *world, int node, const struct command *command)
{
    struct agent *agent = &world->agents[node];
    for (int i = 0; i < world->started_count; i++) {
        if (ref_equal(&world->started[i], &command->task))
            sim_broken("%s:%d of attempt %lld is started twice", command->task.role,
                       command->task.index, (long long)command->task.epoch);
    }
    world->started = alloc_grow(world->started, world->started_count, &world->started_capacity,
                                sizeof(*world->started));
    world->started[world->started_count++] = command->task;

    if (command->gpu_mask & agent->gpus_away)
        sim_broken("F28: %s:%d of attempt %lld is started on a GPU of node %d that is away",
                   command->task.role, command->task.index, (long long)command->task.epoch,
                   node + 1);
    world_trace(world, "node %d: starts %s:%d of attempt %lld", node + 1, command->task.role,
                command->task.index, (long long)command->task.epoch);
    struct process *process = process_add(agent, &command->task);
    process->resources = command->resources;
    process->gpu_share = command->gpu_share;
    process->gpu_mask = command->gpu_mask;
    process->state = TASK_STARTING;
    process->alive = true;
    process->hangs = world_fault(world, FAULT_TASK, 5);
    process->unkillable = process->hangs && world_fault(world, FAULT_TASK, 20);
    check_machine(agent, node);
    if (world_fault(world, FAULT_TASK, 5))
        process_later(world, node, &command->task, PROCESS_ENDS, EXIT_START, 100 * MS);
    else
        process_later(world, node, &command->task, PROCESS_RUNS, EXIT_NONE,
                      random_between(&world->random, 5 * MS, 500 * MS));
}

void process_runs(struct world *world, int node, const struct ref *task)
{
    struct process *process = process_find(&world->agents[node], task);
    if (!process || !process->alive)
        return;
    process->state = TASK_RUNNING;
    process->to_report = true;
    if (strcmp(task->role, "ps") == 0 || process->hangs)
        return; /* these do not end by themselves */
    enum exit_reason reason = EXIT_OK;
    if (world_fault(world, FAULT_TASK, 30)) {
        static const enum exit_reason bad[] = {EXIT_CRASH, EXIT_MEMORY, EXIT_USER,
                                               EXIT_STOPPED};
        reason = bad[random_below(&world->random, ARRAY_LEN(bad))];
    }
    process_later(world, node, task, PROCESS_ENDS, reason,
                  random_between(&world->random, 10 * MS, 20000 * MS));
}

void process_ends(struct world *world, int node, const struct ref *task,
                  enum exit_reason reason, bool killed)
{
    struct process *process = process_find(&world->agents[node], task);
    if (!process || !process->alive)
        return;
    if (process->unkillable || (process->hangs && !killed))
        return;
    world_trace(world, "node %d: %s:%d of attempt %lld exits: %s", node + 1, task->role,
                task->index, (long long)task->epoch, db_exit_reason_name(reason));
    process->alive = false;
    process->state = TASK_EXITED;
    process->reason = reason;
    process->to_report = true;
    /* The agent hears of it at once, and tells. */
    world_later(world, 1 * MS, AGENT_SYNC)->node = node;
}

static void process_stop(struct world *world, int node, const struct command *command)
{
    struct agent *agent = &world->agents[node];
    struct process *process = process_find(agent, &command->task);
    if (!process) {
        process = process_add(agent, &command->task);
        process->state = TASK_EXITED;
        process->reason = EXIT_STOPPED;
        return;
    }
    if (!command->kill)
        process_later(world, node, &command->task, PROCESS_ENDS, EXIT_STOPPED,
                      random_between(&world->random, 5 * MS, 500 * MS));
    process_later(world, node, &command->task, PROCESS_KILLED, EXIT_CRASH,
                  command->kill ? 1 * MS : command->grace_us);
}

/* --- the agent --- */

static void take_answer(struct world *world, int node, const struct message *message)
{
    struct agent *agent = &world->agents[node];
    for (int i = 0; i < message->commands_count; i++) {
        const struct command *command = &message->commands[i];
        if (command->sequence <= agent->done)
            continue;
        if (command->sequence != agent->done + 1)
            sim_broken("node %d gets command %lld after %lld", node + 1,
                       (long long)command->sequence, (long long)agent->done);
        agent->done = command->sequence;
        if (!command->start)
            process_stop(world, node, command);
        else if (!process_find(agent, &command->task))
            process_start(world, node, command);
    }
    for (int i = 0; i < message->tasks_count; i++) {
        struct process *process = process_find(agent, &message->tasks[i]);
        if (process && process->state == TASK_EXITED)
            *process = agent->processes[--agent->processes_count];
    }
    for (int i = 0; message->request && i < message->request->reports_count; i++) {
        const struct scheduler_report *report = &message->request->reports[i];
        struct ref task = {.job = report->job, .epoch = report->epoch, .index = report->index};
        memcpy(task.role, report->role, sizeof(task.role));
        struct process *process = process_find(agent, &task);
        if (process && process->state == report->state && process->state != TASK_EXITED)
            process->to_report = false; /* an exit is told until it is acknowledged */
    }
}

static void take_joined(struct world *world, int node, const struct message *message)
{
    struct agent *agent = &world->agents[node];
    agent->epoch = message->epoch;
    agent->done = 0;
    for (int i = 0; i < agent->processes_count; i++)
        agent->processes[i].to_report = true;
    for (int i = 0; i < message->tasks_count; i++) {
        struct process *process = process_find(agent, &message->tasks[i]);
        if (!process)
            continue;
        process->discarded = true;
        process_later(world, node, &process->task, PROCESS_KILLED, EXIT_CRASH, 1 * MS);
    }
}

/* Its session is over, or the process is gone, and with it its calls: an answer to a join that
 * comes late finds nobody. */
static void agent_forget(struct agent *agent)
{
    agent->epoch = 0;
    agent->asked_us = UINT64_MAX;
}

void agent_message(struct world *world, const struct message *message)
{
    struct agent *agent = &world->agents[message->node];
    if (!agent->machine_up || !agent->agent_up)
        return;
    if (message->kind == SAYS_JOINED && !agent->epoch && message->asked_us == agent->asked_us)
        take_joined(world, message->node, message);
    else if (message->kind == SAYS_SYNCED && message->epoch == agent->epoch)
        take_answer(world, message->node, message);
    else if (message->kind == SAYS_FENCED && message->epoch == agent->epoch)
        agent_forget(agent);
}

void agent_sync(struct world *world, int node)
{
    struct agent *agent = &world->agents[node];
    if (!agent->machine_up || !agent->agent_up)
        return;
    struct message *message = arena_alloc(world->arena, sizeof(*message));
    *message = (struct message){.kind = agent->epoch ? SAYS_SYNC : SAYS_JOIN,
                                .node = node,
                                .epoch = agent->epoch,
                                .done = agent->done,
                                .boot_id = arena_printf(world->arena, "boot%d", agent->boots),
                                .gpus_away = agent->gpus_away,
                                .asked_us = world->now_us};
    if (!agent->epoch)
        agent->asked_us = world->now_us;
    struct scheduler_report *reports =
        arena_array(world->arena, (size_t)agent->processes_count, sizeof(*reports));
    for (int i = 0; i < agent->processes_count; i++) {
        const struct process *process = &agent->processes[i];
        if (agent->epoch && !process->to_report)
            continue;
        struct scheduler_report *report = &reports[message->reports_count++];
        *report = (struct scheduler_report){.job = process->task.job,
                                            .epoch = process->task.epoch,
                                            .index = process->task.index,
                                            .state = process->state,
                                            .reason = process->reason,
                                            .error = ""};
        memcpy(report->role, process->task.role, sizeof(report->role));
    }
    message->reports = reports;
    world_send(world, true, message);
}

/* --- faults --- */

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

void machine_crash(struct world *world, int node)
{
    struct agent *agent = &world->agents[node];
    if (!agent->machine_up)
        return;
    world_trace(world, "node %d: machine dies", node + 1);
    agent->machine_up = false;
    agent_forget(agent);
    for (int i = 0; i < agent->processes_count; i++) {
        struct process *process = &agent->processes[i];
        if (!process->alive)
            continue;
        process->alive = false;
        process->state = TASK_EXITED;
        process->reason = EXIT_LOST;
    }
    world_later(world, random_between(&world->random, 1000 * MS, 60000 * MS), MACHINE_UP)
        ->node = node;
}

void machine_boot(struct world *world, int node)
{
    world_trace(world, "node %d: machine up", node + 1);
    world->agents[node].boots++;
    world->agents[node].machine_up = true;
    world->agents[node].agent_up = true;
}

/* The driver says so: what runs on those that are away is ended, and the agent joins anew. */
void gpus_change(struct world *world, int node, uint64_t away)
{
    struct agent *agent = &world->agents[node];
    if (agent->gpus_away == away)
        return;
    world_trace(world, "node %d: GPUs %#llx are away", node + 1, (unsigned long long)away);
    for (int i = 0; i < agent->processes_count; i++) {
        const struct process *process = &agent->processes[i];
        if (process->alive && process->gpu_mask & away & ~agent->gpus_away)
            process_later(world, node, &process->task, PROCESS_KILLED, EXIT_CRASH, 1 * MS);
    }
    agent->gpus_away = away;
    agent_forget(agent);
}

/* Whatever hung lets go. */
void agent_heal(struct world *world, int node)
{
    struct agent *agent = &world->agents[node];
    agent->cut_to_us = agent->cut_from_us = 0;
    gpus_change(world, node, 0);
    for (int i = 0; i < agent->processes_count; i++) {
        struct process *process = &agent->processes[i];
        if (!process->alive || !process->hangs)
            continue;
        process->hangs = process->unkillable = false;
        process_later(world, node, &process->task, PROCESS_ENDS, EXIT_CRASH, 1000 * MS);
    }
}
