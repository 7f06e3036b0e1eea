/*
 * internal.h - how the files of db/ speak to SQLite.
 *
 * Statements are prepared once per connection and found again by the address of their text,
 * which therefore is a literal.  `types` names what is bound to ?1, ?2 ...: i int64_t, d double
 * (NaN is stored as NULL), t text (NULL is stored as NULL), b blob (pointer and size_t).
 */
#pragma once

#include <sqlite3.h>

#include "db/db.h"

struct arena;

/* Opens one connection with all the settings that make it safe. */
struct db_conn *db_conn_open(const char *path, bool writable, struct error *err) CHECKED;
void db_conn_close(struct db_conn *conn);  /* NULL is fine */
const char *db_path(struct db_conn *conn); /* of its file; borrowed */

/*
 * Reads the file's pages through and fails with DATA_LOSS when they do not fit together, naming
 * what would mend it.
 */
bool db_pages_check(struct db_conn *conn, struct error *err) CHECKED;

/*
 * Copies what the file holds now into the new file `to`, and onto the disk.  Others may go on
 * writing; the copy is of one moment.  EXISTS when `to` is there already.
 */
bool db_copy(struct db_conn *conn, const char *to, struct error *err) CHECKED;

/* When db_migrate() would change the schema: a copy of the file beside it, FILE.schema-N. */
bool db_keep_older(struct db_conn *conn, const char *const *migrations,
                   struct error *err) CHECKED;

/* Brings the schema to the newest version, each step in a transaction. */
bool db_migrate(struct db_conn *conn, const char *const *migrations, struct error *err) CHECKED;

/* Runs SQL text of any number of statements, without parameters and results. */
bool db_script(struct db_conn *conn, const char *sql, struct error *err) CHECKED;

/* Runs a statement to its end; rows it may yield are dropped. */
bool db_run(struct db_conn *conn, struct error *err, const char *sql, const char *types,
            ...) CHECKED;

/* A statement ready for db_row(); NULL on failure.  Borrowed from the connection. */
sqlite3_stmt *db_query(struct db_conn *conn, struct error *err, const char *sql,
                       const char *types, ...) CHECKED;

/* 1: there is a row.  0: there are no more.  -1: failed.  After 0 and -1 the query is over. */
int db_row(struct db_conn *conn, sqlite3_stmt *stmt, struct error *err) CHECKED;

/* Ends a query before its last row. */
void db_query_end(sqlite3_stmt *stmt);

/* Runs a query that yields one integer; `otherwise` when it yields no row. */
bool db_number(struct db_conn *conn, struct error *err, int64_t *number, int64_t otherwise,
               const char *sql, const char *types, ...) CHECKED;

/* Columns of the current row, copied into the arena; NULL becomes "", NaN. */
const char *db_column_text(sqlite3_stmt *stmt, int column, struct arena *arena);
const void *db_column_blob(sqlite3_stmt *stmt, int column, struct arena *arena, size_t *size);
double db_column_double(sqlite3_stmt *stmt, int column);

/* Rows gathered until their number is known, for results that are arrays. */
struct db_rows {
    size_t row_size;
    char *data;
    int count;
    int capacity;
};
void *db_rows_add(struct db_rows *rows); /* a zeroed row; borrowed until the next one */

/* The array, moved into the arena. */
void *db_rows_end(struct db_rows *rows, struct arena *arena, int *count);

/* Rows changed by the last statement; row id of the last insert. */
int db_changes_count(struct db_conn *conn);
int64_t db_inserted(struct db_conn *conn);

/* Remembers that the transaction adds events up to `seq`, for db_watch(). */
void db_conn_note(struct db_conn *conn, int64_t seq);

/* Fills `err` from the connection's last failure. */
bool db_fail(struct db_conn *conn, struct error *err);

/* Transactions, for the writer: plain result codes. */
int db_begin(struct db_conn *conn);
int db_commit(struct db_conn *conn);
bool db_rollback(struct db_conn *conn);
bool db_in_transaction(struct db_conn *conn);
int64_t
db_conn_noted(struct db_conn *conn); /* newest seq of db_conn_note(), 0; and forgets it */

extern const char *const db_file_names[2]; /* "control.db", "metrics.db" */
const char *const *db_migrations(enum db_file file);

/* The schema steps of each file, ended by NULL: generated from db/migrate/ at build. */
extern const char *const db_migrate_control[];
extern const char *const db_migrate_metrics[];
