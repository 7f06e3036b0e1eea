/* machine.c - machines that do not exist, what runs there, and what that writes. */

#include "base/alloc.h"
#include "tests/sim/model.h"

#define MS UINT64_C(1000)
#define WRITE_US (500 * MS) /* between two writes of a running task, ... */
#define WRITE_BYTES 12      /* ... of a record and a half */
#define WRITES_MAX 40
#define GPU_FREE_US (3000 * MS) /* a task that has ended still has its GPUs */

struct attempt *attempt_find(const struct agent *agent, const struct ref *task)
{
    for (int i = 0; i < agent->attempts_count; i++) {
        if (ref_equal(&agent->attempts[i]->task, task))
            return agent->attempts[i];
    }
    return NULL;
}

const struct attempt *agent_holds(const struct agent *agent)
{
    return agent->attempts_count ? agent->attempts[0] : NULL;
}

bool agent_runs(const struct agent *agent, const struct ref *task)
{
    const struct attempt *attempt = attempt_find(agent, task);
    return attempt && attempt->alive;
}

/* --- what a task writes --- */

int64_t attempt_written(const struct world *world, const struct attempt *attempt)
{
    if (!attempt->alive || !attempt->runs_us)
        return attempt->bytes;
    uint64_t writes = (world->now_us - attempt->runs_us) / WRITE_US;
    return WRITE_BYTES * (int64_t)(writes < WRITES_MAX ? writes : WRITES_MAX);
}

const char *attempt_read(struct world *world, const struct attempt *attempt, int64_t offset,
                         size_t size)
{
    char *bytes = arena_alloc(world->arena, size);
    for (size_t i = 0; i < size; i++) {
        int64_t at = offset + (int64_t)i;
        uint32_t record[2] = {(uint32_t)attempt->file,
                              (uint32_t)(attempt->first_step + at / STORE_RECORD_BYTES)};
        bytes[i] = ((const char *)record)[at % STORE_RECORD_BYTES];
    }
    return bytes;
}

/* --- processes --- */

/* I4, as the machine sees it: what runs there never needs more than it has. */
static void check_machine(const struct agent *agent, int node)
{
    struct scheduler_resources sum = {0};
    int gpus[SCHEDULER_GPUS_MAX] = {0};
    for (int i = 0; i < agent->attempts_count; i++) {
        const struct attempt *attempt = agent->attempts[i];
        if (!attempt->alive)
            continue;
        sum.cpu_millis += attempt->resources.cpu_millis;
        sum.memory_bytes += attempt->resources.memory_bytes;
        sum.gpus += attempt->resources.gpus;
        int share = attempt->gpu_share;
        for (int g = 0; g < SCHEDULER_GPUS_MAX; g++)
            if (attempt->gpu_mask >> g & 1)
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

struct attempt *attempt_add(struct world *world, struct agent *agent, const struct ref *task)
{
    agent->attempts = alloc_grow(agent->attempts, agent->attempts_count,
                                 &agent->attempts_capacity, sizeof(struct attempt *));
    struct attempt *attempt = arena_alloc(world->arena, sizeof(*attempt));
    *attempt = (struct attempt){.task = *task, .state = AGENT_TASK_STARTING};
    cursor_init(&attempt->cursor, true);
    agent->attempts[agent->attempts_count++] = attempt;
    return attempt;
}

/* Nothing but the attempt itself is left of it, in the world's arena. */
void attempt_remove(struct agent *agent, const struct attempt *attempt)
{
    int i = 0;
    while (agent->attempts[i] != attempt)
        i++;
    agent->attempts[i] = agent->attempts[--agent->attempts_count];
}

void process_later(struct world *world, int node, const struct ref *task,
                   enum happening_kind kind, enum exit_reason reason, uint64_t in_us)
{
    struct happening *happening = world_later(world, in_us, kind);
    happening->node = node;
    happening->task = *task;
    happening->reason = reason;
}

struct attempt *process_start(struct world *world, int node, const struct command *command)
{
    struct agent *agent = &world->agents[node];
    for (int i = 0; i < world->files_count; i++) {
        if (ref_equal(&world->files[i], &command->task))
            sim_broken("%s:%d of attempt %lld is started twice", command->task.role,
                       command->task.index, (long long)command->task.epoch);
    }
    world->files = alloc_grow(world->files, world->files_count, &world->files_capacity,
                              sizeof(*world->files));
    assert(world->files_count < STORE_FILES_MAX);
    int file = world->files_count++;
    world->files[file] = command->task;

    if (command->gpu_mask & agent->gpus_away)
        sim_broken("F28: %s:%d of attempt %lld is started on a GPU of node %d that is away",
                   command->task.role, command->task.index, (long long)command->task.epoch,
                   node + 1);
    for (int g = 0; g < SCHEDULER_GPUS_MAX; g++) {
        if (command->gpu_mask >> g & 1 && world->now_us < agent->gpu_free_us[g])
            sim_broken("F28: %s:%d of attempt %lld is started on GPU %d of node %d before that "
                       "is proven free",
                       command->task.role, command->task.index, (long long)command->task.epoch,
                       g, node + 1);
    }
    world_trace(world, "node %d: starts %s:%d of attempt %lld", node + 1, command->task.role,
                command->task.index, (long long)command->task.epoch);
    struct attempt *attempt = attempt_add(world, agent, &command->task);
    attempt->file = file;
    if (!file_is_log(file)) /* it goes on somewhere, and does not say where */
        attempt->first_step = random_below(&world->random, 20);
    attempt->resources = command->resources;
    attempt->gpu_share = command->gpu_share;
    attempt->gpu_mask = command->gpu_mask;
    attempt->alive = true;
    attempt->hangs = world_fault(world, FAULT_TASK, 5);
    attempt->unkillable = attempt->hangs && world_fault(world, FAULT_TASK, 20);
    check_machine(agent, node);
    if (world_fault(world, FAULT_TASK, 5))
        process_later(world, node, &command->task, PROCESS_ENDS, EXIT_START, 100 * MS);
    else
        process_later(world, node, &command->task, PROCESS_RUNS, EXIT_NONE,
                      random_between(&world->random, 5 * MS, 500 * MS));
    return attempt;
}

void process_runs(struct world *world, int node, const struct ref *task)
{
    struct attempt *attempt = attempt_find(&world->agents[node], task);
    if (!attempt || !attempt->alive)
        return;
    attempt->state = AGENT_TASK_RUNNING;
    attempt->runs_us = world->now_us;
    world_later(world, 1 * MS, AGENT_SYNC)->node = node;
    if (strcmp(task->role, "ps") == 0 || attempt->hangs)
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

/* What it wrote ends anywhere, unless it ended well. */
void attempt_end(struct world *world, struct attempt *attempt, enum exit_reason reason)
{
    attempt->bytes = attempt_written(world, attempt);
    if (reason == EXIT_OK) /* it writes the rest of its last record */
        attempt->bytes += attempt->bytes % STORE_RECORD_BYTES;
    attempt->alive = false;
    attempt->state = AGENT_TASK_EXITED;
    attempt->reason = reason;
}

void process_ends(struct world *world, int node, const struct ref *task,
                  enum exit_reason reason, bool killed)
{
    struct attempt *attempt = attempt_find(&world->agents[node], task);
    if (!attempt || !attempt->alive)
        return;
    attempt->killed |= killed && attempt->unkillable;
    if (attempt->unkillable || (attempt->hangs && !killed))
        return;
    world_trace(world, "node %d: %s:%d of attempt %lld exits: %s", node + 1, task->role,
                task->index, (long long)task->epoch, db_exit_reason_name(reason));
    attempt_end(world, attempt, reason);
    for (int g = 0; g < SCHEDULER_GPUS_MAX; g++) {
        if (attempt->gpu_mask >> g & 1 && !attempt->gpu_share)
            world->agents[node].gpu_free_us[g] = world->now_us + GPU_FREE_US;
    }
    /* The agent hears of it at once, and tells. */
    world_later(world, 1 * MS, AGENT_SYNC)->node = node;
}

/* --- faults --- */

void machine_crash(struct world *world, int node)
{
    struct agent *agent = &world->agents[node];
    if (!agent->machine_up)
        return;
    world_trace(world, "node %d: machine dies", node + 1);
    agent->machine_up = false;
    agent_forget(agent);
    agent->agent_up = false;
    memset(agent->gpu_free_us, 0, sizeof(agent->gpu_free_us));
    for (int i = 0; i < agent->attempts_count; i++) {
        if (agent->attempts[i]->alive)
            attempt_end(world, agent->attempts[i], EXIT_LOST);
    }
    world_later(world, random_between(&world->random, 1000 * MS, 60000 * MS), MACHINE_UP)
        ->node = node;
}

void machine_boot(struct world *world, int node)
{
    world_trace(world, "node %d: machine up", node + 1);
    world->agents[node].boots++;
    world->agents[node].machine_up = true;
    agent_boot(world, node);
}

/* The driver says so: what runs on those that are away is ended, and the agent joins anew. */
void gpus_change(struct world *world, int node, uint64_t away)
{
    struct agent *agent = &world->agents[node];
    if (agent->gpus_away == away)
        return;
    world_trace(world, "node %d: GPUs %#llx are away", node + 1, (unsigned long long)away);
    for (int i = 0; i < agent->attempts_count; i++) {
        const struct attempt *attempt = agent->attempts[i];
        if (attempt->alive && attempt->gpu_mask & away & ~agent->gpus_away)
            process_later(world, node, &attempt->task, PROCESS_KILLED, EXIT_CRASH, 1 * MS);
    }
    agent->gpus_away = away;
    agent->call = NULL;
    core_leave(&agent->core);
}

int64_t machine_heal(struct world *world, int node)
{
    struct agent *agent = &world->agents[node];
    int64_t hangs = 0;
    agent->cut_to_us = agent->cut_from_us = 0;
    gpus_change(world, node, 0);
    for (int i = 0; i < agent->attempts_count; i++) {
        struct attempt *attempt = agent->attempts[i];
        if (attempt->alive && attempt->hangs)
            hangs = attempt->task.job;
        if (attempt->killed)
            process_later(world, node, &attempt->task, PROCESS_KILLED, EXIT_CRASH, 1000 * MS);
        attempt->unkillable = attempt->killed = false;
    }
    return hangs;
}
