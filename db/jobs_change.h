/*
 * jobs_change.h - what people do with jobs that have ended.
 */
#pragma once

#include "db/jobs.h"

/* Leaves a job out of lists, or takes it in again, with the event "job.archived" or
 * "job.unarchived"; twice is as good as once.  PRECONDITION when it has not ended. */
bool db_jobs_archive(struct db *db, int64_t number, bool archived, struct error *err) CHECKED;

/* The same for ever, with "job.removed": nobody finds it by its text either.  Its row stays for
 * the event log; what it left is to be removed (db_trim_removed). */
bool db_jobs_remove(struct db *db, int64_t number, struct error *err) CHECKED;
