/* disk.c - a store in SQLite, beside the fold. */
/* Faults of docs/reliability.md: F12. */

#include "tests/sim/disk.h"

#include <ftw.h>
#include <jansson.h>
#include <limits.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "db/logs.h"
#include "db/metrics.h"
#include "db/queues.h"
#include "scheduler/loop_state.h"

struct disk {
    struct db *db;
    char *folder;
    int64_t epoch; /* as stored */
    int64_t last_job;
    int64_t log_bytes; /* that were shipped */
    struct loop_known_list known;
};

static void must(bool ok, const char *what, const struct error *err)
{
    if (!ok)
        sim_broken("SQLite, %s: %s", what, err->text);
}

static char *folder_new(void)
{
    char *path = alloc_printf("%s/trainyard-sim-XXXXXX",
                              access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (!mkdtemp(path))
        sim_broken("there is no place for a folder in /dev/shm or /tmp");
    return path;
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info;
    (void)kind;
    (void)walk;
    return remove(path);
}

/* --- words of the database --- */

static const char *labels_json(const struct scheduler_label *labels, int count,
                               struct arena *arena)
{
    json_t *object = json_object();
    for (int i = 0; i < count; i++)
        json_object_set_new(object, labels[i].name, json_string(labels[i].value));
    char *text = json_dumps(object, JSON_COMPACT);
    const char *copy = arena_text(arena, text);
    free(text);
    json_decref(object);
    return copy;
}

static void read_need(const struct scheduler_need *from, struct arena *arena,
                      struct db_need *need)
{
    *need = (struct db_need){
        .role = from->role,
        .replicas = from->replicas,
        .cpu_millis = from->each.cpu_millis,
        .memory_bytes = from->each.memory_bytes,
        .gpus = (int)from->each.gpus,
        .gpu_share = from->gpu_share,
        .gpu_type = from->gpu_type,
        .gpu_memory_bytes = from->gpu_memory_bytes,
        .node_labels = labels_json(from->labels, from->labels_count, arena),
        .alone = from->alone,
    };
}

/* --- changes --- */

void disk_project(struct disk *disk, const struct store_project *project)
{
    struct error err;
    struct db_project row = {.name = project->name,
                             .weight = project->weight,
                             .cpu_millis = project->quota.cpu_millis,
                             .memory_bytes = project->quota.memory_bytes,
                             .gpu_millis = project->quota.gpu_millis,
                             .jobs = project->quota.jobs};
    must(db_projects_set(disk->db, &row, &err), "a project", &err);
}

struct disk *disk_new(const struct store *store, uint64_t now_us)
{
    struct error err;
    struct disk *disk = alloc_bytes(sizeof(*disk));
    clock_freeze(now_us);
    disk->folder = folder_new();
    disk->db = db_open(disk->folder, &err);
    must(disk->db != NULL, "opening", &err);
    for (int i = 0; i < STORE_QUEUES; i++) {
        const struct scheduler_queue_info *queue = &store->queues[i];
        struct db_queue row = {queue->name, queue->priority, queue->weight, queue->preempt};
        must(db_queues_set(disk->db, &row, &err), "a queue", &err);
    }
    for (int i = 0; i < STORE_PROJECTS; i++)
        disk_project(disk, &store->projects[i]);
    return disk;
}

void disk_submit(struct disk *disk, const struct store *store, const struct store_job *job,
                 uint64_t now_us)
{
    struct error err;
    struct arena *arena = arena_new();
    struct db_need needs[ARRAY_LEN(job->needs)];
    int64_t after[STORE_AFTER_MAX];
    uint8_t hash[DB_HASH_BYTES] = {0};
    for (int i = 0; i < job->needs_count; i++)
        read_need(&job->needs[i], arena, &needs[i]);
    for (int i = 0; i < job->after_count; i++)
        after[i] = job->after[i].job;
    struct db_job_new row = {
        .user_id = 1,
        .name = "sim",
        .project = store->projects[job->project].name,
        .queue = store->queues[job->queue].name,
        .priority = job->priority,
        .spec = "{}",
        .dataset = "",
        .program = "",
        .needs = needs,
        .needs_count = job->needs_count,
        .spread = job->spread,
        .restart_max = job->restart_max,
        .retry_on = job->retry_on,
        .exclude_bad = job->exclude_bad,
        .after = after,
        .after_count = job->after_count,
        .stop_us = (int64_t)job->stop_us,
        .idempotency_key = arena_printf(arena, "key-%llu", (unsigned long long)job->key),
        .body_hash = hash,
    };
    struct db_job_added added;
    clock_freeze(now_us);
    must(db_jobs_add(disk->db, &row, &added, &err), "a submit", &err);
    if (added.number != job->number)
        sim_broken("I1: job %lld is number %lld in SQLite", (long long)job->number,
                   (long long)added.number);
    arena_free(arena);
}

void disk_tell(struct disk *disk, struct scheduler *scheduler, uint64_t now_us)
{
    struct error err;
    clock_freeze(now_us);
    must(loop_load_jobs(disk->db, scheduler, &disk->last_job, &err), "new jobs", &err);
}

void disk_commit(struct disk *disk, const struct scheduler_actions *actions, int64_t epoch,
                 const struct scheduler_node_info *joining, uint64_t now_us)
{
    struct error err;
    struct arena *arena = arena_new();
    struct loop_join join, *joins[] = {&join};
    clock_freeze(now_us);
    for (int i = 0; joining && i < actions->count; i++) {
        if (actions->list[i].kind != DO_JOINED)
            continue;
        join = (struct loop_join){
            .name = joining->name,
            .identity = joining->name,
            .boot_id = joining->boot_id,
            .version = "",
            .labels = labels_json(joining->labels, joining->labels_count, arena),
            .capacity = joining->capacity,
            .gpu_type = joining->gpu_type,
            .gpu_memory_bytes = joining->gpu_memory_bytes,
            .asked_us = (int64_t)joining->asked_us,
            .node_id = joining->id,
            .node_epoch = actions->list[i].epoch,
        };
    }
    must(loop_commit(disk->db, actions, disk->epoch, epoch, joins, joining != NULL, &err),
         "a commit", &err);
    disk->epoch = epoch;
    arena_free(arena);
}

void disk_ship(struct disk *disk, const struct db_ship *ship, int64_t cursor, uint64_t now_us)
{
    struct error err;
    struct db_shipped shipped;
    clock_freeze(now_us);
    must(db_ship(disk->db, ship, &shipped, &err), "a ship", &err);
    if (shipped.cursor != cursor)
        sim_broken(
            "I10: %s:%d of attempt %lld is stored up to %lld in SQLite, %lld in the fold",
            ship->role, ship->index, (long long)ship->epoch, (long long)shipped.cursor,
            (long long)cursor);
    disk->log_bytes += shipped.stored ? (int64_t)ship->log_size : 0;
}

/* --- looking --- */

struct scheduler *disk_load(struct disk *disk, const struct scheduler_options *options,
                            uint64_t now_us)
{
    struct error err;
    clock_freeze(now_us);
    struct scheduler *scheduler =
        loop_load(disk->db, options, &disk->known, &disk->last_job, &err);
    must(scheduler != NULL, "loading", &err);
    return scheduler;
}

/* I7: the tables say what the fold of everything stored says. */
static void check_job(struct db_conn *conn, const struct store_job *job, struct arena *arena)
{
    struct error err;
    struct db_job row;
    must(db_jobs_find(conn, job->number, arena, &row, &err), "a job", &err);
    if (row.state != job->state || row.attempt != job->attempt || row.epoch != job->epoch ||
        row.restarts != job->restarts || row.preemptions != job->preemptions ||
        row.priority != job->priority || strcmp(row.reason, job->reason) != 0)
        sim_broken("I7: job %lld is %s in SQLite, attempt %d of epoch %lld, %d restarts, %d "
                   "preemptions; in the fold %s, %d, %lld, %d, %d",
                   (long long)job->number, db_job_state_name(row.state), row.attempt,
                   (long long)row.epoch, row.restarts, row.preemptions,
                   db_job_state_name(job->state), job->attempt, (long long)job->epoch,
                   job->restarts, job->preemptions);
}

/* I15: what projects are charged is what the fold has charged them. */
static void check_projects(struct db_conn *conn, const struct store *store, struct arena *arena)
{
    struct error err;
    struct db_project *rows;
    int count;
    must(db_projects_list(conn, arena, &rows, &count, &err), "projects", &err);
    for (int i = 0; i < STORE_PROJECTS; i++) {
        const struct store_project *project = &store->projects[i];
        int at = 0;
        while (at < count && strcmp(rows[at].name, project->name) != 0)
            at++;
        if (at == count || rows[at].cpu_ms != project->cpu_ms ||
            rows[at].gpu_ms != project->gpu_ms)
            sim_broken("I15: project %s is charged otherwise in SQLite", project->name);
    }
}

/* I11: each byte that was stored is there, and where it was written. */
static void check_logs(struct disk *disk, struct db_conn *conn, const struct store *store,
                       struct arena *arena)
{
    struct error err;
    struct db_log *rows;
    const char *bytes;
    size_t size;
    int count;
    int64_t sum = 0;
    for (int i = 0; i < store->jobs_count; i++) {
        must(db_logs_list(conn, store->jobs[i].number, arena, &rows, &count, &err), "logs",
             &err);
        for (int k = 0; k < count; k++) {
            must(db_logs_read(conn, rows[k].id, 0, (size_t)rows[k].size, arena, &bytes, &size,
                              &err),
                 "a log", &err);
            for (size_t at = 0; at + STORE_RECORD_BYTES <= size; at += STORE_RECORD_BYTES) {
                uint32_t record[2];
                memcpy(record, bytes + at, sizeof(record));
                if (record[1] != at / STORE_RECORD_BYTES)
                    sim_broken("I11: byte %zu of a log of job %lld is another", at,
                               (long long)store->jobs[i].number);
            }
            sum += (int64_t)size;
        }
    }
    if (sum != disk->log_bytes)
        sim_broken("I11: %lld of %lld bytes of logs are in SQLite", (long long)sum,
                   (long long)disk->log_bytes);
}

/* I10: of each step the point is there that is to be shown, and no other. */
static void check_series(struct db_conn *conn, struct store *store, int64_t job,
                         const struct db_series *row, struct arena *arena)
{
    struct error err;
    struct db_point *points;
    int count, at = 0;
    const struct store_series *series = store_series(store, job, row->role, row->index);
    must(db_metrics_points(conn, row->id, 0, INT64_MAX, INT_MAX, arena, &points, &count, &err),
         "points", &err);
    for (int step = 0; step < STORE_STEPS_MAX; step++) {
        bool there = at < count && points[at].step == step;
        int64_t epoch = there ? (int64_t)points[at].value : 0;
        if (epoch != series->points[step])
            sim_broken(
                "I10: step %d of %s:%d of job %lld is attempt %lld's in SQLite, %lld's in "
                "the fold",
                step, row->role, row->index, (long long)job, (long long)epoch,
                (long long)series->points[step]);
        at += there;
    }
    if (at != count || row->last_step != points[count - 1].step)
        sim_broken("I10: %s:%d of job %lld has %d points in SQLite, %d are known; the last is "
                   "step %lld",
                   row->role, row->index, (long long)job, count, at, (long long)row->last_step);
}

static void check_points(struct disk *disk, struct store *store, struct arena *arena)
{
    struct error err;
    struct db_series *rows;
    int count, sum = 0;
    struct db_conn *conn = db_read(disk->db, DB_METRICS, &err);
    must(conn != NULL, "reading", &err);
    for (int i = 0; i < store->jobs_count; i++) {
        int64_t job = store->jobs[i].number;
        must(db_metrics_series(conn, job, false, arena, &rows, &count, &err), "series", &err);
        for (int k = 0; k < count; k++)
            check_series(conn, store, job, &rows[k], arena);
        sum += count;
    }
    if (sum != store->series_count)
        sim_broken("I10: %d of %d series are in SQLite", sum, store->series_count);
    check_logs(disk, conn, store, arena);
    db_read_done(disk->db, conn);
}

void disk_free(struct disk *disk, struct store *store)
{
    if (!disk)
        return;
    struct error err;
    struct arena *arena = arena_new();
    struct db_conn *conn = db_read(disk->db, DB_CONTROL, &err);
    must(conn != NULL, "reading", &err);
    for (int i = 0; i < store->jobs_count; i++)
        check_job(conn, &store->jobs[i], arena);
    check_projects(conn, store, arena);
    db_read_done(disk->db, conn);
    check_points(disk, store, arena);
    db_close(disk->db);
    loop_load_known_clear(&disk->known);
    nftw(disk->folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    free(disk->folder);
    arena_free(arena);
    clock_freeze(0);
    free(disk);
}
