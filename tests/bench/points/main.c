/*
 * main.c - points FOLDER JOB NAME COUNT: fills a series with points, through db/ as a server
 * does, but without what carries them there.
 *
 * FOLDER is of a server that does not run, and has JOB (its number).  The value of step n is
 * n * 7919 % 10007 / 1e4.  Prints how many a second were put on disk.
 */

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "db/jobs.h"
#include "db/ship.h"

enum { BATCH = 100000 };

static bool fill(struct db *db, const struct db_job *job, const char *name, int64_t count,
                 struct error *err)
{
    struct db_point *points = alloc_array(BATCH, sizeof(*points));
    bool ok = true;
    for (int64_t first = 0; ok && first < count; first += BATCH) {
        int size = count - first < BATCH ? (int)(count - first) : BATCH;
        int64_t seq, now_us = (int64_t)clock_wall_us();
        for (int i = 0; i < size; i++)
            points[i] = (struct db_point){name, first + i, now_us,
                                          (double)((first + i) * 7919 % 10007) / 1e4};
        struct db_ship ship = {.job = job->number,
                               .epoch = job->epoch,
                               .role = "worker",
                               .points = points,
                               .points_count = size};
        ok = db_ship_points(db, &ship, 1, &seq, err);
    }
    free(points);
    return ok;
}

int main(int argc, char **argv)
{
    struct error err;
    struct db_job job;
    int64_t count = argc == 5 ? strtoll(argv[4], NULL, 10) : 0;
    if (count < 1) {
        fputs("usage: points FOLDER JOB NAME COUNT\n", stderr);
        return 2;
    }
    struct arena *arena = arena_new();
    struct db *db = db_open(argv[1], &err);
    struct db_conn *conn = db ? db_read(db, DB_CONTROL, &err) : NULL;
    bool ok = conn && db_jobs_find(conn, strtoll(argv[2], NULL, 10), arena, &job, &err);
    if (conn)
        db_read_done(db, conn);
    uint64_t start_us = clock_monotonic_us();
    ok = ok && fill(db, &job, argv[3], count, &err);
    double seconds = (double)(clock_monotonic_us() - start_us) / 1e6;
    if (ok)
        printf("{\"case\": \"%lld points stored in batches of %d\", \"value\": %.0f, \"unit\": "
               "\"1/s\"}\n",
               (long long)count, BATCH, (double)count / seconds);
    else
        fprintf(stderr, "points: %s\n", err.text);
    db_close(db);
    arena_free(arena);
    return ok ? 0 : 1;
}
