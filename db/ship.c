/* ship.c - stores a piece of a task's file and its cursor, both or neither. */

#include "db/ship.h"
#include "base/arena.h"
#include "base/clock.h"
#include "db/internal.h"
#include "db/sums.h"

#define CHUNK_BYTES 65536 /* bytes of a log in one row */
#define NOT_SAID -2       /* fences.step of an attempt that has not said where it resumes */

/* A ship on its way through the transaction. */
struct shipping {
    const struct db_ship *ship;
    struct db_shipped *shipped;
    int64_t fence_step; /* of a fenced ship: its points up to here still count; -1: none */
};

/* One series of the ship: what its points add up to. */
struct tally {
    const char *name;
    int64_t series;
    int64_t epoch; /* of the newest attempt that has reported it ... */
    int64_t since; /* ... from this step on */
    int64_t count;
    int64_t first_step;
    int64_t last_step;
    int64_t last_wall_us;
    double last_value;
};

static bool change_add(struct db_conn *conn, const struct shipping *s, enum db_change_kind kind,
                       int64_t series, int64_t first, int64_t last, const char *name,
                       struct error *err)
{
    return db_run(conn, err, "INSERT INTO changes VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                  "iiiiiit", s->ship->job, s->shipped->seq, (int64_t)kind, series, first, last,
                  name);
}

/* --- fences --- */

static bool fence_look(struct db_conn *conn, struct shipping *s, struct error *err)
{
    const struct db_ship *ship = s->ship;
    sqlite3_stmt *stmt =
        db_query(conn, err, "SELECT epoch, step FROM fences WHERE job = ?1", "i", ship->job);
    int row = stmt ? db_row(conn, stmt, err) : -1;
    if (row < 0)
        return false;
    s->fence_step = INT64_MAX;
    if (row > 0) {
        s->shipped->fenced = sqlite3_column_int64(stmt, 0) > ship->epoch;
        int64_t step = sqlite3_column_int64(stmt, 1);
        if (s->shipped->fenced && step != NOT_SAID)
            s->fence_step = step;
        db_query_end(stmt);
    }
    return true;
}

#define LAST_POINT " FROM points WHERE points.series = series.id ORDER BY step DESC LIMIT 1"
#define OF_ONE "id = ?2"
#define OF_TASK "job = ?2 AND role = ?3 AND idx = ?4 AND name NOT GLOB '" DB_HARDWARE "*'"

/* What was reported of later steps than ?1 never happened: in all series that are `which`. */
#define CUT_POINTS(which)                                                                      \
    "DELETE FROM points WHERE step > ?1 AND series IN (SELECT id FROM series WHERE " which ")"
#define CUT_SERIES(which)                                                                      \
    "UPDATE series SET last_step = coalesce((SELECT step" LAST_POINT "), -1),"                 \
    " last_wall_us = coalesce((SELECT wall_us" LAST_POINT "), 0),"                             \
    " last_value = (SELECT value" LAST_POINT "),"                                              \
    " summed_until = max(0, min(summed_until, ?1))"                                            \
    " WHERE last_step > ?1 AND " which

/* The task goes back to `start_step`. */
static bool ship_start(struct db_conn *conn, const struct shipping *s, struct error *err)
{
    const struct db_ship *ship = s->ship;
    return db_run(conn, err, CUT_POINTS(OF_TASK), "iiti", ship->start_step, ship->job,
                  ship->role, (int64_t)ship->index) &&
           db_run(conn, err, CUT_SERIES(OF_TASK), "iiti", ship->start_step, ship->job,
                  ship->role, (int64_t)ship->index) &&
           db_run(conn, err,
                  "INSERT INTO fences VALUES (?1, ?2, ?3)"
                  " ON CONFLICT DO UPDATE SET epoch = ?2, step = max(step, ?3)",
                  "iii", ship->job, ship->epoch, ship->start_step);
}

/* --- points --- */

/* Fills in which series it is; one that is new is made. */
static bool series_find(struct db_conn *conn, const struct db_ship *ship, struct tally *tally,
                        struct error *err)
{
    sqlite3_stmt *stmt =
        db_query(conn, err,
                 "SELECT id, epoch, since FROM series WHERE job = ?1 AND role = ?2"
                 " AND idx = ?3 AND name = ?4",
                 "itit", ship->job, ship->role, (int64_t)ship->index, tally->name);
    int row = stmt ? db_row(conn, stmt, err) : -1;
    if (row < 0)
        return false;
    if (row > 0) {
        tally->series = sqlite3_column_int64(stmt, 0);
        tally->epoch = sqlite3_column_int64(stmt, 1);
        tally->since = sqlite3_column_int64(stmt, 2);
        db_query_end(stmt);
        return true;
    }
    if (!db_run(
            conn, err,
            "INSERT INTO series (job, role, idx, name, points_count, last_step, last_wall_us)"
            " VALUES (?1, ?2, ?3, ?4, 0, -1, 0)",
            "itit", ship->job, ship->role, (int64_t)ship->index, tally->name))
        return false;
    tally->series = db_inserted(conn);
    return true;
}

/*
 * An attempt's first point of a series says where it goes on there: programs do not say when
 * they start again.  What comes by REST is of no file, and may be of no attempt's doing; uses
 * of hardware go on over attempts.
 */
static bool series_claim(struct db_conn *conn, const struct db_ship *ship, struct tally *tally,
                         int64_t step, struct error *err)
{
    if (tally->epoch >= ship->epoch || !ship->file ||
        strncmp(tally->name, DB_HARDWARE, strlen(DB_HARDWARE)) == 0)
        return true;
    int64_t before = step > INT64_MIN ? step - 1 : step;
    tally->epoch = ship->epoch;
    tally->since = step;
    return db_run(conn, err, CUT_POINTS(OF_ONE), "ii", before, tally->series) &&
           db_run(conn, err, CUT_SERIES(OF_ONE), "ii", before, tally->series) &&
           db_run(conn, err, "UPDATE series SET epoch = ?2, since = ?3 WHERE id = ?1", "iii",
                  tally->series, ship->epoch, step);
}

/* The tally of a name; NULL on failure.  A ship has few names, most often in a row. */
static struct tally *tally_find(struct db_conn *conn, const struct db_ship *ship,
                                struct db_rows *tallies, const char *name, struct error *err)
{
    struct tally *all = (struct tally *)(void *)tallies->data;
    for (int i = tallies->count - 1; i >= 0; i--) {
        if (strcmp(all[i].name, name) == 0)
            return &all[i];
    }
    struct tally found = {.name = name, .first_step = INT64_MAX, .last_step = INT64_MIN};
    if (!series_find(conn, ship, &found, err))
        return NULL;
    struct tally *tally = db_rows_add(tallies);
    *tally = found;
    return tally;
}

static bool point_add(struct db_conn *conn, struct tally *tally, const struct db_point *point,
                      struct error *err)
{
    if (!db_run(conn, err,
                "INSERT INTO points VALUES (?1, ?2, ?3, ?4)"
                " ON CONFLICT DO UPDATE SET wall_us = ?3, value = ?4",
                "iiid", tally->series, point->step, point->wall_us, point->value))
        return false;
    tally->count++;
    if (point->step < tally->first_step)
        tally->first_step = point->step;
    if (point->step >= tally->last_step) {
        tally->last_step = point->step;
        tally->last_wall_us = point->wall_us;
        tally->last_value = point->value;
    }
    return true;
}

static bool tally_store(struct db_conn *conn, const struct shipping *s, const struct tally *t,
                        struct error *err)
{
    int64_t waiting; /* each right side sees the row as it was */
    return change_add(conn, s, DB_CHANGE_POINTS, t->series, t->first_step, t->last_step, "",
                      err) &&
           db_number(conn, err, &waiting, 0,
                     "UPDATE series SET points_count = points_count + ?2,"
                     " last_wall_us = iif(last_step <= ?4, ?5, last_wall_us),"
                     " last_value = iif(last_step <= ?4, ?6, last_value),"
                     " last_step = max(last_step, ?4), unsummed = unsummed + ?2,"
                     " summed_until = max(0, min(summed_until, ?3)),"
                     " since = iif(epoch = ?7, min(since, ?3), since)"
                     " WHERE id = ?1 RETURNING unsummed",
                     "iiiiidi", t->series, t->count, t->first_step, t->last_step,
                     t->last_wall_us, t->last_value, s->ship->epoch) &&
           (waiting < DB_SUMS_WAIT || db_sums_make(conn, t->series, err));
}

static bool ship_points(struct db_conn *conn, const struct shipping *s, struct arena *arena,
                        struct error *err)
{
    struct db_rows tallies = {.row_size = sizeof(struct tally)};
    bool ok = true;
    for (int i = 0; ok && i < s->ship->points_count; i++) {
        const struct db_point *point = &s->ship->points[i];
        if (point->step > s->fence_step)
            continue;
        struct tally *tally = tally_find(conn, s->ship, &tallies, point->name, err);
        ok = tally && series_claim(conn, s->ship, tally, point->step, err);
        if (ok && (tally->epoch <= s->ship->epoch || point->step < tally->since))
            ok = point_add(conn, tally, point, err);
    }
    int count;
    const struct tally *all = db_rows_end(&tallies, arena, &count);
    for (int i = 0; ok && i < count; i++)
        ok = !all[i].count || tally_store(conn, s, &all[i], err);
    return ok;
}

/* --- artifacts and checkpoints --- */

/* A run that is traced for weeks keeps its newest steps. */
static bool trim_traces(struct db_conn *conn, int64_t job, struct error *err)
{
    return db_run(conn, err,
                  "DELETE FROM artifacts WHERE job = ?1 AND kind = 'trace' AND id NOT IN"
                  " (SELECT id FROM artifacts WHERE job = ?1 AND kind = 'trace'"
                  " ORDER BY step DESC LIMIT ?2)",
                  "ii", job, (int64_t)DB_TRACES_MAX);
}

static bool ship_artifacts(struct db_conn *conn, const struct shipping *s, struct arena *arena,
                           struct error *err)
{
    const struct db_ship *ship = s->ship;
    int64_t now_us = (int64_t)clock_wall_us();
    for (int i = 0; i < ship->artifacts_count; i++) {
        const struct db_artifact_new *a = &ship->artifacts[i];
        const char *name = arena_printf(arena, "%s/%s", a->kind, a->name);
        if (!db_run(conn, err,
                    "INSERT INTO artifacts (job, kind, name, epoch, step, wall_us, bytes)"
                    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (job, kind, name)"
                    " DO UPDATE SET epoch = ?4, step = ?5, wall_us = ?6, bytes = ?7",
                    "ittiiib", ship->job, a->kind, a->name, ship->epoch, a->step, now_us,
                    a->bytes, a->size) ||
            !change_add(conn, s, DB_CHANGE_ARTIFACT, i, a->step, a->step, name, err) ||
            (strcmp(a->kind, "trace") == 0 && !trim_traces(conn, ship->job, err)))
            return false;
    }
    return true;
}

static bool ship_checkpoints(struct db_conn *conn, const struct shipping *s,
                             struct arena *arena, struct error *err)
{
    const struct db_ship *ship = s->ship;
    for (int i = 0; i < ship->checkpoints_count; i++) {
        const struct db_checkpoint *c = &ship->checkpoints[i];
        const char *name = arena_printf(arena, "checkpoint/%lld", (long long)c->step);
        if (!db_run(conn, err,
                    "INSERT INTO checkpoints VALUES (?1, ?2, ?3, ?4, ?5)"
                    " ON CONFLICT DO UPDATE SET epoch = ?3, wall_us = ?4, path = ?5",
                    "iiiit", ship->job, c->step, ship->epoch, c->wall_us, c->path) ||
            !change_add(conn, s, DB_CHANGE_ARTIFACT, ship->artifacts_count + i, c->step,
                        c->step, name, err))
            return false;
    }
    return true;
}

/* --- logs --- */

static bool log_find(struct db_conn *conn, const struct db_ship *ship, int64_t *log,
                     int64_t *size, struct error *err)
{
    sqlite3_stmt *stmt =
        db_query(conn, err,
                 "SELECT id, size FROM logs WHERE epoch = ?1 AND role = ?2"
                 " AND idx = ?3 AND name = ?4",
                 "itit", ship->epoch, ship->role, (int64_t)ship->index, ship->log);
    int row = stmt ? db_row(conn, stmt, err) : -1;
    if (row < 0)
        return false;
    if (row > 0) {
        *log = sqlite3_column_int64(stmt, 0);
        *size = sqlite3_column_int64(stmt, 1);
        db_query_end(stmt);
        return true;
    }
    *size = 0;
    if (!db_run(conn, err, "INSERT INTO logs VALUES (NULL, ?1, ?2, ?3, ?4, ?5, 0, 0)", "iitit",
                ship->job, ship->epoch, ship->role, (int64_t)ship->index, ship->log))
        return false;
    *log = db_inserted(conn);
    return true;
}

/* Adds to the last chunk while that stays small; `*used` is how much of the bytes it took. */
static bool log_fill_chunk(struct db_conn *conn, int64_t log, int64_t size, const char *bytes,
                           size_t bytes_size, size_t *used, struct error *err)
{
    *used = 0;
    int64_t start;
    if (!db_number(conn, err, &start, -1, "SELECT max(start) FROM chunks WHERE log = ?1", "i",
                   log))
        return false;
    if (size == 0 || size - start >= CHUNK_BYTES)
        return true;
    size_t room = (size_t)(CHUNK_BYTES - (size - start));
    *used = bytes_size < room ? bytes_size : room;
    return db_run(conn, err,
                  "UPDATE chunks SET bytes = CAST(bytes || ?3 AS BLOB)"
                  " WHERE log = ?1 AND start = ?2",
                  "iib", log, start, bytes, *used);
}

static bool ship_log(struct db_conn *conn, const struct shipping *s, struct error *err)
{
    const char *bytes = s->ship->log_bytes;
    size_t left = s->ship->log_size;
    if (!s->ship->log || !left)
        return true;

    int64_t log, size;
    size_t used;
    if (!log_find(conn, s->ship, &log, &size, err) ||
        !log_fill_chunk(conn, log, size, bytes, left, &used, err))
        return false;

    int64_t lines = 0;
    for (size_t i = 0; i < left; i++)
        lines += bytes[i] == '\n';
    int64_t end = size + (int64_t)left;
    bytes += used;
    left -= used;
    for (int64_t at = end - (int64_t)left; left;
         at += (int64_t)used, bytes += used, left -= used) {
        used = left < CHUNK_BYTES ? left : CHUNK_BYTES;
        if (!db_run(conn, err, "INSERT INTO chunks (log, start, bytes) VALUES (?1, ?2, ?3)",
                    "iib", log, at, bytes, used))
            return false;
    }
    return db_run(conn, err,
                  "UPDATE logs SET size = ?2, lines_count = lines_count + ?3 WHERE id = ?1",
                  "iii", log, end, lines) &&
           change_add(conn, s, DB_CHANGE_LOG, log, size, end, "", err);
}

/* --- the whole --- */

static bool ship_cursor(struct db_conn *conn, const struct db_ship *ship, int64_t *cursor,
                        struct error *err)
{
    return db_ship_cursor(conn, ship->epoch, ship->role, ship->index, ship->file, cursor, err);
}

static bool next_seq(struct db_conn *conn, int64_t *seq, struct error *err)
{
    return db_number(conn, err, seq, 0,
                     "UPDATE meta SET value = value + 1 WHERE name = 'seq' RETURNING value",
                     "");
}

static bool ship_store(struct db_conn *conn, struct shipping *s, struct error *err)
{
    const struct db_ship *ship = s->ship;
    if (!next_seq(conn, &s->shipped->seq, err) ||
        !db_run(conn, err,
                "INSERT INTO cursors VALUES (?1, ?2, ?3, ?4, ?5)"
                " ON CONFLICT DO UPDATE SET cursor = ?5",
                "ititi", ship->epoch, ship->role, (int64_t)ship->index, ship->file, ship->end))
        return false;

    bool newest = !s->shipped->fenced;
    struct arena *arena = arena_new();
    bool ok = (!ship->starts || !newest || ship_start(conn, s, err)) &&
              ship_points(conn, s, arena, err) &&
              (!newest || (ship_artifacts(conn, s, arena, err) &&
                           ship_checkpoints(conn, s, arena, err))) &&
              ship_log(conn, s, err);
    arena_free(arena);
    return ok;
}

bool db_ship_is_next(const struct db_ship *ship, int64_t cursor)
{
    return ship->offset == cursor && ship->end > cursor;
}

static bool ship_run(struct db_conn *conn, void *arg, struct error *err)
{
    struct shipping *s = arg;
    *s->shipped = (struct db_shipped){0};
    int64_t cursor;
    if (!ship_cursor(conn, s->ship, &cursor, err))
        return false;
    s->shipped->cursor = cursor;
    if (!db_ship_is_next(s->ship, cursor))
        return true; /* the answer says where to go on */
    if (!fence_look(conn, s, err) || !ship_store(conn, s, err))
        return false;
    s->shipped->stored = true;
    s->shipped->cursor = s->ship->end;
    return true;
}

bool db_ship(struct db *db, const struct db_ship *ship, struct db_shipped *shipped,
             struct error *err)
{
    assert(ship->offset >= 0);
    assert(ship->end >= ship->offset);
    struct shipping shipping = {.ship = ship, .shipped = shipped};
    return db_write(db, DB_METRICS, ship_run, &shipping, err);
}

struct points_shipping {
    const struct db_ship *ships;
    int count;
    int64_t *seq;
};

static bool points_run(struct db_conn *conn, void *arg, struct error *err)
{
    const struct points_shipping *all = arg;
    struct arena *arena = arena_new();
    bool ok = true;
    for (int i = 0; ok && i < all->count; i++) {
        struct db_shipped shipped = {0};
        struct shipping s = {.ship = &all->ships[i], .shipped = &shipped};
        ok = fence_look(conn, &s, err) && next_seq(conn, &shipped.seq, err) &&
             ship_points(conn, &s, arena, err);
        *all->seq = shipped.seq;
    }
    arena_free(arena);
    return ok;
}

bool db_ship_points(struct db *db, const struct db_ship *ships, int ships_count, int64_t *seq,
                    struct error *err)
{
    struct points_shipping all = {ships, ships_count, seq};
    return db_write(db, DB_METRICS, points_run, &all, err);
}

bool db_ship_cursor(struct db_conn *conn, int64_t epoch, const char *role, int index,
                    const char *file, int64_t *cursor, struct error *err)
{
    return db_number(conn, err, cursor, 0,
                     "SELECT cursor FROM cursors WHERE epoch = ?1 AND role = ?2 AND idx = ?3"
                     " AND file = ?4",
                     "itit", epoch, role, (int64_t)index, file);
}

struct fence {
    int64_t job;
    int64_t epoch;
};

static bool fence_run(struct db_conn *conn, void *arg, struct error *err)
{
    const struct fence *fence = arg;
    return db_run(conn, err,
                  "INSERT INTO fences VALUES (?1, ?2, ?3)"
                  " ON CONFLICT DO UPDATE SET epoch = ?2, step = ?3 WHERE epoch < ?2",
                  "iii", fence->job, fence->epoch, (int64_t)NOT_SAID);
}

bool db_ship_fence(struct db *db, int64_t job, int64_t epoch, struct error *err)
{
    struct fence fence = {job, epoch};
    return db_write(db, DB_METRICS, fence_run, &fence, err);
}

bool db_ship_seq(struct db_conn *conn, int64_t *seq, struct error *err)
{
    return db_number(conn, err, seq, 0, "SELECT value FROM meta WHERE name = 'seq'", "");
}

bool db_ship_since(struct db_conn *conn, int64_t job, int64_t after_seq, int limit,
                   struct arena *arena, struct db_change **changes, int *changes_count,
                   struct error *err)
{
    assert(limit > 0);
    sqlite3_stmt *stmt = db_query(conn, err,
                                  "SELECT seq, kind, series, first, last, name FROM changes"
                                  " WHERE job = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
                                  "iii", job, after_seq, (int64_t)limit);
    if (!stmt)
        return false;
    struct db_rows rows = {.row_size = sizeof(struct db_change)};
    int row;
    while ((row = db_row(conn, stmt, err)) > 0)
        *(struct db_change *)db_rows_add(&rows) = (struct db_change){
            .seq = sqlite3_column_int64(stmt, 0),
            .kind = (enum db_change_kind)sqlite3_column_int(stmt, 1),
            .series = sqlite3_column_int64(stmt, 2),
            .first = sqlite3_column_int64(stmt, 3),
            .last = sqlite3_column_int64(stmt, 4),
            .name = db_column_text(stmt, 5, arena),
        };
    *changes = db_rows_end(&rows, arena, changes_count);
    return row == 0;
}
