/* trim_test.c - what is old and large goes, what tells of a job stays. */

#include "db/trim.h"

#include "base/arena.h"
#include "db/artifacts.h"
#include "db/events.h"
#include "db/internal.h"
#include "db/jobs.h"
#include "db/logs.h"
#include "db/metrics.h"
#include "db/ship.h"
#include "db/tokens.h"
#include "tests/unit/db/folder.h"

static int64_t add_job(struct db *db)
{
    struct error err;
    struct db_need need = {.role = "worker", .replicas = 1, .cpu_millis = 1000};
    struct db_job_new job = {.user_id = DB_USER_ADMIN,
                             .name = "a",
                             .project = "default",
                             .queue = "default",
                             .spec = "{}",
                             .dataset = "",
                             .needs = &need,
                             .needs_count = 1};
    struct db_job_added added;
    CHECK_OK(db_jobs_add(db, &job, &added, &err), &err);
    return added.number;
}

/* Points, a log, a graph and `traces` traced steps. */
static void report(struct db *db, int64_t job, int points, int traces)
{
    struct error err;
    struct db_shipped shipped;
    struct arena *arena = arena_new();
    struct db_point *all = arena_array(arena, (size_t)points, sizeof(*all));
    struct db_artifact_new *artifacts =
        arena_array(arena, (size_t)traces + 1, sizeof(*artifacts));
    for (int i = 0; i < points; i++)
        all[i] = (struct db_point){.name = "loss", .step = i, .wall_us = i, .value = i};
    for (int i = 0; i < traces; i++)
        artifacts[i] =
            (struct db_artifact_new){"trace", arena_printf(arena, "%d", i), i, "x", 1};
    artifacts[traces] = (struct db_artifact_new){"graph", "", -1, "g", 1};
    struct db_ship piece = {.job = job,
                            .epoch = job,
                            .role = "worker",
                            .file = "events",
                            .end = 1,
                            .points = all,
                            .points_count = points,
                            .artifacts = artifacts,
                            .artifacts_count = traces + 1};
    CHECK_OK(db_ship(db, &piece, &shipped, &err), &err);
    static char text[200000];
    memset(text, '\n', sizeof(text));
    struct db_ship log = {.job = job,
                          .epoch = job,
                          .role = "worker",
                          .file = "stdout.log",
                          .end = sizeof(text),
                          .log = "stdout",
                          .log_bytes = text,
                          .log_size = sizeof(text)};
    CHECK_OK(db_ship(db, &log, &shipped, &err), &err);
    arena_free(arena);
}

/* How much there is of a job. */
static void count(struct db *db, int64_t job, int *points, int *logs, int *traces, int *graphs)
{
    struct error err;
    struct arena *arena = arena_new();
    struct db_conn *conn = db_read(db, DB_METRICS, &err);
    CHECK(conn);
    struct db_series series;
    struct db_point *all;
    struct db_log *list;
    struct db_artifact artifact;
    CHECK_OK(db_metrics_find(conn, job, "worker", 0, "loss", arena, &series, &err), &err);
    CHECK_OK(db_metrics_points(conn, series.id, 0, 1000000, 1000000, arena, &all, points, &err),
             &err);
    CHECK_OK(db_logs_list(conn, job, arena, &list, logs, &err), &err);
    *traces = 0;
    for (int i = 0; i < 200; i++)
        *traces += db_artifacts_find(conn, job, "trace", arena_printf(arena, "%d", i), arena,
                                     &artifact, &err);
    *graphs = db_artifacts_find(conn, job, "graph", "", arena, &artifact, &err);
    CHECK(series.last_value == (double)series.last_step && series.last_step > 0);
    db_read_done(db, conn);
    arena_free(arena);
}

TEST(trim_leaves_what_tells_of_the_job)
{
    struct error err;
    int points, logs, traces, graphs;
    int64_t rows, next;
    char *folder = folder_new();
    struct db *db = db_open(folder, &err);
    CHECK(db);
    int64_t old = add_job(db), other = add_job(db);
    report(db, old, 45000, 150);
    report(db, other, 10, 2);
    count(db, old, &points, &logs, &traces, &graphs);
    CHECK_INT(points, 45000);
    CHECK_INT(logs, 1);
    CHECK_INT(traces, DB_TRACES_MAX); /* the newest */
    CHECK_INT(graphs, 1);

    CHECK_OK(db_trim_job(db, old, "it was old", &rows, &err), &err);
    CHECK(rows > 45000);
    count(db, old, &points, &logs, &traces, &graphs);
    CHECK_INT(points + logs + traces, 0);
    CHECK_INT(graphs, 1);
    count(db, other, &points, &logs, &traces, &graphs);
    CHECK_INT(points, 10);
    CHECK_INT(logs, 1);
    CHECK_INT(traces, 2);

    struct db_conn *conn = db_read(db, DB_METRICS, &err);
    CHECK(conn);
    CHECK_OK(db_trim_next(conn, 0, &next, &err), &err);
    CHECK_INT(next, other);
    CHECK_OK(db_trim_next(conn, other, &next, &err), &err);
    CHECK_INT(next, 0);
    db_read_done(db, conn);

    bool due;
    conn = db_read(db, DB_CONTROL, &err);
    CHECK(conn);
    CHECK_OK(db_trim_due(conn, other, INT64_MAX, &due, &err), &err);
    CHECK(!due); /* it has not ended */
    db_read_done(db, conn);
    db_close(db);
    folder_free(folder);
}

/* Rows of a table of metrics.db that belong to the job. */
static int64_t rows_of(struct db *db, const char *sql, int64_t job)
{
    struct error err;
    int64_t rows;
    struct db_conn *conn = db_read(db, DB_METRICS, &err);
    CHECK(conn);
    CHECK_OK(db_number(conn, &err, &rows, -1, sql, "i", job), &err);
    db_read_done(db, conn);
    return rows;
}

TEST(trim_all_leaves_nothing)
{
    struct error err;
    char *folder = folder_new();
    struct db *db = db_open(folder, &err);
    CHECK(db);
    int64_t old = add_job(db), other = add_job(db);
    report(db, old, 45000, 3);
    report(db, other, 10, 2);
    CHECK_OK(db_trim_all(db, old, &err), &err);
    static const char *const counts[] = {
        "SELECT count(*) FROM series WHERE job = ?1",
        "SELECT count(*) FROM logs WHERE job = ?1",
        "SELECT count(*) FROM artifacts WHERE job = ?1",
        "SELECT count(*) FROM changes WHERE job = ?1",
        "SELECT count(*) FROM points p JOIN series s ON s.id = p.series WHERE s.job = ?1"};
    for (int i = 0; i < ARRAY_LEN(counts); i++) {
        CHECK_INT(rows_of(db, counts[i], old), 0);
        CHECK(rows_of(db, counts[i], other) > 0);
    }
    CHECK_INT(rows_of(db, "SELECT count(*) FROM points WHERE ?1", 1), 10);
    db_close(db);
    folder_free(folder);
}
