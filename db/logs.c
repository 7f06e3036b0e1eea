/* logs.c - reads what tasks wrote on stdout and stderr. */

#include "db/logs.h"
#include "base/arena.h"
#include "db/internal.h"

#define LOG_COLUMNS "id, epoch, role, idx, name, size, lines_count"

static void log_read(sqlite3_stmt *stmt, struct arena *arena, struct db_log *log)
{
    *log = (struct db_log){
        .id = sqlite3_column_int64(stmt, 0),
        .epoch = sqlite3_column_int64(stmt, 1),
        .role = db_column_text(stmt, 2, arena),
        .index = sqlite3_column_int(stmt, 3),
        .name = db_column_text(stmt, 4, arena),
        .size = sqlite3_column_int64(stmt, 5),
        .lines_count = sqlite3_column_int64(stmt, 6),
    };
}

bool db_logs_list(struct db_conn *conn, int64_t job, struct arena *arena, struct db_log **logs,
                  int *logs_count, struct error *err)
{
    sqlite3_stmt *stmt = db_query(conn, err,
                                  "SELECT " LOG_COLUMNS " FROM logs WHERE job = ?1"
                                  " ORDER BY epoch, role, idx, name",
                                  "i", job);
    if (!stmt)
        return false;
    struct db_rows rows = {.row_size = sizeof(struct db_log)};
    int row;
    while ((row = db_row(conn, stmt, err)) > 0)
        log_read(stmt, arena, db_rows_add(&rows));
    *logs = db_rows_end(&rows, arena, logs_count);
    return row == 0;
}

bool db_logs_find(struct db_conn *conn, int64_t epoch, const char *role, int index,
                  const char *name, struct arena *arena, struct db_log *log, struct error *err)
{
    sqlite3_stmt *stmt = db_query(conn, err,
                                  "SELECT " LOG_COLUMNS " FROM logs WHERE epoch = ?1"
                                  " AND role = ?2 AND idx = ?3 AND name = ?4",
                                  "itit", epoch, role, (int64_t)index, name);
    int row = stmt ? db_row(conn, stmt, err) : -1;
    if (row < 0)
        return false;
    if (row == 0)
        return fail(err, NOT_FOUND, "%s:%d has written nothing on %s", role, index, name);
    log_read(stmt, arena, log);
    db_query_end(stmt);
    return true;
}

bool db_logs_read(struct db_conn *conn, int64_t log, int64_t offset, size_t size_max,
                  struct arena *arena, const char **bytes, size_t *size, struct error *err)
{
    sqlite3_stmt *stmt =
        db_query(conn, err,
                 "SELECT start, bytes FROM chunks WHERE log = ?1 AND start < ?3"
                 " AND start >= (SELECT ifnull(max(start), 0) FROM chunks WHERE log = ?1"
                 " AND start <= ?2) ORDER BY start",
                 "iii", log, offset, offset + (int64_t)size_max);
    if (!stmt)
        return false;
    char *all = arena_alloc(arena, size_max);
    size_t filled = 0;
    int row;
    while ((row = db_row(conn, stmt, err)) > 0) {
        int64_t start = sqlite3_column_int64(stmt, 0);
        int64_t chunk_size = sqlite3_column_bytes(stmt, 1);
        int64_t skip = offset + (int64_t)filled - start;
        assert(skip >= 0);
        if (skip >= chunk_size)
            continue; /* the offset lies at or behind the end of the log */
        size_t part = (size_t)(chunk_size - skip);
        if (part > size_max - filled)
            part = size_max - filled;
        memcpy(all + filled, (const char *)sqlite3_column_blob(stmt, 1) + skip, part);
        filled += part;
    }
    *bytes = all;
    *size = filled;
    return row == 0;
}

bool db_logs_tail(struct db_conn *conn, int64_t log, int lines_max, size_t size_max,
                  struct arena *arena, int64_t *offset, struct error *err)
{
    int64_t size;
    if (!db_number(conn, err, &size, 0, "SELECT size FROM logs WHERE id = ?1", "i", log))
        return false;
    int64_t from = size > (int64_t)size_max ? size - (int64_t)size_max : 0;
    const char *bytes;
    size_t read;
    if (!db_logs_read(conn, log, from, size_max, arena, &bytes, &read, err))
        return false;

    /* A newline at the very end closes the last line, it does not begin another. */
    size_t at = read;
    int lines = 0;
    while (at > 0 && lines < lines_max) {
        size_t begin = at - 1;
        while (begin > 0 && bytes[begin - 1] != '\n')
            begin--;
        at = begin;
        lines++;
    }
    *offset = from + (int64_t)at;
    return true;
}
