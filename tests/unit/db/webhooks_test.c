/* webhooks_test.c - each event gets its deliveries once, and what waits and is kept has bounds.
 */

#include "base/arena.h"
#include "base/clock.h"
#include "db/deliveries.h"
#include "db/events.h"
#include "db/internal.h"
#include "db/tokens.h"
#include "db/webhooks.h"
#include "tests/unit/db/folder.h"

struct yard {
    char *folder;
    struct db *db;
    struct arena *arena;
    struct error err;
};

static struct yard yard_new(void)
{
    struct yard yard = {.folder = folder_new(), .arena = arena_new()};
    yard.db = db_open(yard.folder, &yard.err);
    if (!yard.db)
        CHECK_STOP("%s", yard.err.text);
    return yard;
}

static void yard_free(struct yard *yard)
{
    db_close(yard->db);
    arena_free(yard->arena);
    folder_free(yard->folder);
}

/* A job of a project, by the columns that webhooks ask for. */
static bool job_run(struct db_conn *conn, void *arg, struct error *err)
{
    const char *project = arg;
    return db_run(
        conn, err,
        "INSERT INTO jobs (id, user_id, name, project, queue, priority, state, reason,"
        " text, spec, dataset, restart_max, restarts, attempt, epoch, stop_us,"
        " retry_us, created_us, started_us, ended_us, tasks_count, seq)"
        " VALUES ('job_' || ?1, 1, 'j', ?1, 'default', 50, 0, '', '', '{}', '', 0, 0,"
        " 0, 0, 0, 0, 1, 0, 0, 1, 1)",
        "t", project);
}

static bool event_run(struct db_conn *conn, void *arg, struct error *err)
{
    const struct db_event *event = arg;
    struct db_event copy = *event;
    return db_events_add(conn, &copy, err);
}

static void add_event(struct yard *yard, int64_t job, enum job_state state)
{
    struct db_event event = {
        .wall_us = 1, .kind = "job.state", .job = job, .state = (int)state};
    CHECK_OK(db_write(yard->db, DB_CONTROL, event_run, &event, &yard->err), &yard->err);
}

static int64_t add_webhook(struct yard *yard, const char *project, int states)
{
    struct db_webhook webhook = {
        .project = project, .url = "https://example.com/", .states = states};
    CHECK_OK(db_webhooks_add(yard->db, &webhook, DB_USER_ADMIN, "whsec_x", &yard->err),
             &yard->err);
    return webhook.id;
}

static int64_t number(struct yard *yard, const char *sql)
{
    int64_t value = -1;
    struct db_conn *conn = db_read(yard->db, DB_CONTROL, &yard->err);
    CHECK_OK(conn && db_number(conn, &yard->err, &value, 0, sql, ""), &yard->err);
    db_read_done(yard->db, conn);
    return value;
}

static void queue(struct yard *yard, int64_t after_seq, int64_t upto_seq)
{
    CHECK_OK(db_deliveries_queue(yard->db, after_seq, upto_seq, &yard->err), &yard->err);
}

TEST(events_get_their_deliveries_once)
{
    struct yard yard = yard_new();
    CHECK_OK(db_write(yard.db, DB_CONTROL, job_run, (void *)"apples", &yard.err), &yard.err);
    CHECK_OK(db_write(yard.db, DB_CONTROL, job_run, (void *)"pears", &yard.err), &yard.err);
    add_event(&yard, 1, JOB_RUNNING); /* before there is anybody to tell */
    int64_t all = add_webhook(&yard, "apples", DB_WEBHOOK_STATES_ALL);
    add_webhook(&yard, "apples", 1 << JOB_FAILED);
    add_event(&yard, 1, JOB_SUCCEEDED);
    add_event(&yard, 1, JOB_FAILED);
    add_event(&yard, 2, JOB_FAILED);
    queue(&yard, 0, 3);
    queue(&yard, 0, 4);
    queue(&yard, 0, 4);
    CHECK_INT(number(&yard, "SELECT count(*) FROM deliveries"), 3);
    CHECK_INT(number(&yard, "SELECT sum(seq) FROM deliveries WHERE webhook_id = 1"), 5);
    CHECK_INT(number(&yard, "SELECT min(seq) FROM deliveries WHERE webhook_id = 2"), 3);
    CHECK_OK(db_webhooks_remove(yard.db, all, &yard.err), &yard.err);
    CHECK_INT(number(&yard, "SELECT count(*) FROM deliveries"), 1);
    CHECK_FAILS(db_webhooks_remove(yard.db, all, &yard.err), &yard.err, NOT_FOUND);
    yard_free(&yard);
}

TEST(one_that_is_enabled_again_is_not_told_of_what_it_missed)
{
    struct yard yard = yard_new();
    CHECK_OK(db_write(yard.db, DB_CONTROL, job_run, (void *)"apples", &yard.err), &yard.err);
    struct db_webhook webhook = {.id = add_webhook(&yard, "apples", DB_WEBHOOK_STATES_ALL),
                                 .url = "https://example.com/",
                                 .states = DB_WEBHOOK_STATES_ALL,
                                 .disabled = true};
    CHECK_OK(db_webhooks_change(yard.db, &webhook, &yard.err), &yard.err);
    add_event(&yard, 1, JOB_RUNNING);
    webhook.disabled = false;
    CHECK_OK(db_webhooks_change(yard.db, &webhook, &yard.err), &yard.err);
    add_event(&yard, 1, JOB_SUCCEEDED);
    queue(&yard, 0, 2);
    CHECK_INT(number(&yard, "SELECT sum(seq) FROM deliveries"), 2);
    yard_free(&yard);
}

TEST(the_next_of_each_is_the_one_that_waits_longest)
{
    struct yard yard = yard_new();
    struct db_delivery *rows = NULL;
    int64_t id;
    int count = 0;
    for (int i = 0; i < 2; i++) {
        add_webhook(&yard, "apples", DB_WEBHOOK_STATES_ALL);
        for (int k = 0; k < 2; k++)
            CHECK_OK(db_deliveries_test(yard.db, i + 1, &id, &yard.err), &yard.err);
    }
    struct db_delivery later = {.id = 1,
                                .webhook_id = 1,
                                .tries = 1,
                                .next_us = INT64_MAX,
                                .tried_us = 5,
                                .status = 503,
                                .error = "answered 503"};
    CHECK_OK(db_deliveries_tried(yard.db, &later, &yard.err), &yard.err);
    struct db_conn *conn = db_read(yard.db, DB_CONTROL, &yard.err);
    CHECK_OK(conn && db_deliveries_next(conn, yard.arena, &rows, &count, &yard.err), &yard.err);
    CHECK_INT(count, 2);
    CHECK_INT(rows[0].id, 2);
    CHECK_INT(rows[1].id, 3);
    CHECK_OK(db_deliveries_find(conn, 1, 1, yard.arena, &later, &yard.err), &yard.err);
    CHECK_TEXT(later.error, "answered 503");
    CHECK_FAILS(db_deliveries_find(conn, 2, 1, yard.arena, &later, &yard.err), &yard.err,
                NOT_FOUND);
    db_read_done(yard.db, conn);
    CHECK_FAILS(db_deliveries_again(yard.db, 2, 1, &yard.err), &yard.err, NOT_FOUND);
    CHECK_OK(db_deliveries_again(yard.db, 1, 1, &yard.err), &yard.err);
    CHECK_INT(number(&yard, "SELECT tries FROM deliveries WHERE id = 1"), 0);
    yard_free(&yard);
}

/* Many deliveries at once, of which `over` have ended. */
struct many {
    int count, over;
};

static bool many_run(struct db_conn *conn, void *arg, struct error *err)
{
    const struct many *many = arg;
    return db_run(
        conn, err,
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)"
        " INSERT INTO deliveries (webhook_id, seq, created_us, tries, next_us,"
        " tried_us, status, error)"
        " SELECT 1, 0, 1, 0, iif(i > ?2, 1, 0), 0, 0, '' FROM n",
        "ii", (int64_t)many->count, (int64_t)many->over);
}

TEST(what_waits_and_what_is_kept_has_bounds)
{
    struct yard yard = yard_new();
    struct many many = {DB_DELIVERIES_WAITING_MAX + DB_DELIVERIES_KEPT + 50,
                        DB_DELIVERIES_KEPT + 20};
    add_webhook(&yard, "apples", DB_WEBHOOK_STATES_ALL);
    CHECK_OK(db_write(yard.db, DB_CONTROL, many_run, &many, &yard.err), &yard.err);
    queue(&yard, 0, 0);
    CHECK_INT(number(&yard, "SELECT count(*) FROM deliveries WHERE next_us > 0"),
              DB_DELIVERIES_WAITING_MAX);
    struct db_delivery done = {.id = 20000, .webhook_id = 1, .error = ""};
    CHECK_OK(db_deliveries_tried(yard.db, &done, &yard.err), &yard.err);
    CHECK_INT(number(&yard, "SELECT count(*) FROM deliveries WHERE next_us = 0"),
              DB_DELIVERIES_KEPT);
    CHECK_INT(number(&yard, "SELECT count(*) FROM deliveries WHERE next_us > 0"),
              DB_DELIVERIES_WAITING_MAX);
    yard_free(&yard);
}

TEST(secrets_open_and_webhooks_are_counted)
{
    struct yard yard = yard_new();
    const char *secret = NULL;
    for (int i = 0; i < DB_WEBHOOKS_MAX; i++)
        add_webhook(&yard, "apples", 1);
    struct db_webhook more = {.project = "apples", .url = "https://example.com/", .states = 1};
    CHECK_FAILS(db_webhooks_add(yard.db, &more, DB_USER_ADMIN, "whsec_x", &yard.err), &yard.err,
                EXHAUSTED);
    struct db_conn *conn = db_read(yard.db, DB_CONTROL, &yard.err);
    CHECK_OK(conn && db_webhooks_secret(yard.db, conn, 7, yard.arena, &secret, &yard.err),
             &yard.err);
    CHECK_TEXT(secret, "whsec_x");
    db_read_done(yard.db, conn);
    yard_free(&yard);
}
