/* sums.c - sums of points: made a level after the other, read from the finest to the widest. */

#include "db/sums.h"

#include <math.h>

#include "base/arena.h"
#include "db/internal.h"

enum {
    FINEST_BITS = 3, /* the finest sums are of about eight points, */
    FANOUT_BITS = 2, /* and four of them make one of the next level */
    BITS_MAX = 60
};

bool db_sums_find(struct db_conn *conn, int64_t series, struct db_sums *sums, struct error *err)
{
    *sums = (struct db_sums){.series = series, .bits = -1};
    sqlite3_stmt *stmt = db_query(
        conn, err, "SELECT sum_bits, summed_until FROM series WHERE id = ?1", "i", series);
    int row = stmt ? db_row(conn, stmt, err) : -1;
    if (row <= 0)
        return row == 0;
    sums->bits = sqlite3_column_int(stmt, 0);
    sums->until = sqlite3_column_int64(stmt, 1);
    db_query_end(stmt);
    return true;
}

void db_bucket_add(struct db_bucket *bucket, const struct db_bucket *piece)
{
    if (!bucket->count) {
        *bucket = *piece;
        return;
    }
    bucket->min = fmin(bucket->min, piece->min); /* fmin and fmax prefer numbers to NaN */
    bucket->max = fmax(bucket->max, piece->max);
    bucket->step = piece->step;
    bucket->wall_us = piece->wall_us;
    bucket->last = piece->last;
    bucket->count += piece->count;
}

static int level_bits(const struct db_sums *sums, int level)
{
    return sums->bits + FANOUT_BITS * (level - 1);
}

/* The level of the widest sums of at most `width` steps; 0: points. */
static int level_of(const struct db_sums *sums, uint64_t width)
{
    int level = 0;
    while (sums->bits >= 0 && level_bits(sums, level + 1) <= BITS_MAX &&
           UINT64_C(1) << level_bits(sums, level + 1) <= width)
        level++;
    return level;
}

uint64_t db_sums_width(const struct db_sums *sums, uint64_t width)
{
    int level = level_of(sums, width);
    return level ? UINT64_C(1) << level_bits(sums, level) : 1;
}

/* --- reading --- */

/* Rows of points, or sums of a level that begin in [from,to], both as pieces. */
static sqlite3_stmt *pieces_query(struct db_conn *conn, int64_t series, int level, int64_t from,
                                  int64_t to, struct error *err)
{
    if (level == 0)
        return db_query(conn, err,
                        "SELECT step, wall_us, value FROM points WHERE series = ?1"
                        " AND step BETWEEN ?2 AND ?3 ORDER BY step",
                        "iii", series, from, to);
    return db_query(conn, err,
                    "SELECT step, wall_us, value, least, greatest, count FROM sums"
                    " WHERE series = ?1 AND level = ?2 AND start BETWEEN ?3 AND ?4"
                    " ORDER BY start",
                    "iiii", series, (int64_t)level, from, to);
}

static struct db_bucket piece_read(sqlite3_stmt *stmt, int level)
{
    struct db_bucket piece = {.step = sqlite3_column_int64(stmt, 0),
                              .wall_us = sqlite3_column_int64(stmt, 1),
                              .last = db_column_double(stmt, 2),
                              .count = 1};
    piece.min = piece.max = piece.last;
    if (level) {
        piece.min = db_column_double(stmt, 3);
        piece.max = db_column_double(stmt, 4);
        piece.count = sqlite3_column_int64(stmt, 5);
    }
    return piece;
}

static bool give(struct db_conn *conn, int64_t series, int level, int64_t from, int64_t to,
                 db_sums_take *take, void *arg, struct error *err)
{
    if (from > to)
        return true;
    sqlite3_stmt *stmt = pieces_query(conn, series, level, from, to, err);
    if (!stmt)
        return false;
    int row;
    while ((row = db_row(conn, stmt, err)) > 0) {
        struct db_bucket piece = piece_read(stmt, level);
        take(arg, &piece);
    }
    return row == 0;
}

/*
 * The sums within [from,to] that are whole and true, from the widest on; what is left at both
 * ends goes to the level below, and at last to the points.
 */
static bool walk(struct db_conn *conn, const struct db_sums *sums, int level, int64_t from,
                 int64_t to, db_sums_take *take, void *arg, struct error *err)
{
    if (level == 0 || from > to)
        return give(conn, sums->series, 0, from, to, take, arg, err);
    int64_t width = INT64_C(1) << level_bits(sums, level);
    int64_t end = to < sums->until ? to + 1 : sums->until; /* neither overflows */
    int64_t low = from > INT64_MAX - width ? INT64_MAX : (from + (width - 1)) & -width;
    int64_t high = end & -width;
    if (low >= high)
        return walk(conn, sums, level - 1, from, to, take, arg, err);
    return walk(conn, sums, level - 1, from, low - 1, take, arg, err) &&
           give(conn, sums->series, level, low, high - 1, take, arg, err) &&
           walk(conn, sums, level - 1, high, to, take, arg, err);
}

bool db_sums_walk(struct db_conn *conn, const struct db_sums *sums, int64_t from, int64_t to,
                  uint64_t width, db_sums_take *take, void *arg, struct error *err)
{
    int level = level_of(sums, width);
    if (from >= 0 || level == 0)
        return walk(conn, sums, level, from, to, take, arg, err);
    return give(conn, sums->series, 0, from, to < 0 ? to : -1, take, arg, err) &&
           walk(conn, sums, level, 0, to, take, arg, err);
}

/* --- making --- */

struct making {
    struct db_rows rows; /* of struct db_bucket */
    int bits;
};

/* Pieces come by step: each is of the last sum, or begins another. */
static void gather(void *arg, const struct db_bucket *piece)
{
    struct making *making = arg;
    struct db_bucket *all = (struct db_bucket *)(void *)making->rows.data;
    int count = making->rows.count;
    struct db_bucket *sum;
    if (count && all[count - 1].step >> making->bits == piece->step >> making->bits)
        sum = &all[count - 1];
    else
        sum = db_rows_add(&making->rows);
    db_bucket_add(sum, piece);
}

static bool store(struct db_conn *conn, const struct db_sums *sums, int level,
                  const struct db_bucket *sum, struct error *err)
{
    int64_t start = sum->step & -(INT64_C(1) << level_bits(sums, level));
    return db_run(conn, err, "INSERT INTO sums VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                  "iiiiidddi", sums->series, (int64_t)level, start, sum->step, sum->wall_us,
                  sum->min, sum->max, sum->last, sum->count);
}

/* Makes the sums of a level that end behind what was summed and not behind `until`. */
static bool make_level(struct db_conn *conn, const struct db_sums *sums, int level,
                       int64_t until, struct error *err)
{
    int64_t width = INT64_C(1) << level_bits(sums, level);
    int64_t low = sums->until & -width, high = until & -width;
    if (low >= high)
        return true;
    struct making making = {.rows = {.row_size = sizeof(struct db_bucket)},
                            .bits = level_bits(sums, level)};
    struct arena *arena = arena_new();
    bool ok =
        db_run(conn, err, "DELETE FROM sums WHERE series = ?1 AND level = ?2 AND start >= ?3",
               "iii", sums->series, (int64_t)level, low) &&
        give(conn, sums->series, level - 1, low, high - 1, gather, &making, err);
    int count;
    const struct db_bucket *all = db_rows_end(&making.rows, arena, &count);
    for (int i = 0; ok && i < count; i++)
        ok = store(conn, sums, level, &all[i], err);
    arena_free(arena);
    return ok;
}

/* How wide the finest sums are, from how far apart the points are. */
static bool choose_bits(struct db_conn *conn, struct db_sums *sums, int64_t last_step,
                        struct error *err)
{
    int64_t first, count;
    if (!db_number(conn, err, &first, 0,
                   "SELECT step FROM points WHERE series = ?1 AND step >= 0 ORDER BY step"
                   " LIMIT 1",
                   "i", sums->series) ||
        !db_number(conn, err, &count, 0, "SELECT points_count FROM series WHERE id = ?1", "i",
                   sums->series))
        return false;
    int64_t apart = (last_step - first) / (count > 0 ? count : 1);
    for (sums->bits = FINEST_BITS; apart > 1 && sums->bits < BITS_MAX; apart /= 2)
        sums->bits++;
    return true;
}

static bool make(struct db_conn *conn, struct db_sums *sums, struct error *err)
{
    int64_t last; /* and it is left out: so nothing overflows, and it may be stored again */
    if (!db_number(conn, err, &last, 0, "SELECT last_step FROM series WHERE id = ?1", "i",
                   sums->series) ||
        (sums->bits < 0 && !choose_bits(conn, sums, last, err)))
        return false;
    for (int level = 1;
         level_bits(sums, level) <= BITS_MAX && INT64_C(1) << level_bits(sums, level) <= last;
         level++) {
        if (!make_level(conn, sums, level, last, err))
            return false;
    }
    return db_run(conn, err,
                  "UPDATE series SET sum_bits = ?2, summed_until = max(summed_until, ?3),"
                  " unsummed = 0 WHERE id = ?1",
                  "iii", sums->series, (int64_t)sums->bits, last);
}

bool db_sums_make(struct db_conn *conn, int64_t series, struct error *err)
{
    struct db_sums sums;
    return db_sums_find(conn, series, &sums, err) && make(conn, &sums, err);
}
