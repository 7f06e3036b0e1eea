/* nodes.c - the service pb.Agent: checks who calls, and hands over to the loop. */

#include <pthread.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mailbox.h"
#include "base/str.h"
#include "db/jobs.h"
#include "db/tokens.h"
#include "scheduler/agent/folders.h"
#include "scheduler/loop.h"
#include "server/authority.h"
#include "server/cluster.h"
#include "server/meetings.h"
#include "server/nodes.h"
#include "server/nodes_certify.h"
#include "server/nodes_fetch.h"
#include "server/nodes_session.h"
#include "server/nodes_spec.h"
#include "server/program.h"

#define ERRANDS_WAITING 1024

struct nodes {
    struct db *db;
    struct loop *loop;
    struct authority *authority; /* NULL: others say who a node is */
    char *folder;
    char folder_id[FOLDERS_ID_TEXT];
    nodes_ship_fn *ship;
    void *ship_self;
    struct nodes_sessions *sessions;
    struct meetings *meetings;
    struct mailbox *errands; /* of struct errand */
    pthread_t errand_thread;
    bool started;
};

static void busy(struct rpc_call *call)
{
    struct error err;
    fail(&err, UNAVAILABLE, "the server is busy or ending: try again");
    rpc_call_fail(call, &err);
}

/* --- reports --- */

static struct scheduler_report *reports_copy(const struct agent_task_report *from, int count,
                                             struct arena *arena)
{
    struct scheduler_report *to = arena_array(arena, (size_t)count, sizeof(*to));
    for (int i = 0; i < count; i++) {
        to[i] = (struct scheduler_report){
            .job = from[i].task.job_id,
            .epoch = from[i].task.attempt_epoch,
            .index = from[i].task.index,
            .state = (enum task_state)from[i].state,
            .reason = (enum exit_reason)from[i].reason,
            .pid = from[i].pid,
            .started_us = from[i].started_us,
            .ended_us = from[i].ended_us,
            .exit_code = from[i].exit_code,
            .signal = from[i].signal,
            .error = from[i].error,
            .step = from[i].step,
        };
        snprintf(to[i].role, sizeof(to[i].role), "%s", from[i].task.role);
    }
    return to;
}

/* Roles that do not fit are of no task of ours; an index is no negative number. */
static bool reports_are_sane(const struct agent_task_report *reports, int count,
                             struct error *err)
{
    for (int i = 0; i < count; i++) {
        if (strlen(reports[i].task.role) >= SCHEDULER_ROLE_BYTES || reports[i].task.index < 0)
            return fail(err, INVALID, "a report names no task: '%.40s:%d'",
                        reports[i].task.role, reports[i].task.index);
    }
    return true;
}

/* --- Join --- */

static const char *labels_json(const struct agent_label *labels, int count, struct arena *arena)
{
    struct str json = {0};
    str_add_char(&json, '{');
    for (int i = 0; i < count; i++) {
        if (i)
            str_add_char(&json, ',');
        str_add_json(&json, labels[i].name, strlen(labels[i].name));
        str_add_char(&json, ':');
        str_add_json(&json, labels[i].value, strlen(labels[i].value));
    }
    str_add_char(&json, '}');
    const char *text = arena_text(arena, str_text(&json));
    str_release(&json);
    return text;
}

/* Reads and checks the request; the join lives in `arena`, with its texts. */
static struct loop_join *join_read(struct nodes *nodes, struct rpc_call *call, bool remote,
                                   struct arena *arena, struct error *err)
{
    struct agent_join_request request;
    size_t size;
    const void *bytes = rpc_call_bytes(call, &size);
    if (!agent_join_request_unpack(bytes, size, arena, &request, err))
        return NULL;
    struct db_token token;
    if (remote && !nodes->authority &&
        !nodes_token_check(nodes->db, request.token, arena, &token, err))
        return NULL;
    if (!nodes_name_check(request.node_name, err))
        return NULL;
    if (remote && nodes->authority &&
        !nodes_admit(nodes->db, nodes->authority, call, request.node_name, err))
        return NULL;
    const struct agent_resources *capacity = &request.capacity;
    if (request.asked_us < 0 || capacity->cpu_millis <= 0 || capacity->memory_bytes < 0 ||
        capacity->gpus < 0)
        return fail_null(err, INVALID, "node '%s' offers no CPU", request.node_name);
    if (capacity->gpus > SCHEDULER_GPUS_MAX)
        return fail_null(err, INVALID, "node '%s' offers %d GPUs; at most %d are possible",
                         request.node_name, capacity->gpus, SCHEDULER_GPUS_MAX);
    if (!reports_are_sane(request.tasks, request.tasks_count, err))
        return NULL;

    struct loop_join *join = arena_alloc(arena, sizeof(*join));
    *join = (struct loop_join){
        .arena = arena,
        .call = call,
        .name = request.node_name,
        .identity = request.identity,
        .boot_id = request.boot_id,
        .version = request.version,
        .labels = labels_json(request.labels, request.labels_count, arena),
        .capacity = {capacity->cpu_millis, capacity->memory_bytes, capacity->gpus},
        .gpu_type = capacity->gpu_type,
        .gpu_memory_bytes = capacity->gpu_memory_bytes,
        .gpus_away = capacity->gpus_away,
        .asked_us = request.asked_us,
        .tasks = reports_copy(request.tasks, request.tasks_count, arena),
        .tasks_count = request.tasks_count,
    };
    return join;
}

static void serve_join(struct nodes *nodes, struct rpc_call *call, bool remote)
{
    struct error err;
    struct arena *arena = arena_new();
    struct loop_join *join = join_read(nodes, call, remote, arena, &err);
    if (!join) {
        nodes_refused(call, &err);
        rpc_call_fail(call, &err);
        arena_free(arena);
    } else if (!loop_join(nodes->loop, join)) {
        busy(call);
        arena_free(arena);
    }
}

static void serve_join_local(void *self, struct rpc_call *call)
{
    serve_join(self, call, false);
}

static void serve_join_remote(void *self, struct rpc_call *call)
{
    serve_join(self, call, true);
}

static struct agent_task_ref task_ref(const struct loop_task *task)
{
    return (struct agent_task_ref){task->job, task->epoch, task->role, task->index};
}

static void on_joined(void *self, struct loop_join *join, const struct loop_task *discard,
                      int discard_count, const struct error *err)
{
    struct nodes *nodes = self;
    struct rpc_call *call = join->call;
    if (err) {
        rpc_call_fail(call, err);
        loop_join_free(join);
        return;
    }
    struct agent_task_ref *refs =
        arena_array(join->arena, (size_t)discard_count, sizeof(*refs));
    for (int i = 0; i < discard_count; i++)
        refs[i] = task_ref(&discard[i]);
    struct agent_join_response response = {
        .node_id = join->node_id,
        .node_epoch = join->node_epoch,
        .node_key = nodes_session_open(nodes->sessions, join->node_id, join->node_epoch,
                                       rpc_call_certificate(call) ? join->name : ""),
        .discard = refs,
        .discard_count = discard_count,
    };
    struct str bytes = {0};
    agent_join_response_pack(&response, &bytes);
    rpc_call_reply(call, bytes.data, bytes.size);
    str_release(&bytes);
    log_line(LOG_INFO, "nodes", "node=%s epoch=%lld tasks=%d msg=joined", join->name,
             (long long)join->node_epoch, join->tasks_count);
    loop_join_free(join);
}

/* The session is the caller's: it has its key, and shows its node's certificate. */
static bool session_check(struct nodes *nodes, const struct rpc_call *call, int64_t node,
                          int64_t epoch, const char *key, struct error *err)
{
    struct authority_node who = {0};
    if (rpc_call_certificate(call) && !authority_check(nodes->authority, call, &who, err))
        return false;
    return nodes_session_check(nodes->sessions, node, epoch, key, who.name, err);
}

/* --- Sync --- */

static bool sync_read(struct nodes *nodes, struct rpc_call *call, struct arena *arena,
                      struct agent_sync_request *request, struct error *err)
{
    size_t size;
    const void *bytes = rpc_call_bytes(call, &size);
    return agent_sync_request_unpack(bytes, size, arena, request, err) &&
           session_check(nodes, call, request->node_id, request->node_epoch, request->node_key,
                         err) &&
           (request->asked_us >= 0 || fail(err, INVALID, "asked_us is negative")) &&
           reports_are_sane(request->reports, request->reports_count, err);
}

static void serve_sync(void *self, struct rpc_call *call)
{
    struct nodes *nodes = self;
    struct error err;
    struct agent_sync_request request;
    struct arena *arena = arena_new();
    if (!sync_read(nodes, call, arena, &request, &err)) {
        rpc_call_fail(call, &err);
        arena_free(arena);
        return;
    }
    int count = request.reports_count;
    struct loop_heard heard = {
        .node = request.node_id,
        .node_epoch = request.node_epoch,
        .asked_us = request.asked_us,
        .arena = arena,
        .reports = count ? reports_copy(request.reports, count, arena) : NULL,
        .reports_count = count,
        .call = count ? call : NULL,
    };
    nodes_session_done(nodes->sessions, heard.node, heard.node_epoch, request.commands_done);
    if (!loop_hear(nodes->loop, &heard)) {
        busy(call);
        arena_free(arena);
    } else if (!count) {
        nodes_session_hold(nodes->sessions, heard.node, heard.node_epoch, call);
    }
}

static void on_heard(void *self, void *call, int64_t node, int64_t node_epoch,
                     const struct error *err)
{
    struct nodes *nodes = self;
    if (err)
        rpc_call_fail(call, err);
    else
        nodes_session_answer(nodes->sessions, node, node_epoch, call);
}

/* --- commands --- */

/* What the node must know of the job to start its task. */
static bool start_read(struct nodes *nodes, const struct loop_task *task, struct arena *arena,
                       struct agent_start_task *start, struct error *err)
{
    struct db_job job;
    struct agent_program program = {0};
    int64_t idle_seconds = 0;
    struct db_conn *conn = db_read(nodes->db, DB_CONTROL, err);
    bool ok = conn && db_jobs_find(conn, task->job, arena, &job, err) &&
              (!job.program[0] ||
               program_read(nodes->db, conn, job.spec, job.tasks_count, arena, &program, err));
    ok = ok && (!cluster_is(&job) || cluster_idle_seconds(&job, arena, &idle_seconds, err));
    db_read_done(nodes->db, conn);
    if (!ok)
        return false;
    *start = (struct agent_start_task){
        .task = task_ref(task),
        .attempt = task->attempt,
        .spec = job.program[0] ? "" : job.spec,
        .job_folder = arena_printf(arena, "%s/jobs/%lld", nodes->folder, (long long)task->job),
        .dataset_folder =
            job.dataset[0] ? arena_printf(arena, "%s/datasets/%s", nodes->folder, job.dataset)
                           : "",
        .cpu_millis = task->resources.cpu_millis,
        .memory_bytes = task->resources.memory_bytes,
        .gpus = (int)task->resources.gpus,
        .gpu_mask = task->gpu_mask,
        .gpu_share = task->gpu_share,
        .tasks = job.tasks_count,
        .idle_seconds = idle_seconds,
        .stall_ms = nodes_stall_ms(job.spec, task),
        .restarts = nodes_restarts(job.spec, task),
        .group_epoch = task->attempt_epoch != task->epoch ? task->attempt_epoch : 0,
        .server_folder_id = nodes->folder_id,
        .program = program,
    };
    return true;
}

static void on_start(void *self, int64_t node, const struct loop_task *task)
{
    struct nodes *nodes = self;
    struct error err;
    struct arena *arena = arena_new();
    struct agent_command command = {.kind = AGENT_COMMAND_START};
    if (start_read(nodes, task, arena, &command.start, &err)) {
        nodes_session_command(nodes->sessions, node, &command);
    } else {
        /* Joining again makes the loop say it again. */
        char text[600];
        log_line(LOG_ERROR, "nodes", "job=%lld msg=%s", (long long)task->job,
                 log_quote(err.text, text, sizeof(text)));
        nodes_session_close(nodes->sessions, node);
    }
    arena_free(arena);
}

static void on_stop(void *self, int64_t node, const struct loop_task *task, bool kill,
                    int64_t grace_ms)
{
    struct nodes *nodes = self;
    struct agent_command command = {
        .kind = AGENT_COMMAND_STOP,
        .stop = {.task = task_ref(task), .kill = kill, .grace_ms = grace_ms},
    };
    nodes_session_command(nodes->sessions, node, &command);
}

static void on_acknowledge(void *self, int64_t node, const struct loop_task *task)
{
    struct nodes *nodes = self;
    struct agent_task_ref ref = task_ref(task);
    nodes_session_acknowledge(nodes->sessions, node, &ref);
}

static void on_forget(void *self, int64_t node)
{
    struct nodes *nodes = self;
    nodes_session_close(nodes->sessions, node);
}

static uint64_t on_flush(void *self)
{
    struct nodes *nodes = self;
    return nodes_session_flush(nodes->sessions);
}

/* --- errands: calls that read or write the disk, on a thread of their own --- */

typedef void errand_fn(struct nodes *nodes, struct rpc_call *call);

struct errand {
    errand_fn *run;
    struct rpc_call *call;
};

static void errand_post(struct nodes *nodes, errand_fn *run, struct rpc_call *call)
{
    struct errand *errand = alloc_bytes(sizeof(*errand));
    *errand = (struct errand){run, call};
    if (mailbox_post(nodes->errands, errand))
        return;
    free(errand);
    busy(call);
}

static void ship_run(struct nodes *nodes, struct rpc_call *call)
{
    struct error err;
    struct agent_ship_request ship;
    size_t size;
    const void *bytes = rpc_call_bytes(call, &size);
    struct arena *arena = arena_new();
    int64_t cursor;
    bool ok =
        agent_ship_request_unpack(bytes, size, arena, &ship, &err) &&
        session_check(nodes, call, ship.node_id, ship.node_epoch, ship.node_key, &err) &&
        nodes_task_check(nodes->db, ship.node_id, &ship.task, arena, &ship.group_epoch, &err);
    if (ok && (ship.offset < 0 || ship.data_size > LIMIT_SHIP_BYTES))
        ok = fail(&err, INVALID, "no piece of a file: offset %lld, %zu bytes",
                  (long long)ship.offset, ship.data_size);
    if (ok && nodes->ship(nodes->ship_self, &ship, &cursor, &err)) {
        struct agent_ship_response response = {.offset = cursor};
        struct str answer = {0};
        agent_ship_response_pack(&response, &answer);
        rpc_call_reply(call, answer.data, answer.size);
        str_release(&answer);
    } else {
        rpc_call_fail(call, &err);
    }
    arena_free(arena);
}

static void serve_ship(void *self, struct rpc_call *call)
{
    errand_post(self, ship_run, call);
}

static void fetch_run(struct nodes *nodes, struct rpc_call *call)
{
    struct error err;
    struct agent_fetch_request fetch;
    struct agent_fetch_response piece = {0};
    int64_t epoch;
    size_t size;
    const void *bytes = rpc_call_bytes(call, &size);
    struct arena *arena = arena_new();
    char *data = alloc_bytes(LIMIT_SHIP_BYTES);
    bool ok =
        agent_fetch_request_unpack(bytes, size, arena, &fetch, &err) &&
        session_check(nodes, call, fetch.node_id, fetch.node_epoch, fetch.node_key, &err) &&
        nodes_task_check(nodes->db, fetch.node_id, &fetch.task, arena, &epoch, &err);
    if (ok && nodes_fetch(nodes->db, nodes->folder, &fetch, epoch, arena, data,
                          &piece.data_size, &err)) {
        struct str answer = {0};
        piece.data = data;
        agent_fetch_response_pack(&piece, &answer);
        rpc_call_reply(call, answer.data, answer.size);
        str_release(&answer);
    } else {
        rpc_call_fail(call, &err);
    }
    free(data);
    arena_free(arena);
}

static void serve_fetch(void *self, struct rpc_call *call)
{
    errand_post(self, fetch_run, call);
}

static void meet_run(struct nodes *nodes, struct rpc_call *call)
{
    struct error err;
    struct agent_meet_request meet;
    struct agent_meet_response met;
    int64_t epoch;
    size_t size;
    const void *bytes = rpc_call_bytes(call, &size);
    struct arena *arena = arena_new();
    if (agent_meet_request_unpack(bytes, size, arena, &meet, &err) &&
        session_check(nodes, call, meet.node_id, meet.node_epoch, meet.node_key, &err) &&
        nodes_task_check(nodes->db, meet.node_id, &meet.task, arena, &epoch, &err) &&
        meetings_meet(nodes->meetings, &meet, epoch, arena, &met, &err)) {
        struct str answer = {0};
        agent_meet_response_pack(&met, &answer);
        rpc_call_reply(call, answer.data, answer.size);
        str_release(&answer);
    } else {
        rpc_call_fail(call, &err);
    }
    arena_free(arena);
}

static void serve_meet(void *self, struct rpc_call *call)
{
    errand_post(self, meet_run, call);
}

static void certify_run(struct nodes *nodes, struct rpc_call *call)
{
    struct error err;
    struct str answer = {0};
    bool ok = nodes_certify(nodes->db, nodes->authority, call, &answer, &err);
    if (ok) {
        rpc_call_reply(call, answer.data, answer.size);
    } else {
        nodes_refused(call, &err);
        rpc_call_fail(call, &err);
    }
    str_release(&answer);
}

static void serve_certify(void *self, struct rpc_call *call)
{
    errand_post(self, certify_run, call);
}

static void *nodes_errand_main(void *arg)
{
    struct nodes *nodes = arg;
    for (;;) {
        struct errand *errand = mailbox_take(nodes->errands, 1000);
        if (errand)
            errand->run(nodes, errand->call);
        else if (mailbox_closed(nodes->errands))
            return NULL;
        free(errand);
    }
}

/* --- the whole --- */

const struct rpc_method nodes_methods_local[] = {
    {AGENT_PATH_JOIN, serve_join_local}, {AGENT_PATH_SYNC, serve_sync},
    {AGENT_PATH_SHIP, serve_ship},       {AGENT_PATH_FETCH, serve_fetch},
    {AGENT_PATH_MEET, serve_meet},       {0},
};

const struct rpc_method nodes_methods_remote[] = {
    {AGENT_PATH_CERTIFY, serve_certify},
    {AGENT_PATH_JOIN, serve_join_remote},
    {AGENT_PATH_SYNC, serve_sync},
    {AGENT_PATH_SHIP, serve_ship},
    {AGENT_PATH_FETCH, serve_fetch},
    {AGENT_PATH_MEET, serve_meet},
    {0},
};

struct nodes *nodes_new(const struct nodes_options *options, struct error *err)
{
    struct nodes *nodes = alloc_bytes(sizeof(*nodes));
    nodes->db = options->db;
    nodes->loop = options->loop;
    nodes->authority = options->authority;
    nodes->folder = alloc_text(options->folder);
    nodes->ship = options->ship;
    nodes->ship_self = options->ship_self;
    int64_t held_ms = options->suspect_ms / 3;
    if (!held_ms || held_ms > LIMIT_LONG_POLL_MS)
        held_ms = LIMIT_LONG_POLL_MS;
    nodes->sessions = nodes_session_new((uint64_t)held_ms * 1000);
    nodes->meetings = meetings_new(nodes->db, nodes->folder);
    nodes->errands = mailbox_new(ERRANDS_WAITING);
    if (pthread_create(&nodes->errand_thread, NULL, nodes_errand_main, nodes)) {
        fail(err, EXHAUSTED, "cannot start the thread that stores what agents ship");
        nodes_free(nodes);
        return NULL;
    }
    nodes->started = true;
    if (!folders_id(nodes->folder, nodes->folder_id, err)) {
        nodes_free(nodes);
        return NULL;
    }
    struct loop_agents agents = {
        .self = nodes,
        .joined = on_joined,
        .start = on_start,
        .stop = on_stop,
        .acknowledge = on_acknowledge,
        .heard = on_heard,
        .forget = on_forget,
        .flush = on_flush,
    };
    loop_set_agents(options->loop, &agents);
    return nodes;
}

void nodes_stop(struct nodes *nodes)
{
    mailbox_close(nodes->errands);
    if (nodes->started)
        pthread_join(nodes->errand_thread, NULL);
    nodes->started = false;
    nodes_session_close(nodes->sessions, 0);
}

void nodes_free(struct nodes *nodes)
{
    if (!nodes)
        return;
    if (nodes->started)
        nodes_stop(nodes);
    nodes_session_free(nodes->sessions);
    mailbox_free(nodes->errands);
    meetings_free(nodes->meetings);
    free(nodes->folder);
    free(nodes);
}
