/* server.c - the loop and the agents' service, with their crash points; the decisions are real.
 */

#include "base/alloc.h"
#include "server/partials.h"
#include "tests/sim/model.h"

#define MS UINT64_C(1000)

static void session_clear(struct session *session)
{
    free(session->commands);
    free(session->acknowledged);
    *session = (struct session){0};
}

void server_crash(struct world *world, const char *why)
{
    world_trace(world, "server: dies %s", why);
    scheduler_free(world->scheduler);
    world->scheduler = NULL;
    partials_free(world->partials);
    world->partials = NULL;
    for (int i = 0; i < world->agents_count; i++)
        session_clear(&world->sessions[i]);
    world_later(world, random_between(&world->random, 50 * MS, 20000 * MS), SERVER_UP);
}

void server_boot(struct world *world)
{
    assert(!world->scheduler);
    world->scheduler = world->disk ? disk_load(world->disk, &world->options, world->now_us)
                                   : store_load(&world->store, &world->options, world->now_us);
    world->partials = partials_new();
    world_trace(world, "server: up");
    store_compare(&world->store, world->scheduler);
}

/* --- what goes out --- */

static int node_index(int64_t id)
{
    return (int)id - 1;
}

static void session_command(struct world *world, const struct scheduler_action *a)
{
    struct session *session = &world->sessions[node_index(a->node)];
    if (!session->epoch)
        return;
    session->commands = alloc_grow(session->commands, session->commands_count,
                                   &session->commands_capacity, sizeof(*session->commands));
    struct command *command = &session->commands[session->commands_count++];
    *command =
        (struct command){.sequence = ++session->last_sequence,
                         .start = a->kind == DO_START,
                         .kill = a->kill,
                         .task = {.job = a->job, .epoch = a->task_epoch, .index = a->index},
                         .resources = a->resources,
                         .gpu_share = a->gpu_share,
                         .gpu_mask = a->gpu_mask,
                         .grace_us = a->grace_us};
    memcpy(command->task.role, a->role, sizeof(command->task.role));
}

static void add_ref(struct ref **list, int *count, int *capacity,
                    const struct scheduler_action *a)
{
    *list = alloc_grow(*list, *count, capacity, sizeof(**list));
    struct ref *ref = &(*list)[(*count)++];
    *ref = (struct ref){.job = a->job, .epoch = a->task_epoch, .index = a->index};
    memcpy(ref->role, a->role, sizeof(ref->role));
}

static struct message *new_message(struct world *world, enum message_kind kind, int node)
{
    struct message *message = arena_alloc(world->arena, sizeof(*message));
    *message = (struct message){.kind = kind, .node = node};
    return message;
}

static void send_synced(struct world *world, int node, const struct message *request)
{
    struct session *session = &world->sessions[node];
    struct message *answer = new_message(world, SAYS_SYNCED, node);
    answer->epoch = session->epoch;
    answer->request = request;
    answer->commands = arena_copy(world->arena, session->commands,
                                  (size_t)session->commands_count * sizeof(struct command));
    answer->commands_count = session->commands_count;
    answer->tasks = arena_copy(world->arena, session->acknowledged,
                               (size_t)session->acknowledged_count * sizeof(struct ref));
    answer->tasks_count = session->acknowledged_count;
    session->acknowledged_count = 0;
    world_send(world, false, answer);
}

static void send_joined(struct world *world, const struct scheduler_action *joined)
{
    int node = node_index(joined->node);
    session_clear(&world->sessions[node]);
    world->sessions[node].epoch = joined->epoch;
    struct ref *discard = NULL;
    int count = 0, capacity = 0;
    for (int i = 0; i < world->actions.count; i++) {
        const struct scheduler_action *a = &world->actions.list[i];
        if (a->kind == DO_DISCARD && a->node == joined->node)
            add_ref(&discard, &count, &capacity, a);
    }
    struct message *answer = new_message(world, SAYS_JOINED, node);
    answer->epoch = joined->epoch;
    answer->asked_us = world->joining->asked_us;
    answer->tasks = arena_copy(world->arena, discard, (size_t)count * sizeof(*discard));
    answer->tasks_count = count;
    free(discard);
    world_send(world, false, answer);
}

static void send_action(struct world *world, const struct scheduler_action *a)
{
    struct session *session;
    switch (a->kind) {
    case DO_JOINED:
        send_joined(world, a);
        break;
    case DO_START:
    case DO_STOP:
        session_command(world, a);
        break;
    case DO_ACKNOWLEDGE:
        session = &world->sessions[node_index(a->node)];
        add_ref(&session->acknowledged, &session->acknowledged_count,
                &session->acknowledged_capacity, a);
        break;
    case DO_NODE:
        if (a->node_state == NODE_LOST)
            session_clear(&world->sessions[node_index(a->node)]);
        break;
    default:
        break;
    }
}

/* --- a batch --- */

static void trace_actions(const struct world *world)
{
    static const char *const kinds[] = {
        "job",   "note",    "attempt", "runs",   "ends",  "task", "node", "priority", "edit",
        "pause", "failure", "usage",   "joined", "start", "stop", "ack",  "discard"};
    for (int i = 0; world->trace && i < world->actions.count; i++) {
        const struct scheduler_action *a = &world->actions.list[i];
        if (a->kind == DO_JOB)
            world_trace(world, "  job %lld: %s to %s %s %s", (long long)a->job,
                        db_job_state_name(a->from), db_job_state_name(a->to), a->reason,
                        a->text);
        else
            world_trace(world, "  %s: job %lld epoch %lld %s:%d node %lld %s %s",
                        kinds[a->kind], (long long)a->job, (long long)a->epoch, a->role,
                        a->index, (long long)a->node,
                        a->kind == DO_TASK ? db_task_state_name(a->task_state) : "", a->text);
    }
}

/* F2: whoever spoke while the server stood still is not silent. */
static void check_silence(const struct world *world, const struct scheduler_action *a)
{
    const struct agent *agent = &world->agents[node_index(a->node)];
    for (int i = 0; i < world->store.nodes_count; i++) {
        const struct store_node *node = &world->store.nodes[i];
        if (node->id == a->node && node->state == NODE_LOST)
            return; /* it was before: now it is drained, or no more */
    }
    if (a->node == world->gone)
        return; /* it was not silence */
    if (a->node_state == NODE_LOST && agent->door_us &&
        world->now_us - agent->door_us < world->options.lost_us)
        sim_broken("F2: node %lld is lost, and its messages wait at the door",
                   (long long)a->node);
}

/* A join that was asked for before the machine's newest boot: nothing tells the server which of
 * two boots came first. */
static bool joins_late(const struct world *world, const struct agent *agent)
{
    char boot[16];
    snprintf(boot, sizeof(boot), "boot%d", agent->boots);
    return world->joining && strcmp(world->joining->boot_id, boot) != 0;
}

/* F32: a task is given up with its node, or when it is gone; not while it runs there. */
static void check_given_up(const struct world *world, const struct scheduler_action *a)
{
    struct ref task = {.job = a->job, .epoch = a->task_epoch, .index = a->index};
    memcpy(task.role, a->role, sizeof(task.role));
    if (a->task_state != TASK_EXITED || a->exit != EXIT_LOST)
        return;
    for (int i = 0; i < world->store.nodes_count; i++) {
        const struct store_node *node = &world->store.nodes[i];
        const struct agent *agent = &world->agents[node_index(a->node)];
        if (node->id == a->node && node->state != NODE_LOST && agent_runs(agent, &task) &&
            !joins_late(world, agent))
            sim_broken("F32: %s:%d of job %lld is given up, and runs on node %lld", a->role,
                       a->index, (long long)a->job, (long long)a->node);
    }
}

/* What the store cannot know: how things stand on the nodes. */
static void check_nodes(const struct world *world)
{
    for (int i = 0; i < world->actions.count; i++) {
        const struct scheduler_action *a = &world->actions.list[i];
        if (a->kind == DO_TASK)
            check_given_up(world, a);
    }
}

static void step(struct world *world, const struct scheduler_event *event)
{
    scheduler_step(world->scheduler, event, world->now_us, &world->actions);
}

/* Ticks, stores and sends what a batch has brought; false when the server died over it. */
static bool batch_end(struct world *world, const struct message *request)
{
    step(world, &(struct scheduler_event){.kind = ON_TICK});
    trace_actions(world);
    if (world->actions.count && world_fault(world, FAULT_SERVER_CRASH, 1)) {
        server_crash(world, "before its commit");
        return false;
    }
    if (world->joining)
        store_node_joins(&world->store, world->joining);
    for (int i = 0; i < world->actions.count; i++)
        if (world->actions.list[i].kind == DO_NODE)
            check_silence(world, &world->actions.list[i]);
    store_commit(&world->store, &world->actions, scheduler_epoch(world->scheduler),
                 world->now_us);
    check_nodes(world);
    if (world->disk)
        disk_commit(world->disk, &world->actions, scheduler_epoch(world->scheduler),
                    world->joining, world->now_us);
    if (world->actions.count && world_fault(world, FAULT_SERVER_CRASH, 1)) {
        server_crash(world, "after its commit");
        return false;
    }
    for (int i = 0; i < world->actions.count; i++)
        send_action(world, &world->actions.list[i]);
    if (request)
        send_synced(world, request->node, request);
    for (int i = 0; i < world->agents_count; i++) {
        /* The long polls: whoever has news is told at once, as if its poll was held. */
        struct session *session = &world->sessions[i];
        if (session->epoch && session->last_sequence && world->actions.count &&
            session->commands_count)
            send_synced(world, i, NULL);
    }
    store_compare(&world->store, world->scheduler);
    store_check_after(&world->store, world->scheduler);
    return true;
}

static void batch_begin(struct world *world)
{
    scheduler_actions_clear(&world->actions);
    arena_clear(world->actions.arena);
}

static void message_join(struct world *world, const struct message *message)
{
    char name[16];
    snprintf(name, sizeof(name), "n%d", message->node + 1);
    struct scheduler_node_info info = {
        .id = message->node + 1,
        .name = name,
        .capacity = world->agents[message->node].capacity,
        .gpu_type = world->agents[message->node].gpu_type,
        .gpu_memory_bytes = world->agents[message->node].gpu_memory_bytes,
        .gpus_away = message->gpus_away,
        .labels = world->agents[message->node].labels,
        .labels_count = world->agents[message->node].labels_count,
        .boot_id = message->boot_id,
        .asked_us = message->asked_us};
    int64_t epoch_before = scheduler_epoch(world->scheduler);
    step(world, &(struct scheduler_event){.kind = ON_JOIN,
                                          .node = &info,
                                          .reports = message->reports,
                                          .reports_count = message->reports_count});
    if (scheduler_epoch(world->scheduler) != epoch_before)
        world->joining = &info;
    batch_end(world, NULL);
    world->joining = NULL;
}

static void message_sync(struct world *world, const struct message *message)
{
    struct session *session = &world->sessions[message->node];
    if (!session->epoch || session->epoch != message->epoch) {
        struct message *answer = new_message(world, SAYS_FENCED, message->node);
        answer->epoch = message->epoch;
        world_send(world, false, answer);
        return;
    }
    int done = 0;
    while (done < session->commands_count && session->commands[done].sequence <= message->done)
        done++;
    session->commands_count -= done;
    if (session->commands_count)
        memmove(session->commands, session->commands + done,
                (size_t)session->commands_count * sizeof(*session->commands));
    step(world, &(struct scheduler_event){.kind = message->reports_count ? ON_REPORT : ON_SEEN,
                                          .id = message->node + 1,
                                          .epoch = message->epoch,
                                          .asked_us = message->asked_us,
                                          .reports = message->reports,
                                          .reports_count = message->reports_count});
    batch_end(world, message);
}

/* --- what tasks write --- */

/* I10: the whole records at the front of a piece, which must be those that the task wrote
 * there.
 */
static size_t read_records(const struct piece *piece, int file, struct db_ship *ship,
                           struct arena *arena)
{
    int count = (int)(piece->size / STORE_RECORD_BYTES);
    struct db_point *points = arena_array(arena, (size_t)count, sizeof(*points));
    for (int i = 0; i < count; i++) {
        uint32_t record[2];
        memcpy(record, piece->bytes + (size_t)i * STORE_RECORD_BYTES, sizeof(record));
        if (record[0] != (uint32_t)file)
            sim_broken("I10: the bytes at %lld of %s:%d of attempt %lld are no record",
                       (long long)piece->offset, ship->role, ship->index,
                       (long long)ship->epoch);
        points[i] = (struct db_point){"loss", record[1], 0, (double)ship->epoch};
    }
    ship->points = points;
    ship->points_count = count;
    return (size_t)count * STORE_RECORD_BYTES;
}

/* Stores what a piece brings; false when the server died over it. */
static bool ship_store(struct world *world, int file, const struct db_ship *ship,
                       int64_t *cursor)
{
    if (world_fault(world, FAULT_SERVER_CRASH, 1)) {
        server_crash(world, "before it stored a piece");
        return false;
    }
    *cursor = store_ship(&world->store, file, ship);
    if (world->disk)
        disk_ship(world->disk, ship, *cursor, world->now_us);
    if (world_fault(world, FAULT_SERVER_CRASH, 1)) {
        server_crash(world, "after it stored a piece");
        return false;
    }
    return true;
}

/* As server/ingest.c does it, with the same memory of records that wait for their ends. */
static bool ship_records(struct world *world, const struct message *message,
                         struct db_ship *ship, int64_t *cursor)
{
    char key[16];
    struct error err;
    struct piece piece = {message->offset, message->bytes, message->size};
    snprintf(key, sizeof(key), "%d", message->file);
    *cursor = world->store.files[message->file].cursor;
    if (!partials_continue(world->partials, key, &piece, world->now_us) &&
        *cursor != message->offset)
        return true;
    size_t used = read_records(&piece, message->file, ship, world->actions.arena);
    ship->offset = piece.offset;
    ship->end = piece.offset + (int64_t)used;
    if (used && !ship_store(world, message->file, ship, cursor))
        return false;
    return partials_keep(world->partials, key, &piece, used, cursor, world->now_us, &err);
}

/* False: the server died over it. */
static bool ingest(struct world *world, const struct message *message, int64_t *cursor)
{
    const struct ref *task = &world->files[message->file];
    struct db_ship ship = {.job = task->job,
                           .epoch = task->epoch,
                           .role = task->role,
                           .index = task->index,
                           .file = "events"};
    if (!file_is_log(message->file))
        return ship_records(world, message, &ship, cursor);
    ship.file = "stdout.log";
    ship.log = "stdout";
    ship.log_bytes = message->bytes;
    ship.log_size = message->size;
    ship.offset = message->offset;
    ship.end = message->offset + (int64_t)message->size;
    return ship_store(world, message->file, &ship, cursor);
}

static void message_ship(struct world *world, const struct message *message)
{
    struct session *session = &world->sessions[message->node];
    bool fenced = !session->epoch || session->epoch != message->epoch;
    int64_t stored = world->store.files[message->file].cursor;
    if (!fenced && message->size && !ingest(world, message, &stored))
        return;
    struct message *answer =
        new_message(world, fenced ? SAYS_FENCED : SAYS_SHIPPED, message->node);
    answer->epoch = message->epoch;
    answer->request = message;
    answer->stored = stored;
    world_send(world, false, answer);
}

void server_message(struct world *world, const struct message *message)
{
    if (!world->scheduler)
        return;
    batch_begin(world);
    if (message->kind == SAYS_JOIN)
        message_join(world, message);
    else if (message->kind == SAYS_SHIP)
        message_ship(world, message);
    else
        message_sync(world, message);
}

void server_tick(struct world *world)
{
    world_later(world, random_between(&world->random, 500 * MS, 1000 * MS), SERVER_TICK);
    if (!world->scheduler)
        return;
    batch_begin(world);
    batch_end(world, NULL);
}

/* A client submits until it has its answer; the server may die on either side of the commit. */
void server_submit(struct world *world, int64_t index)
{
    if (world->acked[index])
        return;
    if (!world->scheduler || world_fault(world, FAULT_DROP, 10)) {
        world_later(world, 1000 * MS, CLIENT_SUBMITS)->number = index;
        return;
    }
    int64_t number = store_submit(&world->store, &world->jobs[index], world->now_us);
    const struct store_job *job = store_find(&world->store, number);
    if (world->disk)
        disk_submit(world->disk, &world->store, job, world->now_us);
    world_trace(world, "client: job %lld", (long long)number);
    if (world_fault(world, FAULT_SERVER_CRASH, 1)) {
        server_crash(world, "before its answer to a client");
        world_later(world, 1000 * MS, CLIENT_SUBMITS)->number = index;
        return;
    }
    world->acked[index] = true;
    if (db_job_state_final(job->state))
        return;
    batch_begin(world);
    if (world->disk) {
        disk_tell(world->disk, world->scheduler, world->now_us);
    } else {
        struct scheduler_job_info info;
        struct scheduler_task_info tasks[STORE_TASKS_MAX];
        store_tell(&world->store, job, world->now_us, &info, tasks);
        step(world, &(struct scheduler_event){.kind = ON_SUBMIT, .job = &info});
    }
    batch_end(world, NULL);
}

void server_user(struct world *world, const struct scheduler_event *event)
{
    if (!world->scheduler)
        return;
    batch_begin(world);
    step(world, event);
    enum job_state state;
    bool known = scheduler_job_state(world->scheduler, event->number, &state);
    if (batch_end(world, NULL) && event->kind == ON_CANCEL && known)
        store_find(&world->store, event->number)->cancelled = true;
}
