/* jobs_ended.c - what is done with jobs that have ended: left out of lists, removed. */

#include "base/error.h"
#include "db/jobs_change.h"
#include "server/api/api.h"
#include "server/clean.h"
#include "server/job.h"
#include "server/reply.h"
#include "server/request.h"

static bool archive_job(struct request *req, bool archived, struct error *err)
{
    struct db_job job;
    return job_find(req, &job, err) &&
           db_jobs_archive(req->services->db, job.number, archived, err) &&
           job_reply(req, 200, job.number, err);
}

static bool jobs_archive(struct request *req, struct error *err)
{
    return archive_job(req, true, err);
}

static bool jobs_unarchive(struct request *req, struct error *err)
{
    return archive_job(req, false, err);
}

/*
 * DELETE /api/v1/jobs/{id}: nobody finds it any more, and what it left goes, in the background:
 * logs, points, graph and traces, checkpoints and artifacts.  With If-Match, 412 when the job
 * has changed since it had that ETag.
 */
static bool jobs_remove(struct request *req, struct error *err)
{
    struct db_job job;
    int64_t seq;
    if (!job_find(req, &job, err) || !job_match(req, &seq, err))
        return false;
    if (seq && seq != job.seq) {
        req->reply.status = 412;
        return fail(err, PRECONDITION, "job %lld has changed since", (long long)job.number);
    }
    if (!db_jobs_remove(req->services->db, job.number, err))
        return false;
    clean_wake(req->services->clean);
    return reply_bytes(req, 204, NULL, "", 0);
}

const struct route jobs_ended_routes[] = {
    {"POST", "/api/v1/jobs/{id}:archive", AUTH_IN_PROJECT(ROLE_MEMBER), jobs_archive,
     "Leave a job that has ended out of lists", NULL, NULL, 200, "Job"},
    {"POST", "/api/v1/jobs/{id}:unarchive", AUTH_IN_PROJECT(ROLE_MEMBER), jobs_unarchive,
     "Take an archived job into lists again", NULL, NULL, 200, "Job"},
    {"DELETE", "/api/v1/jobs/{id}", AUTH_IN_PROJECT(ROLE_MEMBER), jobs_remove,
     "Remove a job that has ended, with all that it left", "If-Match:header", NULL, 204, NULL},
    {0},
};
