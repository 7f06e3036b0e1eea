/* tunnel.c - what a client must have to come to the tasks of a cluster. */

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "proto/rpc.h"
#include "server/api/api.h"
#include "server/cluster.h"
#include "server/job.h"
#include "server/reply.h"
#include "server/request.h"

static bool check_job(const struct db_job *job, struct error *err)
{
    long long number = (long long)job->number;
    if (!cluster_is(job))
        return fail(err, PRECONDITION,
                    "job %lld %s: only the tasks of a \"cluster\" serve TensorFlow's clients",
                    number, job->program[0] ? "runs a program" : "trains a model");
    if (db_job_state_final(job->state))
        return fail(err, PRECONDITION, "job %lld has ended (%s): clone it for another cluster",
                    number, db_job_state_name(job->state));
    return job->state == JOB_RUNNING ||
           fail(err, UNAVAILABLE, "job %lld is %s: its tasks do not run now", number,
                db_job_state_name(job->state));
}

/* The tasks of the newest attempt, with where they are. */
static json_t *tasks_json(struct request *req, struct db_conn *conn, const struct db_job *job,
                          int64_t *epoch, struct error *err)
{
    struct db_attempt *attempts;
    struct db_task *tasks;
    int attempts_count, count;
    if (!db_attempts_list(conn, job->number, req->arena, &attempts, &attempts_count, err))
        return NULL;
    *epoch = attempts_count ? attempts[attempts_count - 1].epoch : 0;
    if (!db_tasks_list(conn, *epoch, req->arena, &tasks, &count, err))
        return NULL;
    json_t *list = json_array();
    for (int i = 0; i < count; i++) {
        if (!*tasks[i].address) {
            json_decref(list);
            return fail_null(err, UNAVAILABLE, "%s:%d of job %lld has told no address yet",
                             tasks[i].role, tasks[i].index, (long long)job->number);
        }
        json_array_append_new(list, json_pack("{s:s, s:i, s:s}", "role", tasks[i].role, "index",
                                              tasks[i].index, "address", tasks[i].address));
    }
    return list;
}

/*
 * POST /api/v1/jobs/{id}:tunnel
 *
 * Asked anew for each connection, so that who loses his rights gets no further ones.
 */
static bool jobs_tunnel(struct request *req, struct error *err)
{
    struct db_job job;
    struct cluster_pass pass;
    int64_t epoch, idle_seconds;
    if (!job_find(req, &job, err) || !check_job(&job, err) ||
        !cluster_idle_seconds(&job, req->arena, &idle_seconds, err))
        return false;
    struct db_conn *conn = db_read(req->services->db, DB_CONTROL, err);
    json_t *tasks = conn ? tasks_json(req, conn, &job, &epoch, err) : NULL;
    bool ok = tasks && cluster_pass_make(conn, req->services->folder, epoch, req->user.user,
                                         req->arena, &pass, err);
    db_read_done(req->services->db, conn);
    if (!ok) {
        json_decref(tasks);
        return false;
    }
    int64_t ends_us = (int64_t)clock_wall_us() + CLUSTER_PASS_S * INT64_C(1000000);
    json_t *json =
        json_pack("{s:I, s:o, s:s, s:s, s:s, s:s, s:o, s:I}", "number", (json_int_t)job.number,
                  "tasks", tasks, "server_name", RPC_TASKS_NAME, "authority", pass.authority,
                  "certificate", pass.certificate, "key", pass.key, "expires_at",
                  job_time(ends_us), "idle_seconds", (json_int_t)idle_seconds);
    return reply_json(req, 200, json, err);
}

const struct route tunnel_routes[] = {
    {"POST", "/api/v1/jobs/{id}:tunnel", AUTH_IN_PROJECT(ROLE_MEMBER), jobs_tunnel,
     "Where the tasks of a cluster are, and a certificate that lets a client in to them", NULL,
     NULL, 200, "Tunnel"},
    {0},
};
