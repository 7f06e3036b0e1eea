/* nodes.c - machines that have joined, and the counter of epochs. */

#include "db/nodes.h"
#include "base/arena.h"
#include "db/events.h"
#include "db/internal.h"

#define NODE_COLUMNS                                                                           \
    "id, name, identity, boot_id, version, labels, epoch, state, draining, cpu_millis,"        \
    " memory_bytes, gpus, gpu_type, gpu_memory_bytes, joined_us, asked_us"
#define NODE_REMOVED ", removed, refused_token"

static void node_read(sqlite3_stmt *stmt, struct arena *arena, struct db_node *node)
{
    *node = (struct db_node){
        .id = sqlite3_column_int64(stmt, 0),
        .name = db_column_text(stmt, 1, arena),
        .identity = db_column_text(stmt, 2, arena),
        .boot_id = db_column_text(stmt, 3, arena),
        .version = db_column_text(stmt, 4, arena),
        .labels = db_column_text(stmt, 5, arena),
        .epoch = sqlite3_column_int64(stmt, 6),
        .state = (enum node_state)sqlite3_column_int(stmt, 7),
        .draining = sqlite3_column_int(stmt, 8) != 0,
        .cpu_millis = sqlite3_column_int64(stmt, 9),
        .memory_bytes = sqlite3_column_int64(stmt, 10),
        .gpus = sqlite3_column_int(stmt, 11),
        .gpu_type = db_column_text(stmt, 12, arena),
        .gpu_memory_bytes = sqlite3_column_int64(stmt, 13),
        .joined_us = sqlite3_column_int64(stmt, 14),
        .asked_us = sqlite3_column_int64(stmt, 15),
        .removed = sqlite3_column_int(stmt, 16) != 0,
        .refused_token = sqlite3_column_int64(stmt, 17),
    };
}

bool db_nodes_list(struct db_conn *conn, struct arena *arena, struct db_node **nodes,
                   int *nodes_count, struct error *err)
{
    sqlite3_stmt *stmt =
        db_query(conn, err, "SELECT " NODE_COLUMNS NODE_REMOVED " FROM nodes ORDER BY id", "");
    if (!stmt)
        return false;
    struct db_rows rows = {.row_size = sizeof(struct db_node)};
    int row;
    while ((row = db_row(conn, stmt, err)) > 0)
        node_read(stmt, arena, db_rows_add(&rows));
    *nodes = db_rows_end(&rows, arena, nodes_count);
    return row == 0;
}

bool db_nodes_find(struct db_conn *conn, const char *name, struct arena *arena,
                   struct db_node *node, struct error *err)
{
    sqlite3_stmt *stmt =
        db_query(conn, err, "SELECT " NODE_COLUMNS NODE_REMOVED " FROM nodes WHERE name = ?1",
                 "t", name);
    int row = stmt ? db_row(conn, stmt, err) : -1;
    if (row < 0)
        return false;
    if (row == 0)
        return fail(err, NOT_FOUND, "there is no node '%.100s'", name);
    node_read(stmt, arena, node);
    db_query_end(stmt);
    return true;
}

bool db_nodes_set(struct db_conn *conn, const struct db_node *node, const char *text,
                  int64_t now_us, struct error *err)
{
    struct db_event event = {
        .wall_us = now_us,
        .kind = "node.state",
        .node_id = node->id,
        .state = node->state,
        .state_from = -1,
        .reason = node->draining ? "DRAINING" : "",
        .text = text,
    };
    return db_run(
               conn, err,
               "INSERT INTO nodes (" NODE_COLUMNS ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8,"
               " ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16) ON CONFLICT (id) DO UPDATE SET name = "
               "?2,"
               " identity = ?3, boot_id = ?4, version = ?5, labels = ?6, epoch = ?7,"
               " state = ?8, draining = ?9, cpu_millis = ?10, memory_bytes = ?11, gpus = ?12,"
               " gpu_type = ?13, gpu_memory_bytes = ?14, joined_us = ?15, asked_us = ?16",
               "itttttiiiiiitiii", node->id, node->name, node->identity, node->boot_id,
               node->version, node->labels, node->epoch, (int64_t)node->state,
               (int64_t)node->draining, node->cpu_millis, node->memory_bytes,
               (int64_t)node->gpus, node->gpu_type, node->gpu_memory_bytes, node->joined_us,
               node->asked_us) &&
           db_events_add(conn, &event, err);
}

bool db_nodes_state(struct db_conn *conn, int64_t id, enum node_state state, bool draining,
                    const char *text, int64_t now_us, struct error *err)
{
    struct db_event event = {
        .wall_us = now_us,
        .kind = "node.state",
        .node_id = id,
        .state = state,
        .state_from = -1,
        .reason = draining ? "DRAINING" : "",
        .text = text,
    };
    return db_run(conn, err, "UPDATE nodes SET state = ?2, draining = ?3 WHERE id = ?1", "iii",
                  id, (int64_t)state, (int64_t)draining) &&
           db_events_add(conn, &event, err);
}

static bool remove_run(struct db_conn *conn, void *arg, struct error *err)
{
    const int64_t *id = arg;
    return db_run(conn, err,
                  "UPDATE nodes SET removed = 1, refused_token ="
                  " (SELECT coalesce(max(id), 0) FROM tokens) WHERE id = ?1",
                  "i", *id);
}

bool db_nodes_remove(struct db *db, int64_t id, struct error *err)
{
    return db_write(db, DB_CONTROL, remove_run, &id, err);
}

static bool welcome_run(struct db_conn *conn, void *arg, struct error *err)
{
    return db_run(conn, err, "UPDATE nodes SET removed = 0 WHERE name = ?1", "t",
                  (const char *)arg);
}

bool db_nodes_welcome(struct db *db, const char *name, struct error *err)
{
    return db_write(db, DB_CONTROL, welcome_run, (void *)name, err);
}

bool db_epoch_read(struct db_conn *conn, int64_t *epoch, struct error *err)
{
    return db_number(conn, err, epoch, 0, "SELECT value FROM meta WHERE name = 'epoch'", "");
}

bool db_epoch_write(struct db_conn *conn, int64_t epoch, struct error *err)
{
    if (!db_run(conn, err, "UPDATE meta SET value = ?1 WHERE name = 'epoch' AND value < ?1",
                "i", epoch))
        return false;
    if (db_changes_count(conn) != 1)
        return fail(err, INTERNAL, "epoch %lld was given already", (long long)epoch);
    return true;
}
