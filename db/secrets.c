/* secrets.c - storing and opening secrets. */

#include "db/secrets.h"
#include "base/arena.h"
#include "base/clock.h"
#include "db/internal.h"
#include "db/seal.h"

/* --- changes --- */

struct secret_set {
    const char *folder;
    const char *name;
    const char *value;
    int64_t user_id;
};

static bool set_run(struct db_conn *conn, void *arg, struct error *err)
{
    const struct secret_set *set = arg;
    int64_t count, now_us = (int64_t)clock_wall_us();
    struct db_sealed sealed;
    bool known;
    if (!db_number(conn, err, &count, 0, "SELECT count(*) FROM secrets", "") ||
        !db_secrets_known(conn, set->name, &known, err))
        return false;
    if (!known && count >= DB_SECRETS_MAX)
        return fail(err, EXHAUSTED, "there are %lld secrets, allowed: at most %d",
                    (long long)count, DB_SECRETS_MAX);
    struct arena *arena = arena_new();
    bool ok = db_seal(conn, set->folder, set->name, set->value, arena, &sealed, err) &&
              db_run(conn, err,
                     "INSERT INTO secrets (name, sealed, user_id, created_us, changed_us)"
                     " VALUES (?1, ?2, ?3, ?4, ?4) ON CONFLICT DO UPDATE SET sealed = ?2,"
                     " user_id = ?3, changed_us = ?4",
                     "tbii", set->name, sealed.bytes, sealed.size, set->user_id, now_us);
    arena_free(arena);
    return ok;
}

bool db_secrets_set(struct db *db, const char *name, const char *value, int64_t user_id,
                    struct error *err)
{
    struct secret_set set = {db_folder(db), name, value, user_id};
    size_t size = strlen(value);
    if (size < DB_SECRET_BYTES_MIN || size > DB_SECRET_BYTES_MAX)
        return error_at(err, "/value", INVALID,
                        "the value of secret %.128s has %zu bytes, allowed: %d to %d", name,
                        size, DB_SECRET_BYTES_MIN, DB_SECRET_BYTES_MAX);
    return db_write(db, DB_CONTROL, set_run, &set, err);
}

static bool remove_run(struct db_conn *conn, void *arg, struct error *err)
{
    const char *name = arg;
    if (!db_run(conn, err, "DELETE FROM secrets WHERE name = ?1", "t", name))
        return false;
    return db_changes_count(conn) > 0 ||
           fail(err, NOT_FOUND, "there is no secret '%.128s'", name);
}

bool db_secrets_remove(struct db *db, const char *name, struct error *err)
{
    return db_write(db, DB_CONTROL, remove_run, (void *)name, err);
}

/* --- reading --- */

bool db_secrets_list(struct db_conn *conn, struct arena *arena, struct db_secret **secrets,
                     int *secrets_count, struct error *err)
{
    sqlite3_stmt *stmt =
        db_query(conn, err,
                 "SELECT s.name, u.name, s.created_us, s.changed_us FROM secrets AS s"
                 " JOIN users AS u ON u.id = s.user_id ORDER BY s.name",
                 "");
    if (!stmt)
        return false;
    struct db_rows rows = {.row_size = sizeof(struct db_secret)};
    int row;
    while ((row = db_row(conn, stmt, err)) > 0)
        *(struct db_secret *)db_rows_add(&rows) = (struct db_secret){
            .name = db_column_text(stmt, 0, arena),
            .user = db_column_text(stmt, 1, arena),
            .created_us = sqlite3_column_int64(stmt, 2),
            .changed_us = sqlite3_column_int64(stmt, 3),
        };
    *secrets = db_rows_end(&rows, arena, secrets_count);
    return row == 0;
}

bool db_secrets_known(struct db_conn *conn, const char *name, bool *known, struct error *err)
{
    int64_t count;
    if (!db_number(conn, err, &count, 0, "SELECT count(*) FROM secrets WHERE name = ?1", "t",
                   name))
        return false;
    *known = count > 0;
    return true;
}

bool db_secrets_read(const struct db *db, struct db_conn *conn, const char *name,
                     struct arena *arena, const char **value, struct error *err)
{
    struct db_sealed sealed;
    sqlite3_stmt *stmt =
        db_query(conn, err, "SELECT sealed FROM secrets WHERE name = ?1", "t", name);
    int row = stmt ? db_row(conn, stmt, err) : -1;
    if (row < 0)
        return false;
    if (row == 0)
        return fail(err, NOT_FOUND, "there is no secret '%.128s'", name);
    sealed.bytes = (uint8_t *)db_column_blob(stmt, 0, arena, &sealed.size);
    db_query_end(stmt);
    return db_seal_open(db_folder(db), name, &sealed, arena, value, err);
}
