/* store_test.c - uploaded files, artifacts in pieces, and what is removed of them. */

#include <fcntl.h>
#include <jansson.h>
#include <sodium.h>
#include <time.h>

#include "base/arena.h"
#include "base/clock.h"
#include "db/internal.h"
#include "db/jobs.h"
#include "db/tokens.h"
#include "proto/agent_pb.h"
#include "server/clean.h"
#include "server/store.h"
#include "tests/unit/db/folder.h"

#define DAY_US (INT64_C(86400) * 1000000)

static const char *hash_of(const char *text, char hash[STORE_HASH_DIGITS + 1])
{
    uint8_t bytes[crypto_hash_sha256_BYTES];
    crypto_hash_sha256(bytes, (const uint8_t *)text, strlen(text));
    return sodium_bin2hex(hash, STORE_HASH_DIGITS + 1, bytes, sizeof(bytes));
}

/* Uploads `text`, as if `days` ago; its hash. */
static const char *put(const char *folder, const char *text, int days,
                       char hash[STORE_HASH_DIGITS + 1])
{
    struct error err;
    hash_of(text, hash);
    CHECK_OK(store_put(folder, hash, text, strlen(text), &err), &err);
    char *path = alloc_printf("%s/files/%.2s/%s", folder, hash, hash);
    struct timespec then[2];
    clock_gettime(CLOCK_REALTIME, &then[0]);
    then[0].tv_sec -= days * 86400;
    then[1] = then[0];
    CHECK_INT(utimensat(AT_FDCWD, path, then, 0), 0);
    free(path);
    return hash;
}

/* Whether it is there; without asking the store, which would count as use. */
static bool is_there(const char *folder, const char *hash)
{
    char *path = alloc_printf("%s/files/%.2s/%s", folder, hash, hash);
    bool found = access(path, F_OK) == 0;
    free(path);
    return found;
}

TEST(store_keeps_files_by_their_hash)
{
    struct error err;
    char hash[STORE_HASH_DIGITS + 1], other[STORE_HASH_DIGITS + 1], part[8];
    size_t got;
    int64_t size;
    char *folder = folder_new();
    hash_of("hello", hash);
    CHECK_FAILS(store_size(folder, hash, &size, &err), &err, NOT_FOUND);
    CHECK_FAILS(store_size(folder, "../../etc/passwd", &size, &err), &err, INVALID);
    CHECK_FAILS(store_put(folder, hash_of("hullo", other), "hello", 5, &err), &err, INVALID);
    CHECK(!is_there(folder, other));
    for (int round = 0; round < 2; round++)
        CHECK_OK(store_put(folder, hash, "hello", 5, &err), &err);
    CHECK_OK(store_size(folder, hash, &size, &err), &err);
    CHECK_INT(size, 5);
    CHECK_OK(store_read(folder, hash, 1, part, sizeof(part), &got, &err), &err);
    CHECK_INT(got, 4);
    CHECK(memcmp(part, "ello", 4) == 0);
    CHECK_OK(store_read(folder, hash, 5, part, sizeof(part), &got, &err), &err);
    CHECK_INT(got, 0);
    CHECK_OK(store_put(folder, hash_of("", other), "", 0, &err), &err);
    CHECK_OK(store_size(folder, other, &size, &err), &err);
    CHECK_INT(size, 0);
    folder_free(folder);
}

static bool ship(const char *folder, const char *file, int64_t offset, const char *text,
                 bool last, struct error *err)
{
    const struct agent_ship_request request = {
        .task = {.job_id = 7, .attempt_epoch = 3, .role = "worker", .index = 1},
        .file = file,
        .offset = offset,
        .data = text,
        .data_size = strlen(text),
        .last = last};
    return store_ship(folder, &request, err);
}

TEST(store_puts_artifacts_together)
{
    struct error err;
    char text[16];
    char *folder = folder_new();
    CHECK(store_is_artifact("out/artifacts/a"));
    CHECK(!store_is_artifact("out/a"));
    CHECK_OK(ship(folder, "out/artifacts/sub/a", 0, "one ", false, &err), &err);
    json_t *list = store_artifacts(folder, 7);
    CHECK_INT(json_array_size(list), 0); /* it has no name before its last piece */
    json_decref(list);
    for (int round = 0; round < 2; round++) { /* a piece may come again */
        CHECK_OK(ship(folder, "out/artifacts/sub/a", 4, "two", false, &err), &err);
        CHECK_OK(ship(folder, "out/artifacts/sub/a", 7, "", true, &err), &err);
    }
    CHECK_OK(ship(folder, "out/artifacts/empty", 0, "", true, &err), &err);
    list = store_artifacts(folder, 7);
    CHECK_INT(json_array_size(list), 2);
    json_t *item = json_array_get(list, 1);
    CHECK_TEXT(json_string_value(json_object_get(item, "task")), "worker/1");
    CHECK_TEXT(json_string_value(json_object_get(item, "path")), "sub/a");
    CHECK_INT(json_integer_value(json_object_get(item, "size")), 7);
    json_decref(list);
    int fd = store_open_artifact(folder, 7, "worker/1", "sub/a", &err);
    CHECK(fd >= 0);
    CHECK_INT(read(fd, text, sizeof(text)), 7);
    CHECK(memcmp(text, "one two", 7) == 0);
    close(fd);

    CHECK_FAILS(ship(folder, "out/artifacts/../../x", 0, "x", true, &err), &err, INVALID);
    CHECK_FAILS(ship(folder, "out/artifacts/big", INT64_C(1) << 40, "x", true, &err), &err,
                INVALID);
    static const char *const bad[] = {"../../../files", "/etc/passwd", "sub", "none", "a/../b"};
    for (int i = 0; i < ARRAY_LEN(bad); i++)
        CHECK(store_open_artifact(folder, 7, "worker/1", bad[i], &err) < 0);
    CHECK(store_open_artifact(folder, 7, "../x", "a", &err) < 0);
    folder_free(folder);
}

static bool end_run(struct db_conn *conn, void *arg, struct error *err)
{
    const int64_t *end = arg;
    return db_run(conn, err, "UPDATE jobs SET state = 7, ended_us = ?2 WHERE number = ?1", "ii",
                  end[0], end[1]);
}

/* A job that brings this file; ended `days` ago, or -1: it waits. */
static void job_with(struct db *db, const char *hash, int days)
{
    struct error err;
    struct db_job_added added;
    const struct db_need need = {.role = "worker", .replicas = 1, .cpu_millis = 1000};
    char *spec = alloc_printf("{\"command\": [\"x\"], \"files\": {\"a/b\": \"%s\"}}", hash);
    const struct db_job_new job = {.user_id = DB_USER_ADMIN,
                                   .name = "job",
                                   .project = "p",
                                   .queue = "default",
                                   .spec = spec,
                                   .dataset = "",
                                   .program = "x",
                                   .needs = &need,
                                   .needs_count = 1};
    CHECK_OK(db_jobs_add(db, &job, &added, &err), &err);
    int64_t end[2] = {added.number, (int64_t)clock_wall_us() - days * DAY_US};
    if (days >= 0)
        CHECK_OK(db_write(db, DB_CONTROL, end_run, end, &err), &err);
    free(spec);
}

TEST(store_forgets_what_no_job_needs)
{
    struct error err;
    struct clean_removed removed;
    char named[65], ended[65], long_ended[65], unused[65], fresh[65], asked[65], again[65];
    int64_t now_us = (int64_t)clock_wall_us(), size;
    char *folder = folder_new();
    struct db *db = db_open(folder, &err);
    if (!db)
        CHECK_STOP("%s", err.text);
    CHECK_OK(clean_now(db, folder, now_us, &removed, &err), &err); /* of nothing */
    CHECK_INT(removed.files, 0);

    job_with(db, put(folder, "of a job that waits", 100, named), -1);
    job_with(db, put(folder, "of one that ended", 100, ended), CLEAN_ENDED_DAYS - 1);
    job_with(db, put(folder, "of one that ended long ago", 100, long_ended),
             CLEAN_ENDED_DAYS + 1);
    put(folder, "of no job", 2, unused);
    put(folder, "of no job yet", 0, fresh);
    put(folder, "asked for", 2, asked);
    CHECK_OK(store_size(folder, asked, &size, &err), &err);
    put(folder, "uploaded again", 2, again);
    CHECK_OK(store_put(folder, again, "uploaded again", 14, &err), &err);
    char *aside = alloc_printf("%s/files/%.2s/%s.7ffd", folder, fresh, fresh);
    int fd = open(aside, O_WRONLY | O_CREAT, 0600);
    CHECK_INT(write(fd, "half", 4), 4);
    CHECK_INT(futimens(fd, (struct timespec[]){{1, 0}, {1, 0}}), 0);
    close(fd);

    CHECK_OK(clean_now(db, folder, now_us, &removed, &err), &err);
    CHECK_INT(removed.files, 3);
    CHECK_INT(removed.bytes, strlen("of one that ended long ago") + strlen("of no job") + 4);
    CHECK(is_there(folder, named));
    CHECK(is_there(folder, ended));
    CHECK(!is_there(folder, long_ended));
    CHECK(!is_there(folder, unused));
    CHECK(is_there(folder, fresh));
    CHECK(is_there(folder, asked));
    CHECK(is_there(folder, again));
    CHECK(access(aside, F_OK) != 0);
    free(aside);

    /* The thread does the same. */
    put(folder, "of no job", 2, unused);
    struct clean *clean = clean_start(db, folder, 0);
    for (int i = 0; i < 500 && is_there(folder, unused); i++)
        usleep(10000);
    clean_stop(clean);
    CHECK(!is_there(folder, unused));
    db_close(db);
    folder_free(folder);
}
