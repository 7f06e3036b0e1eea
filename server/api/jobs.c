/* jobs.c - submitting, showing and ending jobs. */

#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "runtime/spec/spec.h"
#include "runtime/spec/spec_read.h"
#include "scheduler/loop.h"
#include "server/api/api.h"
#include "server/job.h"
#include "server/job_replies.h"
#include "server/plan.h"
#include "server/reply.h"
#include "server/request.h"
#include "server/submit.h"

/* What one job comes to: of an array the first, and how many there are. */
static bool reply_plan(struct request *req, struct submissions *submissions, struct error *err)
{
    struct submission *first = submissions->list;
    if (!plan_forecast(req, &first->spec, NULL, 0, &first->plan, err))
        return false;
    json_t *json = plan_json(&first->plan, &first->spec);
    if (submissions->array) {
        json_object_set_new(json, "array_count", json_integer(submissions->count));
        json_object_set_new(
            json, "text",
            json_sprintf("%d jobs; the first: %s", submissions->count, first->plan.text));
    }
    return reply_json(req, 200, json, err);
}

/*
 * POST /api/v1/jobs     body: a job spec          201 and the job
 *
 * The job is on disk before the reply is sent, so a client that saw 201 may crash, and so may
 * we: the scheduler will still find the job.  With an Idempotency-Key the same request makes
 * one job however often it is sent.
 */
static bool jobs_create(struct request *req, struct error *err)
{
    const char *dry_run = request_query(req, "dry_run");
    if (dry_run && strcmp(dry_run, "plan") != 0)
        return fail(err, INVALID, "dry_run is '%.40s'; it can only be 'plan'", dry_run);
    struct submit_key key;
    struct db_job_added added = {0};
    if (!submit_key_read(req, "", &key, err) ||
        (!dry_run && !submit_key_find(req, &key, &added, err)))
        return false;
    if (added.existed)
        return job_reply(req, 201, added.number, err);
    struct submissions submissions;
    if (!submit_prepare(req, req->body, req->body_size, &submissions, err))
        return false;
    if (dry_run)
        return reply_plan(req, &submissions, err);
    if (!submit_send(req, &submissions, &key, &added, err))
        return false;
    reply_header(req, "Location", arena_printf(req->arena, "/api/v1/jobs/%s", added.id));
    return job_reply(req, 201, added.number, err);
}

static bool jobs_show(struct request *req, struct error *err)
{
    struct db_job job;
    struct job_version version = job_replies_version(req);
    if (job_replies_find(req, version))
        return true;
    if (!job_find(req, &job, err) || !job_reply(req, 200, job.number, err))
        return false;
    job_replies_keep(req, version);
    return true;
}

/* GET /api/v1/jobs/{id}/spec: as it runs, defaults filled in. */
static bool jobs_spec(struct request *req, struct error *err)
{
    struct db_job job;
    if (!job_find(req, &job, err))
        return false;
    return reply_bytes(req, 200, "application/json", job.spec, strlen(job.spec));
}

/* Fields over the spec of a job that is queued. */
static bool edit_job(struct request *req, const struct db_job *job, int64_t seq,
                     struct error *err)
{
    struct submissions submissions;
    if (job->state != JOB_QUEUED)
        return fail(err, PRECONDITION, "job %lld is %s: only one that is queued can be edited",
                    (long long)job->number, db_job_state_name(job->state));
    const char *text = spec_patch(req->arena, job->spec, req->body, req->body_size, err);
    return text && submit_prepare(req, text, strlen(text), &submissions, err) &&
           submit_edit(req, job, seq, &submissions, err) &&
           job_reply(req, 200, job->number, err);
}

static bool change_job(struct request *req, const struct db_job *job, int64_t seq,
                       struct error *err)
{
    static const char *const allowed[] = {"priority", NULL};
    json_error_t where;
    int64_t priority = -1;
    json_t *body = json_loadb(req->body, req->body_size, JSON_REJECT_DUPLICATES, &where);
    if (json_object_size(body) != 1 || !json_object_get(body, "priority")) {
        json_decref(body);
        return edit_job(req, job, seq, err);
    }
    struct spec_object object = {body, "", req->arena, err};
    bool ok = json_is_object(body)
                  ? spec_read_only(&object, allowed) &&
                        spec_read_required(&object, "priority", "0 to 100") &&
                        spec_read_integer(&object, "priority", 0, 100, &priority)
                  : fail(err, INVALID, "the body must be a JSON object");
    json_decref(body);
    return ok && loop_priority(req->services->loop, job->number, (int)priority, seq, err) &&
           job_reply(req, 200, job->number, err);
}

/*
 * PATCH /api/v1/jobs/{id}     body: fields over the spec's, of a job that is queued
 *
 * With If-Match, 412 when the job has changed since it had that ETag.
 */
static bool jobs_change(struct request *req, struct error *err)
{
    struct db_job job;
    int64_t seq;
    if (!job_find(req, &job, err) || !job_match(req, &seq, err))
        return false;
    if (change_job(req, &job, seq, err))
        return true;
    if (seq && err->code == PRECONDITION)
        req->reply.status = 412;
    return false;
}

static bool reply_state(struct request *req, const struct db_job *job, enum job_state state,
                        struct error *err)
{
    json_t *json = json_pack("{s:s, s:I, s:s}", "id", job->id, "number",
                             (json_int_t)job->number, "state", db_job_state_name(state));
    return reply_json(req, 202, json, err);
}

static bool end_job(struct request *req, bool kill, struct error *err)
{
    struct db_job job;
    enum job_state state;
    if (!job_find(req, &job, err) ||
        !loop_cancel(req->services->loop, job.number, kill, &state, err))
        return false;
    return reply_state(req, &job, state, err);
}

static bool jobs_cancel(struct request *req, struct error *err)
{
    return end_job(req, false, err);
}

static bool jobs_kill(struct request *req, struct error *err)
{
    return end_job(req, true, err);
}

static bool pause_job(struct request *req, bool pause, struct error *err)
{
    struct db_job job;
    enum job_state state;
    if (!job_find(req, &job, err) ||
        !loop_pause(req->services->loop, job.number, pause, &state, err))
        return false;
    json_t *json =
        json_pack("{s:s, s:I, s:s, s:b}", "id", job.id, "number", (json_int_t)job.number,
                  "state", db_job_state_name(state), "paused", pause);
    return reply_json(req, 202, json, err);
}

static bool jobs_pause(struct request *req, struct error *err)
{
    return pause_job(req, true, err);
}

static bool jobs_resume(struct request *req, struct error *err)
{
    return pause_job(req, false, err);
}

/* POST /api/v1/jobs/{id}:clone     body: fields over the spec's, or none     201 and the new
 * job
 */
static bool jobs_clone(struct request *req, struct error *err)
{
    struct db_job job;
    struct submissions submissions;
    struct db_job_added added;
    struct submit_key key;
    if (!job_find(req, &job, err) ||
        !submit_key_read(req, arena_printf(req->arena, "clone %s ", job.id), &key, err) ||
        !submit_key_find(req, &key, &added, err))
        return false;
    if (added.existed)
        return job_reply(req, 201, added.number, err);
    const char *text = spec_patch(req->arena, job.spec, req->body_size ? req->body : "{}",
                                  req->body_size ? req->body_size : 2, err);
    if (!text || !submit_prepare(req, text, strlen(text), &submissions, err) ||
        !submit_send(req, &submissions, &key, &added, err))
        return false;
    reply_header(req, "Location", arena_printf(req->arena, "/api/v1/jobs/%s", added.id));
    return job_reply(req, 201, added.number, err);
}

/*
 * POST /api/v1/jobs/{id}:restart: what runs of it writes a checkpoint and ends, and a new
 * attempt goes on from there, which costs no restart of its budget.
 */
static bool jobs_restart(struct request *req, struct error *err)
{
    struct db_job job;
    enum job_state state;
    if (!job_find(req, &job, err))
        return false;
    if (job.state == JOB_QUEUED || job.paused)
        return fail(err, PRECONDITION, "job %lld is %s: there is nothing to restart",
                    (long long)job.number, job.paused ? "paused" : "queued");
    if (!loop_pause(req->services->loop, job.number, true, &state, err) ||
        !loop_pause(req->services->loop, job.number, false, &state, err))
        return false;
    return reply_state(req, &job, state, err);
}

const struct route jobs_routes[] = {
    {"POST", "/api/v1/jobs", AUTH_IN_PROJECT(ROLE_MEMBER), jobs_create,
     "Submit a job, or plan one", "dry_run:string Idempotency-Key:header", "JobSpec", 201,
     "Job 200:Plan"},
    {"GET", "/api/v1/jobs/{id}", AUTH_IN_PROJECT(ROLE_VIEWER), jobs_show, "One job", NULL, NULL,
     200, "Job"},
    {"GET", "/api/v1/jobs/{id}/spec", AUTH_IN_PROJECT(ROLE_VIEWER), jobs_spec,
     "The spec of a job, with its defaults", NULL, NULL, 200, "JobSpec"},
    {"PATCH", "/api/v1/jobs/{id}", AUTH_IN_PROJECT(ROLE_MEMBER), jobs_change,
     "Put fields over the spec of a job that is queued", "If-Match:header", "JobSpec", 200,
     "Job"},
    {"POST", "/api/v1/jobs/{id}:cancel", AUTH_IN_PROJECT(ROLE_MEMBER), jobs_cancel,
     "Stop a job after a checkpoint", NULL, NULL, 202, "JobState"},
    {"POST", "/api/v1/jobs/{id}:kill", AUTH_IN_PROJECT(ROLE_MEMBER), jobs_kill,
     "End a job at once", NULL, NULL, 202, "JobState"},
    {"POST", "/api/v1/jobs/{id}:pause", AUTH_IN_PROJECT(ROLE_MEMBER), jobs_pause,
     "Hold a job; what runs of it writes a checkpoint and leaves its nodes", NULL, NULL, 202,
     "JobState"},
    {"POST", "/api/v1/jobs/{id}:resume", AUTH_IN_PROJECT(ROLE_MEMBER), jobs_resume,
     "Let a job that was paused wait for its turn again", NULL, NULL, 202, "JobState"},
    {"POST", "/api/v1/jobs/{id}:restart", AUTH_IN_PROJECT(ROLE_MEMBER), jobs_restart,
     "End what runs of a job after a checkpoint, and go on from there in a new attempt", NULL,
     NULL, 202, "JobState"},
    {"POST", "/api/v1/jobs/{id}:clone", AUTH_IN_PROJECT(ROLE_MEMBER), jobs_clone,
     "A new job of the same spec, with the fields of the body over it",
     "Idempotency-Key:header", "JobSpec", 201, "Job"},
    {0},
};
