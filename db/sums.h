/*
 * sums.h - sums of a series' points, kept beside them, so that a chart of a hundred million
 * points reads some thousands of rows.
 *
 * A sum is of the points of 2^n steps from a multiple of 2^n: the finest of about eight points,
 * each level above of four below.  They are made for many points at a time, in the
 * transaction that stores the last of them; what came since is read as points.  A point stored
 * or forgotten among what is summed makes the sums from there on untrue until they are made
 * again.  Steps below 0 are never summed.
 *
 * All of it runs on a connection to DB_METRICS.
 */
#pragma once

#include "db/metrics.h"

/* What of a series is summed. */
struct db_sums {
    int64_t series;
    int bits;      /* of the finest; -1: none */
    int64_t until; /* sums of steps before this are true */
};
bool db_sums_find(struct db_conn *conn, int64_t series, struct db_sums *sums,
                  struct error *err) CHECKED;

/* The steps of the widest sums of at most `width` steps; 1 when there are none. */
uint64_t db_sums_width(const struct db_sums *sums, uint64_t width);

/*
 * Gives the points of steps `from` to `to` (both included) by step, as single points and as
 * sums of at most `width` steps, which is one of db_sums_width().
 */
typedef void db_sums_take(void *arg, const struct db_bucket *piece);
bool db_sums_walk(struct db_conn *conn, const struct db_sums *sums, int64_t from, int64_t to,
                  uint64_t width, db_sums_take *take, void *arg, struct error *err) CHECKED;

/* Adds what comes after it to a bucket that may be empty (a count of 0). */
void db_bucket_add(struct db_bucket *bucket, const struct db_bucket *piece);

/*
 * Makes sums of what was stored since.  Whoever stores points counts them in series.unsummed,
 * has series.summed_until not behind the first of them, and calls this in the same transaction
 * once DB_SUMS_WAIT are waiting.
 */
#define DB_SUMS_WAIT 2048
bool db_sums_make(struct db_conn *conn, int64_t series, struct error *err) CHECKED;
