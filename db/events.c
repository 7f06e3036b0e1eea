/* events.c - the log of everything that happened. */

#include "db/events.h"
#include "base/arena.h"
#include "db/internal.h"

bool db_events_add(struct db_conn *conn, struct db_event *event, struct error *err)
{
    if (!db_run(
            conn, err,
            "INSERT INTO events (wall_us, kind, job, attempt, node_id, state, state_from, role,"
            " idx, reason, text) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            "itiiiiititt", event->wall_us, event->kind, event->job, (int64_t)event->attempt,
            event->node_id, (int64_t)event->state, (int64_t)event->state_from,
            event->role ? event->role : "", (int64_t)event->index,
            event->reason ? event->reason : "", event->text ? event->text : ""))
        return false;
    event->seq = db_inserted(conn);
    db_conn_note(conn, event->seq);
    return true;
}

static void event_read(sqlite3_stmt *stmt, struct arena *arena, struct db_event *event)
{
    event->seq = sqlite3_column_int64(stmt, 0);
    event->wall_us = sqlite3_column_int64(stmt, 1);
    event->kind = db_column_text(stmt, 2, arena);
    event->job = sqlite3_column_int64(stmt, 3);
    event->attempt = sqlite3_column_int(stmt, 4);
    event->node_id = sqlite3_column_int64(stmt, 5);
    event->state = sqlite3_column_int(stmt, 6);
    event->state_from = sqlite3_column_int(stmt, 7);
    event->role = db_column_text(stmt, 8, arena);
    event->index = sqlite3_column_int(stmt, 9);
    event->reason = db_column_text(stmt, 10, arena);
    event->text = db_column_text(stmt, 11, arena);
}

#define EVENT_COLUMNS                                                                          \
    "seq, wall_us, kind, job, attempt, node_id, state, state_from, role, idx, reason, text"

bool db_events_since(struct db_conn *conn, int64_t job, int64_t after_seq, int limit,
                     struct arena *arena, struct db_event **events, int *events_count,
                     struct error *err)
{
    assert(limit > 0);
    sqlite3_stmt *stmt;
    if (job)
        stmt = db_query(conn, err,
                        "SELECT " EVENT_COLUMNS " FROM events WHERE job = ?1 AND seq > ?2"
                        " ORDER BY seq LIMIT ?3",
                        "iii", job, after_seq, (int64_t)limit);
    else
        stmt = db_query(conn, err,
                        "SELECT " EVENT_COLUMNS " FROM events WHERE seq > ?1"
                        " ORDER BY seq LIMIT ?2",
                        "ii", after_seq, (int64_t)limit);
    if (!stmt)
        return false;

    struct db_rows rows = {.row_size = sizeof(struct db_event)};
    int row;
    while ((row = db_row(conn, stmt, err)) > 0)
        event_read(stmt, arena, db_rows_add(&rows));
    *events = db_rows_end(&rows, arena, events_count);
    return row == 0;
}

bool db_events_range(struct db_conn *conn, int64_t *oldest, int64_t *newest, struct error *err)
{
    return db_number(conn, err, oldest, 0, "SELECT ifnull(min(seq), 0) FROM events", "") &&
           db_number(conn, err, newest, 0, "SELECT ifnull(max(seq), 0) FROM events", "");
}

static bool add_notice(struct db_conn *conn, void *arg, struct error *err)
{
    return db_events_add(conn, arg, err);
}

bool db_events_notice(struct db *db, int64_t job, const char *role, int index, const char *text,
                      int64_t now_us, struct error *err)
{
    struct db_event event = {
        .wall_us = now_us,
        .kind = "job.notice",
        .job = job,
        .state = -1,
        .state_from = -1,
        .role = role,
        .index = index,
        .text = text,
    };
    return db_write(db, DB_CONTROL, add_notice, &event, err);
}
