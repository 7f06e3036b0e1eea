/* world.c - time, the network, the faults, and the course of one run. */

#include <stdarg.h>

#include "base/alloc.h"
#include "scheduler/explain.h"
#include "server/partials.h"
#include "tests/sim/model.h"

#define MS UINT64_C(1000)
#define SECOND UINT64_C(1000000)
#define BOUND_US (900 * SECOND) /* after everything is healed all jobs end within this */
#define EVENTS_MAX 400000

void world_trace(const struct world *world, const char *format, ...)
{
    if (!world->trace)
        return;
    va_list args;
    va_start(args, format);
    printf("%10.3f ", (double)world->now_us / 1e6);
    vprintf(format, args);
    putchar('\n');
    va_end(args);
}

bool ref_equal(const struct ref *a, const struct ref *b)
{
    return a->job == b->job && a->epoch == b->epoch && a->index == b->index &&
           strcmp(a->role, b->role) == 0;
}

bool world_fault(struct world *world, enum fault fault, int percent)
{
    return !world->healed && (world->faults & BIT(fault)) &&
           random_chance(&world->random, percent);
}

/* --- time: a heap of what is to happen --- */

static bool happens_before(const struct happening *a, const struct happening *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->order < b->order;
}

static void heap_swap(struct world *world, int a, int b)
{
    struct happening keep = world->heap[a];
    world->heap[a] = world->heap[b];
    world->heap[b] = keep;
}

/* The happening may be filled in until the next call. */
struct happening *world_later(struct world *world, uint64_t in_us, enum happening_kind kind)
{
    world->heap =
        alloc_grow(world->heap, world->heap_count, &world->heap_capacity, sizeof(*world->heap));
    int at = world->heap_count++;
    world->heap[at] = (struct happening){
        .at_us = world->now_us + in_us, .order = world->order++, .kind = kind};
    for (; at > 0 && happens_before(&world->heap[at], &world->heap[(at - 1) / 2]);
         at = (at - 1) / 2)
        heap_swap(world, at, (at - 1) / 2);
    return &world->heap[at];
}

static struct happening heap_take(struct world *world)
{
    struct happening first = world->heap[0];
    world->heap[0] = world->heap[--world->heap_count];
    for (int at = 0;;) {
        int least = at;
        for (int child = 2 * at + 1; child <= 2 * at + 2; child++) {
            if (child < world->heap_count &&
                happens_before(&world->heap[child], &world->heap[least]))
                least = child;
        }
        if (least == at)
            return first;
        heap_swap(world, at, least);
        at = least;
    }
}

/* --- the network --- */

static void send_one(struct world *world, bool to_server, const struct message *message)
{
    uint64_t delay = random_between(&world->random, 1 * MS, 20 * MS);
    if (world_fault(world, FAULT_DELAY, 10))
        delay += random_between(&world->random, 0, 8000 * MS);
    struct happening *happening = world_later(world, delay, to_server ? AT_SERVER : AT_AGENT);
    happening->node = message->node;
    happening->message = message;
}

void world_send(struct world *world, bool to_server, const struct message *message)
{
    const struct agent *agent = &world->agents[message->node];
    if (world->now_us < (to_server ? agent->cut_to_us : agent->cut_from_us))
        return;
    if (world_fault(world, FAULT_DROP, 10))
        return;
    send_one(world, to_server, message);
    if (world_fault(world, FAULT_DUPLICATE, 10))
        send_one(world, to_server, message);
}

/* --- people and faults --- */

/* A quota that is lowered takes nothing back; one that is raised lets jobs start. */
static void quota_changes(struct world *world)
{
    struct scheduler_project_info info;
    int index = random_below(&world->random, STORE_PROJECTS);
    struct store_project *project = &world->store.projects[index];
    project->quota = scheduler_no_quota;
    if (random_chance(&world->random, 60))
        project->quota.cpu_millis = 1000 * random_below(&world->random, 10);
    if (random_chance(&world->random, 30))
        project->quota.gpu_millis = 500 * random_below(&world->random, 6);
    if (random_chance(&world->random, 20))
        project->quota.jobs = random_below(&world->random, 4);
    if (world->disk)
        disk_project(world->disk, project);
    info = store_project_info(&world->store, index, world->now_us);
    server_user(world, &(struct scheduler_event){.kind = ON_PROJECT, .project = &info});
}

static void user_acts(struct world *world)
{
    if (world->now_us < world->stalled_until_us)
        return; /* he gets no answer */
    if (world->scheduler && random_chance(&world->random, 25)) {
        quota_changes(world);
        return;
    }
    if (random_chance(&world->random, 25)) {
        server_user(world, &(struct scheduler_event){
                               .kind = ON_PRIORITY,
                               .number = 1 + random_below(&world->random, world->jobs_count),
                               .priority = random_below(&world->random, 101)});
        return;
    }
    if (random_chance(&world->random, 40)) {
        server_user(world, &(struct scheduler_event){
                               .kind = ON_PAUSE,
                               .number = 1 + random_below(&world->random, world->jobs_count),
                               .pause = random_chance(&world->random, 60)});
        return;
    }
    struct scheduler_event event = {.kind = ON_CANCEL};
    int64_t number = 1 + random_below(&world->random, world->jobs_count);
    if (random_chance(&world->random, 20)) {
        event.kind = ON_DRAIN;
        event.id = 1 + random_below(&world->random, world->agents_count);
        event.drain = random_chance(&world->random, 50);
    } else {
        event.number = number;
        event.kill = random_chance(&world->random, 30);
    }
    world_trace(world, "user: %s %lld",
                event.id     ? "drain"
                : event.kill ? "kill"
                             : "cancel",
                (long long)(event.id ? event.id : number));
    server_user(world, &event);
}

/* Slurm or Kubernetes has ended what an agent runs in, or only thinks so. */
static void engine_says(struct world *world, int node)
{
    if (!world->scheduler || world->now_us < world->stalled_until_us)
        return;
    world_trace(world, "engine: node %d is gone", node + 1);
    if (random_chance(&world->random, 70))
        machine_crash(world, node);
    world->gone = node + 1;
    server_user(world, &(struct scheduler_event){
                           .kind = ON_GONE, .id = world->gone, .text = "the engine says so"});
    world->gone = 0;
}

static void fault_strikes(struct world *world)
{
    int node = random_below(&world->random, world->agents_count);
    struct agent *agent = &world->agents[node];
    uint64_t length = random_between(&world->random, 500 * MS, 60000 * MS);
    switch (random_below(&world->random, 6)) {
    case 0:
        if (world_fault(world, FAULT_CUT, 100))
            agent->cut_to_us = world->now_us + length;
        break;
    case 1:
        if (world_fault(world, FAULT_CUT, 100))
            agent->cut_from_us = world->now_us + length;
        break;
    case 2:
        if (world_fault(world, FAULT_AGENT_CRASH, 100))
            agent_crash(world, node);
        break;
    case 3:
        if (world_fault(world, FAULT_REBOOT, 30))
            machine_crash(world, node);
        break;
    case 4:
        if (world_fault(world, FAULT_SERVER_CRASH, 50) && world->scheduler)
            server_crash(world, "between commits");
        break;
    case 5:
        if (world_fault(world, FAULT_SERVER_STALL, 50)) {
            world_trace(world, "server: stalls");
            /* Never cut short: what waits at the door comes when the stall was to end. */
            if (world->stalled_until_us < world->now_us + length)
                world->stalled_until_us = world->now_us + length;
            world->stalled_us = length;
        }
        break;
    }
    if (world_fault(world, FAULT_ENGINE, 20))
        engine_says(world, node);
    if (agent->capacity.gpus && world_fault(world, FAULT_GPU, 30))
        gpus_change(world, node, random_next(&world->random) & (BIT(agent->capacity.gpus) - 1));
    if (world_fault(world, FAULT_USER, 60))
        user_acts(world);
    if (!world->healed)
        world_later(world, random_between(&world->random, 100 * MS, 8000 * MS), FAULT_STRIKES);
}

/* It has failed too often on the nodes that could hold it. */
static bool is_shut_out(const struct world *world, const struct store_job *job)
{
    struct explain why;
    return job->failures_count &&
           explain_job(world->scheduler, job->number, world->now_us, &why) &&
           why.code == EXPLAIN_EXCLUDED;
}

/* Everything works from now on; what could never start, or hangs, is taken back by its owner.
 */
static void heal(struct world *world)
{
    if (!world->healed)
        world_trace(world, "world: heals");
    world->healed = true;
    if (!world->scheduler || world->now_us < world->stalled_until_us) {
        world_later(world, 1000 * MS, HEAL);
        return;
    }
    for (int i = 0; i < world->agents_count; i++) {
        int64_t hangs = machine_heal(world, i);
        if (hangs)
            server_user(world, &(struct scheduler_event){.kind = ON_CANCEL, .number = hangs});
        server_user(world, &(struct scheduler_event){.kind = ON_DRAIN, .id = i + 1});
    }
    for (int i = 0; i < STORE_PROJECTS; i++) {
        world->store.projects[i].quota = scheduler_no_quota;
        if (world->disk)
            disk_project(world->disk, &world->store.projects[i]);
        struct scheduler_project_info info =
            store_project_info(&world->store, i, world->now_us);
        server_user(world, &(struct scheduler_event){.kind = ON_PROJECT, .project = &info});
    }
    for (int i = 0; i < world->store.jobs_count; i++) {
        const struct store_job *job = &world->store.jobs[i];
        if (job->paused)
            server_user(world, &(struct scheduler_event){.kind = ON_PAUSE, .number = i + 1});
        if (!db_job_state_final(job->state) &&
            (is_shut_out(world, job) ||
             !scheduler_possible(world->scheduler, job->needs, job->needs_count)))
            server_user(world, &(struct scheduler_event){.kind = ON_CANCEL, .number = i + 1});
    }
    /* Again later: nodes may have been unknown, or jobs not submitted yet. */
    if (world->now_us < world->heal_us + 300 * SECOND)
        world_later(world, 60 * SECOND, HEAL);
}

/* --- beginning --- */

static const char *const gpu_types[] = {"small", "large"};
static const struct scheduler_label zones[] = {{"zone", "a"}, {"zone", "b"}};

static void draw_job(struct world *world, struct store_job *job, uint64_t key)
{
    struct random *random = &world->random;
    *job = (struct store_job){.key = key,
                              .queue = random_below(random, STORE_QUEUES),
                              .project = random_below(random, STORE_PROJECTS),
                              .priority = random_below(random, 3) * 25,
                              .restart_max = random_below(random, 6),
                              .needs_count = random_chance(random, 25) ? 2 : 1};
    if (random_chance(random, 20))
        job->stop_us = random_between(random, SECOND, 30 * SECOND);
    bool alone = random_chance(random, 35);
    if (alone && random_chance(random, 50))
        job->needs_count = 2;
    if (alone)
        job->restart_max = 1 + random_below(random, 5);
    for (int i = 0; i < job->needs_count; i++) {
        struct scheduler_need *need = &job->needs[i];
        snprintf(need->role, sizeof(need->role), "%s", i ? "ps" : "worker");
        need->replicas = 1 + random_below(random, 3);
        if (alone && !i) { /* the others go on without one of them */
            need->alone = true;
            need->replicas = 2 + random_below(random, 2);
        }
        need->each.cpu_millis = 500 * (1 + random_below(random, 6));
        need->each.memory_bytes = random_below(random, 4) * INT64_C(1000000000);
        need->each.gpus = random_chance(random, 30) ? 1 + random_below(random, 2) : 0;
        if (!need->each.gpus && random_chance(random, 15))
            need->gpu_share = 100 * (1 + random_below(random, 9));
        if (random_chance(random, 10))
            need->gpu_type = gpu_types[random_below(random, 2)];
        if (need->each.gpus && random_chance(random, 20))
            need->gpu_memory_bytes = 1 + random_below(random, 100);
        if (random_chance(random, 10)) {
            need->labels = &zones[random_below(random, 2)];
            need->labels_count = 1;
        }
    }
    job->spread = random_chance(random, 20);
    job->after_count =
        random_chance(random, 15) ? 1 + random_below(random, STORE_AFTER_MAX) : 0;
    for (int i = 0; i < job->after_count; i++)
        job->after[i].job = random_below(random, 1000);
    if (random_chance(random, 10))
        job->retry_on = (uint32_t)(BIT(EXIT_CRASH) | BIT(EXIT_LOST) | BIT(EXIT_USER));
    if (random_chance(random, 20))
        job->exclude_bad = 1 + random_below(random, 2);
}

static void draw_shares(struct world *world)
{
    static const char *const queues[STORE_QUEUES] = {"default", "urgent", "night"};
    static const char *const projects[STORE_PROJECTS] = {"default", "a", "b"};
    struct random *random = &world->random;
    for (int i = 0; i < STORE_QUEUES; i++)
        world->store.queues[i] = (struct scheduler_queue_info){
            queues[i], 25 * random_below(random, 3), 50 * (1 + random_below(random, 4)),
            random_chance(random, 40)};
    for (int i = 0; i < STORE_PROJECTS; i++)
        world->store.projects[i] =
            (struct store_project){.name = projects[i],
                                   .weight = 50 * (1 + random_below(random, 4)),
                                   .quota = scheduler_no_quota};
}

static void draw_world(struct world *world)
{
    struct random *random = &world->random;
    draw_shares(world);
    world->faults = (uint32_t)random_next(random) & (uint32_t)(BIT(FAULTS_COUNT) - 1);
    world->heal_us = random_between(random, 20 * SECOND, 200 * SECOND);
    world->agents_count = 1 + random_below(random, 6);
    for (int i = 0; i < world->agents_count; i++) {
        struct agent *agent = &world->agents[i];
        agent->machine_up = agent->agent_up = true;
        agent->capacity.cpu_millis = 1000 * (1 + random_below(random, 8));
        agent->capacity.memory_bytes = (1 + random_below(random, 16)) * INT64_C(1000000000);
        agent->capacity.gpus = random_chance(random, 50) ? random_below(random, 5) : 0;
        agent->gpu_type = agent->capacity.gpus ? gpu_types[random_below(random, 2)] : "";
        agent->gpu_memory_bytes = agent->capacity.gpus ? 50 + random_below(random, 51) : 0;
        agent->labels = &zones[random_below(random, 2)];
        agent->labels_count = random_chance(random, 70);
    }
    world->jobs_count = 1 + random_below(random, 40);
    world->jobs = alloc_array((size_t)world->jobs_count, sizeof(*world->jobs));
    world->acked = alloc_array((size_t)world->jobs_count, sizeof(*world->acked));
    for (int i = 0; i < world->jobs_count; i++) {
        draw_job(world, &world->jobs[i], (uint64_t)i + 1);
        world_later(world, random_between(random, 0, world->heal_us), CLIENT_SUBMITS)->number =
            i;
    }
}

static void world_begin(struct world *world, uint64_t seed, bool trace, bool sqlite)
{
    random_init(&world->random, seed);
    world->arena = arena_new();
    world->actions.arena = arena_new();
    world->trace = trace;
    world->store.hash = UINT64_C(0xcbf29ce484222325);
    world->options = (struct scheduler_options){
        .suspect_us = 6 * SECOND,
        .lost_us = 30 * SECOND,
        .grace_us = 3 * SECOND,
        .unkillable_us = 6 * SECOND,
        .backoff_us = SECOND,
        .backoff_max_us = 10 * SECOND,
        .overtake_us = 60 * SECOND,
        .stall_us = 3 * SECOND,
        .half_us = 100 * SECOND,
        .turn_us = 20 * SECOND,
    };
    world->now_us = SECOND;
    draw_world(world);
    if (sqlite)
        world->disk = disk_new(&world->store, world->now_us);
    server_boot(world);
    world_later(world, 0, SERVER_TICK);
    world_later(world, 0, FAULT_STRIKES);
    world_later(world, world->heal_us, HEAL);
    for (int i = 0; i < world->agents_count; i++)
        world_later(world, (uint64_t)i * 100 * MS, AGENT_SYNC)->node = -1 - i;
}

static void world_end(struct world *world)
{
    disk_free(world->disk, &world->store);
    for (int i = 0; i < world->agents_count; i++) {
        agent_release(&world->agents[i]);
        free(world->sessions[i].commands);
        free(world->sessions[i].acknowledged);
    }
    scheduler_free(world->scheduler);
    arena_free(world->actions.arena);
    scheduler_actions_release(&world->actions);
    arena_free(world->arena);
    free(world->jobs);
    free(world->acked);
    free(world->files);
    free(world->store.series);
    partials_free(world->partials);
    free(world->heap);
}

/* --- the course --- */

/* While the server stands still, what is for it waits at its door. */
static bool waits_for_server(struct world *world, const struct happening *happening)
{
    enum happening_kind kind = happening->kind;
    if (world->now_us >= world->stalled_until_us ||
        (kind != AT_SERVER && kind != SERVER_TICK && kind != CLIENT_SUBMITS))
        return false;
    struct happening again = *happening;
    /* Of a session that is over nothing is heard; a short stall is a slow network to it. */
    if (kind == AT_SERVER && happening->message->kind == SAYS_SYNC &&
        world->stalled_us >= world->options.stall_us &&
        happening->message->epoch == world->sessions[happening->node].epoch)
        world->agents[happening->node].door_us = world->now_us;
    struct happening *later =
        world_later(world, world->stalled_until_us - world->now_us, again.kind);
    later->node = again.node;
    later->message = again.message;
    later->number = again.number;
    return true;
}

static void happen(struct world *world, const struct happening *h)
{
    switch (h->kind) {
    case AT_SERVER:
        server_message(world, h->message);
        break;
    case AT_AGENT:
        agent_message(world, h->message);
        break;
    case SERVER_TICK:
        server_tick(world);
        break;
    case SERVER_UP:
        server_boot(world);
        break;
    case AGENT_SYNC:
        /* The heartbeat goes on for ever; a report in between (node >= 0) is sent once. */
        agent_turn(world, h->node < 0 ? -1 - h->node : h->node, h->node < 0);
        if (h->node < 0)
            world_later(world, random_between(&world->random, 1800 * MS, 2200 * MS), AGENT_SYNC)
                ->node = h->node;
        break;
    case AGENT_UP:
        agent_boot(world, h->node);
        break;
    case MACHINE_UP:
        machine_boot(world, h->node);
        break;
    case PROCESS_RUNS:
        process_runs(world, h->node, &h->task);
        break;
    case PROCESS_ENDS:
    case PROCESS_KILLED:
        process_ends(world, h->node, &h->task, h->reason, h->kind == PROCESS_KILLED);
        break;
    case CLIENT_SUBMITS:
        server_submit(world, h->number);
        break;
    case USER_ACTS:
        user_acts(world);
        break;
    case FAULT_STRIKES:
        fault_strikes(world);
        break;
    case HEAL:
        heal(world);
        break;
    }
}

static bool world_is_over(const struct world *world)
{
    if (!world->healed || world->store.jobs_count < world->jobs_count ||
        !store_all_ended(&world->store))
        return false;
    for (int i = 0; i < world->agents_count; i++) {
        if (agent_holds(&world->agents[i]))
            return false;
    }
    return true;
}

static void check_bound(const struct world *world)
{
    if (world->now_us < world->heal_us + BOUND_US && world->events < EVENTS_MAX)
        return;
    for (int i = 0; i < world->store.jobs_count; i++) {
        const struct store_job *job = &world->store.jobs[i];
        struct explain why;
        if (db_job_state_final(job->state))
            continue;
        if (!world->scheduler ||
            !explain_job(world->scheduler, job->number, world->now_us, &why))
            snprintf(why.text, sizeof(why.text), "the scheduler does not know it");
        sim_broken("job %lld is still %s long after all was healed: %s", (long long)job->number,
                   db_job_state_name(job->state), why.text);
    }
    for (int i = 0; i < world->agents_count; i++) {
        const struct attempt *left = agent_holds(&world->agents[i]);
        if (left && left->alive)
            sim_broken("P9: a process on node %d outlives its attempt", i + 1);
        if (left)
            sim_broken("P9: node %d does not come to forget %s:%d of attempt %lld", i + 1,
                       left->task.role, left->task.index, (long long)left->task.epoch);
    }
    sim_broken("I1: %d jobs were submitted, %d are there", world->jobs_count,
               world->store.jobs_count);
}

struct world_result world_run(uint64_t seed, bool trace, bool sqlite)
{
    static struct world worlds[1]; /* large */
    struct world *world = &worlds[0];
    *world = (struct world){0};
    world_begin(world, seed, trace, sqlite);
    while (!world_is_over(world)) {
        check_bound(world);
        struct happening next = heap_take(world);
        assert(next.at_us >= world->now_us);
        world->now_us = next.at_us;
        world->events++;
        if (!waits_for_server(world, &next))
            happen(world, &next);
    }
    store_mix(&world->store, world->now_us);
    struct world_result result = {.hash = world->store.hash,
                                  .events = world->events,
                                  .jobs = world->jobs_count,
                                  .virtual_us = world->now_us};
    memcpy(result.edges, world->store.edges, sizeof(result.edges));
    world_end(world);
    return result;
}
