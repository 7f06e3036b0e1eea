/* migrate.c - brings a file's schema to this program's, and keeps a copy of the older one. */

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "db/internal.h"

const char *const db_file_names[2] = {"control.db", "metrics.db"};

const char *const *db_migrations(enum db_file file)
{
    return file == DB_CONTROL ? db_migrate_control : db_migrate_metrics;
}

bool db_pages_check(struct db_conn *conn, struct error *err)
{
    sqlite3_stmt *stmt = db_query(conn, err, "PRAGMA quick_check(1)", "");
    int row = stmt ? db_row(conn, stmt, err) : -1;
    if (row < 0)
        return false;
    struct arena *arena = arena_new();
    const char *text = row ? db_column_text(stmt, 0, arena) : "ok";
    bool ok = strcmp(text, "ok") == 0;
    if (!ok)
        fail(err, DATA_LOSS, "%s is damaged: %s; go back to a copy of it: trainyard db restore",
             db_path(conn), text);
    db_query_end(stmt);
    arena_free(arena);
    return ok;
}

/* SQLite leaves a copy to the system's good time. */
static bool file_sync(const char *path, struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool ok = fd >= 0 && fsync(fd) == 0;
    if (!ok)
        error_errno(err, errno == ENOSPC ? EXHAUSTED : UNAVAILABLE, "cannot sync %s", path);
    if (fd >= 0)
        close(fd);
    return ok;
}

bool db_copy(struct db_conn *conn, const char *to, struct error *err)
{
    if (access(to, F_OK) == 0)
        return fail(err, EXISTS, "%s is there already", to);
    return db_script(conn, "PRAGMA query_only=0", err) &&
           db_run(conn, err, "VACUUM INTO ?1", "t", to) && file_sync(to, err);
}

/* What the file has, and what this program makes of it. */
static bool versions(struct db_conn *conn, const char *const *migrations, int64_t *version,
                     int *newest, struct error *err)
{
    *newest = 0;
    while (migrations[*newest])
        (*newest)++;
    if (!db_number(conn, err, version, 0, "PRAGMA user_version", ""))
        return false;
    if (*version > *newest)
        return fail(err, PRECONDITION,
                    "%s has schema %lld, this program knows up to %d: use a newer trainyard",
                    db_path(conn), (long long)*version, *newest);
    return true;
}

bool db_keep_older(struct db_conn *conn, const char *const *migrations, struct error *err)
{
    int64_t version;
    int newest;
    if (!versions(conn, migrations, &version, &newest, err))
        return false;
    if (version == 0 || version == newest)
        return true;
    char *to = alloc_printf("%s.schema-%lld", db_path(conn), (long long)version);
    (void)unlink(to); /* of a start that came no further */
    bool ok = db_copy(conn, to, err) || error_prefix(err, "a copy before the schema changes: ");
    free(to);
    return ok;
}

bool db_migrate(struct db_conn *conn, const char *const *migrations, struct error *err)
{
    int64_t version;
    int newest;
    if (!versions(conn, migrations, &version, &newest, err))
        return false;
    for (int i = (int)version; i < newest; i++) {
        char mark[64];
        snprintf(mark, sizeof(mark), "PRAGMA user_version=%d; COMMIT", i + 1);
        if (!db_script(conn, "BEGIN IMMEDIATE", err))
            return false;
        if (!db_script(conn, migrations[i], err) || !db_script(conn, mark, err)) {
            db_rollback(conn);
            return error_prefix(err, "schema step %d: ", i + 1);
        }
    }
    return true;
}
