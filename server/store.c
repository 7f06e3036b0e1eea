/* store.c - uploaded files and artifacts on the server's disk. */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/failpoint.h"
#include "base/limits.h"
#include "base/path.h"
#include "proto/agent_pb.h"
#include "scheduler/agent/files.h"
#include "server/disk.h"
#include "server/job.h"
#include "server/store.h"

#define ARTIFACTS "out/artifacts/" /* what their names in a ship begin with */

/* --- uploaded files --- */

bool store_is_hash(const char *text)
{
    return strlen(text) == STORE_HASH_DIGITS &&
           strspn(text, "0123456789abcdef") == STORE_HASH_DIGITS;
}

static char *file_path(const char *folder, const char *sha256)
{
    return alloc_printf("%s/files/%.2s/%s", folder, sha256, sha256);
}

static bool check_hash(const char *sha256, const void *bytes, size_t size, struct error *err)
{
    uint8_t hash[crypto_hash_sha256_BYTES];
    char text[STORE_HASH_DIGITS + 1];
    crypto_hash_sha256(hash, bytes, size);
    sodium_bin2hex(text, sizeof(text), hash, sizeof(hash));
    return strcmp(text, sha256) == 0 ||
           fail(err, INVALID, "the SHA-256 of these %zu bytes is %s, not %.80s", size, text,
                sha256);
}

/* A file that is used is not removed as unused: one at a time. */
static pthread_mutex_t use_lock = PTHREAD_MUTEX_INITIALIZER;

/* Whether the file is there; if so it has been used now. */
static bool file_use(const char *path)
{
    pthread_mutex_lock(&use_lock);
    bool known = utimensat(AT_FDCWD, path, NULL, 0) == 0;
    pthread_mutex_unlock(&use_lock);
    return known;
}

bool store_remove_unused(const char *folder, const char *name, int64_t before_us,
                         int64_t *bytes)
{
    struct stat info;
    char *path = file_path(folder, name);
    pthread_mutex_lock(&use_lock);
    bool removed =
        lstat(path, &info) == 0 && S_ISREG(info.st_mode) &&
        (int64_t)info.st_mtim.tv_sec * 1000000 + info.st_mtim.tv_nsec / 1000 < before_us &&
        unlink(path) == 0;
    pthread_mutex_unlock(&use_lock);
    *bytes = removed ? info.st_size : 0;
    free(path);
    return removed;
}

bool store_put(const char *folder, const char *sha256, const void *bytes, size_t size,
               struct error *err)
{
    if (!check_hash(sha256, bytes, size, err))
        return false;
    char *path = file_path(folder, sha256);
    char *aside = alloc_printf("%s.%llx", path, (unsigned long long)(uintptr_t)&path);
    bool known = file_use(path);
    bool ok = known && disk_sync_above(path, err); /* another may have written it just now */
    if (!known && disk_make_above(path, err)) {
        failpoint("store.before_write");
        int fd = open(aside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        ok = fd >= 0 && disk_write_at(fd, bytes, size, 0) && fdatasync(fd) == 0;
        failpoint("store.before_rename");
        ok = (ok && rename(aside, path) == 0) || disk_error(err, "write", path);
        failpoint("store.after_rename");
        if (!ok)
            unlink(aside);
        if (fd >= 0)
            close(fd);
        if (ok && !disk_sync_above(path, err)) {
            unlink(path); /* or who sends it again would be told that it is there */
            ok = false;
        }
    }
    free(aside);
    free(path);
    return ok;
}

static int file_open(const char *folder, const char *sha256, struct error *err)
{
    if (!store_is_hash(sha256)) {
        fail(err, INVALID, "'%.80s' is no SHA-256, allowed: 64 digits 0-9 a-f", sha256);
        return -1;
    }
    char *path = file_path(folder, sha256);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        fail(err, NOT_FOUND, "nobody has uploaded a file with the SHA-256 %s", sha256);
    else if (fd < 0)
        disk_error(err, "read", path);
    free(path);
    return fd;
}

bool store_size(const char *folder, const char *sha256, int64_t *size, struct error *err)
{
    struct stat info;
    char *path = file_path(folder, sha256);
    if (store_is_hash(sha256))
        (void)file_use(path);
    free(path);
    int fd = file_open(folder, sha256, err);
    bool ok = fd >= 0 && (fstat(fd, &info) == 0 || disk_error(err, "read", sha256));
    if (ok)
        *size = info.st_size;
    if (fd >= 0)
        close(fd);
    return ok;
}

bool store_read(const char *folder, const char *sha256, int64_t offset, void *out, size_t size,
                size_t *got, struct error *err)
{
    int fd = file_open(folder, sha256, err);
    *got = 0;
    if (fd < 0)
        return false;
    bool ok = disk_read_at(fd, out, size, offset, got) || disk_error(err, "read", sha256);
    close(fd);
    return ok;
}

/* --- artifacts --- */

bool store_is_artifact(const char *file)
{
    return strncmp(file, ARTIFACTS, strlen(ARTIFACTS)) == 0;
}

/* Writes a piece; one that comes again after the last has been said already. */
static bool artifact_write(const struct agent_ship_request *ship, char *part, const char *path,
                           struct error *err)
{
    if (!disk_make_above(part, err))
        return false;
    int fd = open(part, O_WRONLY | O_CLOEXEC | (ship->offset ? 0 : O_CREAT), 0600);
    if (fd < 0 && errno == ENOENT && access(path, F_OK) == 0)
        return true;
    failpoint("store.artifact_before_write");
    bool ok = (fd >= 0 && disk_write_at(fd, ship->data, ship->data_size, ship->offset) &&
               fdatasync(fd) == 0) ||
              disk_error(err, "write", part);
    if (fd >= 0)
        close(fd);
    return ok && (ship->offset || disk_sync_above(part, err));
}

/* The last piece has come: the file gets its name. */
static bool artifact_name(const char *part, char *path, struct error *err)
{
    if (!disk_make_above(path, err))
        return false;
    failpoint("store.artifact_before_rename");
    if (rename(part, path) && (errno != ENOENT || access(path, F_OK)))
        return disk_error(err, "keep", path);
    failpoint("store.artifact_after_rename");
    return disk_sync_above(path, err);
}

bool store_ship(const char *folder, const struct agent_ship_request *ship, struct error *err)
{
    const char *name = ship->file + strlen(ARTIFACTS);
    const struct agent_task_ref *task = &ship->task;
    if (!path_is_below(name))
        return fail(err, INVALID, "'%.200s' cannot name an artifact", name);
    if (ship->offset > LIMIT_ARTIFACTS_BYTES)
        return fail(err, INVALID, "artifact %.200s is larger than %lld bytes", name,
                    (long long)LIMIT_ARTIFACTS_BYTES);
    char *artifacts = alloc_printf("%s/jobs/%lld/artifacts", folder, (long long)task->job_id);
    char *part = alloc_printf("%s/.part-%lld/%s-%d/%s", artifacts,
                              (long long)task->attempt_epoch, task->role, task->index, name);
    char *path = alloc_printf("%s/%s-%d/%s", artifacts, task->role, task->index, name);
    bool ok = true;
    if (ship->data_size || ship->offset == 0)
        ok = artifact_write(ship, part, path, err);
    if (ok && ship->last)
        ok = artifact_name(part, path, err);
    free(path);
    free(part);
    free(artifacts);
    return ok;
}

struct listing {
    const char *folder; /* of all artifacts of the job */
    json_t *items;
};

static bool list_one(void *self, const char *path, bool is_folder)
{
    struct listing *listing = self;
    struct stat info;
    const char *slash = strchr(path, '/');
    const char *dash = strrchr(path, '-');
    if (is_folder)
        return path[0] != '.';
    char *whole = alloc_printf("%s/%s", listing->folder, path);
    bool known = slash && lstat(whole, &info) == 0;
    while (dash && dash > slash && known) /* the one in ROLE-INDEX */
        dash = memrchr(path, '-', (size_t)(dash - path));
    if (known && dash)
        json_array_append_new(listing->items,
                              json_pack("{s:o, s:s, s:I, s:o}", "task",
                                        json_sprintf("%.*s/%.*s", (int)(dash - path), path,
                                                     (int)(slash - dash - 1), dash + 1),
                                        "path", slash + 1, "size", (json_int_t)info.st_size,
                                        "modified_at",
                                        job_time((int64_t)info.st_mtim.tv_sec * 1000000)));
    free(whole);
    return true;
}

static int compare_items(const void *a, const void *b)
{
    json_t *const *x = a, *const *y = b;
    int tasks = strcmp(json_string_value(json_object_get(*x, "task")),
                       json_string_value(json_object_get(*y, "task")));
    return tasks ? tasks
                 : strcmp(json_string_value(json_object_get(*x, "path")),
                          json_string_value(json_object_get(*y, "path")));
}

json_t *store_artifacts(const char *folder, int64_t job)
{
    char *artifacts = alloc_printf("%s/jobs/%lld/artifacts", folder, (long long)job);
    struct listing listing = {artifacts, json_array()};
    files_walk(artifacts, "", list_one, &listing);
    size_t count = json_array_size(listing.items);
    json_t **list = alloc_array(count + 1, sizeof(*list));
    json_t *sorted = json_array();
    for (size_t i = 0; i < count; i++)
        list[i] = json_array_get(listing.items, i);
    qsort(list, count, sizeof(*list), compare_items);
    for (size_t i = 0; i < count; i++)
        json_array_append(sorted, list[i]);
    json_decref(listing.items);
    free(list);
    free(artifacts);
    return sorted;
}

int store_open_artifact(const char *folder, int64_t job, const char *task, const char *path,
                        struct error *err)
{
    const char *slash = strchr(task, '/');
    struct stat info;
    if (!slash || !path_is_below(task) || !path_is_below(path)) {
        fail(err, INVALID, "task '%.40s' and path '%.200s' cannot name an artifact", task,
             path);
        return -1;
    }
    char *artifacts = alloc_printf("%s/jobs/%lld/artifacts", folder, (long long)job);
    char *name = alloc_printf("%.*s-%s/%s", (int)(slash - task), task, slash + 1, path);
    int fd = files_open_below(artifacts, name);
    if (fd >= 0 && (fstat(fd, &info) || !S_ISREG(info.st_mode))) {
        close(fd);
        fd = -1;
    }
    if (fd < 0)
        fail(err, NOT_FOUND, "%s of job %lld has left no artifact '%s'", task, (long long)job,
             path);
    free(name);
    free(artifacts);
    return fd;
}
