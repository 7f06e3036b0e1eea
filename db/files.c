/* files.c - asks specs for their files. */

#include "db/files.h"
#include "base/arena.h"
#include "db/internal.h"
#include "db/state.h"

bool db_files_named(struct db_conn *conn, int64_t ended_us, struct arena *arena,
                    const char ***hashes, int *count, struct error *err)
{
    static_assert(JOB_SUCCEEDED == 5 && JOB_STATES_COUNT == 8, "the states of the query");
    sqlite3_stmt *stmt = db_query(conn, err,
                                  "SELECT DISTINCT file.value FROM jobs,"
                                  " json_each(jobs.spec, '$.files') AS file"
                                  " WHERE program <> '' AND (state < 5 OR ended_us >= ?1)"
                                  " ORDER BY 1",
                                  "i", ended_us);
    if (!stmt)
        return false;
    struct db_rows rows = {.row_size = sizeof(const char *)};
    int row;
    while ((row = db_row(conn, stmt, err)) > 0)
        *(const char **)db_rows_add(&rows) = db_column_text(stmt, 0, arena);
    *hashes = db_rows_end(&rows, arena, count);
    return row == 0;
}
