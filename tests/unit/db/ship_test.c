/* ship_test.c - pieces of files, stored exactly once, and read back. */
/* Faults of docs/reliability.md: F29 F32 F38. */

#include <math.h>

#include "base/arena.h"
#include "db/artifacts.h"
#include "db/logs.h"
#include "db/metrics.h"
#include "db/ship.h"
#include "tests/unit/db/folder.h"

struct world {
    char *folder;
    struct db *db;
    struct arena *arena;
    struct db_conn *conn; /* a reader, made anew by look() */
};

static struct world world_open(void)
{
    struct error err;
    struct world world = {.folder = folder_new(), .arena = arena_new()};
    world.db = db_open(world.folder, &err);
    if (!world.db)
        CHECK_STOP("%s", err.text);
    return world;
}

static struct db_conn *look(struct world *world)
{
    struct error err;
    db_read_done(world->db, world->conn);
    world->conn = db_read(world->db, DB_METRICS, &err);
    CHECK(world->conn);
    return world->conn;
}

static void world_close(struct world *world)
{
    db_read_done(world->db, world->conn);
    db_close(world->db);
    arena_free(world->arena);
    folder_free(world->folder);
}

static struct db_ship a_ship(int64_t epoch, int64_t offset, int64_t end)
{
    return (struct db_ship){.job = 1,
                            .epoch = epoch,
                            .role = "worker",
                            .file = "events",
                            .offset = offset,
                            .end = end};
}

static struct db_shipped ship(struct world *world, const struct db_ship *piece)
{
    struct error err;
    struct db_shipped shipped;
    CHECK_OK(db_ship(world->db, piece, &shipped, &err), &err);
    return shipped;
}

static struct db_shipped ship_points(struct world *world, int64_t epoch, int64_t offset,
                                     int64_t end, int64_t from, int64_t to, double value)
{
    struct db_point points[1000];
    CHECK(to - from <= 1000);
    for (int64_t i = from; i < to; i++)
        points[i - from] =
            (struct db_point){.name = "loss", .step = i, .wall_us = 10 * i, .value = value};
    struct db_ship piece = a_ship(epoch, offset, end);
    piece.points = points;
    piece.points_count = (int)(to - from);
    return ship(world, &piece);
}

static int points_of(struct world *world, struct db_point **points)
{
    struct error err;
    struct db_series series;
    int count;
    struct db_conn *conn = look(world);
    CHECK_OK(db_metrics_find(conn, 1, "worker", 0, "loss", world->arena, &series, &err), &err);
    CHECK_OK(db_metrics_points(conn, series.id, 0, 1000000, 100000, world->arena, points,
                               &count, &err),
             &err);
    return count;
}

/* A piece that comes twice, or from too far on, stores nothing and is told where to go on. */
TEST(ship_counts_every_byte_once)
{
    struct world world = world_open();
    struct db_shipped s = ship_points(&world, 7, 0, 100, 0, 10, 1.0);
    CHECK(s.stored);
    CHECK_INT(s.cursor, 100);
    CHECK_INT(s.seq, 1);
    s = ship_points(&world, 7, 0, 100, 0, 10, 2.0);
    CHECK(!s.stored);
    CHECK_INT(s.cursor, 100);
    CHECK_INT(s.seq, 0);
    s = ship_points(&world, 7, 150, 200, 10, 20, 2.0);
    CHECK(!s.stored);
    s = ship_points(&world, 7, 100, 200, 10, 20, 2.0);
    CHECK(s.stored);
    CHECK_INT(s.seq, 2);
    struct db_point *points;
    CHECK_INT(points_of(&world, &points), 20);
    CHECK(points[9].value == 1.0);
    CHECK(points[10].value == 2.0);

    struct error err;
    int64_t cursor;
    CHECK_OK(db_ship_cursor(world.conn, 7, "worker", 0, "events", &cursor, &err), &err);
    CHECK_INT(cursor, 200);
    CHECK_OK(db_ship_cursor(world.conn, 7, "worker", 1, "events", &cursor, &err), &err);
    CHECK_INT(cursor, 0);
    world_close(&world);
}

TEST(ship_keeps_what_is_no_number)
{
    struct error err;
    struct world world = world_open();
    struct db_point points[] = {{"loss", 1, 1, (double)NAN},
                                {"loss", 2, 1, (double)INFINITY},
                                {"loss", 3, 1, -(double)INFINITY},
                                {"accuracy", 3, 1, 0.5}};
    struct db_ship piece = a_ship(1, 0, 10);
    piece.points = points;
    piece.points_count = 4;
    ship(&world, &piece);
    struct db_point *stored;
    CHECK_INT(points_of(&world, &stored), 3);
    CHECK(isnan(stored[0].value));
    CHECK(isinf(stored[1].value));
    struct db_series *series;
    int count;
    CHECK_OK(db_metrics_series(look(&world), 1, false, world.arena, &series, &count, &err),
             &err);
    CHECK_INT(count, 2);
    CHECK_TEXT(series[0].name, "accuracy");
    CHECK(series[0].last_value == 0.5);
    CHECK_INT(series[1].last_step, 3);
    CHECK_INT(series[1].points_count, 3);
    CHECK_FAILS(db_metrics_find(world.conn, 1, "ps", 0, "loss", world.arena, &series[0], &err),
                &err, NOT_FOUND);
    world_close(&world);
}

/* A new attempt that goes on from step 50 makes the old one's later steps never have been. */
TEST(ship_start_forgets_later_steps)
{
    struct error err;
    struct world world = world_open();
    ship_points(&world, 1, 0, 100, 0, 46, 1.0);
    ship_points(&world, 1, 100, 200, 46, 80, 9.0);
    CHECK_OK(db_ship_fence(world.db, 1, 2, &err), &err);
    struct db_ship start = a_ship(2, 0, 10);
    start.starts = true;
    start.start_step = 45;
    ship(&world, &start);
    struct db_point *points;
    CHECK_INT(points_of(&world, &points), 46);
    struct db_series series;
    CHECK_OK(db_metrics_find(look(&world), 1, "worker", 0, "loss", world.arena, &series, &err),
             &err);
    CHECK_INT(series.last_step, 45);
    CHECK(series.last_value == 1.0); /* not that of a step that never was */
    ship_points(&world, 2, 10, 20, 46, 60, 2.0);
    CHECK_INT(points_of(&world, &points), 60);
    CHECK(points[55].value == 2.0);
    /* From the very beginning: nothing is left. */
    start = a_ship(3, 0, 10);
    start.starts = true;
    start.start_step = -1;
    ship(&world, &start);
    CHECK_INT(points_of(&world, &points), 0);
    CHECK_OK(db_metrics_find(look(&world), 1, "worker", 0, "loss", world.arena, &series, &err),
             &err);
    CHECK_INT(series.last_step, -1);
    CHECK(isnan(series.last_value));
    world_close(&world);
}

/* What an older attempt still has to say counts only where the new one did not begin anew. */
TEST(ship_of_an_old_attempt_is_fenced)
{
    struct error err;
    struct world world = world_open();
    ship_points(&world, 1, 0, 100, 0, 20, 1.0);
    CHECK_OK(db_ship_fence(world.db, 1, 2, &err), &err);

    /* The new one has not said where it begins: it may be behind these. */
    struct db_shipped s = ship_points(&world, 1, 100, 200, 20, 30, 1.0);
    CHECK(s.stored);
    CHECK(s.fenced);
    struct db_point *points;
    CHECK_INT(points_of(&world, &points), 30);

    struct db_ship start = a_ship(2, 0, 10);
    start.starts = true;
    start.start_step = 35;
    CHECK(!ship(&world, &start).fenced);
    s = ship_points(&world, 1, 200, 300, 30, 50, 1.0);
    CHECK(s.fenced);
    CHECK_INT(points_of(&world, &points), 36);

    struct db_artifact_new graph = {.kind = "graph", .name = "", .bytes = "old", .size = 3};
    struct db_ship late = a_ship(1, 300, 310);
    late.artifacts = &graph;
    late.artifacts_count = 1;
    late.log = "stdout";
    late.log_bytes = "late\n";
    late.log_size = 5;
    ship(&world, &late);
    struct db_artifact artifact;
    struct db_log log;
    struct db_conn *conn = look(&world);
    CHECK_FAILS(db_artifacts_find(conn, 1, "graph", "", world.arena, &artifact, &err), &err,
                NOT_FOUND);
    CHECK_OK(db_logs_find(conn, 1, "worker", 0, "stdout", world.arena, &log, &err), &err);
    CHECK_INT(log.size, 5);
    /* A fence never goes back. */
    CHECK_OK(db_ship_fence(world.db, 1, 1, &err), &err);
    CHECK(ship_points(&world, 1, 310, 320, 60, 61, 1.0).fenced);
    world_close(&world);
}

/* Programs do not say where they start again: their first point of a series does. */
TEST(ship_of_a_program_that_starts_again)
{
    struct error err;
    struct world world = world_open();
    ship_points(&world, 1, 0, 100, 0, 60, 1.0);
    CHECK_OK(db_ship_fence(world.db, 1, 2, &err), &err);
    ship_points(&world, 2, 0, 10, 40, 45, 2.0);
    struct db_point *points;
    CHECK_INT(points_of(&world, &points), 45);
    CHECK(points[39].value == 1.0);
    CHECK(points[40].value == 2.0);
    struct db_series series;
    CHECK_OK(db_metrics_find(look(&world), 1, "worker", 0, "loss", world.arena, &series, &err),
             &err);
    CHECK_INT(series.last_step, 44);

    /* Late words of the old one: only of what is behind. */
    ship_points(&world, 1, 100, 200, 30, 80, 3.0);
    CHECK_INT(points_of(&world, &points), 45);
    CHECK(points[39].value == 3.0);
    CHECK(points[40].value == 2.0);
    ship_points(&world, 1, 200, 300, 50, 80, 3.0);
    CHECK_INT(points_of(&world, &points), 45);

    /* It goes back itself: its own points stay, and the older one's do not come over them. */
    ship_points(&world, 2, 10, 20, 35, 36, 2.0);
    ship_points(&world, 1, 300, 400, 35, 36, 3.0);
    CHECK_INT(points_of(&world, &points), 45);
    CHECK(points[35].value == 2.0);
    CHECK(points[44].value == 2.0);

    /* Of the use of hardware, and what comes by REST, nothing is cut. */
    struct db_point others[] = {{DB_HARDWARE "cpu", 1000, 1, 0.5}, {"score", 1000, 1, 0.5}};
    int64_t seq;
    int count;
    for (int attempt = 1; attempt <= 3; attempt++) {
        others[0].step = others[1].step = 1000 - attempt;
        struct db_ship hardware = a_ship(attempt, 1000, 1001);
        hardware.file = "usage";
        hardware.offset = 0;
        hardware.points = &others[0];
        hardware.points_count = 1;
        ship(&world, &hardware);
        struct db_ship rest = a_ship(attempt, 0, 0);
        rest.file = NULL;
        rest.points = &others[1];
        rest.points_count = 1;
        CHECK_OK(db_ship_points(world.db, &rest, 1, &seq, &err), &err);
    }
    for (int i = 0; i < 2; i++) {
        CHECK_OK(db_metrics_find(look(&world), 1, "worker", 0, others[i].name, world.arena,
                                 &series, &err),
                 &err);
        CHECK_OK(db_metrics_points(world.conn, series.id, 0, 1000000, 100, world.arena, &points,
                                   &count, &err),
                 &err);
        CHECK_INT(count, 3);
    }
    world_close(&world);
}

static struct db_shipped ship_log(struct world *world, int64_t offset, const char *bytes,
                                  size_t size)
{
    struct db_ship piece = a_ship(1, offset, offset + (int64_t)size);
    piece.file = "stdout.log";
    piece.log = "stdout";
    piece.log_bytes = bytes;
    piece.log_size = size;
    return ship(world, &piece);
}

/* Bytes of every value, in pieces of every size, come back as they were. */
TEST(logs_keep_every_byte)
{
    struct error err;
    struct world world = world_open();
    static char bytes[400000];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(i * 2654435761u >> 13);
    size_t sizes[] = {1, 0, 10, 65535, 1, 65536, 65537, 3, 200000};
    int64_t at = 0;
    for (int i = 0; i < ARRAY_LEN(sizes); i++) {
        ship_log(&world, at, bytes + at, sizes[i]);
        at += (int64_t)sizes[i];
    }

    struct db_log log;
    struct db_conn *conn = look(&world);
    CHECK_OK(db_logs_find(conn, 1, "worker", 0, "stdout", world.arena, &log, &err), &err);
    CHECK_INT(log.size, at);
    int64_t newlines = 0;
    for (int64_t i = 0; i < at; i++)
        newlines += bytes[i] == '\n';
    CHECK_INT(log.lines_count, newlines);

    const char *read;
    size_t size;
    int64_t offsets[] = {0, 1, 10, 65546, 65547, 131072, 300000};
    for (int i = 0; i < ARRAY_LEN(offsets); i++) {
        for (size_t max = 1; max < 400000; max = max * 7 + 3) {
            CHECK_OK(
                db_logs_read(conn, log.id, offsets[i], max, world.arena, &read, &size, &err),
                &err);
            size_t expected = (size_t)(at - offsets[i]) < max ? (size_t)(at - offsets[i]) : max;
            CHECK_INT(size, expected);
            CHECK(memcmp(read, bytes + offsets[i], size) == 0);
        }
    }
    CHECK_OK(db_logs_read(conn, log.id, at, 100, world.arena, &read, &size, &err), &err);
    CHECK_INT(size, 0);
    struct db_log *logs;
    int count;
    CHECK_OK(db_logs_list(conn, 1, world.arena, &logs, &count, &err), &err);
    CHECK_INT(count, 1);
    world_close(&world);
}

TEST(logs_tail_is_whole_lines)
{
    struct error err;
    struct world world = world_open();
    ship_log(&world, 0, "one\ntwo\n\nfour\nfi", 16);
    struct db_log log;
    struct db_conn *conn = look(&world);
    CHECK_OK(db_logs_find(conn, 1, "worker", 0, "stdout", world.arena, &log, &err), &err);
    int64_t offset;
    const int64_t expected[] = {16, 14, 9, 8, 4, 0, 0};
    for (int lines = 0; lines < 7; lines++) {
        CHECK_OK(db_logs_tail(conn, log.id, lines, 1000, world.arena, &offset, &err), &err);
        CHECK_INT(offset, expected[lines]);
    }
    ship_log(&world, 16, "ve\n", 3);
    conn = look(&world);
    CHECK_OK(db_logs_tail(conn, log.id, 1, 1000, world.arena, &offset, &err), &err);
    CHECK_INT(offset, 14);
    world_close(&world);
}

TEST(artifacts_are_replaced_by_newer_ones)
{
    struct error err;
    struct world world = world_open();
    struct db_artifact_new artifacts[] = {
        {.kind = "graph", .name = "", .step = -1, .bytes = "g\0aph", .size = 5},
        {.kind = "trace", .name = "100", .step = 100, .bytes = "t", .size = 1},
    };
    struct db_checkpoint checkpoint = {.step = 50, .wall_us = 5, .path = "/c/model-50"};
    struct db_ship piece = a_ship(1, 0, 10);
    piece.artifacts = artifacts;
    piece.artifacts_count = 2;
    piece.checkpoints = &checkpoint;
    piece.checkpoints_count = 1;
    ship(&world, &piece);
    artifacts[0].bytes = "new";
    artifacts[0].size = 3;
    piece.offset = 10;
    piece.end = 20;
    ship(&world, &piece);

    struct db_conn *conn = look(&world);
    struct db_artifact *list, found;
    int count;
    CHECK_OK(db_artifacts_list(conn, 1, NULL, world.arena, &list, &count, &err), &err);
    CHECK_INT(count, 2);
    CHECK_OK(db_artifacts_list(conn, 1, "trace", world.arena, &list, &count, &err), &err);
    CHECK_INT(count, 1);
    CHECK_TEXT(list[0].name, "100");
    CHECK_OK(db_artifacts_find(conn, 1, "graph", "", world.arena, &found, &err), &err);
    CHECK_INT(found.size, 3);
    CHECK(memcmp(found.bytes, "new", 3) == 0);
    struct db_checkpoint *checkpoints;
    CHECK_OK(db_checkpoints_list(conn, 1, world.arena, &checkpoints, &count, &err), &err);
    CHECK_INT(count, 1);
    CHECK_TEXT(checkpoints[0].path, "/c/model-50");
    CHECK_INT(checkpoints[0].epoch, 1);
    world_close(&world);
}

/* A stream that was cut learns from the sequence number what it has missed. */
TEST(ship_changes_can_be_followed)
{
    struct error err;
    struct world world = world_open();
    ship_points(&world, 1, 0, 10, 0, 10, 1.0);
    ship_log(&world, 0, "hello\n", 6);
    ship_points(&world, 1, 10, 20, 10, 15, 1.0);
    struct db_change *changes;
    int count;
    int64_t seq;
    struct db_conn *conn = look(&world);
    CHECK_OK(db_ship_since(conn, 1, 1, 100, world.arena, &changes, &count, &err), &err);
    CHECK_INT(count, 2);
    CHECK_INT(changes[0].kind, DB_CHANGE_LOG);
    CHECK_INT(changes[0].last, 6);
    CHECK_INT(changes[1].kind, DB_CHANGE_POINTS);
    CHECK_INT(changes[1].first, 10);
    CHECK_INT(changes[1].last, 14);
    CHECK_OK(db_ship_seq(conn, &seq, &err), &err);
    CHECK_INT(seq, 3);
    CHECK_OK(db_ship_since(conn, 2, 0, 100, world.arena, &changes, &count, &err), &err);
    CHECK_INT(count, 0);
    world_close(&world);
}

static void ship_value(struct world *world, int64_t job, const char *role, int index,
                       const char *name, double value)
{
    struct db_point point = {name, 1, 1000, value};
    struct db_ship piece = {.job = job,
                            .epoch = job,
                            .role = role,
                            .index = index,
                            .file = name,
                            .end = 1,
                            .points = &point,
                            .points_count = 1};
    CHECK(ship(world, &piece).stored);
}

/* "3 1 2": the jobs behind `after`, in their order. */
static const char *ranking(struct world *world, bool descending, struct db_ranked after,
                           int limit)
{
    struct error err;
    struct db_ranked *ranked;
    const char *text = "";
    int count = 0;
    CHECK_OK(db_metrics_order(look(world), "loss", descending, after, limit, world->arena,
                              &ranked, &count, &err),
             &err);
    for (int i = 0; i < count; i++)
        text = arena_printf(world->arena, "%s%s%lld", text, i ? " " : "",
                            (long long)ranked[i].job);
    return text;
}

TEST(jobs_are_ordered_by_what_their_chief_or_first_worker_says)
{
    struct world world = world_open();
    struct db_ranked lowest = {-1, -HUGE_VAL, NULL}, highest = {INT64_MAX, HUGE_VAL, NULL};
    ship_value(&world, 1, "worker", 0, "loss", 0.5);
    ship_value(&world, 1, "worker", 1, "loss", -9);
    ship_value(&world, 2, "chief", 0, "loss", 0.25);
    ship_value(&world, 2, "chief", 0, "accuracy", 7);
    ship_value(&world, 2, "worker", 0, "loss", 9);
    ship_value(&world, 3, "worker", 0, "loss", 0.25);
    ship_value(&world, 4, "worker", 0, "loss", NAN);
    ship_value(&world, 4, "worker", 1, "loss", 0.1);
    ship_value(&world, 5, "worker", 0, "loss", HUGE_VAL);
    ship_value(&world, 6, "worker", 0, "accuracy", 1);
    CHECK_TEXT(ranking(&world, false, lowest, 10), "2 3 1 5");
    CHECK_TEXT(ranking(&world, true, highest, 10), "5 1 3 2");
    CHECK_TEXT(ranking(&world, false, lowest, 2), "2 3");
    CHECK_TEXT(ranking(&world, false, (struct db_ranked){2, 0.25, NULL}, 10), "3 1 5");
    CHECK_TEXT(ranking(&world, true, (struct db_ranked){3, 0.25, NULL}, 10), "2");
    world_close(&world);
}
