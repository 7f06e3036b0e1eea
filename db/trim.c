/* trim.c - deletes of one job what a list of statements names, some rows at a time. */

#include "db/trim.h"

#include "base/clock.h"
#include "db/events.h"
#include "db/internal.h"

enum { ROWS_AT_A_TIME = 20000, CHUNKS_AT_A_TIME = 100 /* of 64 KiB */ };

#define SERIES " IN (SELECT id FROM series WHERE job = ?1) LIMIT ?2)"

struct part {
    const char *sql;
    int64_t rows;
};

/* What is last says that there is something to trim. */
static const struct part parts[] = {
    {"DELETE FROM points WHERE (series, step) IN (SELECT series, step FROM points WHERE"
     " series" SERIES,
     ROWS_AT_A_TIME},
    {"DELETE FROM sums WHERE (series, level, start) IN (SELECT series, level, start FROM sums"
     " WHERE series" SERIES,
     ROWS_AT_A_TIME},
    {"DELETE FROM chunks WHERE id IN (SELECT id FROM chunks WHERE log IN"
     " (SELECT id FROM logs WHERE job = ?1) LIMIT ?2)",
     CHUNKS_AT_A_TIME},
    {"DELETE FROM logs WHERE id IN (SELECT id FROM logs WHERE job = ?1 LIMIT ?2)",
     ROWS_AT_A_TIME},
    {"DELETE FROM artifacts WHERE id IN (SELECT id FROM artifacts WHERE job = ?1"
     " AND kind = 'trace' LIMIT ?2)",
     CHUNKS_AT_A_TIME},
    {"UPDATE series SET points_count = 0, sum_bits = -1, summed_until = 0, unsummed = 0"
     " WHERE id IN (SELECT id FROM series WHERE job = ?1 AND points_count > 0 LIMIT ?2)",
     ROWS_AT_A_TIME},
    {"DELETE FROM changes WHERE (job, seq, kind, series) IN (SELECT job, seq, kind, series"
     " FROM changes WHERE job = ?1 LIMIT ?2)",
     ROWS_AT_A_TIME},
};

/* What is left of one that is trimmed. */
static const struct part rest[] = {
    {"DELETE FROM artifacts WHERE id IN (SELECT id FROM artifacts WHERE job = ?1 LIMIT ?2)",
     CHUNKS_AT_A_TIME},
    {"DELETE FROM series WHERE id IN (SELECT id FROM series WHERE job = ?1 LIMIT ?2)",
     ROWS_AT_A_TIME},
    {"DELETE FROM checkpoints WHERE (job, step) IN (SELECT job, step FROM checkpoints"
     " WHERE job = ?1 LIMIT ?2)",
     ROWS_AT_A_TIME},
};

bool db_trim_next(struct db_conn *conn, int64_t after, int64_t *job, struct error *err)
{
    return db_number(conn, err, job, 0,
                     "SELECT job FROM changes WHERE job > ?1 ORDER BY job LIMIT 1", "i", after);
}

bool db_trim_due(struct db_conn *conn, int64_t job, int64_t before_us, bool *due,
                 struct error *err)
{
    int64_t found;
    bool ok =
        db_number(conn, err, &found, 0,
                  "SELECT 1 FROM jobs WHERE number = ?1 AND ended_us > 0 AND ended_us < ?2",
                  "ii", job, before_us);
    *due = ok && found;
    return ok;
}

struct trimming {
    int64_t job;
    const char *why;
    const struct part *part;
    int rows; /* that went */
};

static bool trim_run(struct db_conn *conn, void *arg, struct error *err)
{
    struct trimming *trimming = arg;
    if (!db_run(conn, err, trimming->part->sql, "ii", trimming->job, trimming->part->rows))
        return false;
    trimming->rows = db_changes_count(conn);
    return true;
}

static bool note_run(struct db_conn *conn, void *arg, struct error *err)
{
    const struct trimming *trimming = arg;
    struct db_event event = {
        .wall_us = (int64_t)clock_wall_us(),
        .kind = "job.note",
        .job = trimming->job,
        .state = -1,
        .state_from = -1,
        .text = trimming->why,
    };
    return db_events_add(conn, &event, err);
}

/* One part after the other, each in as many transactions as it takes. */
static bool trim_parts(struct db *db, struct trimming *trimming, const struct part *list,
                       int count, int64_t *rows, struct error *err)
{
    for (trimming->part = list; trimming->part < list + count;) {
        if (!db_write(db, DB_METRICS, trim_run, trimming, err))
            return false;
        *rows += trimming->rows;
        trimming->part += trimming->rows < trimming->part->rows;
    }
    return true;
}

bool db_trim_job(struct db *db, int64_t job, const char *why, int64_t *rows, struct error *err)
{
    struct trimming trimming = {.job = job, .why = why};
    *rows = 0;
    return db_write(db, DB_CONTROL, note_run, &trimming, err) &&
           trim_parts(db, &trimming, parts, ARRAY_LEN(parts), rows, err);
}

bool db_trim_removed(struct db_conn *conn, int64_t after, int64_t *job, struct error *err)
{
    return db_number(conn, err, job, 0,
                     "SELECT number FROM jobs WHERE archived = 2 AND number > ?1"
                     " ORDER BY number LIMIT 1",
                     "i", after);
}

static bool done_run(struct db_conn *conn, void *arg, struct error *err)
{
    return db_run(conn, err, "UPDATE jobs SET archived = 3 WHERE number = ?1 AND archived = 2",
                  "i", *(const int64_t *)arg);
}

bool db_trim_all(struct db *db, int64_t job, struct error *err)
{
    struct trimming trimming = {.job = job};
    int64_t rows = 0;
    return trim_parts(db, &trimming, parts, ARRAY_LEN(parts), &rows, err) &&
           trim_parts(db, &trimming, rest, ARRAY_LEN(rest), &rows, err) &&
           db_write(db, DB_CONTROL, done_run, &job, err);
}
