/* datasets.c - what there is, who brings it, what goes. */

#include <dirent.h>
#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <jansson.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/log.h"
#include "scheduler/agent/datasets.h"
#include "scheduler/agent/files.h"

#define LIST "dataset.json"
#define ID_BYTES 8
#define BRINGING_MAX 64 /* at a time */

struct bringing {
    const void *owner;
    char *place;
    int64_t bytes;
};

struct datasets {
    char *folder;
    char *attempts_folder;
    int64_t bytes_max; /* 0: what the disk holds */
    struct bringing bringing[BRINGING_MAX];
    int bringing_count;
};

struct datasets *datasets_new(const char *agent_folder, const char *attempts_folder,
                              int64_t bytes_max)
{
    struct datasets *datasets = alloc_bytes(sizeof(*datasets));
    datasets->folder = alloc_printf("%s/datasets", agent_folder);
    datasets->attempts_folder = alloc_text(attempts_folder);
    datasets->bytes_max = bytes_max;
    return datasets;
}

void datasets_free(struct datasets *datasets)
{
    if (!datasets)
        return;
    while (datasets->bringing_count)
        datasets_release(datasets, datasets->bringing[0].owner);
    free(datasets->attempts_folder);
    free(datasets->folder);
    free(datasets);
}

char *datasets_place(const struct datasets *datasets, const char *name, const void *list,
                     size_t list_size)
{
    uint8_t hash[crypto_hash_sha256_BYTES];
    char id[2 * ID_BYTES + 1];
    crypto_hash_sha256(hash, list, list_size);
    sodium_bin2hex(id, sizeof(id), hash, ID_BYTES);
    return alloc_printf("%s/%.128s-%s", datasets->folder, name, id);
}

char *datasets_part(const char *place)
{
    const char *slash = strrchr(place, '/');
    return alloc_printf("%.*s/.%s.part", (int)(slash - place), place, slash + 1);
}

/* --- room --- */

/* What the files of a copy will have, or have, by its list. */
static int64_t copy_bytes(const char *copy)
{
    struct error none;
    int64_t bytes = 0;
    size_t i;
    json_t *file, *list = files_read_json(copy, LIST, &none);
    json_array_foreach(json_object_get(list, "files"), i, file)
    {
        bytes += files_int(file, "bytes");
    }
    json_decref(list);
    return bytes;
}

static bool is_used(const struct datasets *datasets, const char *place)
{
    bool used = false;
    DIR *folder = opendir(datasets->attempts_folder);
    struct dirent *entry;
    while (folder && !used && (entry = readdir(folder))) {
        struct error none;
        if (entry->d_name[0] == '.')
            continue;
        char *attempt = alloc_printf("%s/%s", datasets->attempts_folder, entry->d_name);
        json_t *start = files_read_json(attempt, "start.json", &none);
        used = strcmp(files_text(start, "dataset_folder"), place) == 0;
        json_decref(start);
        free(attempt);
    }
    if (folder)
        closedir(folder);
    return used;
}

static bool is_brought(const struct datasets *datasets, const char *copy)
{
    bool brought = false;
    for (int i = 0; i < datasets->bringing_count && !brought; i++) {
        char *part = datasets_part(datasets->bringing[i].place);
        brought = strcmp(part, copy) == 0 || strcmp(datasets->bringing[i].place, copy) == 0;
        free(part);
    }
    return brought;
}

struct room {
    int64_t taken;  /* by all copies */
    int64_t in_use; /* by those that must stay */
    char *oldest;   /* that may go; NULL: there is none */
    struct timespec oldest_time;
};

static void look(const struct datasets *datasets, const char *but, struct room *room)
{
    DIR *folder = opendir(datasets->folder);
    struct dirent *entry;
    *room = (struct room){0};
    while (folder && (entry = readdir(folder))) {
        struct stat info;
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        char *copy = alloc_printf("%s/%s", datasets->folder, entry->d_name);
        int64_t bytes = strcmp(copy, but) ? copy_bytes(copy) : 0;
        bool stays = !strcmp(copy, but) || stat(copy, &info) || is_brought(datasets, copy) ||
                     is_used(datasets, copy);
        room->taken += bytes;
        room->in_use += stays ? bytes : 0;
        if (!stays && (!room->oldest || info.st_mtim.tv_sec < room->oldest_time.tv_sec ||
                       (info.st_mtim.tv_sec == room->oldest_time.tv_sec &&
                        info.st_mtim.tv_nsec < room->oldest_time.tv_nsec))) {
            free(room->oldest);
            room->oldest = copy;
            room->oldest_time = info.st_mtim;
        } else {
            free(copy);
        }
    }
    if (folder)
        closedir(folder);
}

static int64_t disk_left(const char *folder)
{
    struct statvfs disk;
    return statvfs(folder, &disk) ? INT64_MAX : (int64_t)disk.f_bavail * (int64_t)disk.f_frsize;
}

/* Removes what nobody uses until `bytes` more may come into `part`, whose own is not counted.
 */
static bool make_room(const struct datasets *datasets, const char *part, int64_t bytes,
                      struct error *err)
{
    for (;;) {
        struct room room;
        look(datasets, part, &room);
        int64_t left = disk_left(datasets->folder);
        bool fits = !datasets->bytes_max || room.taken + bytes <= datasets->bytes_max;
        if (fits && left - bytes >= LIMIT_DISK_LEFT_BYTES) {
            free(room.oldest);
            return true;
        }
        if (!room.oldest && !fits)
            return fail(err, EXHAUSTED,
                        "the dataset has %lld bytes, and this node keeps %lld of datasets "
                        "(--dataset-bytes), of which running tasks use %lld",
                        (long long)bytes, (long long)datasets->bytes_max,
                        (long long)room.in_use);
        if (!room.oldest)
            return fail(err, EXHAUSTED,
                        "the dataset has %lld bytes, and this node's disk has %lld left, of "
                        "which %lld stay free",
                        (long long)bytes, (long long)left, (long long)LIMIT_DISK_LEFT_BYTES);
        log_line(LOG_INFO, "agent", "dataset=\"%s\" msg=\"removed: room for another\"",
                 room.oldest);
        files_remove_folder(room.oldest);
        free(room.oldest);
    }
}

/* --- taking --- */

enum datasets_state datasets_take(struct datasets *datasets, const char *place, int64_t bytes,
                                  const void *owner, struct error *err)
{
    char *part = datasets_part(place);
    enum datasets_state state = DATASETS_FULL;
    if (utimensat(AT_FDCWD, place, NULL, 0) == 0) { /* used now */
        state = DATASETS_READY;
    } else if (is_brought(datasets, place) || datasets->bringing_count == BRINGING_MAX) {
        state = DATASETS_OTHERS;
    } else if (files_make_folder(part, err) && make_room(datasets, part, bytes, err)) {
        datasets->bringing[datasets->bringing_count++] =
            (struct bringing){owner, alloc_text(place), bytes};
        state = DATASETS_MINE;
    }
    free(part);
    return state;
}

/* The files were synced as they came; now their names are.  A copy whose own name is lost is
 * brought again. */
bool datasets_publish(struct datasets *datasets, const char *place, const void *owner,
                      struct error *err)
{
    char *part = datasets_part(place);
    bool ok = files_sync_folders(part, err) &&
              (rename(part, place) == 0 ||
               error_errno(err, INTERNAL, "cannot keep the dataset %s", place));
    if (ok)
        (void)utimensat(AT_FDCWD, place, NULL, 0);
    datasets_release(datasets, owner);
    free(part);
    return ok;
}

void datasets_release(struct datasets *datasets, const void *owner)
{
    for (int i = datasets->bringing_count - 1; i >= 0; i--) {
        if (datasets->bringing[i].owner != owner)
            continue;
        free(datasets->bringing[i].place);
        datasets->bringing[i] = datasets->bringing[--datasets->bringing_count];
    }
}
