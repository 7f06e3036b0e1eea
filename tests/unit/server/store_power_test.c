/* store_power_test.c - the power is cut while files come in: what was told is there, whole. */
/* Faults of docs/reliability.md: F13. */

#include <sodium.h>
#include <unistd.h>

#include "base/limits.h"
#include "proto/agent_pb.h"
#include "scheduler/agent/files.h"
#include "server/dataset.h"
#include "server/disk.h"
#include "server/store.h"
#include "server/upload.h"
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

/* A dataset of two pictures. */
static const struct picture_file {
    const char *name;
    const char *bytes;
    size_t size;
} pictures[] = {
#define IMAGE "\0\0\10\3\0\0\0\1\0\0\0\1\0\0\0\1"
#define LABEL "\0\0\10\1\0\0\0\1"
    {"train-images-idx3-ubyte", IMAGE "a", 17},
    {"train-labels-idx1-ubyte", LABEL "\1", 9},
    {"t10k-images-idx3-ubyte", IMAGE "b", 17},
    {"t10k-labels-idx1-ubyte", LABEL "\2", 9},
};

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
static char upload[100], other_upload[100];
static int uploaded, other_uploaded, published, first_told, second_told, pieces_told[3],
    artifact_told;

static void look(const char *image, int cut)
{
    /* Never a part of it under its name, and whole once that was told. */
    int upload_is = has(image, upload, bytes, BYTES);
    CHECK(upload_is != 0);
    CHECK(upload_is == 1 || cut < uploaded);

    /* One that another had given its name, and not synced yet. */
    int other_is = has(image, other_upload, "other", 5);
    CHECK(other_is == 1 || cut < other_uploaded);

    /* A dataset is there whole or not at all. */
    int files = 0;
    for (int i = 0; i < ARRAY_LEN(pictures); i++) {
        char *name = alloc_printf("datasets/small/%s", pictures[i].name);
        int file_is = has(image, name, pictures[i].bytes, pictures[i].size);
        CHECK(file_is != 0);
        files += file_is == 1;
        free(name);
    }
    CHECK(files == 0 || files == ARRAY_LEN(pictures));
    CHECK(files || cut < published);

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

static const char *hash_of(const void *of, size_t size)
{
    static char sha256[2 * crypto_hash_sha256_BYTES + 1];
    uint8_t hash[crypto_hash_sha256_BYTES];
    crypto_hash_sha256(hash, of, size);
    return sodium_bin2hex(sha256, sizeof(sha256), hash, sizeof(hash));
}

/* Two send the same file: the second is told that it is there before the first has synced it.
 */
static void upload_other(const char *root)
{
    struct error err;
    const char *sha256 = hash_of("other", 5);
    snprintf(other_upload, sizeof(other_upload), "files/%.2s/%s", sha256, sha256);
    char *path = alloc_printf("%s/%s", root, other_upload);
    CHECK_OK(disk_make_above(path, &err), &err);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    CHECK_INT(write(fd, "other", 5), 5);
    CHECK_INT(fdatasync(fd), 0);
    close(fd);
    free(path);
    CHECK_OK(store_put(root, sha256, "other", 5, &err), &err);
}

static void publish(const char *root)
{
    struct error err;
    struct dataset_files files;
    int64_t received;
    const struct upload sent = {.folder = root, .name = "small", .user = "a"};
    for (int i = 0; i < ARRAY_LEN(pictures); i++)
        CHECK_OK(upload_piece(&sent, pictures[i].name, 0, pictures[i].bytes, pictures[i].size,
                              &received, &err),
                 &err);
    CHECK_OK(upload_publish(&sent, NULL, &files, &err), &err);
    dataset_files_release(&files);
}

TEST(store_keeps_what_was_told_when_the_power_is_cut)
{
    struct error err;
    const char *root = root_new();
    for (int i = 0; i < BYTES; i++)
        bytes[i] = (unsigned char)(i * 7 + i / 256 + 1);
    const char *sha256 = hash_of(bytes, BYTES);
    snprintf(upload, sizeof(upload), "files/%.2s/%s", sha256, sha256);

    CHECK_OK(store_put(root, sha256, bytes, BYTES, &err), &err);
    uploaded = power.calls_count;
    upload_other(root);
    other_uploaded = power.calls_count;
    publish(root);
    published = power.calls_count;
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
