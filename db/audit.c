/* audit.c - adding to the audit, and reading it page by page. */

#include "db/audit.h"
#include "base/arena.h"
#include "db/internal.h"

static bool add_run(struct db_conn *conn, void *arg, struct error *err)
{
    const struct db_audit *entry = arg;
    return db_run(conn, err,
                  "INSERT INTO audit (wall_us, user, way, method, path, status, request)"
                  " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                  "ittttit", entry->wall_us, entry->user, entry->way, entry->method,
                  entry->path, (int64_t)entry->status, entry->request);
}

void db_audit_begin(const struct db_audit *entry)
{
    db_along(add_run, (void *)entry);
}

bool db_audit_end(struct db *db, const struct db_audit *entry, struct error *err)
{
    return db_along_end() || db_write(db, DB_CONTROL, add_run, (void *)entry, err);
}

void db_audit_drop(void)
{
    (void)db_along_end();
}

bool db_audit_list(struct db_conn *conn, int64_t before, const char *user, int limit,
                   struct arena *arena, struct db_audit **entries, int *entries_count,
                   int64_t *next, struct error *err)
{
    assert(limit > 0);
    sqlite3_stmt *stmt =
        db_query(conn, err,
                 "SELECT seq, wall_us, user, way, method, path, status, request FROM audit"
                 " WHERE seq < ?1 AND (?2 IS NULL OR user = ?2) ORDER BY seq DESC LIMIT ?3",
                 "iti", before ? before : INT64_MAX, user, (int64_t)limit + 1);
    if (!stmt)
        return false;
    struct db_rows rows = {.row_size = sizeof(struct db_audit)};
    int row;
    while ((row = db_row(conn, stmt, err)) > 0)
        *(struct db_audit *)db_rows_add(&rows) = (struct db_audit){
            .seq = sqlite3_column_int64(stmt, 0),
            .wall_us = sqlite3_column_int64(stmt, 1),
            .user = db_column_text(stmt, 2, arena),
            .way = db_column_text(stmt, 3, arena),
            .method = db_column_text(stmt, 4, arena),
            .path = db_column_text(stmt, 5, arena),
            .status = sqlite3_column_int(stmt, 6),
            .request = db_column_text(stmt, 7, arena),
        };
    *entries = db_rows_end(&rows, arena, entries_count);
    *next = 0;
    if (*entries_count > limit) {
        /* The one too many says that there is another page. */
        *entries_count = limit;
        *next = (*entries)[limit - 1].seq;
    }
    return row == 0;
}
