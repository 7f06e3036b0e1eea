/* story.c - what became of a job: why it waits or failed, its events, attempts. */

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "db/artifacts.h"
#include "db/events.h"
#include "db/nodes.h"
#include "scheduler/loop.h"
#include "server/api/api.h"
#include "server/job.h"
#include "server/reply.h"
#include "server/request.h"

/* --- explain --- */

static json_t *holder_json(const struct explain_holder *holder)
{
    char text[200];
    int used =
        snprintf(text, sizeof(text), "job %lld (%s) has %g CPU%s", (long long)holder->job,
                 db_job_state_name(holder->state), (double)holder->cpu_millis / 1000,
                 holder->cpu_millis == 1000 ? "" : "s");
    if (holder->memory_bytes)
        used += snprintf(text + used, sizeof(text) - (size_t)used, ", %.1f GiB",
                         (double)holder->memory_bytes / (1 << 30));
    if (holder->gpus)
        used += snprintf(text + used, sizeof(text) - (size_t)used, ", %d GPU%s", holder->gpus,
                         holder->gpus == 1 ? "" : "s");
    if (!holder->cpu_millis && !holder->memory_bytes && !holder->gpus)
        used = snprintf(text, sizeof(text), "job %lld (%s)", (long long)holder->job,
                        db_job_state_name(holder->state));
    if (holder->ends_us >= 0)
        snprintf(text + used, sizeof(text) - (size_t)used,
                 ", until %lld s from now at the latest",
                 (long long)(holder->ends_us / 1000000));
    return json_pack("{s:s, s:I, s:s, s:I, s:I, s:i}", "text", text, "job",
                     (json_int_t)holder->job, "state", db_job_state_name(holder->state),
                     "cpu_millis", (json_int_t)holder->cpu_millis, "memory_bytes",
                     (json_int_t)holder->memory_bytes, "gpus", holder->gpus);
}

/* One side of a change: a text, a number, or null for what there is not. */
static json_t *side_json(const struct explain_change *change, const char *side)
{
    return change->is_text ? job_text(side) : json_loads(side, JSON_DECODE_ANY, NULL);
}

static json_t *change_json(const struct explain_change *change)
{
    return json_pack("{s:s, s:s, s:o, s:o, s:f}", "text", change->text, "field", change->field,
                     "from", side_json(change, change->from), "to",
                     side_json(change, change->to), "starts_in_seconds",
                     (double)change->start_us / 1000000);
}

/* Estimates of the scheduler, as JSON: seconds, or null. */
static json_t *start_json(const struct explain *why)
{
    return why->start_us < 0 ? json_null() : json_real((double)why->start_us / 1000000);
}

static json_t *waiting_json(const struct explain *why)
{
    json_t *blockers = json_array();
    for (int i = 0; i < why->holders_count; i++)
        json_array_append_new(blockers, holder_json(&why->holders[i]));
    json_t *suggestions = json_array(), *changes = json_array();
    if (*why->next)
        json_array_append_new(suggestions, json_string(why->next));
    for (int i = 0; i < why->changes_count; i++) {
        json_array_append_new(suggestions, json_string(why->changes[i].text));
        json_array_append_new(changes, change_json(&why->changes[i]));
    }
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:s, s:s, s:I, s:I, s:I, s:i, s:i, s:o, s:o}",
                     "code", explain_code_name(why->code), "text", why->text, "blockers",
                     blockers, "suggestions", suggestions, "changes", changes, "resource",
                     explain_resource_name(why->resource), "role", why->role, "needed",
                     (json_int_t)why->needed, "best_free", (json_int_t)why->best_free,
                     "largest", (json_int_t)why->largest, "nodes", why->nodes_count, "ahead",
                     why->ahead_count, "starts_in_seconds", start_json(why), "starts_on",
                     job_text(why->start_node));
}

/* What the newest attempt says of its end, with a pointer to where to look. */
static json_t *ended_json(const struct db_job *job, const char *reason)
{
    const char *text = *reason ? reason : db_job_state_name(job->state);
    json_t *suggestions = json_array();
    if (job->state == JOB_FAILED) {
        char hint[160];
        snprintf(hint, sizeof(hint), "The end of its output: trainyard logs %lld --tail 50",
                 (long long)job->number);
        json_array_append_new(suggestions, json_string(hint));
    }
    return json_pack("{s:s, s:s, s:[], s:o}", "code", *job->reason ? job->reason : "ENDED",
                     "text", text, "blockers", "suggestions", suggestions);
}

/* GET /api/v1/jobs/{id}/explain: why it waits, with numbers; or how it ended. */
static bool story_explain(struct request *req, struct error *err)
{
    struct db_job job;
    if (!job_find(req, &job, err))
        return false;
    if (db_job_state_final(job.state)) {
        struct job_reader reader;
        if (!job_reader_open(req, &reader, err))
            return false;
        json_t *json = ended_json(&job, job_reason(&reader, &job, req->arena));
        job_reader_close(req, &reader);
        return reply_json(req, 200, json, err);
    }
    struct explain why;
    if (!loop_explain(req->services->loop, job.number, &why, err))
        return false;
    return reply_json(req, 200, waiting_json(&why), err);
}

/* --- history --- */

static json_t *event_json(const struct db_event *event)
{
    const char *state = "";
    if (event->state >= 0)
        state = strncmp(event->kind, "task.", 5) == 0
                    ? db_task_state_name((enum task_state)event->state)
                    : db_job_state_name((enum job_state)event->state);
    char text[500];
    if (*event->text)
        snprintf(text, sizeof(text), "%s", event->text);
    else if (*event->role)
        snprintf(text, sizeof(text), "%s/%d is %s", event->role, event->index, state);
    else
        snprintf(text, sizeof(text), "%s", state);
    json_t *task =
        *event->role ? json_sprintf("%s/%d", event->role, event->index) : json_null();
    return json_pack("{s:I, s:o, s:s, s:s, s:o, s:o, s:i, s:s}", "seq", (json_int_t)event->seq,
                     "time", job_time(event->wall_us), "type", event->kind, "text", text,
                     "state", job_text(state), "task", task, "attempt", event->attempt,
                     "reason", event->reason);
}

/* GET /api/v1/jobs/{id}/history: everything that happened to it, oldest first. */
static bool story_history(struct request *req, struct error *err)
{
    struct db_job job;
    int64_t after;
    int64_t limit;
    if (!job_find(req, &job, err) ||
        !request_query_int(req, "after_seq", 0, INT64_MAX, 0, &after, err) ||
        !request_query_int(req, "limit", 1, LIMIT_PAGE_ITEMS, LIMIT_PAGE_ITEMS, &limit, err))
        return false;
    struct db_conn *conn = db_read(req->services->db, DB_CONTROL, err);
    if (!conn)
        return false;
    struct db_event *events;
    int count = 0;
    bool ok =
        db_events_since(conn, job.number, after, (int)limit, req->arena, &events, &count, err);
    db_read_done(req->services->db, conn);
    if (!ok)
        return false;
    json_t *items = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(items, event_json(&events[i]));
    json_t *next = count == limit ? json_integer(events[count - 1].seq) : json_null();
    return reply_json(req, 200, json_pack("{s:o, s:o}", "items", items, "next_after_seq", next),
                      err);
}

/* --- attempts --- */

static json_t *task_json(const struct db_task *task)
{
    json_t *name = json_sprintf("%s/%d", task->role, task->index);
    json_t *indexes = json_array();
    for (int g = 0; g < 64; g++) {
        if (task->gpu_mask >> g & 1)
            json_array_append_new(indexes, json_integer(g));
    }
    return json_pack(
        "{s:o, s:o, s:s, s:I, s:b, s:I, s:o, s:o, s:s, s:i, s:i, s:o, s:o, s:f, s:I, s:f, s:o}",
        "task", name, "node", job_text(task->node), "state", db_task_state_name(task->state),
        "epoch", (json_int_t)task->placed, "away", task->away, "pid", (json_int_t)task->pid,
        "started_at", job_time(task->started_us), "ended_at", job_time(task->ended_us),
        "reason", db_exit_reason_name(task->reason), "exit_code", task->exit_code, "signal",
        task->signal, "error", job_text(task->error), "step",
        task->step < 0 ? json_null() : json_integer(task->step), "cpus",
        (double)task->cpu_millis / 1000, "memory_bytes", (json_int_t)task->memory_bytes, "gpus",
        task->gpu_share ? task->gpu_share / 1000.0 : (double)task->gpus, "gpu_indexes",
        indexes);
}

static json_t *attempt_json(struct db_conn *conn, const struct db_attempt *attempt,
                            struct arena *arena, struct error *err)
{
    struct db_task *tasks;
    int count;
    if (!db_tasks_list(conn, attempt->epoch, arena, &tasks, &count, err))
        return NULL;
    json_t *list = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(list, task_json(&tasks[i]));
    return json_pack(
        "{s:i, s:I, s:o, s:o, s:o, s:s, s:o, s:o}", "attempt", attempt->attempt, "epoch",
        (json_int_t)attempt->epoch, "created_at", job_time(attempt->created_us), "started_at",
        job_time(attempt->started_us), "ended_at", job_time(attempt->ended_us), "reason",
        db_exit_reason_name(attempt->reason), "text", job_text(attempt->text), "tasks", list);
}

/* GET /api/v1/jobs/{id}/attempts: each with its tasks, oldest first. */
static bool story_attempts(struct request *req, struct error *err)
{
    struct db_job job;
    if (!job_find(req, &job, err))
        return false;
    struct db_conn *conn = db_read(req->services->db, DB_CONTROL, err);
    if (!conn)
        return false;
    struct db_attempt *attempts;
    int count = 0;
    json_t *items = json_array();
    bool ok = db_attempts_list(conn, job.number, req->arena, &attempts, &count, err);
    for (int i = 0; ok && i < count; i++)
        ok = json_array_append_new(items, attempt_json(conn, &attempts[i], req->arena, err)) ==
             0;
    db_read_done(req->services->db, conn);
    if (!ok) {
        json_decref(items);
        return false;
    }
    return reply_json(req, 200, json_pack("{s:o}", "items", items), err);
}

/* GET /api/v1/jobs/{id}/tasks: of the newest attempt, or the one that is asked for. */
static bool story_tasks(struct request *req, struct error *err)
{
    struct db_job job;
    int64_t wanted;
    if (!job_find(req, &job, err) ||
        !request_query_int(req, "attempt", 1, INT32_MAX, job.attempt, &wanted, err))
        return false;
    struct db_conn *conn = db_read(req->services->db, DB_CONTROL, err);
    if (!conn)
        return false;
    struct db_attempt *attempts;
    struct db_task *tasks;
    int attempts_count = 0, count = 0;
    int64_t epoch = 0;
    bool ok = db_attempts_list(conn, job.number, req->arena, &attempts, &attempts_count, err);
    for (int i = 0; ok && i < attempts_count; i++)
        epoch = attempts[i].attempt == wanted ? attempts[i].epoch : epoch;
    if (ok && wanted && !epoch)
        ok = fail(err, NOT_FOUND, "job %lld has no attempt %lld", (long long)job.number,
                  (long long)wanted);
    ok = ok && (!epoch || db_tasks_list(conn, epoch, req->arena, &tasks, &count, err));
    db_read_done(req->services->db, conn);
    if (!ok)
        return false;
    json_t *items = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(items, task_json(&tasks[i]));
    return reply_json(
        req, 200, json_pack("{s:I, s:o}", "attempt", (json_int_t)wanted, "items", items), err);
}

const struct route story_routes[] = {
    {"GET", "/api/v1/jobs/{id}/explain", AUTH_IN_PROJECT(ROLE_VIEWER), story_explain,
     "Why a job waits, or how it ended", NULL, NULL, 200, "Explanation"},
    {"GET", "/api/v1/jobs/{id}/history", AUTH_IN_PROJECT(ROLE_VIEWER), story_history,
     "What happened to a job", "after_seq:integer limit:integer", NULL, 200, "History"},
    {"GET", "/api/v1/jobs/{id}/attempts", AUTH_IN_PROJECT(ROLE_VIEWER), story_attempts,
     "Attempts and their tasks", NULL, NULL, 200, "AttemptList"},
    {"GET", "/api/v1/jobs/{id}/tasks", AUTH_IN_PROJECT(ROLE_VIEWER), story_tasks,
     "Tasks of the newest attempt, or of another", "attempt:integer", NULL, 200, "TaskList"},
    {0},
};
