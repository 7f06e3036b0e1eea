/*
 * trim.h - what is old and large goes.
 *
 * Of a job that is trimmed stay its row and history, its spec, graph and placement, its
 * checkpoints and artifacts, and the last value of each metric, so that lists and comparisons
 * hold.  Its points, their sums, its logs and its traced steps go, a part in each transaction,
 * so that nobody waits long.  The room in the file is used again.
 */
#pragma once

#include "db/db.h"

/* The next job behind `after` of which there is something to trim; 0 when there is none.  On a
 * connection to DB_METRICS. */
bool db_trim_next(struct db_conn *conn, int64_t after, int64_t *job, struct error *err) CHECKED;

/* Whether the job ended before `before_us`; false of one that there is not.  DB_CONTROL. */
bool db_trim_due(struct db_conn *conn, int64_t job, int64_t before_us, bool *due,
                 struct error *err) CHECKED;

/*
 * Trims a job that has ended, with `why` in its history.  Broken off, it can be called again.
 * `*rows` is how many went.
 */
bool db_trim_job(struct db *db, int64_t job, const char *why, int64_t *rows,
                 struct error *err) CHECKED;

/* The next job behind `after` that was removed (db_jobs_remove) and whose leavings were not;
 * 0: none.  DB_CONTROL. */
bool db_trim_removed(struct db_conn *conn, int64_t after, int64_t *job,
                     struct error *err) CHECKED;

/* Removes all that metrics.db has of such a job, and notes that nothing is left of it. */
bool db_trim_all(struct db *db, int64_t job, struct error *err) CHECKED;
