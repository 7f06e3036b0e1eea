/* store_power_test.c - the power is cut while files come in: what was told is there, whole. */
/* Faults of docs/reliability.md: F13. */

#include <sodium.h>
#include <unistd.h>

#include "base/limits.h"
#include "proto/agent_pb.h"
#include "scheduler/agent/files.h"
#include "server/store.h"
#include "tests/unit/folder.h"
#include "tests/unit/power.h"
#include "tests/unit/test.h"

#define BYTES 3000

/* A folder in memory, where there is one: nothing depends on a disk. */
static const char *root_new(void)
{
    static char root[100];
    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 1);
    snprintf(root, sizeof(root), "%s", folder_path("disk"));
    CHECK_INT(mkdir(root, 0777), 0);
    power_record(root);
    return root;
}

/* Whether IMAGE/NAME has these bytes: 1, has not all of them: 0, is not there: -1. */
static int has(const char *image, const char *name, const void *bytes, size_t size)
{
    char *path = alloc_printf("%s/%s", image, name), found[2 * BYTES + 1];
    FILE *file = fopen(path, "rb");
    size_t got = file ? fread(found, 1, sizeof(found), file) : 0;
    if (file)
        fclose(file);
    free(path);
    return !file ? -1 : got == size && memcmp(found, bytes, size) == 0;
}

typedef void look_fn(const char *image, int cut);

/* Shows `look` every disk that may be left. */
static void cut_everywhere(const char *root, int calls, look_fn *look)
{
    int images = 0;
    for (int cut = 0; cut <= calls; cut++) {
        for (int way = 0; way < POWER_WAYS; way++) {
            for (int draw = 0; draw < (way >= POWER_FIRST ? 8 : 1); draw++) {
                const char *image = folder_path("image");
                CHECK_INT(mkdir(image, 0777), 0);
                power_cut(root, cut, (enum power_way)way, (uint64_t)images++, image);
                look(image, cut);
                folder_remove_below(image);
            }
        }
    }
}

static unsigned char bytes[BYTES];
static char upload[100];
static int uploaded, first_told, second_told, pieces_told[3], artifact_told;

static void look(const char *image, int cut)
{
    /* Never a part of it under its name, and whole once that was told. */
    int upload_is = has(image, upload, bytes, BYTES);
    CHECK(upload_is != 0);
    CHECK(upload_is == 1 || cut < uploaded);

    /* The old one or the new one. */
    int first = has(image, "record.json", "first", 5),
        second = has(image, "record.json", "second", 6);
    CHECK(first == -1 ? cut < first_told : first + second == 1);
    CHECK(second == 1 || cut < second_told);

    int artifact_is = has(image, "jobs/7/artifacts/worker-0/a/b.bin", bytes, BYTES);
    CHECK(artifact_is != 0);
    CHECK(artifact_is == 1 || cut < artifact_told);

    /* Agents do not say again what was told: until it has its name, pieces are in the part. */
    for (int piece = 0; piece < 3 && artifact_is != 1; piece++) {
        struct stat info;
        char *part = alloc_printf("%s/jobs/7/artifacts/.part-9/worker-0/a/b.bin", image);
        bool there = stat(part, &info) == 0 && info.st_size >= (piece + 1) * (BYTES / 3);
        CHECK(there || cut < pieces_told[piece]);
        free(part);
    }
}

TEST(store_keeps_what_was_told_when_the_power_is_cut)
{
    struct error err;
    const char *root = root_new();
    uint8_t hash[crypto_hash_sha256_BYTES];
    char sha256[2 * sizeof(hash) + 1];
    for (int i = 0; i < BYTES; i++)
        bytes[i] = (unsigned char)(i * 7 + i / 256 + 1);
    crypto_hash_sha256(hash, bytes, BYTES);
    sodium_bin2hex(sha256, sizeof(sha256), hash, sizeof(hash));
    snprintf(upload, sizeof(upload), "files/%.2s/%s", sha256, sha256);

    CHECK_OK(store_put(root, sha256, bytes, BYTES, &err), &err);
    uploaded = power.calls_count;
    CHECK_OK(files_write(root, "record.json", "first", &err), &err);
    first_told = power.calls_count;
    CHECK_OK(files_write(root, "record.json", "second", &err), &err);
    second_told = power.calls_count;
    for (int piece = 0; piece <= 3; piece++) {
        const struct agent_ship_request ship = {
            .task = {.job_id = 7, .attempt_epoch = 9, .role = "worker"},
            .file = "out/artifacts/a/b.bin",
            .offset = piece * (BYTES / 3),
            .data = piece < 3 ? bytes + piece * (BYTES / 3) : NULL,
            .data_size = piece < 3 ? BYTES / 3 : 0,
            .last = piece == 3};
        CHECK_OK(store_ship(root, &ship, &err), &err);
        if (piece < 3)
            pieces_told[piece] = power.calls_count;
    }
    artifact_told = power.calls_count;
    cut_everywhere(root, power_stop(), look);
}
