/* audit_test.c - the audit cannot be changed without its being seen. */

#include "db/audit.h"

#include <sqlite3.h>

#include "base/arena.h"
#include "db/backup.h"
#include "tests/unit/db/folder.h"

static void add(struct db *db, const char *path)
{
    struct error err;
    struct db_audit entry = {.wall_us = 1760000000000000,
                             .user = "ana",
                             .way = "token",
                             .method = "POST",
                             .path = path,
                             .status = 201,
                             .request = "req_1"};
    db_audit_begin(&entry);
    CHECK_OK(db_audit_end(db, &entry, &err), &err);
}

/* What a person with the file might do. */
static void change(const char *folder, const char *text)
{
    sqlite3 *sqlite;
    char path[300], *error = NULL;
    snprintf(path, sizeof(path), "%s/control.db", folder);
    CHECK_INT(sqlite3_open(path, &sqlite), SQLITE_OK);
    sqlite3_exec(sqlite, "DROP TRIGGER audit_stays; DROP TRIGGER audit_kept", NULL, NULL, NULL);
    sqlite3_exec(sqlite, text, NULL, NULL, &error);
    if (error)
        CHECK_STOP("%s", error);
    sqlite3_close(sqlite);
}

static int64_t verify(struct db *db)
{
    struct error err;
    int64_t bad = -1;
    struct db_conn *conn = db_read(db, DB_CONTROL, &err);
    CHECK(conn);
    CHECK_OK(db_audit_verify(conn, &bad, &err), &err);
    db_read_done(db, conn);
    return bad;
}

static int told;
static void found(void *self, const char *file, const char *what)
{
    (void)self;
    CHECK_TEXT(file, "control.db");
    CHECK(strstr(what, "audit: entry 3"));
    told++;
}

/* Five entries, changed like this: which one is found out. */
static int64_t after(const char *text, bool is_looked_through)
{
    struct error err;
    char *folder = folder_new();
    struct db *db = db_open(folder, &err);
    CHECK(db);
    CHECK_INT(verify(db), 0);
    static const char *const paths[] = {"/a", "/b", "/c", "/d", "/e"};
    for (int i = 0; i < ARRAY_LEN(paths); i++)
        add(db, paths[i]);
    CHECK_INT(verify(db), 0);
    db_close(db);
    change(folder, text);
    told = 0;
    int findings = db_check(folder, found, NULL, &err);
    CHECK_INT(findings, is_looked_through);
    CHECK_INT(told, findings);
    db = db_open(folder, &err);
    CHECK(db);
    int64_t bad = verify(db);
    db_close(db);
    folder_free(folder);
    return bad;
}

TEST(audit_shows_what_was_changed)
{
    CHECK_INT(after("SELECT 1", false), 0);
    CHECK_INT(after("UPDATE audit SET path = '/x' WHERE seq = 3", true), 3);
    CHECK_INT(after("UPDATE audit SET wall_us = wall_us + 1 WHERE seq = 3", true), 3);
    CHECK_INT(after("UPDATE audit SET user = 'an', way = 'atoken' WHERE seq = 3", true), 3);
    CHECK_INT(after("UPDATE audit SET hash = NULL WHERE seq = 3", true), 3);
    CHECK_INT(after("DELETE FROM audit WHERE seq = 4", true), 3);
    CHECK_INT(after("DELETE FROM audit WHERE seq = 4;"
                    "UPDATE audit SET seq = 4 WHERE seq = 5;"
                    "UPDATE audit SET path = '/x' WHERE seq = 3",
                    true),
              3);
}

/* Entries of before there were hashes are not looked at, what follows them is. */
TEST(audit_goes_on_behind_what_has_no_hash)
{
    struct error err;
    struct db_audit *entries;
    int count;
    int64_t next;
    char *folder = folder_new();
    struct db *db = db_open(folder, &err);
    CHECK(db);
    add(db, "/old");
    add(db, "/older");
    db_close(db);
    change(folder, "UPDATE audit SET hash = NULL");
    db = db_open(folder, &err);
    CHECK(db);
    add(db, "/new");
    CHECK_INT(verify(db), 0);
    struct arena *arena = arena_new();
    struct db_conn *conn = db_read(db, DB_CONTROL, &err);
    CHECK(conn);
    CHECK_OK(db_audit_list(conn, 0, NULL, 10, arena, &entries, &count, &next, &err), &err);
    CHECK_INT(count, 3);
    CHECK_INT(strlen(entries[0].hash), 64);
    CHECK_TEXT(entries[1].hash, "");
    CHECK_TEXT(entries[2].path, "/old");
    db_read_done(db, conn);
    arena_free(arena);
    db_close(db);
    change(folder, "UPDATE audit SET status = 500 WHERE seq = 3");
    db = db_open(folder, &err);
    CHECK(db);
    CHECK_INT(verify(db), 3);
    db_close(db);
    folder_free(folder);
}
