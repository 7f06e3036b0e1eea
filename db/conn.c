/* conn.c - one connection: its settings, its prepared statements, its errors. */

#include <errno.h>
#include <math.h>
#include <stdarg.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "db/internal.h"

#define BUSY_MS 5000

struct statement {
    const char *sql; /* by address */
    sqlite3_stmt *stmt;
};

struct db_conn {
    sqlite3 *sqlite;
    struct statement *statements;
    int statements_count;
    int statements_capacity;
    int64_t noted_seq;
};

bool db_fail(struct db_conn *conn, struct error *err)
{
    int code = sqlite3_extended_errcode(conn->sqlite);
    const char *file = db_path(conn);
    const char *text = sqlite3_errmsg(conn->sqlite);
    switch (code & 0xff) {
    case SQLITE_FULL:
        return fail(err, EXHAUSTED, "disk full: %s cannot grow", file);
    case SQLITE_IOERR:
        if (sqlite3_system_errno(conn->sqlite) == ENOSPC)
            return fail(err, EXHAUSTED, "disk full: %s cannot grow", file);
        return fail(err, UNAVAILABLE, "%s: %s (%s)", file, text,
                    strerror(sqlite3_system_errno(conn->sqlite)));
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return fail(err, DATA_LOSS, "%s is damaged: %s", file, text);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return fail(err, UNAVAILABLE, "%s is busy: %s", file, text);
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
        return fail(err, DENIED, "%s: %s", file, text);
    default:
        return fail(err, INTERNAL, "%s: %s", file, text);
    }
}

static bool conn_configure(struct db_conn *conn, bool writable, struct error *err)
{
    int on = 0;
    sqlite3_extended_result_codes(conn->sqlite, 1);
    sqlite3_busy_timeout(conn->sqlite, BUSY_MS);
    sqlite3_db_config(conn->sqlite, SQLITE_DBCONFIG_DEFENSIVE, 1, &on);
    sqlite3_db_config(conn->sqlite, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, &on);
    if (!writable)
        return db_script(conn, "PRAGMA query_only=1; PRAGMA wal_autocheckpoint=0;", err);
    return db_script(conn,
                     "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=1;"
                     "PRAGMA cell_size_check=1;",
                     err);
}

struct db_conn *db_conn_open(const char *path, bool writable, struct error *err)
{
    struct db_conn *conn = alloc_bytes(sizeof(*conn));
    int flags = SQLITE_OPEN_NOMUTEX |
                (writable ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READWRITE);
    if (sqlite3_open_v2(path, &conn->sqlite, flags, NULL) != SQLITE_OK) {
        if (conn->sqlite)
            fail(err, DENIED, "%s: %s", path, sqlite3_errmsg(conn->sqlite));
        else
            fail(err, EXHAUSTED, "%s: no memory to open it", path);
        db_conn_close(conn);
        return NULL;
    }
    if (!conn_configure(conn, writable, err)) {
        db_conn_close(conn);
        return NULL;
    }
    return conn;
}

void db_conn_close(struct db_conn *conn)
{
    if (!conn)
        return;
    for (int i = 0; i < conn->statements_count; i++)
        sqlite3_finalize(conn->statements[i].stmt);
    free(conn->statements);
    sqlite3_close(conn->sqlite);
    free(conn);
}

const char *db_path(struct db_conn *conn)
{
    return sqlite3_db_filename(conn->sqlite, "main");
}

bool db_script(struct db_conn *conn, const char *sql, struct error *err)
{
    return sqlite3_exec(conn->sqlite, sql, NULL, NULL, NULL) == SQLITE_OK || db_fail(conn, err);
}

/* --- statements --- */

static sqlite3_stmt *conn_prepare(struct db_conn *conn, const char *sql, struct error *err)
{
    for (int i = 0; i < conn->statements_count; i++) {
        if (conn->statements[i].sql == sql)
            return conn->statements[i].stmt;
    }
    sqlite3_stmt *stmt;
    if (sqlite3_prepare_v3(conn->sqlite, sql, -1, SQLITE_PREPARE_PERSISTENT, &stmt, NULL) !=
        SQLITE_OK) {
        db_fail(conn, err);
        error_prefix(err, "in \"%.200s\": ", sql);
        return NULL;
    }
    conn->statements = alloc_grow(conn->statements, conn->statements_count,
                                  &conn->statements_capacity, sizeof(*conn->statements));
    conn->statements[conn->statements_count++] = (struct statement){sql, stmt};
    return stmt;
}

static void conn_bind(sqlite3_stmt *stmt, const char *types, va_list args)
{
    for (int i = 0; types[i]; i++) {
        int result = SQLITE_MISUSE;
        switch (types[i]) {
        case 'i':
            result = sqlite3_bind_int64(stmt, i + 1, va_arg(args, int64_t));
            break;
        case 'd':
            result = sqlite3_bind_double(stmt, i + 1, va_arg(args, double));
            break;
        case 't':
            result = sqlite3_bind_text(stmt, i + 1, va_arg(args, const char *), -1,
                                       SQLITE_TRANSIENT);
            break;
        case 'b': {
            const void *bytes = va_arg(args, const void *);
            size_t size = va_arg(args, size_t);
            /* No pointer but a size is "nothing"; no pointer and no size is an empty blob. */
            result = bytes || !size ? sqlite3_bind_blob64(stmt, i + 1, bytes ? bytes : "", size,
                                                          SQLITE_TRANSIENT)
                                    : sqlite3_bind_null(stmt, i + 1);
            break;
        }
        }
        assert(result == SQLITE_OK); /* anything else is a wrong `types`, or no memory */
    }
    assert(sqlite3_bind_parameter_count(stmt) == (int)strlen(types));
}

sqlite3_stmt *db_query(struct db_conn *conn, struct error *err, const char *sql,
                       const char *types, ...)
{
    sqlite3_stmt *stmt = conn_prepare(conn, sql, err);
    if (!stmt)
        return NULL;
    assert(!sqlite3_stmt_busy(stmt));
    va_list args;
    va_start(args, types);
    conn_bind(stmt, types, args);
    va_end(args);
    return stmt;
}

int db_row(struct db_conn *conn, sqlite3_stmt *stmt, struct error *err)
{
    int result = sqlite3_step(stmt);
    if (result == SQLITE_ROW)
        return 1;
    if (result != SQLITE_DONE)
        db_fail(conn, err);
    db_query_end(stmt);
    return result == SQLITE_DONE ? 0 : -1;
}

void db_query_end(sqlite3_stmt *stmt)
{
    sqlite3_reset(stmt);
    sqlite3_clear_bindings(stmt);
}

bool db_run(struct db_conn *conn, struct error *err, const char *sql, const char *types, ...)
{
    sqlite3_stmt *stmt = conn_prepare(conn, sql, err);
    if (!stmt)
        return false;
    va_list args;
    va_start(args, types);
    conn_bind(stmt, types, args);
    va_end(args);
    int row;
    do
        row = db_row(conn, stmt, err);
    while (row > 0);
    return row == 0;
}

bool db_number(struct db_conn *conn, struct error *err, int64_t *number, int64_t otherwise,
               const char *sql, const char *types, ...)
{
    sqlite3_stmt *stmt = conn_prepare(conn, sql, err);
    if (!stmt)
        return false;
    va_list args;
    va_start(args, types);
    conn_bind(stmt, types, args);
    va_end(args);
    int row = db_row(conn, stmt, err);
    if (row < 0)
        return false;
    *number = row ? sqlite3_column_int64(stmt, 0) : otherwise;
    if (row)
        db_query_end(stmt);
    return true;
}

const char *db_column_text(sqlite3_stmt *stmt, int column, struct arena *arena)
{
    const char *text = (const char *)sqlite3_column_text(stmt, column);
    return text ? arena_text_n(arena, text, (size_t)sqlite3_column_bytes(stmt, column)) : "";
}

const void *db_column_blob(sqlite3_stmt *stmt, int column, struct arena *arena, size_t *size)
{
    const void *bytes = sqlite3_column_blob(stmt, column);
    *size = (size_t)sqlite3_column_bytes(stmt, column);
    return bytes ? arena_copy(arena, bytes, *size) : "";
}

double db_column_double(sqlite3_stmt *stmt, int column)
{
    if (sqlite3_column_type(stmt, column) == SQLITE_NULL)
        return (double)NAN;
    return sqlite3_column_double(stmt, column);
}

void *db_rows_add(struct db_rows *rows)
{
    rows->data = alloc_grow(rows->data, rows->count, &rows->capacity, rows->row_size);
    return rows->data + (size_t)rows->count++ * rows->row_size;
}

void *db_rows_end(struct db_rows *rows, struct arena *arena, int *count)
{
    void *array = arena_copy(arena, rows->data, (size_t)rows->count * rows->row_size);
    *count = rows->count;
    free(rows->data);
    return array;
}

int db_changes_count(struct db_conn *conn)
{
    return sqlite3_changes(conn->sqlite);
}

int64_t db_inserted(struct db_conn *conn)
{
    return sqlite3_last_insert_rowid(conn->sqlite);
}

void db_conn_note(struct db_conn *conn, int64_t seq)
{
    conn->noted_seq = seq;
}

int64_t db_conn_noted(struct db_conn *conn)
{
    int64_t seq = conn->noted_seq;
    conn->noted_seq = 0;
    return seq;
}

/* --- transactions --- */

int db_begin(struct db_conn *conn)
{
    return sqlite3_exec(conn->sqlite, "BEGIN IMMEDIATE", NULL, NULL, NULL);
}

int db_commit(struct db_conn *conn)
{
    int result = sqlite3_exec(conn->sqlite, "COMMIT", NULL, NULL, NULL);
    return result == SQLITE_OK ? result : sqlite3_extended_errcode(conn->sqlite);
}

bool db_rollback(struct db_conn *conn)
{
    if (sqlite3_get_autocommit(conn->sqlite))
        return true; /* SQLite has rolled back by itself already */
    return sqlite3_exec(conn->sqlite, "ROLLBACK", NULL, NULL, NULL) == SQLITE_OK;
}

bool db_in_transaction(struct db_conn *conn)
{
    return !sqlite3_get_autocommit(conn->sqlite);
}
