/* checkpoints.c - what a job has learned: published checkpoints, and their files. */

#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/path.h"
#include "db/artifacts.h"
#include "scheduler/agent/files.h"
#include "server/api/api.h"
#include "server/download.h"
#include "server/job.h"
#include "server/reply.h"
#include "server/request.h"

static json_t *checkpoint_json(const struct db_checkpoint *checkpoint)
{
    return json_pack("{s:I, s:I, s:o, s:s}", "step", (json_int_t)checkpoint->step, "epoch",
                     (json_int_t)checkpoint->epoch, "time", job_time(checkpoint->wall_us),
                     "path", checkpoint->path);
}

static bool read_all(struct request *req, struct db_job *job,
                     struct db_checkpoint **checkpoints, int *count, struct error *err)
{
    *count = 0;
    if (!job_find(req, job, err))
        return false;
    struct db_conn *conn = db_read(req->services->db, DB_METRICS, err);
    bool ok =
        conn && db_checkpoints_list(conn, job->number, req->arena, checkpoints, count, err);
    db_read_done(req->services->db, conn);
    return ok;
}

/* GET /api/v1/jobs/{id}/checkpoints: those published, oldest first. */
static bool checkpoints_list(struct request *req, struct error *err)
{
    struct db_checkpoint *checkpoints;
    struct db_job job;
    int count;
    if (!read_all(req, &job, &checkpoints, &count, err))
        return false;
    json_t *items = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(items, checkpoint_json(&checkpoints[i]));
    return reply_json(req, 200, json_pack("{s:o}", "items", items), err);
}

/* The newest checkpoint of the step that the path names. */
static bool find(struct request *req, struct db_job *job, struct db_checkpoint *found,
                 struct error *err)
{
    struct db_checkpoint *checkpoints;
    int count;
    if (!read_all(req, job, &checkpoints, &count, err))
        return false;
    char *end;
    const char *text = req->params[1];
    long long step = strtoll(text, &end, 10);
    bool is_step = *text >= '0' && *text <= '9' && !*end;
    while (is_step && count-- > 0) {
        if (checkpoints[count].step != step)
            continue;
        *found = checkpoints[count];
        return true;
    }
    return fail(err, NOT_FOUND, "job %" PRId64 " has published no checkpoint of step '%.40s'",
                job->number, text);
}

/* DIR/jobs/N/checkpoints, owned by the caller. */
static char *folder_of(const struct request *req, const struct db_job *job)
{
    return alloc_printf("%s/jobs/%" PRId64 "/checkpoints", req->services->folder, job->number);
}

/* What the names of a checkpoint's files begin with: "model.ckpt-500.". */
static const char *beginning(const struct request *req, const struct db_checkpoint *checkpoint)
{
    return arena_printf(req->arena, "model.ckpt-%" PRId64 ".", checkpoint->step);
}

struct listing {
    const char *folder;
    const char *beginning;
    json_t *items;
};

static bool list_one(void *self, const char *path, bool is_folder)
{
    struct listing *listing = self;
    struct stat info;
    if (is_folder)
        return !*path; /* of the folder itself alone */
    if (strncmp(path, listing->beginning, strlen(listing->beginning)) != 0)
        return true;
    char *whole = alloc_printf("%s/%s", listing->folder, path);
    if (lstat(whole, &info) == 0 && S_ISREG(info.st_mode))
        json_array_append_new(listing->items, json_pack("{s:s, s:I}", "path", path, "size",
                                                        (json_int_t)info.st_size));
    free(whole);
    return true;
}

/* GET /api/v1/jobs/{id}/checkpoints/{step}: with `files`, none when it is not kept any more. */
static bool checkpoints_show(struct request *req, struct error *err)
{
    struct db_checkpoint checkpoint;
    struct db_job job;
    if (!find(req, &job, &checkpoint, err))
        return false;
    char *folder = folder_of(req, &job);
    struct listing listing = {folder, beginning(req, &checkpoint), json_array()};
    files_walk(folder, "", list_one, &listing);
    free(folder);
    json_t *json = checkpoint_json(&checkpoint);
    json_object_set_new(json, "files", listing.items);
    return reply_json(req, 200, json, err);
}

/* GET /api/v1/jobs/{id}/checkpoints/{step}/content?path=model.ckpt-500.index */
static bool checkpoints_content(struct request *req, struct error *err)
{
    struct db_checkpoint checkpoint;
    struct db_job job;
    struct stat info;
    const char *path = request_query(req, "path");
    if (!path)
        return fail(err, INVALID,
                    "path is missing: the file's, as the checkpoint's list has it");
    if (!find(req, &job, &checkpoint, err))
        return false;
    const char *begin = beginning(req, &checkpoint);
    char *folder = folder_of(req, &job);
    int file = -1;
    if (strncmp(path, begin, strlen(begin)) == 0 && !strchr(path, '/') && path_is_below(path))
        file = files_open_below(folder, path);
    free(folder);
    if (file >= 0 && (fstat(file, &info) || !S_ISREG(info.st_mode))) {
        close(file);
        file = -1;
    }
    if (file < 0)
        return fail(err, NOT_FOUND,
                    "the checkpoint of step %" PRId64 " has no file '%.200s' here",
                    checkpoint.step, path);
    return download_reply(req, file, err);
}

const struct route checkpoints_routes[] = {
    {"GET", "/api/v1/jobs/{id}/checkpoints", AUTH_IN_PROJECT(ROLE_VIEWER), checkpoints_list,
     "Published checkpoints", NULL, NULL, 200, "CheckpointList"},
    {"GET", "/api/v1/jobs/{id}/checkpoints/{step}", AUTH_IN_PROJECT(ROLE_VIEWER),
     checkpoints_show, "One of them, and its files", NULL, NULL, 200, "Checkpoint"},
    {"GET", "/api/v1/jobs/{id}/checkpoints/{step}/content", AUTH_IN_PROJECT(ROLE_VIEWER),
     checkpoints_content, "A file of a checkpoint, or a part of it",
     "path:string! Range:header If-Range:header If-None-Match:header", NULL, 200,
     "application/octet-stream 206:application/octet-stream 304"},
    {0},
};
