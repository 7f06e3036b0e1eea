/* job.c - a job's row, its tasks and its last values, as one JSON object. */

#include <math.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "db/artifacts.h"
#include "db/metrics.h"
#include "server/cluster.h"
#include "server/job.h"
#include "server/reply.h"
#include "server/request.h"

json_t *job_time(int64_t wall_us)
{
    char text[32];
    return wall_us > 0 ? json_string(clock_rfc3339((uint64_t)wall_us, text, sizeof(text)))
                       : json_null();
}

json_t *job_text(const char *text)
{
    return text && *text ? json_string(text) : json_null();
}

json_t *job_number(double value)
{
    if (isnan(value))
        return json_string("NaN");
    if (isinf(value))
        return json_string(value > 0 ? "Infinity" : "-Infinity");
    return json_real(value);
}

bool job_find(struct request *req, struct db_job *job, struct error *err)
{
    struct db_conn *conn = db_read(req->services->db, DB_CONTROL, err);
    if (!conn)
        return false;
    struct db_viewer viewer = auth_viewer(&req->user);
    bool ok = db_jobs_find_text(conn, req->params[0], &viewer, req->arena, job, err);
    db_read_done(req->services->db, conn);
    return ok && auth_project(req, job->project, err);
}

bool job_reader_open(struct request *req, struct job_reader *reader, struct error *err)
{
    *reader = (struct job_reader){0};
    reader->control = db_read(req->services->db, DB_CONTROL, err);
    if (!reader->control)
        return false;
    reader->metrics = db_read(req->services->db, DB_METRICS, err);
    if (!reader->metrics)
        job_reader_close(req, reader);
    return reader->metrics != NULL;
}

void job_reader_close(struct request *req, struct job_reader *reader)
{
    db_read_done(req->services->db, reader->control);
    db_read_done(req->services->db, reader->metrics);
    *reader = (struct job_reader){0};
}

/* Why the training of a job that succeeded ended, as its task said; NULL when it did not. */
static const char *ended_text(struct db_conn *metrics, const struct db_job *job,
                              struct arena *arena)
{
    struct db_artifact run;
    struct error ignored;
    if (!db_artifacts_find(metrics, job->number, "run", "", arena, &run, &ignored))
        return NULL;
    json_t *json = json_loadb(run.bytes, run.size, 0, NULL);
    const char *ended = json_string_value(json_object_get(json, "ended"));
    const char *text = ended ? arena_text(arena, ended) : NULL;
    json_decref(json);
    return text;
}

/* How many steps the run will have, as the task said; -1 while it has not. */
static int64_t planned_steps(struct db_conn *metrics, const struct db_job *job,
                             struct arena *arena)
{
    struct db_artifact run;
    struct error ignored;
    if (!job->attempt ||
        !db_artifacts_find(metrics, job->number, "run", "", arena, &run, &ignored))
        return -1;
    json_t *json = json_loadb(run.bytes, run.size, 0, NULL);
    json_t *steps = json_object_get(json, "steps");
    int64_t value = json_is_integer(steps) ? json_integer_value(steps) : -1;
    json_decref(json);
    return value;
}

/* The nodes of the newest attempt; raises `*step` to the last step its agents know of. */
static json_t *nodes_of(const struct job_reader *reader, const struct db_job *job,
                        struct arena *arena, int64_t *step, struct error *err)
{
    json_t *nodes = json_array();
    struct db_task *tasks;
    int count = 0;
    if (job->epoch && !db_tasks_list(reader->control, job->epoch, arena, &tasks, &count, err)) {
        json_decref(nodes);
        return NULL;
    }
    for (int i = 0; i < count; i++) {
        if (tasks[i].step > *step)
            *step = tasks[i].step;
        bool known = false;
        for (int k = 0; k < i && !known; k++)
            known = tasks[k].node_id == tasks[i].node_id;
        if (!known && tasks[i].node && *tasks[i].node)
            json_array_append_new(nodes, json_string(tasks[i].node));
    }
    return nodes;
}

const char *job_reason(const struct job_reader *reader, const struct db_job *job,
                       struct arena *arena)
{
    struct error ignored;
    struct db_task *tasks;
    int count = 0;
    if (job->state == JOB_SUCCEEDED) {
        const char *ended = ended_text(reader->metrics, job, arena);
        return ended ? ended : job->text;
    }
    bool told = job->state == JOB_FAILED || job->state == JOB_QUEUED;
    if (!told || !job->epoch ||
        !db_tasks_list(reader->control, job->epoch, arena, &tasks, &count, &ignored))
        return job->text;
    for (int i = 0; i < count; i++)
        if (tasks[i].error && *tasks[i].error && tasks[i].reason != EXIT_OK)
            return arena_printf(arena, "%s: %s", job->text, tasks[i].error);
    return job->text;
}

/* The last value of each metric; a chief speaks for the job, else the first worker. */
static json_t *last_values(const struct job_reader *reader, const struct db_job *job,
                           struct arena *arena, int64_t *step, struct error *err)
{
    struct db_series *series;
    int count = 0;
    if (job->attempt && /* before the first there is none */
        !db_metrics_series(reader->metrics, job->number, false, arena, &series, &count, err))
        return NULL;
    json_t *last = json_object();
    for (int i = 0; i < count; i++) {
        if (series[i].last_step > *step)
            *step = series[i].last_step;
        if (strcmp(series[i].role, "chief") == 0 || !json_object_get(last, series[i].name))
            json_object_set_new(last, series[i].name, job_number(series[i].last_value));
    }
    return last;
}

static json_t *tags_of(const struct db_job *job)
{
    /* The spec is as spec_to_json() wrote it: only its list of tags is parsed. */
    static const char key[] = "\"tags\": ";
    const char *at = job->spec ? strstr(job->spec, key) : NULL;
    const char *list = at ? at + strlen(key) : "[]";
    json_t *tags = json_loadb(list, strlen(list), JSON_DISABLE_EOF_CHECK, NULL);
    if (json_is_array(tags))
        return tags;
    json_decref(tags);
    return json_array();
}

/* The numbers of the jobs that it comes after. */
static json_t *after_of(const struct job_reader *reader, const struct db_job *job,
                        struct arena *arena)
{
    struct error ignored;
    struct db_after *after;
    int count = 0;
    json_t *list = json_array();
    if (!db_jobs_after(reader->control, job->number, arena, &after, &count, &ignored))
        return list;
    for (int i = 0; i < count; i++)
        json_array_append_new(list, json_integer(after[i].job));
    return list;
}

/* Of one of an array: which, its place, and what it has of the grid. */
static void add_array(json_t *json, const struct db_job *job)
{
    json_t *parameters = json_loads(job->parameters, 0, NULL);
    json_object_set_new(json, "array", job->array ? json_integer(job->array) : json_null());
    json_object_set_new(json, "array_index",
                        job->array ? json_integer(job->array_index) : json_null());
    json_object_set_new(json, "parameters", parameters ? parameters : json_null());
}

json_t *job_json(struct request *req, const struct job_reader *reader, const struct db_job *job,
                 struct error *err)
{
    int64_t step = -1;
    int64_t steps = planned_steps(reader->metrics, job, req->arena);
    json_t *nodes = nodes_of(reader, job, req->arena, &step, err);
    json_t *last = nodes ? last_values(reader, job, req->arena, &step, err) : NULL;
    if (!last) {
        json_decref(nodes);
        return NULL;
    }
    json_t *json = json_pack(
        "{s:s, s:I, s:s, s:s, s:s, s:i, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:i, s:i, s:i, s:i, "
        "s:o, s:o, s:o, s:o, s:o}",
        "id", job->id, "number", (json_int_t)job->number, "name", job->name, "project",
        job->project, "queue", job->queue, "priority", job->priority, "user", job->user,
        "state", db_job_state_name(job->state), "reason",
        job_text(job_reason(reader, job, req->arena)), "code", job_text(job->reason),
        "created_at", job_time(job->created_us), "started_at", job_time(job->started_us),
        "ended_at", job_time(job->ended_us), "attempt", job->attempt, "restarts", job->restarts,
        "restart_max", job->restart_max, "preemptions", job->preemptions, "step",
        step < 0 ? json_null() : json_integer(step), "steps",
        steps < 0 ? json_null() : json_integer(steps), "last", last, "nodes", nodes, "program",
        job_text(job->program));
    if (!json)
        return fail_null(err, INTERNAL, "job %lld cannot be written as JSON",
                         (long long)job->number);
    json_object_set_new(json, "cluster", json_boolean(cluster_is(job)));
    json_object_set_new(json, "paused", json_boolean(job->paused));
    json_object_set_new(json, "archived", json_boolean(job->archived));
    add_array(json, job);
    if (job->spec) {
        json_object_set_new(json, "tags", tags_of(job));
        json_object_set_new(json, "after", after_of(reader, job, req->arena));
    }
    return json;
}

bool job_reply(struct request *req, int status, int64_t number, struct error *err)
{
    struct job_reader reader;
    if (!job_reader_open(req, &reader, err))
        return false;
    struct db_job job;
    json_t *json = NULL;
    if (db_jobs_find(reader.control, number, req->arena, &job, err)) {
        json = job_json(req, &reader, &job, err);
        reply_header(req, "ETag", arena_printf(req->arena, "\"%lld\"", (long long)job.seq));
    }
    job_reader_close(req, &reader);
    return json && reply_json(req, status, json, err);
}

bool job_match(const struct request *req, int64_t *seq, struct error *err)
{
    const char *text = request_header(req, "If-Match");
    char *end = NULL;
    *seq = 0;
    if (!text || strcmp(text, "*") == 0)
        return true;
    if (text[0] == '"' && text[1] >= '1' && text[1] <= '9')
        *seq = strtoll(text + 1, &end, 10);
    return (end && strcmp(end, "\"") == 0 && *seq < INT64_MAX) ||
           fail(err, INVALID, "If-Match is '%.60s'; it can be the ETag of the job, or *", text);
}
