/* agent_pb.c - the messages of pb.Agent between plain structs and protobuf-c's. */

#include "trainyard/agent.pb-c.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "proto/agent_wire.h"
#include "proto/message.h"

/* --- to bytes: X_wire() makes protobuf-c's struct, which borrows the texts --- */

char *agent_wire_text(const char *text)
{
    return (char *)(text ? text : "");
}

Pb__TaskRef *agent_wire_ref(const struct agent_task_ref *from, struct arena *arena)
{
    Pb__TaskRef *to = arena_alloc(arena, sizeof(*to));
    pb__task_ref__init(to);
    to->job_id = from->job_id;
    to->attempt_epoch = from->attempt_epoch;
    to->role = agent_wire_text(from->role);
    to->index = from->index;
    return to;
}

static Pb__TaskRef **refs_wire(const struct agent_task_ref *from, int count,
                               struct arena *arena)
{
    Pb__TaskRef **to = arena_array(arena, (size_t)count, sizeof(*to));
    for (int i = 0; i < count; i++)
        to[i] = agent_wire_ref(&from[i], arena);
    return to;
}

static Pb__TaskReport **reports_wire(const struct agent_task_report *from, int count,
                                     struct arena *arena)
{
    Pb__TaskReport **all = arena_array(arena, (size_t)count, sizeof(*all));
    for (int i = 0; i < count; i++) {
        Pb__TaskReport *to = all[i] = arena_alloc(arena, sizeof(*to));
        pb__task_report__init(to);
        to->task = agent_wire_ref(&from[i].task, arena);
        to->state = (Pb__TaskState)from[i].state;
        to->pid = from[i].pid;
        to->started_us = from[i].started_us;
        to->ended_us = from[i].ended_us;
        to->reason = (Pb__ExitReason)from[i].reason;
        to->exit_code = from[i].exit_code;
        to->signal = from[i].signal;
        to->error = agent_wire_text(from[i].error);
        to->step = from[i].step;
    }
    return all;
}

Pb__TaskAddress **agent_wire_addresses(const struct agent_task_address *from, int count,
                                       struct arena *arena)
{
    Pb__TaskAddress **all = arena_array(arena, (size_t)count, sizeof(*all));
    for (int i = 0; i < count; i++) {
        all[i] = arena_alloc(arena, sizeof(*all[i]));
        pb__task_address__init(all[i]);
        all[i]->role = agent_wire_text(from[i].role);
        all[i]->index = from[i].index;
        all[i]->address = agent_wire_text(from[i].address);
    }
    return all;
}

static Pb__StartTask *start_wire(const struct agent_start_task *from, struct arena *arena)
{
    Pb__StartTask *to = arena_alloc(arena, sizeof(*to));
    pb__start_task__init(to);
    to->task = agent_wire_ref(&from->task, arena);
    to->attempt = from->attempt;
    to->spec = agent_wire_text(from->spec);
    to->job_folder = agent_wire_text(from->job_folder);
    to->dataset_folder = agent_wire_text(from->dataset_folder);
    to->cpu_millis = from->cpu_millis;
    to->memory_bytes = from->memory_bytes;
    to->gpus = from->gpus;
    to->gpu_mask = from->gpu_mask;
    to->gpu_share = from->gpu_share;
    to->n_cluster = (size_t)from->cluster_count;
    to->cluster = agent_wire_addresses(from->cluster, from->cluster_count, arena);
    to->tasks = from->tasks;
    to->idle_seconds = from->idle_seconds;
    to->stall_ms = from->stall_ms;
    to->restarts = from->restarts;
    to->group_epoch = from->group_epoch;
    to->server_folder_id = agent_wire_text(from->server_folder_id);
    if (from->program.words_count)
        to->program = agent_wire_program(&from->program, arena);
    return to;
}

static Pb__StopTask *stop_wire(const struct agent_stop_task *from, struct arena *arena)
{
    Pb__StopTask *to = arena_alloc(arena, sizeof(*to));
    pb__stop_task__init(to);
    to->task = agent_wire_ref(&from->task, arena);
    to->kill = from->kill;
    to->grace_ms = from->grace_ms;
    return to;
}

static Pb__Command *command_wire(const struct agent_command *from, struct arena *arena)
{
    Pb__Command *to = arena_alloc(arena, sizeof(*to));
    pb__command__init(to);
    to->sequence = from->sequence;
    if (from->kind == AGENT_COMMAND_START) {
        to->what_case = PB__COMMAND__WHAT_START;
        to->start = start_wire(&from->start, arena);
    } else if (from->kind == AGENT_COMMAND_STOP) {
        to->what_case = PB__COMMAND__WHAT_STOP;
        to->stop = stop_wire(&from->stop, arena);
    }
    return to;
}

void agent_join_request_pack(const struct agent_join_request *from, struct str *out)
{
    struct arena *arena = arena_new();
    Pb__Resources capacity = PB__RESOURCES__INIT;
    capacity.cpu_millis = from->capacity.cpu_millis;
    capacity.memory_bytes = from->capacity.memory_bytes;
    capacity.gpus = from->capacity.gpus;
    capacity.gpu_type = agent_wire_text(from->capacity.gpu_type);
    capacity.gpu_memory_bytes = from->capacity.gpu_memory_bytes;
    capacity.gpus_away = from->capacity.gpus_away;

    Pb__JoinRequest to = PB__JOIN_REQUEST__INIT;
    to.token = agent_wire_text(from->token);
    to.node_name = agent_wire_text(from->node_name);
    to.boot_id = agent_wire_text(from->boot_id);
    to.version = agent_wire_text(from->version);
    to.identity = agent_wire_text(from->identity);
    to.asked_us = from->asked_us;
    to.capacity = &capacity;
    to.n_labels = (size_t)from->labels_count;
    to.labels = arena_array(arena, to.n_labels, sizeof(Pb__JoinRequest__LabelsEntry *));
    for (int i = 0; i < from->labels_count; i++) {
        Pb__JoinRequest__LabelsEntry *label = arena_alloc(arena, sizeof(*label));
        pb__join_request__labels_entry__init(label);
        label->key = agent_wire_text(from->labels[i].name);
        label->value = agent_wire_text(from->labels[i].value);
        to.labels[i] = label;
    }
    to.n_tasks = (size_t)from->tasks_count;
    to.tasks = reports_wire(from->tasks, from->tasks_count, arena);
    message_pack(&to.base, out);
    arena_free(arena);
}

void agent_join_response_pack(const struct agent_join_response *from, struct str *out)
{
    struct arena *arena = arena_new();
    Pb__JoinResponse to = PB__JOIN_RESPONSE__INIT;
    to.node_id = from->node_id;
    to.node_epoch = from->node_epoch;
    to.node_key = agent_wire_text(from->node_key);
    to.n_discard = (size_t)from->discard_count;
    to.discard = refs_wire(from->discard, from->discard_count, arena);
    message_pack(&to.base, out);
    arena_free(arena);
}

void agent_sync_request_pack(const struct agent_sync_request *from, struct str *out)
{
    struct arena *arena = arena_new();
    Pb__SyncRequest to = PB__SYNC_REQUEST__INIT;
    to.node_id = from->node_id;
    to.node_epoch = from->node_epoch;
    to.node_key = agent_wire_text(from->node_key);
    to.n_reports = (size_t)from->reports_count;
    to.reports = reports_wire(from->reports, from->reports_count, arena);
    to.commands_done = from->commands_done;
    to.asked_us = from->asked_us;
    message_pack(&to.base, out);
    arena_free(arena);
}

void agent_sync_response_pack(const struct agent_sync_response *from, struct str *out)
{
    struct arena *arena = arena_new();
    Pb__SyncResponse to = PB__SYNC_RESPONSE__INIT;
    to.n_commands = (size_t)from->commands_count;
    to.commands = arena_array(arena, to.n_commands, sizeof(Pb__Command *));
    for (int i = 0; i < from->commands_count; i++)
        to.commands[i] = command_wire(&from->commands[i], arena);
    to.n_acknowledged = (size_t)from->acknowledged_count;
    to.acknowledged = refs_wire(from->acknowledged, from->acknowledged_count, arena);
    message_pack(&to.base, out);
    arena_free(arena);
}

void agent_ship_request_pack(const struct agent_ship_request *from, struct str *out)
{
    struct arena *arena = arena_new();
    Pb__ShipRequest to = PB__SHIP_REQUEST__INIT;
    to.node_id = from->node_id;
    to.node_epoch = from->node_epoch;
    to.node_key = agent_wire_text(from->node_key);
    to.task = agent_wire_ref(&from->task, arena);
    to.file = agent_wire_text(from->file);
    to.offset = from->offset;
    to.data.data = (uint8_t *)from->data;
    to.data.len = from->data_size;
    to.last = from->last;
    to.removed = from->removed;
    message_pack(&to.base, out);
    arena_free(arena);
}

void agent_ship_response_pack(const struct agent_ship_response *from, struct str *out)
{
    Pb__ShipResponse to = PB__SHIP_RESPONSE__INIT;
    to.offset = from->offset;
    message_pack(&to.base, out);
}

void agent_start_task_pack(const struct agent_start_task *from, struct str *out)
{
    struct arena *arena = arena_new();
    message_pack(&start_wire(from, arena)->base, out);
    arena_free(arena);
}

/* --- from bytes: X_plain() borrows texts from protobuf-c's struct, which is in the arena ---
 */

/* As arena_array(), for an arena whose budget a message may spend. */
void *agent_plain_array(struct arena *arena, size_t count, size_t size, struct error *err)
{
    void *array = count > SIZE_MAX / size ? NULL : arena_try(arena, count * size);
    if (!array)
        return fail_null(err, EXHAUSTED, "%zu elements are over the memory allowed", count);
    return array;
}

void agent_plain_ref(const Pb__TaskRef *from, struct agent_task_ref *to)
{
    to->job_id = from ? from->job_id : 0;
    to->attempt_epoch = from ? from->attempt_epoch : 0;
    to->role = from ? from->role : "";
    to->index = from ? from->index : 0;
}

static bool refs_plain(Pb__TaskRef **from, size_t count, struct arena *arena,
                       const struct agent_task_ref **out, struct error *err)
{
    struct agent_task_ref *to = agent_plain_array(arena, count, sizeof(*to), err);
    if (!to)
        return false;
    for (size_t i = 0; i < count; i++)
        agent_plain_ref(from[i], &to[i]);
    *out = to;
    return true;
}

static bool reports_plain(Pb__TaskReport **from, size_t count, struct arena *arena,
                          const struct agent_task_report **out, struct error *err)
{
    struct agent_task_report *all = agent_plain_array(arena, count, sizeof(*all), err);
    for (size_t i = 0; all && i < count; i++) {
        struct agent_task_report *to = &all[i];
        if ((unsigned)from[i]->state > AGENT_TASK_EXITED)
            return fail(err, INVALID, "task report %zu: state %d is unknown", i,
                        (int)from[i]->state);
        if ((unsigned)from[i]->reason > AGENT_EXIT_START)
            return fail(err, INVALID, "task report %zu: exit reason %d is unknown", i,
                        (int)from[i]->reason);
        agent_plain_ref(from[i]->task, &to->task);
        to->state = (enum agent_task_state)from[i]->state;
        to->pid = from[i]->pid;
        to->started_us = from[i]->started_us;
        to->ended_us = from[i]->ended_us;
        to->reason = (enum agent_exit_reason)from[i]->reason;
        to->exit_code = from[i]->exit_code;
        to->signal = from[i]->signal;
        to->error = from[i]->error;
        to->step = from[i]->step;
    }
    *out = all;
    return all != NULL;
}

bool agent_plain_addresses(Pb__TaskAddress **from, size_t count, struct arena *arena,
                           const struct agent_task_address **out, struct error *err)
{
    struct agent_task_address *all = agent_plain_array(arena, count, sizeof(*all), err);
    for (size_t i = 0; all && i < count; i++) {
        all[i].role = from[i]->role;
        all[i].index = from[i]->index;
        all[i].address = from[i]->address;
    }
    *out = all;
    return all != NULL;
}

static bool start_plain(const Pb__StartTask *from, struct arena *arena,
                        struct agent_start_task *to, struct error *err)
{
    agent_plain_ref(from->task, &to->task);
    to->attempt = from->attempt;
    to->spec = from->spec;
    to->job_folder = from->job_folder;
    to->dataset_folder = from->dataset_folder;
    to->cpu_millis = from->cpu_millis;
    to->memory_bytes = from->memory_bytes;
    to->gpus = from->gpus;
    to->gpu_mask = from->gpu_mask;
    to->gpu_share = from->gpu_share;
    to->cluster_count = (int)from->n_cluster;
    to->tasks = from->tasks;
    to->idle_seconds = from->idle_seconds;
    to->stall_ms = from->stall_ms;
    to->restarts = from->restarts;
    to->group_epoch = from->group_epoch;
    to->server_folder_id = from->server_folder_id;
    to->program = (struct agent_program){.folder = ""};
    return agent_plain_addresses(from->cluster, from->n_cluster, arena, &to->cluster, err) &&
           (!from->program || agent_plain_program(from->program, arena, &to->program, err));
}

static bool command_plain(const Pb__Command *from, struct arena *arena,
                          struct agent_command *to, struct error *err)
{
    to->sequence = from->sequence;
    if (from->what_case == PB__COMMAND__WHAT_START) {
        to->kind = AGENT_COMMAND_START;
        return start_plain(from->start, arena, &to->start, err);
    }
    if (from->what_case == PB__COMMAND__WHAT_STOP) {
        to->kind = AGENT_COMMAND_STOP;
        agent_plain_ref(from->stop->task, &to->stop.task);
        to->stop.kill = from->stop->kill;
        to->stop.grace_ms = from->stop->grace_ms;
    }
    return true;
}

bool agent_join_request_unpack(const void *bytes, size_t size, struct arena *arena,
                               struct agent_join_request *to, struct error *err)
{
    const Pb__JoinRequest *from =
        message_unpack(&pb__join_request__descriptor, bytes, size, arena, err);
    if (!from)
        return error_prefix(err, "JoinRequest: ");
    struct agent_join_request plain = {
        .token = from->token,
        .node_name = from->node_name,
        .boot_id = from->boot_id,
        .version = from->version,
        .identity = from->identity,
        .asked_us = from->asked_us,
        .capacity = {.gpu_type = ""},
        .labels_count = (int)from->n_labels,
        .tasks_count = (int)from->n_tasks,
    };
    if (from->capacity) {
        plain.capacity.cpu_millis = from->capacity->cpu_millis;
        plain.capacity.memory_bytes = from->capacity->memory_bytes;
        plain.capacity.gpus = from->capacity->gpus;
        plain.capacity.gpu_type = from->capacity->gpu_type;
        plain.capacity.gpu_memory_bytes = from->capacity->gpu_memory_bytes;
        plain.capacity.gpus_away = from->capacity->gpus_away;
    }
    struct agent_label *labels = agent_plain_array(arena, from->n_labels, sizeof(*labels), err);
    for (size_t i = 0; labels && i < from->n_labels; i++) {
        labels[i].name = from->labels[i]->key;
        labels[i].value = from->labels[i]->value;
    }
    plain.labels = labels;
    if (!labels || !reports_plain(from->tasks, from->n_tasks, arena, &plain.tasks, err))
        return error_prefix(err, "JoinRequest: ");
    *to = plain;
    return true;
}

bool agent_join_response_unpack(const void *bytes, size_t size, struct arena *arena,
                                struct agent_join_response *to, struct error *err)
{
    const Pb__JoinResponse *from =
        message_unpack(&pb__join_response__descriptor, bytes, size, arena, err);
    if (!from)
        return error_prefix(err, "JoinResponse: ");
    struct agent_join_response plain = {
        .node_id = from->node_id,
        .node_epoch = from->node_epoch,
        .node_key = from->node_key,
        .discard_count = (int)from->n_discard,
    };
    if (!refs_plain(from->discard, from->n_discard, arena, &plain.discard, err))
        return error_prefix(err, "JoinResponse: ");
    *to = plain;
    return true;
}

bool agent_sync_request_unpack(const void *bytes, size_t size, struct arena *arena,
                               struct agent_sync_request *to, struct error *err)
{
    const Pb__SyncRequest *from =
        message_unpack(&pb__sync_request__descriptor, bytes, size, arena, err);
    if (!from)
        return error_prefix(err, "SyncRequest: ");
    struct agent_sync_request plain = {
        .node_id = from->node_id,
        .node_epoch = from->node_epoch,
        .node_key = from->node_key,
        .reports_count = (int)from->n_reports,
        .commands_done = from->commands_done,
        .asked_us = from->asked_us,
    };
    if (!reports_plain(from->reports, from->n_reports, arena, &plain.reports, err))
        return error_prefix(err, "SyncRequest: ");
    *to = plain;
    return true;
}

bool agent_sync_response_unpack(const void *bytes, size_t size, struct arena *arena,
                                struct agent_sync_response *to, struct error *err)
{
    const Pb__SyncResponse *from =
        message_unpack(&pb__sync_response__descriptor, bytes, size, arena, err);
    if (!from)
        return error_prefix(err, "SyncResponse: ");
    struct agent_sync_response plain = {
        .commands_count = (int)from->n_commands,
        .acknowledged_count = (int)from->n_acknowledged,
    };
    struct agent_command *commands =
        agent_plain_array(arena, from->n_commands, sizeof(*commands), err);
    plain.commands = commands;
    bool ok = commands && refs_plain(from->acknowledged, from->n_acknowledged, arena,
                                     &plain.acknowledged, err);
    for (size_t i = 0; ok && i < from->n_commands; i++)
        ok = command_plain(from->commands[i], arena, &commands[i], err);
    if (!ok)
        return error_prefix(err, "SyncResponse: ");
    *to = plain;
    return true;
}

bool agent_ship_request_unpack(const void *bytes, size_t size, struct arena *arena,
                               struct agent_ship_request *to, struct error *err)
{
    const Pb__ShipRequest *from =
        message_unpack(&pb__ship_request__descriptor, bytes, size, arena, err);
    if (!from)
        return error_prefix(err, "ShipRequest: ");
    *to = (struct agent_ship_request){
        .node_id = from->node_id,
        .node_epoch = from->node_epoch,
        .node_key = from->node_key,
        .file = from->file,
        .offset = from->offset,
        .data = from->data.data,
        .data_size = from->data.len,
        .last = from->last,
        .removed = from->removed,
    };
    agent_plain_ref(from->task, &to->task);
    return true;
}

bool agent_ship_response_unpack(const void *bytes, size_t size, struct arena *arena,
                                struct agent_ship_response *to, struct error *err)
{
    const Pb__ShipResponse *from =
        message_unpack(&pb__ship_response__descriptor, bytes, size, arena, err);
    if (!from)
        return error_prefix(err, "ShipResponse: ");
    to->offset = from->offset;
    return true;
}

bool agent_start_task_unpack(const void *bytes, size_t size, struct arena *arena,
                             struct agent_start_task *to, struct error *err)
{
    const Pb__StartTask *from =
        message_unpack(&pb__start_task__descriptor, bytes, size, arena, err);
    if (!from)
        return error_prefix(err, "StartTask: ");
    struct agent_start_task plain;
    if (!start_plain(from, arena, &plain, err))
        return error_prefix(err, "StartTask: ");
    *to = plain;
    return true;
}
