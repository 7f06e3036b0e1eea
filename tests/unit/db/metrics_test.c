/* metrics_test.c - charts of points, from points and from sums. */

#include "db/metrics.h"

#include <math.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "db/ship.h"
#include "db/sums.h"
#include "tests/unit/db/folder.h"

enum { POINTS_MAX = 200000 };

struct random_source {
    uint64_t state;
};

static uint64_t random_below(struct random_source *source, uint64_t end)
{
    source->state =
        source->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (source->state >> 16) % end;
}

/* What was stored, as the reference has it. */
struct world {
    char *folder;
    struct db *db;
    int64_t offset;
    struct db_point *points; /* by step */
    int count;
};

static struct world world_open(void)
{
    struct error err;
    struct world world = {.folder = folder_new(),
                          .points = alloc_array(POINTS_MAX, sizeof(*world.points))};
    world.db = db_open(world.folder, &err);
    if (!world.db)
        CHECK_STOP("%s", err.text);
    return world;
}

static void world_close(struct world *world)
{
    db_close(world->db);
    folder_free(world->folder);
    free(world->points);
}

/* Where the first point of `step` or later is. */
static int find(const struct world *world, int64_t step)
{
    int low = 0, high = world->count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (world->points[middle].step < step)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void keep(struct world *world, const struct db_point *point)
{
    int at = find(world, point->step);
    if (at == world->count || world->points[at].step != point->step) {
        CHECK(world->count < POINTS_MAX);
        memmove(world->points + at + 1, world->points + at,
                (size_t)(world->count - at) * sizeof(*point));
        world->count++;
    }
    world->points[at] = *point;
}

/* Stores points; with `from` of 0 or later the task begins again behind that step first. */
static void put(struct world *world, const struct db_point *points, int count, int64_t from)
{
    struct error err;
    struct db_shipped shipped;
    struct db_ship piece = {.job = 1,
                            .epoch = 1,
                            .role = "worker",
                            .file = "events",
                            .offset = world->offset,
                            .end = world->offset + 1,
                            .starts = from >= 0,
                            .start_step = from,
                            .points = points,
                            .points_count = count};
    CHECK_OK(db_ship(world->db, &piece, &shipped, &err), &err);
    CHECK(shipped.stored);
    world->offset++;
    if (from >= 0)
        world->count = find(world, from + 1);
    for (int i = 0; i < count; i++)
        keep(world, &points[i]);
}

/* Points of steps from `first`, `apart`. */
static void put_row(struct world *world, int64_t first, int64_t apart, int count,
                    struct random_source *source)
{
    struct db_point *points = alloc_array((size_t)count, sizeof(*points));
    for (int i = 0; i < count; i++) {
        int64_t step = first + i * apart;
        points[i] = (struct db_point){.name = "loss",
                                      .step = step,
                                      .wall_us = step / 10,
                                      .value = (double)random_below(source, 1000)};
        if (random_below(source, 50) == 0)
            points[i].value = random_below(source, 2) ? (double)NAN : (double)INFINITY;
    }
    put(world, points, count, -1);
    free(points);
}

static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

/* A chart's buckets against the points themselves; how many there are. */
static int check(struct world *world, int64_t from, int64_t to, int most)
{
    struct error err;
    struct db_series series;
    struct db_bucket *buckets;
    struct arena *arena = arena_new();
    int count, at = find(world, from);
    struct db_conn *conn = db_read(world->db, DB_METRICS, &err);
    CHECK(conn);
    CHECK_OK(db_metrics_find(conn, 1, "worker", 0, "loss", arena, &series, &err), &err);
    CHECK_OK(db_metrics_buckets(conn, series.id, from, to, most, arena, &buckets, &count, &err),
             &err);
    CHECK(count <= most);
    for (int i = 0; i < count; i++) {
        double least = (double)NAN, greatest = (double)NAN;
        int64_t points = 0;
        for (; at < world->count && world->points[at].step <= buckets[i].step; at++, points++) {
            least = fmin(least, world->points[at].value);
            greatest = fmax(greatest, world->points[at].value);
        }
        CHECK_INT(buckets[i].count, points);
        CHECK(points > 0);
        CHECK(same(buckets[i].min, least));
        CHECK(same(buckets[i].max, greatest));
        CHECK(same(buckets[i].last, world->points[at - 1].value));
        CHECK_INT(buckets[i].step, world->points[at - 1].step);
        CHECK_INT(buckets[i].wall_us, world->points[at - 1].wall_us);
    }
    CHECK(at == world->count || world->points[at].step > to);
    db_read_done(world->db, conn);
    arena_free(arena);
    return count;
}

TEST(chart_keeps_spikes)
{
    struct world world = world_open();
    struct random_source source = {1};
    put_row(&world, 0, 1, 10000, &source);
    put(&world, &(struct db_point){.name = "loss", .step = 4321, .value = 1e9}, 1, -1);
    put(&world, &(struct db_point){.name = "loss", .step = 4322, .value = (double)NAN}, 1, -1);
    CHECK(check(&world, 0, INT64_MAX, 100) >= 66);
    CHECK_INT(check(&world, 0, 99, 100), 100);
    CHECK_INT(check(&world, 20000, 30000, 100), 0);
    CHECK_INT(check(&world, INT64_MIN, 0, 1), 1);
    CHECK_INT(check(&world, INT64_MIN, INT64_MAX, 1), 1);
    world_close(&world);
}

/* Rows, dense and sparse, points among what is summed, and tasks that begin again. */
TEST(chart_is_true_of_any_history)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct world world = world_open();
        struct random_source source = {seed};
        int64_t apart = (int64_t)1 << (random_below(&source, 10) * 2), next = 0;
        if (seed % 4 == 0)
            next = -20000 * apart;
        for (int i = 0; i < 20; i++) {
            int64_t first = next;
            if (next > 0 && random_below(&source, 4) == 0)
                first = (int64_t)random_below(&source, (uint64_t)next);
            int count = 1 + (int)random_below(&source, 4000);
            if (next > 0 && random_below(&source, 6) == 0)
                put(&world, NULL, 0, (int64_t)random_below(&source, (uint64_t)next));
            put_row(&world, first, apart, count, &source);
            int64_t end = first + count * apart;
            next = end > next ? end : next;
            check(&world, INT64_MIN, INT64_MAX, 1 + (int)random_below(&source, 2000));
            int64_t from = next > 0 ? (int64_t)random_below(&source, (uint64_t)next) : 0;
            int64_t wide = (int64_t)random_below(&source, (uint64_t)(apart * 30000));
            check(&world, from, from + wide, 1 + (int)random_below(&source, 1000));
        }
        world_close(&world);
    }
}

TEST(chart_of_the_widest_steps)
{
    struct world world = world_open();
    struct random_source source = {9};
    put_row(&world, 0, INT64_MAX / 5000, 5000, &source);
    put(&world, &(struct db_point){.name = "loss", .step = INT64_MAX, .value = 5}, 1, -1);
    put(&world, &(struct db_point){.name = "loss", .step = INT64_MIN, .value = 7}, 1, -1);
    check(&world, INT64_MIN, INT64_MAX, 10);
    check(&world, 0, INT64_MAX, 10);
    check(&world, INT64_MAX - 5, INT64_MAX, 10);
    check(&world, INT64_MAX / 2, INT64_MAX, 1000);
    world_close(&world);
}

static void take(void *arg, const struct db_bucket *piece)
{
    (void)piece;
    (*(int *)arg)++;
}

/* The point of it: few rows are read. */
TEST(chart_reads_few_rows)
{
    struct error err;
    struct world world = world_open();
    struct random_source source = {3};
    for (int i = 0; i < 10; i++)
        put_row(&world, i * 100000, 10, 10000, &source);
    struct arena *arena = arena_new();
    struct db_series series;
    struct db_sums sums;
    struct db_conn *conn = db_read(world.db, DB_METRICS, &err);
    CHECK(conn);
    CHECK_OK(db_metrics_find(conn, 1, "worker", 0, "loss", arena, &series, &err), &err);
    CHECK_OK(db_sums_find(conn, series.id, &sums, &err), &err);
    CHECK_INT(sums.until, 999990);
    int rows = 0;
    uint64_t width = db_sums_width(&sums, 1000000 / 200);
    CHECK(width > 1000000 / 200 / 4);
    CHECK_OK(db_sums_walk(conn, &sums, 0, INT64_MAX, width, take, &rows, &err), &err);
    CHECK(rows > 200);
    CHECK(rows < 900);
    db_read_done(world.db, conn);
    arena_free(arena);
    world_close(&world);
}
