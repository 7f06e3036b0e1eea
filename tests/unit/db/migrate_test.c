/* migrate_test.c - a folder of an older version is taken over as it is. */
/* Faults of docs/reliability.md: F34. */

#include <sqlite3.h>

#include "base/arena.h"
#include "db/internal.h"
#include "db/jobs.h"
#include "tests/unit/db/folder.h"

static void sql(sqlite3 *db, const char *text)
{
    char *problem = NULL;
    if (sqlite3_exec(db, text, NULL, NULL, &problem) != SQLITE_OK)
        CHECK_STOP("%s: %s", problem, text);
}

/* As the first version left it: a job that waits, and one that runs with two GPUs. */
static void write_first_version(const char *folder)
{
    char path[300];
    sqlite3 *db;
    snprintf(path, sizeof(path), "%s/control.db", folder);
    CHECK_INT(sqlite3_open(path, &db), SQLITE_OK);
    sql(db, db_migrate_control[0]);
    sql(db, "INSERT INTO jobs VALUES (1, 'job_1', 1, 'a', 'p', 'fast', 50, 0, '', '', '{}', '',"
            " 5, 0, 0, 0, 0, 0, 1, 0, 0, 1, 1, 'key', x'00');"
            "INSERT INTO jobs VALUES (2, 'job_2', 1, 'b', 'p', 'default', 50, 3, '', '', '{}',"
            " '', 0, 0, 1, 9, 0, 0, 1, 0, 0, 1, 1, NULL, NULL);"
            "INSERT INTO needs VALUES (1, 0, 'worker', 1, 1000, 5, 0);"
            "INSERT INTO needs VALUES (2, 0, 'worker', 2, 1000, 5, 2);"
            "INSERT INTO nodes VALUES (1, 'n', 'i', 'b', '1', '{}', 3, 0, 0, 9000, 9, 8, 'x',"
            " 0, 0, 0);"
            "INSERT INTO attempts VALUES (9, 2, 1, 0, 0, 0, 0, '');"
            "INSERT INTO tasks VALUES (9, 'worker', 0, 2, 1, 2, 1000, 5, 2, 0, 0, 0, 0, 0, 0,"
            " '', 0);"
            "INSERT INTO tasks VALUES (9, 'worker', 1, 2, 1, 2, 1000, 5, 2, 0, 0, 0, 0, 0, 0,"
            " '', 0);"
            "PRAGMA user_version = 1");
    CHECK_INT(sqlite3_close(db), SQLITE_OK);
}

TEST(migrate_takes_over_the_first_version)
{
    char *folder = folder_new();
    struct arena *arena = arena_new();
    struct error err;
    write_first_version(folder);
    struct db *db = db_open(folder, &err);
    if (!db)
        CHECK_STOP("%s", err.text);

    char kept[300];
    snprintf(kept, sizeof(kept), "%s/control.db.schema-1", folder);
    struct db_conn *older = db_conn_open(kept, false, &err);
    int64_t version;
    CHECK(older);
    CHECK_OK(db_number(older, &err, &version, 0, "PRAGMA user_version", ""), &err);
    CHECK_INT(version, 1);
    db_conn_close(older);

    struct db_job *jobs;
    struct db_need *needs;
    struct db_task *tasks;
    int64_t broken, waiting;
    int count;
    struct db_conn *conn = db_read(db, DB_CONTROL, &err);
    CHECK_OK(db_jobs_alive(conn, 0, arena, &jobs, &count, &err), &err);
    CHECK_INT(count, 2);
    CHECK_TEXT(jobs[0].queue, "fast");
    CHECK(!jobs[0].spread);
    CHECK_OK(db_jobs_needs(conn, 1, arena, &needs, &count, &err), &err);
    CHECK_INT(count, 1);
    CHECK_INT(needs[0].gpu_share, 0);
    CHECK_TEXT(needs[0].node_labels, "{}");
    CHECK_OK(db_tasks_list(conn, 9, arena, &tasks, &count, &err), &err);
    CHECK_INT(tasks[0].gpu_mask, 3); /* each GPU is held by one */
    CHECK_INT(tasks[1].gpu_mask, 12);
    CHECK_OK(
        db_number(conn, &err, &broken, 0, "SELECT count(*) FROM pragma_foreign_key_check", ""),
        &err);
    CHECK_INT(broken, 0);
    CHECK_OK(
        db_number(conn, &err, &waiting, 0, "SELECT value FROM meta WHERE name = 'waiting'", ""),
        &err);
    CHECK_INT(waiting, 1);
    db_read_done(db, conn);
    db_close(db);
    arena_free(arena);
    folder_free(folder);
}
