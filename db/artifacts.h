/*
 * artifacts.h - the whole things that a job reports: its graph, the placement, the run, traces;
 * and the list of its checkpoints.
 *
 * db/ship.h writes, this reads; all run on a connection to DB_METRICS.
 */
#pragma once

#include "db/ship.h"

struct db_artifact {
    const char *kind;
    const char *name;
    int64_t epoch;
    int64_t step;
    int64_t wall_us;
    size_t size;
    const void *bytes; /* NULL in lists */
};

/* The artifacts of a job, of one kind or (NULL) of all, by kind and name, without their bytes.
 */
bool db_artifacts_list(struct db_conn *conn, int64_t job, const char *kind, struct arena *arena,
                       struct db_artifact **artifacts, int *artifacts_count,
                       struct error *err) CHECKED;

/* NOT_FOUND when it is not there (yet). */
bool db_artifacts_find(struct db_conn *conn, int64_t job, const char *kind, const char *name,
                       struct arena *arena, struct db_artifact *artifact,
                       struct error *err) CHECKED;

/* Published checkpoints, oldest first. */
bool db_checkpoints_list(struct db_conn *conn, int64_t job, struct arena *arena,
                         struct db_checkpoint **checkpoints, int *checkpoints_count,
                         struct error *err) CHECKED;
