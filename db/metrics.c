/* metrics.c - reads series and their points. */

#include "db/metrics.h"

#include "base/arena.h"
#include "db/internal.h"
#include "db/sums.h"

#define SERIES_COLUMNS "id, role, idx, name, points_count, last_step, last_wall_us, last_value"

static void series_read(sqlite3_stmt *stmt, struct arena *arena, struct db_series *series)
{
    *series = (struct db_series){
        .id = sqlite3_column_int64(stmt, 0),
        .role = db_column_text(stmt, 1, arena),
        .index = sqlite3_column_int(stmt, 2),
        .name = db_column_text(stmt, 3, arena),
        .points_count = sqlite3_column_int64(stmt, 4),
        .last_step = sqlite3_column_int64(stmt, 5),
        .last_wall_us = sqlite3_column_int64(stmt, 6),
        .last_value = db_column_double(stmt, 7),
    };
}

bool db_metrics_series(struct db_conn *conn, int64_t job, bool hardware, struct arena *arena,
                       struct db_series **series, int *series_count, struct error *err)
{
    sqlite3_stmt *stmt = db_query(conn, err,
                                  "SELECT " SERIES_COLUMNS " FROM series WHERE job = ?1"
                                  " AND (name GLOB '" DB_HARDWARE "*') = ?2"
                                  " ORDER BY role, idx, name",
                                  "ii", job, (int64_t)hardware);
    if (!stmt)
        return false;
    struct db_rows rows = {.row_size = sizeof(struct db_series)};
    int row;
    while ((row = db_row(conn, stmt, err)) > 0)
        series_read(stmt, arena, db_rows_add(&rows));
    *series = db_rows_end(&rows, arena, series_count);
    return row == 0;
}

/* The series that speaks for its job. */
#define SPEAKS                                                                                 \
    " AND NOT EXISTS (SELECT 1 FROM series b WHERE b.job = s.job AND b.name = s.name"          \
    "  AND (b.role <> 'chief', b.role, b.idx) < (s.role <> 'chief', s.role, s.idx))"

bool db_metrics_order(struct db_conn *conn, const char *name, bool descending,
                      struct db_ranked after, int limit, struct arena *arena,
                      struct db_ranked **ranked, int *ranked_count, struct error *err)
{
    sqlite3_stmt *stmt =
        descending ? db_query(conn, err,
                              "SELECT job, last_value FROM series s WHERE name = ?1 AND"
                              " (last_value, job) < (?2, ?3)" SPEAKS
                              " ORDER BY last_value DESC, job DESC LIMIT ?4",
                              "tdii", name, after.value, after.job, (int64_t)limit)
                   : db_query(conn, err,
                              "SELECT job, last_value FROM series s WHERE name = ?1 AND"
                              " (last_value, job) > (?2, ?3)" SPEAKS
                              " ORDER BY last_value, job LIMIT ?4",
                              "tdii", name, after.value, after.job, (int64_t)limit);
    if (!stmt)
        return false;
    struct db_rows rows = {.row_size = sizeof(struct db_ranked)};
    int row;
    while ((row = db_row(conn, stmt, err)) > 0)
        *(struct db_ranked *)db_rows_add(&rows) = (struct db_ranked){
            .job = sqlite3_column_int64(stmt, 0), .value = sqlite3_column_double(stmt, 1)};
    *ranked = db_rows_end(&rows, arena, ranked_count);
    return row == 0;
}

bool db_metrics_last(struct db_conn *conn, int64_t job, const char *name, double *value,
                     bool *found, struct error *err)
{
    sqlite3_stmt *stmt = db_query(conn, err,
                                  "SELECT last_value FROM series WHERE job = ?1 AND name = ?2"
                                  " ORDER BY role <> 'chief', role, idx LIMIT 1",
                                  "it", job, name);
    int row = stmt ? db_row(conn, stmt, err) : -1;
    *found = row > 0;
    if (row > 0) {
        *value = db_column_double(stmt, 0);
        db_query_end(stmt);
    }
    return row >= 0;
}

bool db_metrics_find(struct db_conn *conn, int64_t job, const char *role, int index,
                     const char *name, struct arena *arena, struct db_series *series,
                     struct error *err)
{
    sqlite3_stmt *stmt = db_query(conn, err,
                                  "SELECT " SERIES_COLUMNS " FROM series WHERE job = ?1"
                                  " AND role = ?2 AND idx = ?3 AND name = ?4",
                                  "itit", job, role, (int64_t)index, name);
    int row = stmt ? db_row(conn, stmt, err) : -1;
    if (row < 0)
        return false;
    if (row == 0)
        return fail(err, NOT_FOUND, "%s:%d of job %lld has reported no '%.100s'", role, index,
                    (long long)job, name);
    series_read(stmt, arena, series);
    db_query_end(stmt);
    return true;
}

static sqlite3_stmt *points_query(struct db_conn *conn, int64_t series, int64_t from,
                                  int64_t to, int64_t limit, struct error *err)
{
    return db_query(conn, err,
                    "SELECT step, wall_us, value FROM points WHERE series = ?1"
                    " AND step BETWEEN ?2 AND ?3 ORDER BY step LIMIT ?4",
                    "iiii", series, from, to, limit);
}

bool db_metrics_points(struct db_conn *conn, int64_t series, int64_t from, int64_t to,
                       int limit, struct arena *arena, struct db_point **points,
                       int *points_count, struct error *err)
{
    sqlite3_stmt *stmt = points_query(conn, series, from, to, limit, err);
    if (!stmt)
        return false;
    struct db_rows rows = {.row_size = sizeof(struct db_point)};
    int row;
    while ((row = db_row(conn, stmt, err)) > 0)
        *(struct db_point *)db_rows_add(&rows) = (struct db_point){
            .name = "",
            .step = sqlite3_column_int64(stmt, 0),
            .wall_us = sqlite3_column_int64(stmt, 1),
            .value = db_column_double(stmt, 2),
        };
    *points = db_rows_end(&rows, arena, points_count);
    return row == 0;
}

/* The first and last steps that there are within `*from` to `*to`; false when there are none.
 */
static bool points_range(struct db_conn *conn, int64_t series, int64_t *from, int64_t *to,
                         bool *any, struct error *err)
{
    int64_t low, high;
    if (!db_number(conn, err, &low, INT64_MAX,
                   "SELECT step FROM points WHERE series = ?1 AND step BETWEEN ?2 AND ?3"
                   " ORDER BY step LIMIT 1",
                   "iii", series, *from, *to) ||
        !db_number(conn, err, &high, INT64_MIN,
                   "SELECT step FROM points WHERE series = ?1 AND step BETWEEN ?2 AND ?3"
                   " ORDER BY step DESC LIMIT 1",
                   "iii", series, *from, *to))
        return false;
    *any = low <= high;
    *from = low;
    *to = high;
    return true;
}

/* A chart as it is filled, from the left. */
struct chart {
    struct db_bucket *buckets;
    int count;
    int max;
    int64_t origin;
    uint64_t width;
    uint64_t current; /* which of its columns the last bucket is */
};

static void chart_add(void *arg, const struct db_bucket *piece)
{
    struct chart *chart = arg;
    uint64_t column = ((uint64_t)piece->step - (uint64_t)chart->origin) / chart->width;
    if (!chart->count || column != chart->current)
        chart->count++;
    chart->current = column;
    assert(chart->count <= chart->max);
    db_bucket_add(&chart->buckets[chart->count - 1], piece);
}

/* Columns of equal width that begin where sums do, so that a sum is in one of them.  They come
 * out up to half as wide again as the steps ask for. */
static bool chart_fill(struct db_conn *conn, int64_t series, int64_t from, int64_t to,
                       struct chart *chart, struct error *err)
{
    bool any;
    struct db_sums sums;
    if (!points_range(conn, series, &from, &to, &any, err) ||
        !db_sums_find(conn, series, &sums, err))
        return false;
    if (!any)
        return true;
    /* Unsigned: the distance between any two steps fits. */
    uint64_t columns = (uint64_t)chart->max;
    uint64_t unit = 1, width = ((uint64_t)to - (uint64_t)from) / columns + 1;
    if (from >= 0)
        unit = db_sums_width(&sums, width / 2);
    chart->origin = from - (int64_t)((uint64_t)from % unit) * (from >= 0);
    width = ((uint64_t)to - (uint64_t)chart->origin) / columns + 1;
    chart->width = (width + unit - 1) / unit * unit;
    return db_sums_walk(conn, &sums, from, to, unit, chart_add, chart, err);
}

bool db_metrics_buckets(struct db_conn *conn, int64_t series, int64_t from, int64_t to,
                        int buckets_max, struct arena *arena, struct db_bucket **buckets,
                        int *buckets_count, struct error *err)
{
    assert(buckets_max > 0);
    struct chart chart = {.max = buckets_max};
    chart.buckets = arena_array(arena, (size_t)buckets_max, sizeof(*chart.buckets));
    bool ok = chart_fill(conn, series, from, to, &chart, err);
    *buckets = chart.buckets;
    *buckets_count = chart.count;
    return ok;
}
