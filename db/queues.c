/* queues.c - queues and projects. */

#include "db/queues.h"
#include "base/arena.h"
#include "db/internal.h"

bool db_queues_list(struct db_conn *conn, struct arena *arena, struct db_queue **queues,
                    int *queues_count, struct error *err)
{
    sqlite3_stmt *stmt = db_query(
        conn, err, "SELECT name, priority, weight, preempt FROM queues ORDER BY name", "");
    if (!stmt)
        return false;
    struct db_rows rows = {.row_size = sizeof(struct db_queue)};
    int row;
    while ((row = db_row(conn, stmt, err)) > 0)
        *(struct db_queue *)db_rows_add(&rows) = (struct db_queue){
            .name = db_column_text(stmt, 0, arena),
            .priority = sqlite3_column_int(stmt, 1),
            .weight = sqlite3_column_int(stmt, 2),
            .preempt = sqlite3_column_int(stmt, 3) != 0,
        };
    *queues = db_rows_end(&rows, arena, queues_count);
    return row == 0;
}

bool db_projects_list(struct db_conn *conn, struct arena *arena, struct db_project **projects,
                      int *projects_count, struct error *err)
{
    sqlite3_stmt *stmt = db_query(conn, err,
                                  "SELECT name, weight, cpu_millis, memory_bytes, gpu_millis,"
                                  " jobs, usage, usage_us, cpu_ms, gpu_ms FROM projects"
                                  " ORDER BY name",
                                  "");
    if (!stmt)
        return false;
    struct db_rows rows = {.row_size = sizeof(struct db_project)};
    int row;
    while ((row = db_row(conn, stmt, err)) > 0)
        *(struct db_project *)db_rows_add(&rows) = (struct db_project){
            .name = db_column_text(stmt, 0, arena),
            .weight = sqlite3_column_int(stmt, 1),
            .cpu_millis = sqlite3_column_int64(stmt, 2),
            .memory_bytes = sqlite3_column_int64(stmt, 3),
            .gpu_millis = sqlite3_column_int64(stmt, 4),
            .jobs = sqlite3_column_int64(stmt, 5),
            .usage = sqlite3_column_int64(stmt, 6),
            .usage_us = sqlite3_column_int64(stmt, 7),
            .cpu_ms = sqlite3_column_int64(stmt, 8),
            .gpu_ms = sqlite3_column_int64(stmt, 9),
        };
    *projects = db_rows_end(&rows, arena, projects_count);
    return row == 0;
}

/* --- changes --- */

static bool queue_run(struct db_conn *conn, void *arg, struct error *err)
{
    const struct db_queue *queue = arg;
    return db_run(conn, err,
                  "INSERT INTO queues (name, priority, weight, preempt)"
                  " VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO UPDATE SET priority = ?2,"
                  " weight = ?3, preempt = ?4",
                  "tiii", queue->name, (int64_t)queue->priority, (int64_t)queue->weight,
                  (int64_t)queue->preempt);
}

bool db_queues_set(struct db *db, const struct db_queue *queue, struct error *err)
{
    return db_write(db, DB_CONTROL, queue_run, (void *)queue, err);
}

static bool project_run(struct db_conn *conn, void *arg, struct error *err)
{
    const struct db_project *project = arg;
    return db_run(
        conn, err,
        "INSERT INTO projects (name, weight, cpu_millis, memory_bytes, gpu_millis,"
        " jobs, usage, usage_us, cpu_ms, gpu_ms)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, 0, 0, 0) ON CONFLICT DO UPDATE SET"
        " weight = ?2, cpu_millis = ?3, memory_bytes = ?4, gpu_millis = ?5, jobs = ?6",
        "tiiiii", project->name, (int64_t)project->weight, project->cpu_millis,
        project->memory_bytes, project->gpu_millis, project->jobs);
}

bool db_projects_set(struct db *db, const struct db_project *project, struct error *err)
{
    return db_write(db, DB_CONTROL, project_run, (void *)project, err);
}

bool db_projects_charge(struct db_conn *conn, const char *project, int64_t usage,
                        int64_t cpu_ms, int64_t gpu_ms, int64_t now_us, struct error *err)
{
    return db_run(conn, err,
                  "INSERT INTO projects (name, weight, cpu_millis, memory_bytes, gpu_millis,"
                  " jobs, usage, usage_us, cpu_ms, gpu_ms)"
                  " VALUES (?1, 100, -1, -1, -1, -1, ?2, ?5, ?3, ?4) ON CONFLICT DO UPDATE SET"
                  " usage = ?2, usage_us = ?5, cpu_ms = cpu_ms + ?3, gpu_ms = gpu_ms + ?4",
                  "tiiii", project, usage, cpu_ms, gpu_ms, now_us);
}
