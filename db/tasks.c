/* tasks.c - attempts of jobs, and the tasks of attempts. */

#include "base/arena.h"
#include "db/events.h"
#include "db/internal.h"
#include "db/jobs.h"

bool db_attempts_list(struct db_conn *conn, int64_t job, struct arena *arena,
                      struct db_attempt **attempts, int *attempts_count, struct error *err)
{
    sqlite3_stmt *stmt =
        db_query(conn, err,
                 "SELECT epoch, job, attempt, created_us, started_us, ended_us,"
                 " reason, text FROM attempts WHERE job = ?1 ORDER BY attempt",
                 "i", job);
    if (!stmt)
        return false;
    struct db_rows rows = {.row_size = sizeof(struct db_attempt)};
    int row;
    while ((row = db_row(conn, stmt, err)) > 0)
        *(struct db_attempt *)db_rows_add(&rows) = (struct db_attempt){
            .epoch = sqlite3_column_int64(stmt, 0),
            .job = sqlite3_column_int64(stmt, 1),
            .attempt = sqlite3_column_int(stmt, 2),
            .created_us = sqlite3_column_int64(stmt, 3),
            .started_us = sqlite3_column_int64(stmt, 4),
            .ended_us = sqlite3_column_int64(stmt, 5),
            .reason = (enum exit_reason)sqlite3_column_int(stmt, 6),
            .text = db_column_text(stmt, 7, arena),
        };
    *attempts = db_rows_end(&rows, arena, attempts_count);
    return row == 0;
}

#define TASK_COLUMNS                                                                           \
    "t.epoch, job, role, idx, node_id, n.name, t.state, t.cpu_millis, t.memory_bytes, t.gpus," \
    " pid, started_us, ended_us, reason, exit_code, signal, error, step, t.gpu_share, "        \
    "t.gpu_mask, address, t.placed, t.away"
#define TASK_TABLES " FROM tasks t JOIN nodes n ON n.id = t.node_id "

static void task_read(sqlite3_stmt *stmt, struct arena *arena, struct db_task *task)
{
    *task = (struct db_task){
        .epoch = sqlite3_column_int64(stmt, 0),
        .job = sqlite3_column_int64(stmt, 1),
        .role = db_column_text(stmt, 2, arena),
        .index = sqlite3_column_int(stmt, 3),
        .node_id = sqlite3_column_int64(stmt, 4),
        .node = db_column_text(stmt, 5, arena),
        .state = (enum task_state)sqlite3_column_int(stmt, 6),
        .cpu_millis = sqlite3_column_int64(stmt, 7),
        .memory_bytes = sqlite3_column_int64(stmt, 8),
        .gpus = sqlite3_column_int(stmt, 9),
        .pid = sqlite3_column_int64(stmt, 10),
        .started_us = sqlite3_column_int64(stmt, 11),
        .ended_us = sqlite3_column_int64(stmt, 12),
        .reason = (enum exit_reason)sqlite3_column_int(stmt, 13),
        .exit_code = sqlite3_column_int(stmt, 14),
        .signal = sqlite3_column_int(stmt, 15),
        .error = db_column_text(stmt, 16, arena),
        .step = sqlite3_column_int64(stmt, 17),
        .gpu_share = sqlite3_column_int(stmt, 18),
        .gpu_mask = (uint64_t)sqlite3_column_int64(stmt, 19),
        .address = db_column_text(stmt, 20, arena),
        .placed = sqlite3_column_int64(stmt, 21),
        .away = sqlite3_column_int(stmt, 22) != 0,
    };
}

bool db_tasks_list(struct db_conn *conn, int64_t epoch, struct arena *arena,
                   struct db_task **tasks, int *tasks_count, struct error *err)
{
    sqlite3_stmt *stmt = db_query(
        conn, err, "SELECT " TASK_COLUMNS TASK_TABLES "WHERE t.epoch = ?1 ORDER BY role, idx",
        "i", epoch);
    if (!stmt)
        return false;
    struct db_rows rows = {.row_size = sizeof(struct db_task)};
    int row;
    while ((row = db_row(conn, stmt, err)) > 0)
        task_read(stmt, arena, db_rows_add(&rows));
    *tasks = db_rows_end(&rows, arena, tasks_count);
    return row == 0;
}

bool db_tasks_find(struct db_conn *conn, int64_t epoch, const char *role, int index,
                   struct arena *arena, struct db_task *task, struct error *err)
{
    sqlite3_stmt *stmt = db_query(conn, err,
                                  "SELECT " TASK_COLUMNS TASK_TABLES
                                  "WHERE t.placed = ?1 AND role = ?2 AND idx = ?3",
                                  "iti", epoch, role, (int64_t)index);
    int row = stmt ? db_row(conn, stmt, err) : -1;
    if (row < 0)
        return false;
    if (row == 0)
        return fail(err, NOT_FOUND, "there is no task %s:%d of attempt %lld", role, index,
                    (long long)epoch);
    task_read(stmt, arena, task);
    db_query_end(stmt);
    return true;
}

/* --- changes --- */

bool db_attempts_add(struct db_conn *conn, const struct db_attempt *attempt, struct error *err)
{
    return db_run(conn, err, "INSERT INTO attempts VALUES (?1, ?2, ?3, ?4, 0, 0, 0, '')",
                  "iiii", attempt->epoch, attempt->job, (int64_t)attempt->attempt,
                  attempt->created_us);
}

bool db_attempts_start(struct db_conn *conn, int64_t epoch, int64_t now_us, struct error *err)
{
    return db_run(conn, err, "UPDATE attempts SET started_us = ?2 WHERE epoch = ?1", "ii",
                  epoch, now_us);
}

bool db_attempts_end(struct db_conn *conn, int64_t epoch, enum exit_reason reason,
                     const char *text, int64_t now_us, struct error *err)
{
    if (!db_run(conn, err,
                "UPDATE attempts SET ended_us = ?2, reason = ?3, text = ?4"
                " WHERE epoch = ?1 AND ended_us = 0",
                "iiit", epoch, now_us, (int64_t)reason, text))
        return false;
    if (db_changes_count(conn) != 1)
        return fail(err, INTERNAL, "attempt %lld has ended already", (long long)epoch);
    return true;
}

static bool task_event(struct db_conn *conn, const struct db_task *task, int64_t now_us,
                       struct error *err)
{
    int64_t attempt;
    if (!db_number(conn, err, &attempt, 0, "SELECT attempt FROM attempts WHERE epoch = ?1", "i",
                   task->epoch))
        return false;
    struct db_event event = {
        .wall_us = now_us,
        .kind = "task.state",
        .job = task->job,
        .attempt = (int)attempt,
        .node_id = task->node_id,
        .state = task->state,
        .state_from = -1,
        .role = task->role,
        .index = task->index,
        .reason = db_exit_reason_name(task->reason),
        .text = task->error,
    };
    return db_events_add(conn, &event, err);
}

bool db_tasks_set(struct db_conn *conn, const struct db_task *task, int64_t now_us,
                  struct error *err)
{
    int64_t before;
    if (!db_number(conn, err, &before, -1,
                   "SELECT state FROM tasks WHERE epoch = ?1 AND role = ?2 AND idx = ?3", "iti",
                   task->epoch, task->role, (int64_t)task->index))
        return false;
    if (!db_run(
            conn, err,
            "INSERT INTO tasks VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13,"
            " ?14, ?15, ?16, ?17, ?18, ?19, '', ?20, ?21) ON CONFLICT DO UPDATE SET"
            " node_id = ?5, state = ?6, pid = ?10, started_us = ?11, ended_us = ?12,"
            " reason = ?13, exit_code = ?14, signal = ?15, error = ?16, step = ?17,"
            " gpu_mask = ?19, placed = ?20, away = ?21",
            "itiiiiiiiiiiiiitiiiii", task->epoch, task->role, (int64_t)task->index, task->job,
            task->node_id, (int64_t)task->state, task->cpu_millis, task->memory_bytes,
            (int64_t)task->gpus, task->pid, task->started_us, task->ended_us,
            (int64_t)task->reason, (int64_t)task->exit_code, (int64_t)task->signal,
            task->error ? task->error : "", task->step, (int64_t)task->gpu_share,
            (int64_t)task->gpu_mask, task->placed ? task->placed : task->epoch,
            (int64_t)task->away))
        return false;
    return before == (int64_t)task->state || task_event(conn, task, now_us, err);
}

struct met {
    const struct db_task *tasks;
    int count;
};

static bool meet_run(struct db_conn *conn, void *arg, struct error *err)
{
    const struct met *met = arg;
    bool ok = true;
    for (int i = 0; ok && i < met->count; i++) {
        const struct db_task *task = &met->tasks[i];
        ok = db_run(conn, err,
                    "UPDATE tasks SET address = ?4 WHERE epoch = ?1 AND role = ?2 AND idx = ?3",
                    "itit", task->epoch, task->role, (int64_t)task->index, task->address);
    }
    return ok;
}

bool db_tasks_meet(struct db *db, const struct db_task *tasks, int count, struct error *err)
{
    struct met met = {tasks, count};
    return db_write(db, DB_CONTROL, meet_run, &met, err);
}
