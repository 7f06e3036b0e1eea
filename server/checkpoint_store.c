/* checkpoint_store.c - checkpoints that come by pieces, and go. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/failpoint.h"
#include "base/limits.h"
#include "base/path.h"
#include "proto/agent_pb.h"
#include "scheduler/agent/files.h"
#include "scheduler/agent/mirror.h"
#include "server/checkpoint_store.h"
#include "server/disk.h"

#define PARTS ".ship-"

static char *folder_of(const char *folder, int64_t job)
{
    return alloc_printf("%s/jobs/%lld/checkpoints", folder, (long long)job);
}

/* --- what is there --- */

struct listing {
    const char *folder;
    json_t *items;
};

static bool list_one(void *self, const char *path, bool is_folder)
{
    struct listing *listing = self;
    struct stat info;
    if (*path && !mirror_wants(path))
        return false;
    if (is_folder)
        return true;
    char *whole = alloc_printf("%s/%s", listing->folder, path);
    if (lstat(whole, &info) == 0)
        json_array_append_new(listing->items, json_pack("{s:s, s:I}", "path", path, "size",
                                                        (json_int_t)info.st_size));
    free(whole);
    return true;
}

json_t *checkpoint_store_list(const char *folder, int64_t job, struct error *err)
{
    char *whole = folder_of(folder, job);
    struct listing listing = {whole, json_array()};
    files_walk(whole, "", list_one, &listing);
    free(whole);
    size_t count = json_array_size(listing.items);
    if (count <= LIMIT_CHECKPOINT_FILES)
        return listing.items;
    json_decref(listing.items);
    return fail_null(err, OUT_OF_RANGE,
                     "job %lld has %zu files in its checkpoints; a node that does not see the "
                     "server's folder fetches at most %d",
                     (long long)job, count, LIMIT_CHECKPOINT_FILES);
}

bool checkpoint_store_read(const char *folder, int64_t job, const char *path, int64_t offset,
                           void *out, size_t size, size_t *got, struct error *err)
{
    char *whole = folder_of(folder, job);
    int fd = path_is_below(path) && mirror_wants(path) ? files_open_below(whole, path) : -1;
    free(whole);
    *got = 0;
    if (fd < 0)
        return fail(err, NOT_FOUND, "job %lld has no file '%.200s' in its checkpoints",
                    (long long)job, path);
    bool ok = disk_read_at(fd, out, size, offset, got) || disk_error(err, "read", path);
    close(fd);
    return ok;
}

/* --- who may write --- */

/* Holds the folder's lock, which runtime/checkpoint.c takes too; -1. */
static int claim_lock(const char *whole, struct error *err)
{
    char *path = alloc_printf("%s/lock", whole);
    int fd = -1;
    if (files_make_folder(whole, err)) {
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (fd < 0 || flock(fd, LOCK_EX) != 0) {
            disk_error(err, "lock", path);
            if (fd >= 0)
                close(fd);
            fd = -1;
        }
    }
    free(path);
    return fd;
}

static int64_t claimed_read(const char *whole)
{
    char text[32] = "";
    char *path = alloc_printf("%s/epoch", whole);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    free(path);
    if (fd >= 0) {
        ssize_t n = read(fd, text, sizeof(text) - 1);
        text[n > 0 ? n : 0] = '\0';
        close(fd);
    }
    return strtoll(text, NULL, 10);
}

/* With the lock held. */
static bool claim(const char *whole, int64_t epoch, struct error *err)
{
    int64_t claimed = claimed_read(whole);
    if (claimed > epoch)
        return fail(err, DENIED,
                    "attempt with epoch %lld may not publish checkpoints: the one with epoch "
                    "%lld does",
                    (long long)epoch, (long long)claimed);
    if (claimed == epoch)
        return true;
    char text[32];
    snprintf(text, sizeof(text), "%lld\n", (long long)epoch);
    return files_write(whole, "epoch", text, err);
}

/* What came of files that others did not ship to their end. */
static void parts_remove(const char *folder, int64_t job, int64_t epoch)
{
    char *above = alloc_printf("%s/jobs/%lld", folder, (long long)job);
    DIR *list = opendir(above);
    struct dirent *entry;
    while (list && (entry = readdir(list))) {
        const char *name = entry->d_name;
        if (strncmp(name, PARTS, strlen(PARTS)) != 0 ||
            strtoll(name + strlen(PARTS), NULL, 10) >= epoch)
            continue;
        char *part = alloc_printf("%s/%s", above, name);
        files_remove_folder(part);
        free(part);
    }
    if (list)
        closedir(list);
    free(above);
}

bool checkpoint_store_claim(const char *folder, int64_t job, int64_t epoch, struct error *err)
{
    char *whole = folder_of(folder, job);
    int lock = claim_lock(whole, err);
    bool ok = lock >= 0 && claim(whole, epoch, err);
    if (ok)
        parts_remove(folder, job, epoch);
    if (lock >= 0)
        close(lock);
    free(whole);
    return ok;
}

/* --- what comes --- */

bool checkpoint_store_is(const char *file)
{
    return strncmp(file, MIRROR_NAMES, strlen(MIRROR_NAMES)) == 0;
}

/* Pieces of one server's life belong together: what an earlier one had may not be on disk. */
static char *part_path(const char *folder, const struct agent_ship_request *ship,
                       const char *path)
{
    static uint64_t life;
    if (!life)
        life = clock_wall_us();
    return alloc_printf("%s/jobs/%lld/" PARTS "%lld-%llx/%s-%d/%s", folder,
                        (long long)ship->task.job_id, (long long)ship->task.attempt_epoch,
                        (unsigned long long)life, ship->task.role, ship->task.index, path);
}

/* What may publish is an attempt, also by a task that was placed anew in it. */
static int64_t epoch_of(const struct agent_ship_request *ship)
{
    return ship->group_epoch ? ship->group_epoch : ship->task.attempt_epoch;
}

/* The descriptor of the part, as long as it should be; -1. */
static int part_open(char *part, int64_t offset, struct error *err)
{
    struct stat info;
    if (!offset && !disk_make_above(part, err))
        return -1;
    int fd =
        open(part, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | (offset ? 0 : O_CREAT | O_TRUNC), 0600);
    if (fd < 0 && errno != ENOENT) {
        disk_error(err, "write", part);
    } else if (fd < 0 || fstat(fd, &info) || info.st_size != offset) {
        fail(err, ABORTED, "a piece is missing before byte %lld: ship the file again",
             (long long)offset);
        if (fd >= 0)
            close(fd);
        fd = -1;
    }
    return fd;
}

/* The file is there whole: it gets its name, unless a later attempt has come. */
static bool publish(const char *whole, const char *part, char *path, int64_t epoch,
                    struct error *err)
{
    failpoint("store.checkpoint_before_rename");
    int lock = claim_lock(whole, err);
    bool ok = lock >= 0 && claim(whole, epoch, err) && disk_make_above(path, err) &&
              (rename(part, path) == 0 || disk_error(err, "keep", path)) &&
              disk_sync_above(path, err);
    failpoint("store.checkpoint_after_rename");
    if (lock >= 0)
        close(lock);
    return ok;
}

static bool take_piece(const char *folder, const char *whole, char *path,
                       const struct agent_ship_request *ship, struct error *err)
{
    char *part = part_path(folder, ship, ship->file + strlen(MIRROR_NAMES));
    bool ok = disk_has_room(folder, (int64_t)ship->data_size, err);
    int fd = ok ? part_open(part, ship->offset, err) : -1;
    ok = fd >= 0 && (disk_write_at(fd, ship->data, ship->data_size, ship->offset) ||
                     disk_error(err, "write", part));
    if (ok && ship->last)
        ok = (fdatasync(fd) == 0 || disk_error(err, "sync", part)) &&
             publish(whole, part, path, epoch_of(ship), err);
    if (fd >= 0)
        close(fd);
    free(part);
    return ok;
}

/* With the folders above it that are empty then. */
static bool remove_file(const char *whole, char *path, int64_t epoch, struct error *err)
{
    int lock = claim_lock(whole, err);
    bool ok = lock >= 0 && claim(whole, epoch, err) &&
              (unlink(path) == 0 || errno == ENOENT || errno == ENOTDIR ||
               disk_error(err, "remove", path));
    for (char *slash = strrchr(path, '/'); ok && slash - path > (ptrdiff_t)strlen(whole);
         slash = strrchr(path, '/')) {
        *slash = '\0';
        if (rmdir(path))
            break;
    }
    if (lock >= 0)
        close(lock);
    return ok;
}

bool checkpoint_store_ship(const char *folder, const struct agent_ship_request *ship,
                           int64_t *cursor, struct error *err)
{
    const char *name = ship->file + strlen(MIRROR_NAMES);
    if (!path_is_below(name) || !mirror_wants(name))
        return fail(err, INVALID, "'%.200s' cannot name a file of a checkpoint", name);
    char *whole = folder_of(folder, ship->task.job_id);
    char *path = alloc_printf("%s/%s", whole, name);
    failpoint("server.on_checkpoint");
    bool ok = ship->removed ? remove_file(whole, path, epoch_of(ship), err)
                            : take_piece(folder, whole, path, ship, err);
    *cursor = ship->offset + (int64_t)ship->data_size;
    free(path);
    free(whole);
    return ok;
}
