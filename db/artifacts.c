/* artifacts.c - reads graphs, placements, traces, and the list of checkpoints. */

#include "db/artifacts.h"
#include "base/arena.h"
#include "db/internal.h"

static void artifact_read(sqlite3_stmt *stmt, struct arena *arena, struct db_artifact *artifact)
{
    *artifact = (struct db_artifact){
        .kind = db_column_text(stmt, 0, arena),
        .name = db_column_text(stmt, 1, arena),
        .epoch = sqlite3_column_int64(stmt, 2),
        .step = sqlite3_column_int64(stmt, 3),
        .wall_us = sqlite3_column_int64(stmt, 4),
        .size = (size_t)sqlite3_column_int64(stmt, 5),
    };
}

bool db_artifacts_list(struct db_conn *conn, int64_t job, const char *kind, struct arena *arena,
                       struct db_artifact **artifacts, int *artifacts_count, struct error *err)
{
    sqlite3_stmt *stmt = db_query(conn, err,
                                  "SELECT kind, name, epoch, step, wall_us, length(bytes)"
                                  " FROM artifacts WHERE job = ?1 AND (?2 IS NULL OR kind = ?2)"
                                  " ORDER BY kind, name",
                                  "it", job, kind);
    if (!stmt)
        return false;
    struct db_rows rows = {.row_size = sizeof(struct db_artifact)};
    int row;
    while ((row = db_row(conn, stmt, err)) > 0)
        artifact_read(stmt, arena, db_rows_add(&rows));
    *artifacts = db_rows_end(&rows, arena, artifacts_count);
    return row == 0;
}

bool db_artifacts_find(struct db_conn *conn, int64_t job, const char *kind, const char *name,
                       struct arena *arena, struct db_artifact *artifact, struct error *err)
{
    sqlite3_stmt *stmt =
        db_query(conn, err,
                 "SELECT kind, name, epoch, step, wall_us, length(bytes), bytes"
                 " FROM artifacts WHERE job = ?1 AND kind = ?2 AND name = ?3",
                 "itt", job, kind, name);
    int row = stmt ? db_row(conn, stmt, err) : -1;
    if (row < 0)
        return false;
    if (row == 0)
        return fail(err, NOT_FOUND, "job %lld has reported no %s%s%s", (long long)job, kind,
                    *name ? " " : "", name);
    artifact_read(stmt, arena, artifact);
    artifact->bytes = db_column_blob(stmt, 6, arena, &artifact->size);
    db_query_end(stmt);
    return true;
}

bool db_checkpoints_list(struct db_conn *conn, int64_t job, struct arena *arena,
                         struct db_checkpoint **checkpoints, int *checkpoints_count,
                         struct error *err)
{
    sqlite3_stmt *stmt = db_query(conn, err,
                                  "SELECT step, epoch, wall_us, path FROM checkpoints"
                                  " WHERE job = ?1 ORDER BY step",
                                  "i", job);
    if (!stmt)
        return false;
    struct db_rows rows = {.row_size = sizeof(struct db_checkpoint)};
    int row;
    while ((row = db_row(conn, stmt, err)) > 0)
        *(struct db_checkpoint *)db_rows_add(&rows) = (struct db_checkpoint){
            .step = sqlite3_column_int64(stmt, 0),
            .epoch = sqlite3_column_int64(stmt, 1),
            .wall_us = sqlite3_column_int64(stmt, 2),
            .path = db_column_text(stmt, 3, arena),
        };
    *checkpoints = db_rows_end(&rows, arena, checkpoints_count);
    return row == 0;
}
