/* nodes_fetch.c - pieces of files for agents. */

#include <fcntl.h>
#include <unistd.h>

#include <jansson.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/failpoint.h"
#include "base/limits.h"
#include "base/path.h"
#include "db/jobs.h"
#include "proto/agent_pb.h"
#include "scheduler/agent/files.h"
#include "scheduler/agent/folders.h"
#include "server/checkpoint_store.h"
#include "server/disk.h"
#include "server/nodes_fetch.h"
#include "server/store.h"

bool nodes_task_check(struct db *db, int64_t node, const struct agent_task_ref *ref,
                      struct arena *arena, int64_t *epoch, struct error *err)
{
    struct db_task task;
    struct db_conn *conn = db_read(db, DB_CONTROL, err);
    bool ok = conn &&
              db_tasks_find(conn, ref->attempt_epoch, ref->role, ref->index, arena, &task, err);
    db_read_done(db, conn);
    if (!ok)
        return false;
    *epoch = task.epoch;
    return (task.node_id == node && task.job == ref->job_id) ||
           fail(err, DENIED, "%s:%d of attempt %lld is not this node's", ref->role, ref->index,
                (long long)ref->attempt_epoch);
}

static bool job_read(struct db *db, int64_t number, struct arena *arena, struct db_job *job,
                     struct error *err)
{
    struct db_conn *conn = db_read(db, DB_CONTROL, err);
    bool ok = conn && db_jobs_find(conn, number, arena, job, err);
    db_read_done(db, conn);
    return ok;
}

/* A file of the job's dataset: of others' nothing is told. */
static bool fetch_dataset(struct db *db, const char *folder,
                          const struct agent_fetch_request *fetch, struct arena *arena,
                          void *out, size_t *got, struct error *err)
{
    struct db_job job;
    const char *path = fetch->what.path;
    if (!job_read(db, fetch->task.job_id, arena, &job, err))
        return false;
    const char *root = arena_printf(arena, "%s/datasets/%s", folder, job.dataset);
    int fd = *job.dataset && path_is_below(path) ? files_open_below(root, path) : -1;
    if (fd < 0)
        return fail(err, NOT_FOUND, "dataset '%.100s' has no file '%.200s'", job.dataset, path);
    bool ok = disk_read_at(fd, out, LIMIT_SHIP_BYTES, fetch->offset, got) ||
              disk_error(err, "read", path);
    close(fd);
    return ok;
}

/* Of the task's own job, or of the one whose weights it starts from. */
static bool check_whose(struct db *db, const struct agent_fetch_request *fetch,
                        struct arena *arena, struct error *err)
{
    struct db_job job;
    if (!fetch->what.job)
        return true;
    if (!job_read(db, fetch->task.job_id, arena, &job, err))
        return false;
    json_t *spec = json_loads(job.spec, 0, NULL);
    bool ok = folders_init_job(spec) == fetch->what.job ||
              fail(err, DENIED, "job %lld does not start from the checkpoints of job %lld",
                   (long long)fetch->task.job_id, (long long)fetch->what.job);
    json_decref(spec);
    return ok;
}

static bool list_checkpoints(const char *folder, const struct agent_fetch_request *fetch,
                             int64_t epoch, int64_t job, void *out, size_t *got,
                             struct error *err)
{
    if (!fetch->what.job && !checkpoint_store_claim(folder, job, epoch, err))
        return false;
    json_t *list = checkpoint_store_list(folder, job, err);
    if (!list)
        return false;
    size_t size = json_dumpb(list, out, LIMIT_SHIP_BYTES, JSON_COMPACT);
    json_decref(list);
    *got = size;
    return size < LIMIT_SHIP_BYTES ||
           fail(err, OUT_OF_RANGE, "the list of checkpoints of job %lld has %zu bytes",
                (long long)job, size);
}

bool nodes_fetch(struct db *db, const char *folder, const struct agent_fetch_request *fetch,
                 int64_t epoch, struct arena *arena, void *out, size_t *got, struct error *err)
{
    const struct agent_fetch_what *what = &fetch->what;
    int64_t job = what->job ? what->job : fetch->task.job_id;
    *got = 0;
    failpoint("server.on_fetch");
    if (fetch->offset < 0)
        return fail(err, INVALID, "offset %lld is negative", (long long)fetch->offset);
    switch (what->kind) {
    case AGENT_FETCH_FILE:
        return store_read(folder, what->sha256, fetch->offset, out, LIMIT_SHIP_BYTES, got, err);
    case AGENT_FETCH_DATASET:
        return fetch_dataset(db, folder, fetch, arena, out, got, err);
    case AGENT_FETCH_CHECKPOINTS:
        if (!check_whose(db, fetch, arena, err))
            return false;
        return *what->path ? checkpoint_store_read(folder, job, what->path, fetch->offset, out,
                                                   LIMIT_SHIP_BYTES, got, err)
                           : list_checkpoints(folder, fetch, epoch, job, out, got, err);
    }
    return fail(err, INVALID, "there is nothing of kind %d to be fetched", (int)what->kind);
}
