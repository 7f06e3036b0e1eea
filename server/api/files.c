/* files.c - files that jobs bring, and files that they leave. */

#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "server/api/api.h"
#include "server/download.h"
#include "server/job.h"
#include "server/reply.h"
#include "server/request.h"
#include "server/store.h"

static bool reply_known(struct request *req, int status, int64_t size, struct error *err)
{
    return reply_json(
        req, status,
        json_pack("{s:s, s:I}", "sha256", req->params[0], "size", (json_int_t)size), err);
}

/* PUT /api/v1/files/{sha256}: the body is the file; putting it again changes nothing. */
static bool files_put(struct request *req, struct error *err)
{
    if (!store_is_hash(req->params[0]))
        return fail(err, INVALID, "'%.80s' is no SHA-256, allowed: 64 digits 0-9 a-f",
                    req->params[0]);
    return store_put(req->services->folder, req->params[0], req->body, req->body_size, err) &&
           reply_known(req, 200, (int64_t)req->body_size, err);
}

/* GET /api/v1/files/{sha256}: whether it is there. */
static bool files_show(struct request *req, struct error *err)
{
    int64_t size;
    return store_size(req->services->folder, req->params[0], &size, err) &&
           reply_known(req, 200, size, err);
}

static bool artifacts_list(struct request *req, struct error *err)
{
    struct db_job job;
    return job_find(req, &job, err) &&
           reply_json(
               req, 200,
               json_pack("{s:o}", "items", store_artifacts(req->services->folder, job.number)),
               err);
}

/* GET /api/v1/jobs/{id}/artifacts/content?task=worker/0&path=model.pt: always as a download. */
static bool artifacts_content(struct request *req, struct error *err)
{
    struct db_job job;
    const char *path = request_query(req, "path"), *task = request_query(req, "task");
    if (!path)
        return fail(err, INVALID, "path is missing: the artifact's, as the list has it");
    if (!job_find(req, &job, err))
        return false;
    int file = store_open_artifact(req->services->folder, job.number, task ? task : "worker/0",
                                   path, err);
    return file >= 0 && download_reply(req, file, err);
}

const struct route files_routes[] = {
    {"PUT", "/api/v1/files/{sha256}", AUTH_IN_PROJECT(ROLE_MEMBER), files_put,
     "Upload a file that jobs bring, by the SHA-256 of its bytes", NULL,
     "application/octet-stream", 200, "File"},
    {"GET", "/api/v1/files/{sha256}", AUTH_IN_PROJECT(ROLE_MEMBER), files_show,
     "Whether a file was uploaded", NULL, NULL, 200, "File"},
    {"GET", "/api/v1/jobs/{id}/artifacts", AUTH_IN_PROJECT(ROLE_VIEWER), artifacts_list,
     "Files that the tasks of a job have left", NULL, NULL, 200, "ArtifactList"},
    {"GET", "/api/v1/jobs/{id}/artifacts/content", AUTH_IN_PROJECT(ROLE_VIEWER),
     artifacts_content, "One of them, or a part of it",
     "task:string path:string! Range:header If-Range:header If-None-Match:header", NULL, 200,
     "application/octet-stream 206:application/octet-stream 304"},
    {0},
};
