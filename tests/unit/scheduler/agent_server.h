/*
 * agent_server.h - a server for the agent to talk to, kept in memory; include it in a test
 * only.
 *
 * It behaves as the real one must: one session at a time, commands repeated until they are
 * done, event files taken by whole "records" (lines, here), exits acknowledged.
 */
#pragma once

#include <pthread.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/str.h"
#include "proto/agent_pb.h"
#include "proto/rpc.h"
#include "server/certificate.h"
#include "tests/unit/test.h"

struct known_task { /* what was last reported of it */
    char name[64];
    enum agent_task_state state;
    enum agent_exit_reason reason;
    int exit_code;
    int signal;
    char error[400];
    int ends; /* reports of its end before the acknowledgement */
    bool acknowledged;
};

struct server {
    struct rpc_server *rpc;
    pthread_mutex_t lock; /* guards: all below */
    struct rpc_call *held;
    uint64_t held_us;
    int64_t epoch;
    int joins;
    int join_tasks; /* tasks in the last join */
    char identity[64];
    struct agent_resources capacity;
    struct agent_command commands[64];
    int commands_count;
    int64_t commands_done;
    struct known_task tasks[64];
    int tasks_count;
    struct map *files;   /* "NAME/FILE" -> struct str, what was shipped */
    bool keeps;          /* the start of a "record", and says that it has it */
    struct str kept;     /* of one file; lost when the server starts anew */
    const char *discard; /* name of a task to discard at the next join */
    enum error_code refuse_join;
    enum error_code refuse_ship;
    bool keep_exits;     /* acknowledge nothing */
    bool silent;         /* about to stop: nothing is held */
    uint64_t shipped_us; /* when bytes last came */
    int ship_ms;         /* that each ship waits for the disk */
};

static inline void task_name(const struct agent_task_ref *task, char out[64])
{
    snprintf(out, 64, "%lld-%.20s-%d", (long long)task->attempt_epoch, task->role, task->index);
}

static inline struct known_task *task_find_locked(struct server *server, const char *name)
{
    for (int i = 0; i < server->tasks_count; i++) {
        if (strcmp(server->tasks[i].name, name) == 0)
            return &server->tasks[i];
    }
    return NULL;
}

static inline void task_take_locked(struct server *server,
                                    const struct agent_task_report *report)
{
    char name[64];
    task_name(&report->task, name);
    struct known_task *task = task_find_locked(server, name);
    if (!task) {
        task = &server->tasks[server->tasks_count++];
        *task = (struct known_task){0};
        memcpy(task->name, name, sizeof(name));
    }
    if (task->acknowledged)
        return;
    task->state = report->state;
    task->reason = report->reason;
    task->exit_code = report->exit_code;
    task->signal = report->signal;
    snprintf(task->error, sizeof(task->error), "%.399s", report->error);
    task->ends += report->state == AGENT_TASK_EXITED;
}

static inline void fail_call(struct rpc_call *call, enum error_code code, const char *text)
{
    struct error err;
    fail(&err, code, "%s", text);
    rpc_call_fail(call, &err);
}

/* Answers a Sync with the commands not done yet and the ends that are known. */
static inline void sync_answer_locked(struct server *server, struct rpc_call *call)
{
    struct agent_task_ref ends[64];
    char roles[64][24];
    struct agent_sync_response response = {.acknowledged = ends};
    int first = 0;
    while (first < server->commands_count &&
           server->commands[first].sequence <= server->commands_done)
        first++;
    response.commands = server->commands + first;
    response.commands_count = server->commands_count - first;
    for (int i = 0; i < server->tasks_count && !server->keep_exits; i++) {
        struct known_task *task = &server->tasks[i];
        if (task->state != AGENT_TASK_EXITED)
            continue;
        long long epoch;
        int index, n = response.acknowledged_count++;
        CHECK_INT(sscanf(task->name, "%lld-%23[a-z_]-%d", &epoch, roles[n], &index), 3);
        ends[n] = (struct agent_task_ref){1, epoch, roles[n], index};
        task->acknowledged = true;
    }
    struct str bytes = {0};
    agent_sync_response_pack(&response, &bytes);
    rpc_call_reply(call, bytes.data, bytes.size);
    str_release(&bytes);
}

static inline void held_answer_locked(struct server *server)
{
    struct rpc_call *held = server->held;
    server->held = NULL;
    if (held)
        sync_answer_locked(server, held);
}

static inline bool is_over_locked(struct server *server, const struct agent_command *command)
{
    char name[64];
    if (command->kind != AGENT_COMMAND_START)
        return false;
    task_name(&command->start.task, name);
    const struct known_task *task = task_find_locked(server, name);
    return task && task->acknowledged;
}

static inline void on_join(void *self, struct rpc_call *call)
{
    struct server *server = self;
    struct error err;
    struct agent_join_request request;
    struct agent_task_ref discard = {1, 0, "worker", 0};
    struct arena *arena = arena_new();
    size_t size;
    const void *bytes = rpc_call_bytes(call, &size);
    CHECK_OK(agent_join_request_unpack(bytes, size, arena, &request, &err), &err);
    pthread_mutex_lock(&server->lock);
    if (server->refuse_join) {
        fail_call(call, server->refuse_join, "this token is not known");
    } else {
        struct agent_join_response response = {.node_id = 1, .node_key = "key"};
        response.node_epoch = ++server->epoch;
        server->joins++;
        server->join_tasks = request.tasks_count;
        server->capacity = request.capacity;
        server->capacity.gpu_type = "";
        snprintf(server->identity, sizeof(server->identity), "%.60s", request.identity);
        for (int i = 0; i < request.tasks_count; i++) {
            char name[64];
            task_name(&request.tasks[i].task, name);
            if (server->discard && strcmp(name, server->discard) == 0) {
                discard.attempt_epoch = request.tasks[i].task.attempt_epoch;
                response.discard = &discard;
                response.discard_count = 1;
            } else {
                task_take_locked(server, &request.tasks[i]);
            }
        }
        /* Commands of an earlier session that were not done are given again; a task whose end
         * is known is never started again, though nobody may have said that its start was
         * done. */
        int kept = 0;
        for (int i = 0; i < server->commands_count; i++) {
            if (server->commands[i].sequence <= server->commands_done ||
                is_over_locked(server, &server->commands[i]))
                continue;
            server->commands[kept] = server->commands[i];
            server->commands[kept].sequence = kept + 1;
            kept++;
        }
        server->commands_count = kept;
        server->commands_done = 0;
        struct str out = {0};
        agent_join_response_pack(&response, &out);
        rpc_call_reply(call, out.data, out.size);
        str_release(&out);
    }
    pthread_mutex_unlock(&server->lock);
    arena_free(arena);
}

static inline void on_sync(void *self, struct rpc_call *call)
{
    struct server *server = self;
    struct error err;
    struct agent_sync_request request;
    struct arena *arena = arena_new();
    size_t size;
    const void *bytes = rpc_call_bytes(call, &size);
    CHECK_OK(agent_sync_request_unpack(bytes, size, arena, &request, &err), &err);
    pthread_mutex_lock(&server->lock);
    if (request.node_epoch != server->epoch || strcmp(request.node_key, "key") != 0) {
        fail_call(call, PRECONDITION, "fenced");
    } else {
        if (request.commands_done > server->commands_done)
            server->commands_done = request.commands_done;
        for (int i = 0; i < request.reports_count; i++)
            task_take_locked(server, &request.reports[i]);
        bool more =
            server->commands_count &&
            server->commands[server->commands_count - 1].sequence > server->commands_done;
        if (request.reports_count || more || server->silent) {
            sync_answer_locked(server, call);
        } else {
            held_answer_locked(server);
            server->held = call;
            server->held_us = clock_monotonic_us();
        }
    }
    pthread_mutex_unlock(&server->lock);
    arena_free(arena);
}

static inline struct str *file_locked(struct server *server, const char *task, const char *file)
{
    char key[200];
    snprintf(key, sizeof(key), "%s/%s", task, file);
    struct str *got = map_find(server->files, key);
    if (!got) {
        got = alloc_bytes(sizeof(*got));
        map_set(server->files, key, got);
    }
    return got;
}

/* Takes a piece that goes on where the file and what is kept of it end; the answer's offset. */
static inline int64_t piece_keep_locked(struct server *server, struct str *file,
                                        const struct agent_ship_request *request)
{
    if (request->offset == (int64_t)(file->size + server->kept.size))
        str_add_bytes(&server->kept, request->data, request->data_size);
    else
        str_clear(&server->kept);
    size_t whole = server->kept.size;
    while (whole && server->kept.data[whole - 1] != '\n')
        whole--;
    str_add_bytes(file, str_text(&server->kept), whole);
    str_drop(&server->kept, whole);
    return (int64_t)(file->size + server->kept.size);
}

static inline void on_ship(void *self, struct rpc_call *call)
{
    struct server *server = self;
    struct error err;
    struct agent_ship_request request;
    struct arena *arena = arena_new();
    size_t size;
    const void *bytes = rpc_call_bytes(call, &size);
    CHECK_OK(agent_ship_request_unpack(bytes, size, arena, &request, &err), &err);
    usleep((useconds_t)server->ship_ms * 1000);
    pthread_mutex_lock(&server->lock);
    if (request.node_epoch != server->epoch) {
        fail_call(call, PRECONDITION, "fenced");
    } else if (server->refuse_ship) {
        fail_call(call, server->refuse_ship, "the server takes no bytes");
    } else {
        char name[64];
        task_name(&request.task, name);
        struct str *file = file_locked(server, name, request.file);
        size_t taken = request.data_size;
        bool events = strncmp(request.file, "events.", 7) == 0;
        int64_t offset = -1;
        if (events && server->keeps)
            offset = piece_keep_locked(server, file, &request);
        if (events) {
            while (taken && ((const char *)request.data)[taken - 1] != '\n')
                taken--;
        }
        if (offset < 0 && request.offset == (int64_t)file->size && taken) {
            str_add_bytes(file, request.data, taken);
            server->shipped_us = clock_monotonic_us();
        }
        struct agent_ship_response response = {.offset =
                                                   offset < 0 ? (int64_t)file->size : offset};
        struct str out = {0};
        agent_ship_response_pack(&response, &out);
        rpc_call_reply(call, out.data, out.size);
        str_release(&out);
    }
    pthread_mutex_unlock(&server->lock);
    arena_free(arena);
}

static const struct rpc_method server_methods[] = {
    {AGENT_PATH_JOIN, on_join}, {AGENT_PATH_SYNC, on_sync}, {AGENT_PATH_SHIP, on_ship}, {0}};

/* What both ends show over a socket, the same each time; texts in `arena`. */
static inline struct rpc_tls server_tls(struct arena *arena)
{
    static const uint8_t seed[CERTIFICATE_SEED_BYTES] = {5};
    struct rpc_tls tls = {.name = RPC_TASKS_NAME};
    struct error err;
    CHECK_OK(certificate_make(seed, tls.name, arena, &tls.certificate, &tls.key, &err), &err);
    tls.ca = tls.certificate;
    return tls;
}

static inline void server_serve(struct server *server, const char *address)
{
    struct error err;
    struct arena *arena = arena_new();
    const struct rpc_tls tls = server_tls(arena);
    bool local = strncmp(address, "local:", 6) == 0;
    const struct rpc_server_options options = {.address = address,
                                               .message_bytes_max = LIMIT_CONTROL_MESSAGE_BYTES,
                                               .tls = local ? NULL : &tls};
    server->rpc = rpc_server_start(&options, server_methods, server, &err);
    CHECK_OK(server->rpc != NULL, &err);
    arena_free(arena);
}

static inline void server_open(struct server *server, const char *address)
{
    *server = (struct server){.files = map_new()};
    pthread_mutex_init(&server->lock, NULL);
    server_serve(server, address);
}

/* The rpc part only, as when a server dies; what it knows stays. */
static inline void server_silence(struct server *server)
{
    pthread_mutex_lock(&server->lock);
    server->silent = true;
    held_answer_locked(server);
    pthread_mutex_unlock(&server->lock);
    rpc_server_stop(server->rpc);
    server->silent = false;
}

static inline void server_close(struct server *server)
{
    server_silence(server);
    for (int i = 0; i < map_count(server->files); i++) {
        str_release(map_value(server->files, i));
        free(map_value(server->files, i));
    }
    map_free(server->files);
    str_release(&server->kept);
    pthread_mutex_destroy(&server->lock);
}

static inline void server_command(struct server *server, const struct agent_command *command)
{
    pthread_mutex_lock(&server->lock);
    struct agent_command *added = &server->commands[server->commands_count++];
    *added = *command;
    added->sequence = server->commands_count;
    held_answer_locked(server);
    pthread_mutex_unlock(&server->lock);
}

/* A copy of what is known of a task; state UNKNOWN when nothing is. */
static inline struct known_task server_task(struct server *server, const char *name)
{
    pthread_mutex_lock(&server->lock);
    if (server->held && clock_monotonic_us() > server->held_us + 300000)
        held_answer_locked(server);
    struct known_task *known = task_find_locked(server, name);
    struct known_task task = known ? *known : (struct known_task){0};
    pthread_mutex_unlock(&server->lock);
    return task;
}

/* Waits until the task is in `state` (EXITED: until it is acknowledged). */
static inline struct known_task server_wait(struct server *server, const char *name,
                                            enum agent_task_state state)
{
    struct known_task task = {0};
    for (int i = 0; i < 3000; i++) {
        task = server_task(server, name);
        if (task.state == state &&
            (state != AGENT_TASK_EXITED || task.acknowledged || server->keep_exits))
            return task;
        usleep(5000);
    }
    CHECK_STOP("%s: is %s, not %s (%s)", name, agent_task_state_name(task.state),
               agent_task_state_name(state), task.error);
    return task;
}

/* A copy of what was shipped of a file, owned by the caller. */
static inline char *server_file(struct server *server, const char *task, const char *file)
{
    pthread_mutex_lock(&server->lock);
    char *text = alloc_text(str_text(file_locked(server, task, file)));
    pthread_mutex_unlock(&server->lock);
    return text;
}
