/* backup_test.c - databases looked through, copied while in use, and put back. */
/* Faults of docs/reliability.md: F42 F43. */

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "db/backup.h"
#include "db/events.h"
#include "db/internal.h"
#include "db/jobs.h"
#include "db/nodes.h"
#include "db/tokens.h"
#include "tests/unit/db/folder.h"

static void nothing_found(void *self, const char *file, const char *text)
{
    (void)self;
    CHECK_STOP("%s: %s", file, text);
}

static void keep(void *self, const char *file, const char *text)
{
    snprintf(self, 400, "%s: %s", file, text);
}

/* A folder with `jobs` jobs, and epoch `epoch` given; closed. */
static void fill(const char *folder, int jobs, int64_t epoch)
{
    struct error err;
    struct db *db = db_open(folder, &err);
    if (!db)
        CHECK_STOP("%s", err.text);
    for (int i = 0; i < jobs; i++) {
        struct db_need need = {.role = "worker", .replicas = 1, .cpu_millis = 1000};
        struct db_job_new job = {.user_id = DB_USER_ADMIN,
                                 .name = "a",
                                 .project = "default",
                                 .queue = "default",
                                 .priority = 50,
                                 .spec = "{}",
                                 .dataset = "",
                                 .restart_max = 1,
                                 .needs = &need,
                                 .needs_count = 1};
        struct db_job_added added;
        CHECK_OK(db_jobs_add(db, &job, &added, &err), &err);
    }
    db_close(db);
    struct sqlite3 *sqlite;
    char sql[100], path[300];
    snprintf(path, sizeof(path), "%s/control.db", folder);
    snprintf(sql, sizeof(sql), "UPDATE meta SET value = %lld WHERE name = 'epoch'",
             (long long)epoch);
    CHECK_INT(sqlite3_open(path, &sqlite), SQLITE_OK);
    CHECK_INT(sqlite3_exec(sqlite, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(sqlite);
}

static void sql(const char *folder, const char *text)
{
    char path[300];
    sqlite3 *db;
    snprintf(path, sizeof(path), "%s/control.db", folder);
    CHECK_INT(sqlite3_open(path, &db), SQLITE_OK);
    CHECK_INT(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static int64_t number(const char *folder, const char *query)
{
    struct error err;
    int64_t number = -1;
    char path[300];
    snprintf(path, sizeof(path), "%s/control.db", folder);
    struct db_conn *conn = db_conn_open(path, false, &err);
    CHECK(conn);
    CHECK_OK(db_number(conn, &err, &number, -1, query, ""), &err);
    db_conn_close(conn);
    return number;
}

TEST(backup_is_taken_of_a_running_server_and_put_back)
{
    struct error err;
    struct db_restored restored;
    char to[300], lost[300], kept[600];
    char *folder = folder_new(), *other = folder_new();
    fill(folder, 3, 7);
    snprintf(to, sizeof(to), "%s/copy", other);
    struct db *db = db_open(folder, &err);
    CHECK_OK(db_backup(folder, to, &err), &err);
    CHECK_INT(db_check(to, nothing_found, NULL, &err), 0);
    CHECK_FAILS(db_backup(folder, to, &err), &err, EXISTS);
    CHECK_FAILS(db_restore(to, folder, &restored, &err), &err, PRECONDITION);
    db_close(db);

    /* Job 4 comes after the backup; its folder must not be found by the next job 4. */
    fill(folder, 1, 9);
    snprintf(lost, sizeof(lost), "%s/jobs", folder);
    CHECK_INT(mkdir(lost, 0700), 0);
    snprintf(lost, sizeof(lost), "%s/jobs/4", folder);
    CHECK_INT(mkdir(lost, 0700), 0);
    snprintf(lost, sizeof(lost), "%s/jobs/3", folder);
    CHECK_INT(mkdir(lost, 0700), 0);
    CHECK_OK(db_restore(to, folder, &restored, &err), &err);
    CHECK_INT(restored.jobs, 3);
    CHECK_INT(restored.alive, 3);
    CHECK_INT(restored.set_aside, 1);
    CHECK(access(lost, F_OK) == 0);
    snprintf(kept, sizeof(kept), "%s/jobs/4", restored.aside);
    CHECK(access(kept, F_OK) == 0);
    CHECK_INT(number(restored.aside, "SELECT count(*) FROM jobs"), 4);
    CHECK_INT(number(folder, "SELECT count(*) FROM jobs"), 3);
    CHECK_INT(number(folder, "SELECT value FROM meta WHERE name = 'epoch'"),
              INT64_C(1) << DB_GENERATION_BITS);
    CHECK_INT(db_check(folder, nothing_found, NULL, &err), 0);
    db = db_open(folder, &err);
    CHECK_OK(db, &err);
    db_close(db);
    folder_free(folder);
    folder_free(other);
}

/* The same backup again: epochs rise, also when the present file can no longer be read. */
TEST(restore_never_gives_an_epoch_twice)
{
    struct error err;
    struct db_restored restored;
    char to[300], control[300];
    char *folder = folder_new(), *other = folder_new();
    fill(folder, 1, 5);
    snprintf(to, sizeof(to), "%s/copy", other);
    CHECK_OK(db_backup(folder, to, &err), &err);
    CHECK_OK(db_restore(to, folder, &restored, &err), &err);
    CHECK_INT(restored.epoch >> DB_GENERATION_BITS, 1);
    fill(folder, 0, restored.epoch + 17);
    sleep(1); /* what is set aside is named by the second */
    CHECK_OK(db_restore(to, folder, &restored, &err), &err);
    CHECK_INT(restored.epoch >> DB_GENERATION_BITS, 2);
    snprintf(control, sizeof(control), "%s/control.db", folder);
    CHECK_INT(truncate(control, 100), 0);
    sleep(1);
    CHECK_OK(db_restore(to, folder, &restored, &err), &err);
    CHECK_INT(restored.epoch >> DB_GENERATION_BITS, 3);
    CHECK_INT(number(folder, "SELECT count(*) FROM jobs"), 1);
    CHECK_INT(number(folder, "SELECT count(*) FROM events WHERE kind = 'server.restored'"), 1);
    folder_free(folder);
    folder_free(other);
}

TEST(restore_refuses_what_is_no_backup)
{
    struct error err;
    struct db_restored restored;
    char to[300], control[320];
    char *folder = folder_new(), *other = folder_new();
    CHECK_FAILS(db_restore("/nonesuch", folder, &restored, &err), &err, NOT_FOUND);
    CHECK_FAILS(db_backup(folder, other, &err), &err, NOT_FOUND);
    fill(folder, 2, 3);
    snprintf(to, sizeof(to), "%s/copy", other);
    CHECK_OK(db_backup(folder, to, &err), &err);
    sql(to, "PRAGMA user_version = 99");
    CHECK_FAILS(db_restore(to, folder, &restored, &err), &err, PRECONDITION);
    snprintf(control, sizeof(control), "%s/control.db", to);
    CHECK_INT(truncate(control, 5000), 0);
    CHECK_FAILS(db_restore(to, folder, &restored, &err), &err, DATA_LOSS);
    CHECK_INT(number(folder, "SELECT count(*) FROM jobs"), 2);
    CHECK_INT(number(folder, "SELECT value FROM meta WHERE name = 'epoch'"), 3);
    folder_free(folder);
    folder_free(other);
}

/* Tables that say something else than the events before them. */
TEST(check_finds_what_does_not_add_up)
{
    static const struct {
        const char *change;
        const char *finding;
    } rows[] = {
        {"UPDATE jobs SET state = 1 WHERE number = 2",
         "control.db: job #2 is in state 1, its events say 0"},
        {"UPDATE meta SET value = 9 WHERE name = 'waiting'",
         "control.db: meta: 9 jobs wait, the table has 3"},
        {"DROP TRIGGER events_kept; DELETE FROM events WHERE seq = 2",
         "control.db: events: 2 rows in 3 numbers"},
        {"INSERT INTO attempts VALUES (8, 1, 1, 0, 0, 0, 0, '')",
         "control.db: meta: the newest epoch is 7, one that was given is 8"},
        {"PRAGMA foreign_keys = 0; INSERT INTO attempts VALUES (7, 70, 1, 0, 0, 1, 0, '')",
         "control.db: a reference to nothing: attempts row 7 to jobs"},
    };
    struct error err;
    for (int i = 0; i < ARRAY_LEN(rows); i++) {
        char said[400] = "";
        char *folder = folder_new();
        fill(folder, 3, 7);
        sql(folder, rows[i].change);
        CHECK(db_check(folder, keep, said, &err) > 0);
        CHECK_TEXT(said, rows[i].finding);
        folder_free(folder);
    }
    CHECK_INT(db_check("/nonesuch", keep, NULL, &err), -1);
    CHECK_INT(err.code, NOT_FOUND);
}

/* Damaged bytes end in an answer or an error, never in a crash. */
TEST(check_and_open_survive_damage)
{
    struct error err;
    char from[300], path[300], said[400];
    char *folder = folder_new(), *other = folder_new();
    fill(folder, 5, 7);
    snprintf(path, sizeof(path), "%s/copy", other);
    CHECK_OK(db_backup(folder, path, &err), &err);
    snprintf(from, sizeof(from), "%s/copy/control.db", other);
    snprintf(path, sizeof(path), "%s/control.db", folder);
    FILE *file = fopen(from, "rb");
    static char good[1 << 20];
    size_t size = fread(good, 1, sizeof(good), file);
    fclose(file);
    uint64_t random = 1;
    int refused = 0;
    for (int turn = 0; turn < 200; turn++) {
        file = fopen(path, "wb");
        CHECK(fwrite(good, 1, size, file) == size);
        for (int i = 0; i < 3; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            fseek(file, (long)(random >> 33) % (long)size, SEEK_SET);
            fputc((int)(random >> 25) & 255, file);
        }
        fclose(file);
        refused += db_check(folder, keep, said, &err) != 0;
        struct db *db = db_open(folder, &err);
        if (!db)
            CHECK(err.code == DATA_LOSS || err.code == PRECONDITION || err.code == INTERNAL ||
                  err.code == DENIED);
        db_close(db);
    }
    CHECK(refused > 20);
    folder_free(folder);
    folder_free(other);
}
