/* jobs_change.c - what becomes of jobs: states, priorities, pauses, failures, the archive. */

#include "db/jobs_change.h"
#include "base/arena.h"
#include "base/clock.h"
#include "db/events.h"
#include "db/internal.h"

bool db_failures_list(struct db_conn *conn, int64_t job, struct arena *arena,
                      struct db_failure **failures, int *failures_count, struct error *err)
{
    sqlite3_stmt *stmt = db_query(
        conn, err, "SELECT node_id, count FROM failures WHERE job = ?1 ORDER BY node_id", "i",
        job);
    if (!stmt)
        return false;
    struct db_rows rows = {.row_size = sizeof(struct db_failure)};
    int row;
    while ((row = db_row(conn, stmt, err)) > 0)
        *(struct db_failure *)db_rows_add(&rows) =
            (struct db_failure){sqlite3_column_int64(stmt, 0), sqlite3_column_int(stmt, 1)};
    *failures = db_rows_end(&rows, arena, failures_count);
    return row == 0;
}

bool db_failures_set(struct db_conn *conn, int64_t job, const struct db_failure *failure,
                     struct error *err)
{
    return db_run(
        conn, err,
        "INSERT INTO failures VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET count = ?3", "iii",
        job, failure->node_id, (int64_t)failure->count);
}

bool db_jobs_change(struct db_conn *conn, const struct db_job_change *change, struct error *err)
{
    struct db_event event = {
        .wall_us = change->now_us,
        .kind = "job.state",
        .job = change->job,
        .attempt = change->attempt,
        .state = change->to,
        .state_from = change->from,
        .reason = change->reason,
        .text = change->text,
    };
    int64_t started_us = change->to == JOB_RUNNING ? change->now_us : 0;
    int64_t ended_us = db_job_state_final(change->to) ? change->now_us : 0;
    if (!db_events_add(conn, &event, err) ||
        !db_run(
            conn, err,
            "UPDATE jobs SET state = ?3, reason = ?4, text = ?5, attempt = ?6, epoch = ?7,"
            " restarts = ?8, retry_us = ?9, seq = ?12, preemptions = ?13,"
            " started_us = CASE WHEN started_us THEN started_us ELSE ?10 END, ended_us = ?11"
            " WHERE number = ?1 AND state = ?2",
            "iiittiiiiiiii", change->job, (int64_t)change->from, (int64_t)change->to,
            change->reason ? change->reason : "", change->text ? change->text : "",
            (int64_t)change->attempt, change->epoch, (int64_t)change->restarts,
            change->retry_us, started_us, ended_us, event.seq, (int64_t)change->preemptions))
        return false;
    if (db_changes_count(conn) != 1)
        return fail(err, INTERNAL, "job %lld is not %s in the database", (long long)change->job,
                    db_job_state_name(change->from));
    return true;
}

bool db_jobs_priority(struct db_conn *conn, int64_t job, int attempt, int priority,
                      int64_t now_us, struct error *err)
{
    char text[40];
    snprintf(text, sizeof(text), "priority %d", priority);
    struct db_event event = {
        .wall_us = now_us,
        .kind = "job.priority",
        .job = job,
        .attempt = attempt,
        .state = -1,
        .state_from = -1,
        .text = text,
    };
    return db_events_add(conn, &event, err) &&
           db_run(conn, err, "UPDATE jobs SET priority = ?2, seq = ?3 WHERE number = ?1", "iii",
                  job, (int64_t)priority, event.seq);
}

bool db_jobs_pause(struct db_conn *conn, int64_t job, int attempt, bool paused,
                   const char *reason, const char *text, int64_t now_us, struct error *err)
{
    struct db_event event = {
        .wall_us = now_us,
        .kind = paused ? "job.paused" : "job.resumed",
        .job = job,
        .attempt = attempt,
        .state = -1,
        .state_from = -1,
        .text = paused ? "paused by a user" : "resumed by a user",
    };
    /* While it stops, the reason says why. */
    return db_events_add(conn, &event, err) &&
           db_run(conn, err,
                  "UPDATE jobs SET paused = ?2, seq = ?3,"
                  " reason = CASE WHEN state = 0 THEN ?4 ELSE reason END,"
                  " text = CASE WHEN state = 0 THEN ?5 ELSE text END WHERE number = ?1",
                  "iiitt", job, (int64_t)paused, event.seq, reason, text);
}

/* What jobs.archived says; trim.c goes on from REMOVED. */
enum { LISTED, ARCHIVED, REMOVED };

struct archive {
    int64_t number;
    int archived;
};

static bool archive_run(struct db_conn *conn, void *arg, struct error *err)
{
    const struct archive *archive = arg;
    int64_t state, now;
    if (!db_number(conn, err, &state, -1, "SELECT state FROM jobs WHERE number = ?1", "i",
                   archive->number) ||
        !db_number(conn, err, &now, 0, "SELECT archived FROM jobs WHERE number = ?1", "i",
                   archive->number))
        return false;
    if (state < 0)
        return fail(err, NOT_FOUND, "there is no job %lld", (long long)archive->number);
    if (!db_job_state_final((enum job_state)state))
        return fail(err, PRECONDITION, "job %lld is %s: only one that has ended is %s",
                    (long long)archive->number, db_job_state_name((enum job_state)state),
                    archive->archived == REMOVED ? "removed" : "archived");
    if (now == archive->archived || now >= REMOVED)
        return true;
    static const struct {
        const char *kind, *text;
    } told[] = {{"job.unarchived", "taken out of the archive by a user"},
                {"job.archived", "archived by a user"},
                {"job.removed", "removed by a user"}};
    struct db_event event = {
        .wall_us = (int64_t)clock_wall_us(),
        .kind = told[archive->archived].kind,
        .job = archive->number,
        .state = -1,
        .state_from = -1,
        .text = told[archive->archived].text,
    };
    return db_events_add(conn, &event, err) &&
           db_run(conn, err, "UPDATE jobs SET archived = ?2, seq = ?3 WHERE number = ?1", "iii",
                  archive->number, (int64_t)archive->archived, event.seq);
}

bool db_jobs_archive(struct db *db, int64_t number, bool archived, struct error *err)
{
    struct archive archive = {number, archived ? ARCHIVED : LISTED};
    return db_write(db, DB_CONTROL, archive_run, &archive, err);
}

bool db_jobs_remove(struct db *db, int64_t number, struct error *err)
{
    struct archive archive = {number, REMOVED};
    return db_write(db, DB_CONTROL, archive_run, &archive, err);
}

bool db_jobs_note(struct db_conn *conn, int64_t job, int attempt, int restarts,
                  const char *reason, const char *text, int64_t now_us, struct error *err)
{
    struct db_event event = {
        .wall_us = now_us,
        .kind = "job.note",
        .job = job,
        .attempt = attempt,
        .state = -1,
        .state_from = -1,
        .reason = reason,
        .text = text,
    };
    return db_events_add(conn, &event, err) &&
           db_run(conn, err,
                  "UPDATE jobs SET reason = ?2, text = ?3, seq = ?4, restarts = ?5"
                  " WHERE number = ?1",
                  "ittii", job, reason, text, event.seq, (int64_t)restarts);
}
