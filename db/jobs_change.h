/*
 * jobs_change.h - what people do with jobs that have ended, and notes on those that run.
 */
#pragma once

#include "db/jobs.h"

/* Gives a job that has been placed another reason for how it is, with the restarts that it has
 * used, and appends the event "job.note". */
bool db_jobs_note(struct db_conn *conn, int64_t job, int attempt, int restarts,
                  const char *reason, const char *text, int64_t now_us,
                  struct error *err) CHECKED;

/* Leaves a job out of lists, or takes it in again, with the event "job.archived" or
 * "job.unarchived"; twice is as good as once.  PRECONDITION when it has not ended. */
bool db_jobs_archive(struct db *db, int64_t number, bool archived, struct error *err) CHECKED;

/* The same for ever, with "job.removed": nobody finds it by its text either.  Its row stays for
 * the event log; what it left is to be removed (db_trim_removed). */
bool db_jobs_remove(struct db *db, int64_t number, struct error *err) CHECKED;
