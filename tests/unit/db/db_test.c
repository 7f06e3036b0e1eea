/* db_test.c - opening, locking, group commit, readers, failure. */
/* Faults of docs/reliability.md: F1 F3 F12 F34 F43. */

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "db/events.h"
#include "db/internal.h"
#include "tests/unit/db/folder.h"
#include "tests/unit/test.h"

/* Adds an event with this text; "bad" fails after it has written. */
static bool add_event(struct db_conn *conn, void *arg, struct error *err)
{
    struct db_event event = {.kind = "job.note", .state = -1, .state_from = -1, .text = arg};
    if (!db_events_add(conn, &event, err))
        return false;
    return strcmp(arg, "bad") != 0 || fail(err, ABORTED, "as asked");
}

static int64_t events_count(struct db *db)
{
    struct error err;
    int64_t oldest, newest;
    struct db_conn *conn = db_read(db, DB_CONTROL, &err);
    CHECK(conn);
    CHECK_OK(db_events_range(conn, &oldest, &newest, &err), &err);
    db_read_done(db, conn);
    return newest;
}

TEST(db_keeps_what_was_written)
{
    struct error err;
    char *folder = folder_new();
    struct db *db = db_open(folder, &err);
    if (!db)
        CHECK_STOP("%s", err.text);
    CHECK_TEXT(db_folder(db), folder);
    CHECK_OK(db_write(db, DB_CONTROL, add_event, "one", &err), &err);
    CHECK_FAILS(db_write(db, DB_CONTROL, add_event, "bad", &err), &err, ABORTED);
    CHECK_OK(db_write(db, DB_CONTROL, add_event, "two", &err), &err);
    db_close(db);

    db = db_open(folder, &err);
    CHECK(db);
    CHECK_INT(events_count(db), 2); /* no gap where "bad" was */
    db_close(db);
    folder_free(folder);
}

/* What goes along is written with the first change that is written, or not at all. */
TEST(db_writes_both_or_neither)
{
    struct error err;
    char *folder = folder_new();
    struct db *db = db_open(folder, &err);
    CHECK(db);
    db_along(add_event, "along");
    CHECK_FAILS(db_write(db, DB_CONTROL, add_event, "bad", &err), &err, ABORTED);
    CHECK_INT(events_count(db), 0);
    CHECK_OK(db_write(db, DB_CONTROL, add_event, "one", &err), &err);
    CHECK_INT(events_count(db), 2);
    CHECK_OK(db_write(db, DB_CONTROL, add_event, "two", &err), &err);
    CHECK_INT(events_count(db), 3); /* it went already */
    CHECK(db_along_end());

    db_along(add_event, "bad");
    CHECK_FAILS(db_write(db, DB_CONTROL, add_event, "three", &err), &err, ABORTED);
    CHECK_INT(events_count(db), 3);
    CHECK(!db_along_end());
    CHECK_OK(db_write(db, DB_CONTROL, add_event, "four", &err), &err);
    CHECK_INT(events_count(db), 4);
    db_close(db);
    folder_free(folder);
}

TEST(db_is_used_by_one_process)
{
    struct error err, second;
    char *folder = folder_new();
    struct db *db = db_open(folder, &err);
    CHECK(db);
    CHECK(!db_open(folder, &second));
    CHECK_INT(second.code, PRECONDITION);
    char expected[400];
    snprintf(expected, sizeof(expected), "another trainyard serve (pid %ld) uses %s",
             (long)getpid(), folder);
    CHECK_TEXT(second.text, expected);
    db_close(db);
    folder_free(folder);
}

TEST(db_of_a_newer_program_is_refused)
{
    struct error err;
    char *folder = folder_new();
    struct db *db = db_open(folder, &err);
    CHECK(db);
    db_close(db);
    char path[400];
    snprintf(path, sizeof(path), "%s/control.db", folder);
    struct db_conn *conn = db_conn_open(path, true, &err);
    CHECK(conn);
    CHECK_OK(db_script(conn, "PRAGMA user_version = 99", &err), &err);
    db_conn_close(conn);
    CHECK(!db_open(folder, &err));
    CHECK_INT(err.code, PRECONDITION);
    CHECK(strstr(err.text, "schema 99"));
    folder_free(folder);
}

/* Every page but the first is garbage: the start says so and names the file. */
TEST(db_that_is_damaged_is_refused)
{
    struct error err;
    char *folder = folder_new();
    struct db *db = db_open(folder, &err);
    CHECK(db);
    db_close(db);
    char path[400];
    snprintf(path, sizeof(path), "%s/control.db", folder);
    int fd = open(path, O_RDWR);
    CHECK(fd >= 0);
    char garbage[4096];
    memset(garbage, 0x5a, sizeof(garbage));
    for (off_t at = 4096; at < 10 * 4096; at += 4096)
        CHECK_INT(pwrite(fd, garbage, sizeof(garbage), at), sizeof(garbage));
    close(fd);
    CHECK(!db_open(folder, &err));
    CHECK_INT(err.code, DATA_LOSS);
    CHECK(strstr(err.text, path));
    folder_free(folder);
}

static bool limit_pages(struct db_conn *conn, void *arg, struct error *err)
{
    return db_number(conn, err, arg, 0, "PRAGMA max_page_count = 1", "");
}

static bool unlimit_pages(struct db_conn *conn, void *arg, struct error *err)
{
    return db_number(conn, err, arg, 0, "PRAGMA max_page_count = 1000000", "");
}

/* A full disk fails the write with a clear text, and space coming back heals it. */
TEST(db_survives_a_full_disk)
{
    struct error err;
    int64_t pages;
    char *folder = folder_new();
    struct db *db = db_open(folder, &err);
    CHECK(db);
    CHECK_OK(db_write(db, DB_CONTROL, limit_pages, &pages, &err), &err);
    static char text[100000];
    memset(text, 'x', sizeof(text) - 1);
    CHECK_FAILS(db_write(db, DB_CONTROL, add_event, text, &err), &err, EXHAUSTED);
    CHECK(strstr(err.text, "disk full"));
    CHECK_OK(db_write(db, DB_CONTROL, unlimit_pages, &pages, &err), &err);
    CHECK_OK(db_write(db, DB_CONTROL, add_event, text, &err), &err);
    CHECK_INT(events_count(db), 1);
    db_close(db);
    folder_free(folder);
}

TEST(db_readers_see_a_snapshot_and_cannot_write)
{
    struct error err;
    int64_t oldest, newest;
    char *folder = folder_new();
    struct db *db = db_open(folder, &err);
    CHECK(db);
    CHECK_OK(db_write(db, DB_CONTROL, add_event, "one", &err), &err);
    struct db_conn *conn = db_read(db, DB_CONTROL, &err);
    CHECK(conn);
    CHECK_OK(db_events_range(conn, &oldest, &newest, &err), &err);
    CHECK_OK(db_write(db, DB_CONTROL, add_event, "two", &err), &err);
    CHECK_OK(db_events_range(conn, &oldest, &newest, &err), &err);
    CHECK_INT(newest, 1);
    CHECK(!db_run(conn, &err, "UPDATE meta SET value = 1", ""));
    db_read_done(db, conn);
    CHECK_INT(events_count(db), 2);
    db_close(db);
    folder_free(folder);
}

TEST(db_events_are_never_changed)
{
    struct error err;
    char *folder = folder_new();
    struct db *db = db_open(folder, &err);
    CHECK(db);
    db_close(db);
    char path[400];
    snprintf(path, sizeof(path), "%s/control.db", folder);
    struct db_conn *conn = db_conn_open(path, true, &err);
    CHECK(conn);
    CHECK_OK(add_event(conn, "one", &err), &err);
    CHECK(!db_script(conn, "UPDATE events SET text = 'other'", &err));
    CHECK(!db_script(conn, "DELETE FROM events", &err));
    db_conn_close(conn);
    folder_free(folder);
}

struct many {
    struct db *db;
    int failed;
};

static void *many_main(void *arg)
{
    struct many *many = arg;
    struct error err;
    for (int i = 0; i < 200; i++) {
        const char *text = i % 10 == 3 ? "bad" : "good";
        if (!db_write(many->db, DB_CONTROL, add_event, (void *)(uintptr_t)text, &err))
            many->failed++;
    }
    return NULL;
}

/* Those that fail take nothing of the others of their group with them. */
TEST(db_group_commit_serves_many)
{
    struct error err;
    char *folder = folder_new();
    struct db *db = db_open(folder, &err);
    CHECK(db);
    pthread_t threads[8];
    struct many many[8];
    for (int i = 0; i < 8; i++) {
        many[i] = (struct many){.db = db};
        CHECK_INT(pthread_create(&threads[i], NULL, many_main, &many[i]), 0);
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
        CHECK_INT(many[i].failed, 20);
    }
    CHECK_INT(events_count(db), 8 * 180);
    db_close(db);
    folder_free(folder);
}

static int64_t watched_seq;

static void watch(void *self, int64_t seq)
{
    *(int *)self += 1;
    watched_seq = seq;
}

TEST(db_watch_tells_of_events)
{
    struct error err;
    int calls = 0;
    char *folder = folder_new();
    struct db *db = db_open(folder, &err);
    CHECK(db);
    db_watch(db, watch, &calls);
    CHECK_OK(db_write(db, DB_CONTROL, add_event, "one", &err), &err);
    CHECK_FAILS(db_write(db, DB_CONTROL, add_event, "bad", &err), &err, ABORTED);
    CHECK_OK(db_write(db, DB_CONTROL, add_event, "two", &err), &err);
    CHECK_INT(watched_seq, 2);
    db_close(db);
    folder_free(folder);
}

/* A process that is killed at any moment loses nothing of what db_write() had answered. */
TEST(db_killed_writer_loses_nothing)
{
    struct error err;
    char *folder = folder_new();
    for (int round = 0; round < 20; round++) {
        int pipe_fd[2];
        CHECK_INT(pipe(pipe_fd), 0);
        pid_t child = fork();
        if (child == 0) {
            struct db *db = db_open(folder, &err);
            for (int64_t n = 0; db && db_write(db, DB_CONTROL, add_event, "one", &err); n++) {
                if (write(pipe_fd[1], "x", 1) != 1)
                    break;
            }
            _exit(1);
        }
        close(pipe_fd[1]);
        usleep(5000 + round * 700);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        static int64_t answered;
        char bytes[4096];
        ssize_t size;
        while ((size = read(pipe_fd[0], bytes, sizeof(bytes))) > 0)
            answered += size;
        close(pipe_fd[0]);

        struct db *db = db_open(folder, &err);
        if (!db)
            CHECK_STOP("%s", err.text);
        int64_t stored = events_count(db);
        /* At most one write of each round was stored without its answer being seen. */
        CHECK(stored >= answered);
        CHECK(stored <= answered + round + 1);
        db_close(db);
    }
    folder_free(folder);
}
