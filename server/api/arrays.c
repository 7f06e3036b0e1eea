/* arrays.c - the jobs of an array, as one. */

#include "base/arena.h"
#include "base/error.h"
#include "scheduler/loop.h"
#include "server/api/api.h"
#include "server/job.h"
#include "server/reply.h"
#include "server/request.h"

/* The array that a path names by any of its jobs, and all of these. */
static bool find_array(struct request *req, struct db_job **jobs, int *count, struct error *err)
{
    struct db_job job;
    struct db_conn *conn = db_read(req->services->db, DB_CONTROL, err);
    struct db_viewer viewer = auth_viewer(&req->user);
    bool ok = conn && db_jobs_find_text(conn, req->params[0], &viewer, req->arena, &job, err);
    if (ok && !job.array)
        ok = fail(err, NOT_FOUND, "job %lld is not of an array", (long long)job.number);
    ok = ok && db_jobs_of_array(conn, job.array, req->arena, jobs, count, err);
    db_read_done(req->services->db, conn);
    /* A grid may go over projects: all or nothing. */
    for (int i = 0; ok && i < *count; i++)
        ok = auth_project(req, (*jobs)[i].project, err);
    return ok;
}

/* GET /api/v1/arrays/{id}: how many of its jobs are in which state. */
static bool arrays_show(struct request *req, struct error *err)
{
    struct db_job *jobs;
    int count, counts[JOB_STATES_COUNT] = {0};
    if (!find_array(req, &jobs, &count, err))
        return false;
    for (int i = 0; i < count; i++)
        counts[jobs[i].state]++;
    json_t *states = json_object();
    for (int state = 0; state < JOB_STATES_COUNT; state++) {
        if (counts[state])
            json_object_set_new(states, db_job_state_name((enum job_state)state),
                                json_integer(counts[state]));
    }
    return reply_json(req, 200,
                      json_pack("{s:I, s:s, s:i, s:o}", "array", (json_int_t)jobs[0].array,
                                "name", jobs[0].name, "count", count, "states", states),
                      err);
}

typedef bool array_verb(struct loop *loop, const int64_t *jobs, int jobs_count, bool flag,
                        int *told, struct error *err);

/* Tells all jobs that have not ended. */
static bool tell_array(struct request *req, array_verb *verb, bool flag, struct error *err)
{
    struct db_job *jobs;
    int count, alive = 0, told;
    if (!find_array(req, &jobs, &count, err))
        return false;
    int64_t *numbers = arena_array(req->arena, (size_t)count, sizeof(*numbers));
    for (int i = 0; i < count; i++) {
        if (!db_job_state_final(jobs[i].state))
            numbers[alive++] = jobs[i].number;
    }
    return verb(req->services->loop, numbers, alive, flag, &told, err) &&
           reply_json(req, 202,
                      json_pack("{s:I, s:i, s:i}", "array", (json_int_t)jobs[0].array, "count",
                                count, "told", told),
                      err);
}

static bool arrays_cancel(struct request *req, struct error *err)
{
    return tell_array(req, loop_cancel_many, false, err);
}

static bool arrays_kill(struct request *req, struct error *err)
{
    return tell_array(req, loop_cancel_many, true, err);
}

static bool arrays_pause(struct request *req, struct error *err)
{
    return tell_array(req, loop_pause_many, true, err);
}

static bool arrays_resume(struct request *req, struct error *err)
{
    return tell_array(req, loop_pause_many, false, err);
}

const struct route arrays_routes[] = {
    {"GET", "/api/v1/arrays/{id}", AUTH_IN_PROJECT(ROLE_VIEWER), arrays_show,
     "How the jobs of an array stand; its name is any of them", NULL, NULL, 200, "Array"},
    {"POST", "/api/v1/arrays/{id}:cancel", AUTH_IN_PROJECT(ROLE_MEMBER), arrays_cancel,
     "Stop all jobs of an array after a checkpoint", NULL, NULL, 202, "ArrayEnd"},
    {"POST", "/api/v1/arrays/{id}:kill", AUTH_IN_PROJECT(ROLE_MEMBER), arrays_kill,
     "End all jobs of an array at once", NULL, NULL, 202, "ArrayEnd"},
    {"POST", "/api/v1/arrays/{id}:pause", AUTH_IN_PROJECT(ROLE_MEMBER), arrays_pause,
     "Hold all jobs of an array that have not ended", NULL, NULL, 202, "ArrayEnd"},
    {"POST", "/api/v1/arrays/{id}:resume", AUTH_IN_PROJECT(ROLE_MEMBER), arrays_resume,
     "Let the jobs of an array wait for their turn again", NULL, NULL, 202, "ArrayEnd"},
    {0},
};
