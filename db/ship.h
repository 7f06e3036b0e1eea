/*
 * ship.h - what a piece of a task's file brings, stored together with how far the file was
 * read.
 *
 * The agent ships files by byte offset.  A piece is stored with its cursor in one transaction,
 * and a piece whose offset is not the cursor stores nothing: so whoever dies or repeats
 * himself, every byte counts once.
 *
 * Each stored piece gets a sequence number of its own (rising, over all jobs), by which streams
 * of metrics and logs resume.
 */
#pragma once

#include "db/db.h"

/* How the names of series begin that the agent samples of a task's use of its machine.  Their
 * steps are seconds since 1970: a new attempt does not go back. */
#define DB_HARDWARE "hw/"

/* One value of one series. */
struct db_point {
    const char *name; /* "loss" */
    int64_t step;
    int64_t wall_us;
    double value; /* NaN and infinities are kept */
};

#define DB_TRACES_MAX 100 /* of a job: those of the latest steps */

/* Something whole that is kept by name: the newest replaces the one before. */
struct db_artifact_new {
    const char *kind; /* "graph", "placement", "run", "trace" */
    const char *name; /* "" or what tells it from others of its kind */
    int64_t step;     /* -1 */
    const void *bytes;
    size_t size;
};

struct db_checkpoint {
    int64_t step;
    int64_t epoch; /* of the attempt that wrote it */
    int64_t wall_us;
    const char *path;
};

struct db_ship {
    int64_t job;
    int64_t epoch;
    const char *role;
    int index;
    const char *file;
    int64_t offset; /* where the piece begins */
    int64_t end;    /* the cursor afterwards; what lies behind it is asked for again */

    bool starts;        /* the file says that the attempt (re)starts after `start_step` ... */
    int64_t start_step; /* ... so this task's points of later steps are forgotten first */
    const struct db_point *points;
    int points_count;
    const struct db_artifact_new *artifacts;
    int artifacts_count;
    const struct db_checkpoint *checkpoints;
    int checkpoints_count;
    const char *log; /* "stdout" or "stderr" when the piece is output, else NULL */
    const void *log_bytes;
    size_t log_size;
};

struct db_shipped {
    bool stored;    /* false: the offset was not the cursor, or nothing was to be stored */
    int64_t cursor; /* everything before this is stored */
    int64_t seq;    /* of this piece, 0 when nothing was stored */
    bool fenced;    /* a newer attempt exists: points and artifacts were dropped, logs kept */
};

/* Whether a piece is stored when everything before `cursor` is; else it was said before, or is
 * from too far on, or empty. */
bool db_ship_is_next(const struct db_ship *ship, int64_t cursor);

/* Stores a piece.  Returns after the commit. */
bool db_ship(struct db *db, const struct db_ship *ship, struct db_shipped *shipped,
             struct error *err) CHECKED;

/*
 * Stores points that come from no file: of each ship job, epoch, role, index and points count.
 * All or none; `*seq` is the number of the last.  Returns after the commit.
 */
bool db_ship_points(struct db *db, const struct db_ship *ships, int ships_count, int64_t *seq,
                    struct error *err) CHECKED;

/* How far a file was stored, 0 for one that is new. */
bool db_ship_cursor(struct db_conn *conn, int64_t epoch, const char *role, int index,
                    const char *file, int64_t *cursor, struct error *err) CHECKED;

/*
 * From now on artifacts and checkpoints of attempts of `job` older than `epoch` are dropped,
 * and points of steps that are `epoch`'s to report: behind the step from which it says that it
 * resumes, and in each series from the first one on that its files report.  What was stored of
 * these steps before is forgotten when it says so.  Called before the attempt is started.
 */
bool db_ship_fence(struct db *db, int64_t job, int64_t epoch, struct error *err) CHECKED;

/* The sequence number of the newest piece of any job. */
bool db_ship_seq(struct db_conn *conn, int64_t *seq, struct error *err) CHECKED;

/* One thing that a piece changed: a range of a series, or of a log. */
enum db_change_kind { DB_CHANGE_POINTS = 1, DB_CHANGE_LOG = 2, DB_CHANGE_ARTIFACT = 3 };
struct db_change {
    int64_t seq;
    enum db_change_kind kind;
    int64_t series;   /* of points: db_series.id.  Of a log: db_log.id */
    int64_t first;    /* step, or byte */
    int64_t last;     /* step, or byte after the end */
    const char *name; /* of an artifact: "kind/name" */
};

/* What changed of a job after `after_seq`, oldest first, at most `limit` rows. */
bool db_ship_since(struct db_conn *conn, int64_t job, int64_t after_seq, int limit,
                   struct arena *arena, struct db_change **changes, int *changes_count,
                   struct error *err) CHECKED;
