/* deliveries.c - the table of what webhooks are told. */

#include "db/deliveries.h"
#include "base/arena.h"
#include "base/clock.h"
#include "db/internal.h"

/* An event, the job it is about, and each webhook that wants to know. */
#define WANTED                                                                                 \
    " FROM events e JOIN jobs j ON j.number = e.job JOIN webhooks w ON w.project = j.project"  \
    " WHERE e.seq > ?1 AND e.seq <= ?2 AND e.kind IN ('job.submitted', 'job.state')"           \
    " AND e.seq > w.after_seq AND NOT w.disabled AND (w.states >> e.state) & 1"

bool db_deliveries_seq(struct db_conn *conn, int64_t *seq, struct error *err)
{
    return db_number(conn, err, seq, INT64_MAX,
                     "SELECT min(after_seq) FROM webhooks HAVING count(*) > 0", "");
}

bool db_deliveries_wanted(struct db_conn *conn, int64_t after_seq, int64_t upto_seq,
                          int64_t *count, struct error *err)
{
    return db_number(conn, err, count, 0, "SELECT count(*)" WANTED, "ii", after_seq, upto_seq);
}

struct delivery_range {
    int64_t after_seq, upto_seq;
};

static bool queue_run(struct db_conn *conn, void *arg, struct error *err)
{
    const struct delivery_range *range = arg;
    return db_run(conn, err,
                  "INSERT INTO deliveries (webhook_id, seq, created_us, tries, next_us,"
                  " tried_us, status, error) SELECT w.id, e.seq, ?3, 0, ?3, 0, 0, ''" WANTED
                  " ORDER BY e.seq",
                  "iii", range->after_seq, range->upto_seq, (int64_t)clock_wall_us()) &&
           db_run(conn, err, "UPDATE webhooks SET after_seq = max(after_seq, ?1)", "i",
                  range->upto_seq) &&
           db_run(conn, err,
                  "UPDATE deliveries SET next_us = 0, error = 'given up: too many wait'"
                  " WHERE id IN (SELECT id FROM (SELECT id, row_number() OVER"
                  "  (PARTITION BY webhook_id ORDER BY id DESC) AS place FROM deliveries"
                  "  WHERE next_us > 0) WHERE place > ?1)",
                  "i", (int64_t)DB_DELIVERIES_WAITING_MAX);
}

bool db_deliveries_queue(struct db *db, int64_t after_seq, int64_t upto_seq, struct error *err)
{
    struct delivery_range range = {after_seq, upto_seq};
    return db_write(db, DB_CONTROL, queue_run, &range, err);
}

/* Names one delivery of a webhook; of db_deliveries_test() it gets the id. */
struct delivery_name {
    int64_t webhook_id;
    int64_t id;
};

static bool test_run(struct db_conn *conn, void *arg, struct error *err)
{
    struct delivery_name *name = arg;
    if (!db_run(conn, err,
                "INSERT INTO deliveries (webhook_id, seq, created_us, tries, next_us, tried_us,"
                " status, error) SELECT id, 0, ?2, 0, ?2, 0, 0, '' FROM webhooks WHERE id = ?1",
                "ii", name->webhook_id, (int64_t)clock_wall_us()))
        return false;
    name->id = db_inserted(conn);
    return db_changes_count(conn) > 0 ||
           fail(err, NOT_FOUND, "there is no webhook '%lld'", (long long)name->webhook_id);
}

bool db_deliveries_test(struct db *db, int64_t webhook_id, int64_t *id, struct error *err)
{
    struct delivery_name name = {webhook_id, 0};
    bool ok = db_write(db, DB_CONTROL, test_run, &name, err);
    *id = name.id;
    return ok;
}

static bool tried_run(struct db_conn *conn, void *arg, struct error *err)
{
    const struct db_delivery *delivery = arg;
    return db_run(conn, err,
                  "UPDATE deliveries SET tries = ?2, next_us = ?3, tried_us = ?4, status = ?5,"
                  " error = ?6 WHERE id = ?1",
                  "iiiiit", delivery->id, (int64_t)delivery->tries, delivery->next_us,
                  delivery->tried_us, (int64_t)delivery->status, delivery->error) &&
           db_run(conn, err,
                  "DELETE FROM deliveries WHERE webhook_id = ?1 AND next_us = 0 AND id <="
                  " (SELECT id FROM deliveries WHERE webhook_id = ?1 AND next_us = 0"
                  "  ORDER BY id DESC LIMIT 1 OFFSET ?2)",
                  "ii", delivery->webhook_id, (int64_t)DB_DELIVERIES_KEPT);
}

bool db_deliveries_tried(struct db *db, const struct db_delivery *delivery, struct error *err)
{
    return db_write(db, DB_CONTROL, tried_run, (void *)delivery, err);
}

static bool no_delivery(int64_t webhook_id, int64_t id, struct error *err)
{
    return fail(err, NOT_FOUND, "webhook '%lld' has no delivery '%lld'", (long long)webhook_id,
                (long long)id);
}

static bool again_run(struct db_conn *conn, void *arg, struct error *err)
{
    const struct delivery_name *name = arg;
    return db_run(conn, err,
                  "UPDATE deliveries SET tries = 0, next_us = ?3"
                  " WHERE id = ?2 AND webhook_id = ?1",
                  "iii", name->webhook_id, name->id, (int64_t)clock_wall_us()) &&
           (db_changes_count(conn) > 0 || no_delivery(name->webhook_id, name->id, err));
}

bool db_deliveries_again(struct db *db, int64_t webhook_id, int64_t id, struct error *err)
{
    struct delivery_name name = {webhook_id, id};
    return db_write(db, DB_CONTROL, again_run, &name, err);
}

/* --- reading --- */

#define DELIVERY_COLUMNS                                                                       \
    "id, webhook_id, seq, created_us, tries, next_us, tried_us, status, error"

static void delivery_read(sqlite3_stmt *stmt, struct arena *arena, struct db_delivery *delivery)
{
    *delivery = (struct db_delivery){
        .id = sqlite3_column_int64(stmt, 0),
        .webhook_id = sqlite3_column_int64(stmt, 1),
        .seq = sqlite3_column_int64(stmt, 2),
        .created_us = sqlite3_column_int64(stmt, 3),
        .tries = sqlite3_column_int(stmt, 4),
        .next_us = sqlite3_column_int64(stmt, 5),
        .tried_us = sqlite3_column_int64(stmt, 6),
        .status = sqlite3_column_int(stmt, 7),
        .error = db_column_text(stmt, 8, arena),
    };
}

/* All rows of a query; NULL has failed. */
static bool read_rows(struct db_conn *conn, sqlite3_stmt *stmt, struct arena *arena,
                      struct db_delivery **deliveries, int *deliveries_count, struct error *err)
{
    if (!stmt)
        return false;
    struct db_rows rows = {.row_size = sizeof(struct db_delivery)};
    int row;
    while ((row = db_row(conn, stmt, err)) > 0)
        delivery_read(stmt, arena, db_rows_add(&rows));
    *deliveries = db_rows_end(&rows, arena, deliveries_count);
    return row == 0;
}

bool db_deliveries_next(struct db_conn *conn, struct arena *arena,
                        struct db_delivery **deliveries, int *deliveries_count,
                        struct error *err)
{
    sqlite3_stmt *stmt = db_query(
        conn, err,
        "SELECT " DELIVERY_COLUMNS " FROM deliveries WHERE id IN"
        " (SELECT (SELECT d.id FROM deliveries d WHERE d.webhook_id = w.id AND d.next_us > 0"
        "  ORDER BY d.next_us, d.id LIMIT 1) FROM webhooks w WHERE NOT w.disabled)"
        " ORDER BY next_us, id",
        "");
    return read_rows(conn, stmt, arena, deliveries, deliveries_count, err);
}

bool db_deliveries_list(struct db_conn *conn, int64_t webhook_id, int64_t before, int limit,
                        struct arena *arena, struct db_delivery **deliveries,
                        int *deliveries_count, struct error *err)
{
    sqlite3_stmt *stmt =
        db_query(conn, err,
                 "SELECT " DELIVERY_COLUMNS " FROM deliveries WHERE webhook_id = ?1"
                 " AND (?2 = 0 OR id < ?2) ORDER BY id DESC LIMIT ?3",
                 "iii", webhook_id, before, (int64_t)limit);
    return read_rows(conn, stmt, arena, deliveries, deliveries_count, err);
}

bool db_deliveries_find(struct db_conn *conn, int64_t webhook_id, int64_t id,
                        struct arena *arena, struct db_delivery *delivery, struct error *err)
{
    sqlite3_stmt *stmt = db_query(conn, err,
                                  "SELECT " DELIVERY_COLUMNS
                                  " FROM deliveries WHERE id = ?2 AND webhook_id = ?1",
                                  "ii", webhook_id, id);
    int row = stmt ? db_row(conn, stmt, err) : -1;
    if (row <= 0)
        return row == 0 && no_delivery(webhook_id, id, err);
    delivery_read(stmt, arena, delivery);
    db_query_end(stmt);
    return true;
}
