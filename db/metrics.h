/*
 * metrics.h - the numbers that jobs report, as series of (step, wall clock, value).
 *
 * A series is what one task reports under one name.  Per step it has one value: a later one
 * replaces it.  db/ship.h writes, this reads; all run on a connection to DB_METRICS.
 */
#pragma once

#include "db/ship.h"

struct db_series {
    int64_t id;
    const char *role;
    int index;
    const char *name;
    int64_t points_count; /* about: replaced points may be counted twice */
    int64_t last_step;
    int64_t last_wall_us;
    double last_value;
};

/* The series of a job, by role, index and name: those that it reports itself, or those of its
 * `hardware`.  The last value of each is in it. */
bool db_metrics_series(struct db_conn *conn, int64_t job, bool hardware, struct arena *arena,
                       struct db_series **series, int *series_count, struct error *err) CHECKED;

/* A job and what it is ordered by: the last value that it has of a metric, or a text. */
struct db_ranked {
    int64_t job;
    double value;
    const char *text; /* NULL: the value */
};

/*
 * The jobs that have a metric, by its last value and then by number, falling if `descending`;
 * those behind `after`, at most `limit`.  Of several tasks the chief speaks for the job, else
 * the first worker; where that is NaN the job is left out.
 */
bool db_metrics_order(struct db_conn *conn, const char *name, bool descending,
                      struct db_ranked after, int limit, struct arena *arena,
                      struct db_ranked **ranked, int *ranked_count, struct error *err) CHECKED;

/* The last value of a job's metric, as db_metrics_order() has it but for NaN. */
bool db_metrics_last(struct db_conn *conn, int64_t job, const char *name, double *value,
                     bool *found, struct error *err) CHECKED;

/* NOT_FOUND when the task has reported no such name. */
bool db_metrics_find(struct db_conn *conn, int64_t job, const char *role, int index,
                     const char *name, struct arena *arena, struct db_series *series,
                     struct error *err) CHECKED;

/* Points of steps `from` to `to` (both included), by step, at most `limit`. */
bool db_metrics_points(struct db_conn *conn, int64_t series, int64_t from, int64_t to,
                       int limit, struct arena *arena, struct db_point **points,
                       int *points_count, struct error *err) CHECKED;

/* What a chart draws in one column of pixels. */
struct db_bucket {
    int64_t step; /* of the last point in it */
    int64_t wall_us;
    double min;
    double max;
    double last;
    int64_t count;
};

/*
 * The points of steps `from` to `to` in at most `buckets_max` buckets of equal width in steps;
 * empty ones are left out.  Of many points some thousand rows are read, and a third fewer
 * buckets may come: see db/sums.h.  Spikes survive in min and max; NaN is counted, and is
 * `last` when it is.
 */
bool db_metrics_buckets(struct db_conn *conn, int64_t series, int64_t from, int64_t to,
                        int buckets_max, struct arena *arena, struct db_bucket **buckets,
                        int *buckets_count, struct error *err) CHECKED;
