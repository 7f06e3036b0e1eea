/*
 * jobs_order.h - jobs in an order of their own fields, for lists that are read a page at a
 * time.
 */
#pragma once

#include "db/metrics.h"

enum db_jobs_order {
    DB_JOBS_BY_CREATED,  /* their numbers rise with it */
    DB_JOBS_BY_NAME,     /* by bytes, then by number */
    DB_JOBS_BY_PRIORITY, /* then by number; ranked by it as `value` */
};

/*
 * All jobs in that order, falling if `descending`: those behind `after`, at most `limit`; by
 * name those of job 0 and no text are from the beginning, by priority those of a value below
 * (or above) all.
 */
bool db_jobs_ordered(struct db_conn *conn, enum db_jobs_order order, bool descending,
                     struct db_ranked after, int limit, struct arena *arena,
                     struct db_ranked **ranked, int *ranked_count, struct error *err) CHECKED;
