/*
 * clean.h - removes uploaded files that no job needs any more.
 *
 * A file is kept as long as a job names it that has not ended, CLEAN_ENDED_DAYS after the last
 * such job ended, so that it can be tried again; and CLEAN_UNUSED_HOURS after it was last
 * uploaded or asked for, so that a job may come to name it.
 *
 * With `keep_days` above 0 a job is trimmed (db/trim.h) so many days after it ended.  Of a job
 * that was removed goes all that it left.
 *
 * DESIGN: one thread (clean_main), which looks when the server starts, each hour after, and
 * when it is woken.
 */
#pragma once

#include <stdatomic.h>

#include "base/base.h"

struct clean;
struct db;
struct error;

#define CLEAN_ENDED_DAYS 30
#define CLEAN_UNUSED_HOURS 24

/* Borrows both, until clean_stop(). */
struct clean *clean_start(struct db *db, const char *folder, int64_t keep_days);
void clean_stop(struct clean *clean); /* NULL is fine */

/* Has it look now: a job was removed.  From any thread; NULL is fine. */
void clean_wake(struct clean *clean);

struct clean_removed {
    int files;
    int64_t bytes;
    int uploads; /* of datasets that were never published (upload.h) */
};

/* Trims the jobs that ended `keep_days` before `now_us`; `*jobs` is how many.  Ends early when
 * `*stopping` (may be NULL) becomes true. */
bool clean_trim(struct db *db, int64_t now_us, int64_t keep_days, const atomic_bool *stopping,
                int *jobs, struct error *err) CHECKED;

/* Removes what jobs left that were removed, in the databases and of DIR/jobs/NUMBER; `*jobs` is
 * of how many. */
bool clean_jobs(struct db *db, const char *folder, const atomic_bool *stopping, int *jobs,
                struct error *err) CHECKED;

/* One look, at the time `now_us`. */
bool clean_now(struct db *db, const char *folder, int64_t now_us, struct clean_removed *removed,
               struct error *err) CHECKED;
