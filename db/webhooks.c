/* webhooks.c - the table of who is told. */

#include "db/webhooks.h"
#include "base/arena.h"
#include "base/clock.h"
#include "db/internal.h"
#include "db/seal.h"

/* What a sealed secret is bound to. */
static const char *bound_to(struct arena *arena, int64_t id)
{
    return arena_printf(arena, "webhook:%lld", (long long)id);
}

static bool no_webhook(int64_t id, struct error *err)
{
    return fail(err, NOT_FOUND, "there is no webhook '%lld'", (long long)id);
}

struct webhook_add {
    const char *folder;
    struct db_webhook *webhook;
    int64_t user_id;
    const char *secret;
};

static bool add_run(struct db_conn *conn, void *arg, struct error *err)
{
    const struct webhook_add *add = arg;
    const struct db_webhook *webhook = add->webhook;
    int64_t count;
    if (!db_number(conn, err, &count, 0, "SELECT count(*) FROM webhooks", ""))
        return false;
    if (count >= DB_WEBHOOKS_MAX)
        return fail(err, EXHAUSTED, "there are %lld webhooks, allowed: at most %d",
                    (long long)count, DB_WEBHOOKS_MAX);
    if (!db_run(conn, err,
                "INSERT INTO webhooks (project, url, states, sealed, disabled, after_seq,"
                " user_id, created_us) VALUES (?1, ?2, ?3, x'', ?4,"
                " (SELECT ifnull(max(seq), 0) FROM events), ?5, ?6)",
                "ttiiii", webhook->project, webhook->url, (int64_t)webhook->states,
                (int64_t)webhook->disabled, add->user_id, (int64_t)clock_wall_us()))
        return false;
    int64_t id = db_inserted(conn);
    struct arena *arena = arena_new();
    struct db_sealed sealed;
    bool ok =
        db_seal(conn, add->folder, bound_to(arena, id), add->secret, arena, &sealed, err) &&
        db_run(conn, err, "UPDATE webhooks SET sealed = ?2 WHERE id = ?1", "ib", id,
               sealed.bytes, sealed.size);
    arena_free(arena);
    add->webhook->id = id;
    return ok;
}

bool db_webhooks_add(struct db *db, struct db_webhook *webhook, int64_t user_id,
                     const char *secret, struct error *err)
{
    struct webhook_add add = {db_folder(db), webhook, user_id, secret};
    return db_write(db, DB_CONTROL, add_run, &add, err);
}

static bool change_run(struct db_conn *conn, void *arg, struct error *err)
{
    const struct db_webhook *webhook = arg;
    return db_run(conn, err,
                  "UPDATE webhooks SET url = ?2, states = ?3, disabled = ?4, after_seq ="
                  " CASE WHEN states <> ?3 OR disabled > ?4"
                  " THEN (SELECT ifnull(max(seq), 0) FROM events) ELSE after_seq END"
                  " WHERE id = ?1",
                  "itii", webhook->id, webhook->url, (int64_t)webhook->states,
                  (int64_t)webhook->disabled) &&
           (db_changes_count(conn) > 0 || no_webhook(webhook->id, err));
}

bool db_webhooks_change(struct db *db, const struct db_webhook *webhook, struct error *err)
{
    return db_write(db, DB_CONTROL, change_run, (void *)webhook, err);
}

static bool remove_run(struct db_conn *conn, void *arg, struct error *err)
{
    const int64_t *id = arg;
    return db_run(conn, err, "DELETE FROM deliveries WHERE webhook_id = ?1", "i", *id) &&
           db_run(conn, err, "DELETE FROM webhooks WHERE id = ?1", "i", *id) &&
           (db_changes_count(conn) > 0 || no_webhook(*id, err));
}

bool db_webhooks_remove(struct db *db, int64_t id, struct error *err)
{
    return db_write(db, DB_CONTROL, remove_run, &id, err);
}

#define WEBHOOK_COLUMNS                                                                        \
    "SELECT w.id, w.project, w.url, w.states, w.disabled, u.name, w.created_us,"               \
    " (SELECT count(*) FROM deliveries d WHERE d.webhook_id = w.id AND d.next_us > 0)"         \
    " FROM webhooks w JOIN users u ON u.id = w.user_id"

static void webhook_read(sqlite3_stmt *stmt, struct arena *arena, struct db_webhook *webhook)
{
    *webhook = (struct db_webhook){
        .id = sqlite3_column_int64(stmt, 0),
        .project = db_column_text(stmt, 1, arena),
        .url = db_column_text(stmt, 2, arena),
        .states = sqlite3_column_int(stmt, 3),
        .disabled = sqlite3_column_int(stmt, 4),
        .user = db_column_text(stmt, 5, arena),
        .created_us = sqlite3_column_int64(stmt, 6),
        .waiting = sqlite3_column_int64(stmt, 7),
    };
}

bool db_webhooks_find(struct db_conn *conn, int64_t id, struct arena *arena,
                      struct db_webhook *webhook, struct error *err)
{
    sqlite3_stmt *stmt = db_query(conn, err, WEBHOOK_COLUMNS " WHERE w.id = ?1", "i", id);
    int row = stmt ? db_row(conn, stmt, err) : -1;
    if (row <= 0)
        return row == 0 && no_webhook(id, err);
    webhook_read(stmt, arena, webhook);
    db_query_end(stmt);
    return true;
}

bool db_webhooks_list(struct db_conn *conn, struct arena *arena, struct db_webhook **webhooks,
                      int *webhooks_count, struct error *err)
{
    sqlite3_stmt *stmt = db_query(conn, err, WEBHOOK_COLUMNS " ORDER BY w.id", "");
    if (!stmt)
        return false;
    struct db_rows rows = {.row_size = sizeof(struct db_webhook)};
    int row;
    while ((row = db_row(conn, stmt, err)) > 0)
        webhook_read(stmt, arena, db_rows_add(&rows));
    *webhooks = db_rows_end(&rows, arena, webhooks_count);
    return row == 0;
}

bool db_webhooks_secret(const struct db *db, struct db_conn *conn, int64_t id,
                        struct arena *arena, const char **secret, struct error *err)
{
    struct db_sealed sealed;
    sqlite3_stmt *stmt =
        db_query(conn, err, "SELECT sealed FROM webhooks WHERE id = ?1", "i", id);
    int row = stmt ? db_row(conn, stmt, err) : -1;
    if (row <= 0)
        return row == 0 && no_webhook(id, err);
    sealed.bytes = (uint8_t *)db_column_blob(stmt, 0, arena, &sealed.size);
    db_query_end(stmt);
    return db_seal_open(db_folder(db), bound_to(arena, id), &sealed, arena, secret, err);
}
