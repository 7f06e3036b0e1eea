/* upload.c - datasets that come over the API: their folders on the server's disk. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/path.h"
#include "base/str.h"
#include "scheduler/agent/files.h"
#include "server/dataset.h"
#include "server/disk.h"
#include "server/upload.h"

#define UPLOAD_FILE ".upload.json"
#define USED_FOR_US (INT64_C(60) * 1000000) /* then the datasets' sizes are added up anew */

static char *upload_folder(const char *folder, const char *name)
{
    return alloc_printf("%s/datasets/.%s.upload", folder, name);
}

/* --- how much there is --- */

static struct {
    pthread_mutex_t lock; /* guards: all below */
    int64_t bytes;        /* of all datasets, and of what is being sent */
    uint64_t at_us;       /* when they were added up; 0: never */
} used = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct adding {
    const char *root;
    int64_t bytes;
};

static bool add_size(void *self, const char *path, bool is_folder)
{
    struct adding *adding = self;
    struct stat info;
    char *whole = is_folder ? NULL : alloc_printf("%s/%s", adding->root, path);
    if (whole && stat(whole, &info) == 0)
        adding->bytes += info.st_size;
    free(whole);
    return true;
}

static bool check_room(const struct upload *upload, const char *root, size_t size,
                       struct error *err)
{
    if (!disk_has_room(root, (int64_t)size, err))
        return false;
    if (!upload->bytes_max)
        return true;
    pthread_mutex_lock(&used.lock);
    uint64_t now_us = clock_monotonic_us();
    if (!used.at_us || now_us - used.at_us > USED_FOR_US) {
        char *all = alloc_printf("%s/datasets", upload->folder);
        struct adding adding = {.root = all};
        files_walk(all, "", add_size, &adding);
        free(all);
        used.bytes = adding.bytes;
        used.at_us = now_us;
    }
    int64_t bytes = used.bytes;
    bool ok = bytes + (int64_t)size <= upload->bytes_max;
    used.bytes += ok ? (int64_t)size : 0;
    pthread_mutex_unlock(&used.lock);
    return ok || fail(err, EXHAUSTED,
                      "the datasets of this server have %lld bytes, allowed: %lld "
                      "(--dataset-bytes)",
                      (long long)bytes, (long long)upload->bytes_max);
}

static void used_anew(void)
{
    pthread_mutex_lock(&used.lock);
    used.at_us = 0;
    pthread_mutex_unlock(&used.lock);
}

/* --- an upload's folder --- */

/*
 * Opens .upload.json and locks it: shared for a piece, else alone.  -1 when there is none, with
 * NOT_FOUND; when another is sending it, with DENIED; when it is published just now, or pieces
 * come, with ABORTED.
 */
static int upload_lock(const struct upload *upload, const char *root, int how,
                       struct error *err)
{
    char *path = alloc_printf("%s/" UPLOAD_FILE, root);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    free(path);
    if (fd < 0) {
        fail(err, NOT_FOUND, "no files of a dataset '%s' have come", upload->name);
        return -1;
    }
    struct stat info;
    json_t *json = json_loadfd(fd, 0, NULL);
    bool ok = upload->is_admin || !strcmp(files_text(json, "user"), upload->user);
    if (!ok)
        fail(err, DENIED, "%s is sending a dataset '%s': take another name",
             files_text(json, "user"), upload->name);
    else if (flock(fd, how | LOCK_NB) != 0)
        ok = fail(err, ABORTED, "dataset '%s' is being %s", upload->name,
                  how == LOCK_SH ? "published" : "sent, or published");
    else if (fstat(fd, &info) != 0 || info.st_nlink == 0) /* it was, since it was opened */
        ok = fail(err, ABORTED, "dataset '%s' has been published, or is being removed",
                  upload->name);
    json_decref(json);
    if (!ok)
        close(fd);
    return ok ? fd : -1;
}

/* Several pieces may be the first: one of them makes the folder. */
static pthread_mutex_t begin_lock = PTHREAD_MUTEX_INITIALIZER;

/* Makes the folder when it is not there. */
static bool upload_begin(const struct upload *upload, const char *root, struct error *err)
{
    char *place = alloc_printf("%s/datasets/%s", upload->folder, upload->name);
    bool taken = access(place, F_OK) == 0;
    free(place);
    if (taken)
        return fail(err, EXISTS,
                    "there is a dataset '%s' already: remove it first, or take another name",
                    upload->name);
    char *path = alloc_printf("%s/" UPLOAD_FILE, root);
    pthread_mutex_lock(&begin_lock);
    bool ok = access(path, F_OK) == 0 ||
              (disk_make_above(path, err) &&
               files_write_json(root, UPLOAD_FILE,
                                json_pack("{s:s, s:I}", "user", upload->user, "started_us",
                                          (json_int_t)clock_wall_us()),
                                err));
    pthread_mutex_unlock(&begin_lock);
    free(path);
    return ok;
}

/* --- pieces --- */

static bool check_path(const char *path, struct error *err)
{
    bool ok = path_is_below(path) && strlen(path) <= LIMIT_DATASET_PATH_BYTES &&
              path[0] != '.' && !strstr(path, "/.") && strcmp(path, "dataset.json") != 0;
    return ok ||
           error_at(err, "/path", INVALID,
                    "'%.100s' cannot name a file of a dataset: at most %d bytes, relative, no "
                    "part beginning with '.', not dataset.json",
                    path, LIMIT_DATASET_PATH_BYTES);
}

/* Appends to a file that is open; others that append to it wait. */
static bool append(int fd, const char *path, int64_t offset, const void *bytes, size_t size,
                   int64_t *received, struct error *err)
{
    struct stat info;
    if (flock(fd, LOCK_EX) != 0 || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
        return fail(err, INVALID, "%s is no file", path);
    *received = info.st_size;
    if (offset != info.st_size)
        return fail(err, PRECONDITION, "%s has %lld bytes so far: the next piece begins there",
                    path, (long long)info.st_size);
    if (!disk_write_at(fd, bytes, size, offset) || fdatasync(fd) != 0) {
        disk_error(err, "write", path);
        if (ftruncate(fd, offset) != 0)
            return false; /* its size says what came */
        return false;
    }
    *received = offset + (int64_t)size;
    return true;
}

bool upload_piece(const struct upload *upload, const char *path, int64_t offset,
                  const void *bytes, size_t size, int64_t *received, struct error *err)
{
    if (!check_path(path, err))
        return false;
    char *root = upload_folder(upload->folder, upload->name);
    char *whole = alloc_printf("%s/%s", root, path);
    char *slash = strrchr(whole, '/');
    int lock = -1, fd = -1;
    bool ok = upload_begin(upload, root, err) &&
              (lock = upload_lock(upload, root, LOCK_SH, err)) >= 0 &&
              check_room(upload, root, size, err);
    if (ok) {
        *slash = '\0';
        ok = files_make_folder(whole, err);
        if (!ok && err->code == PRECONDITION)
            fail(err, INVALID, "%s lies in what is a file, not a folder", path);
        *slash = '/';
    }
    if (ok) {
        fd = open(whole, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        ok = fd >= 0 || error_errno(err, INVALID, "cannot write %s", path);
    }
    ok = ok && append(fd, path, offset, bytes, size, received, err);
    if (fd >= 0)
        close(fd);
    if (lock >= 0)
        close(lock);
    free(whole);
    free(root);
    return ok;
}

/* --- what has come --- */

struct listing {
    const char *root;
    json_t *files;
};

static bool list_one(void *self, const char *path, bool is_folder)
{
    struct listing *listing = self;
    struct stat info;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (is_folder || *name == '.')
        return is_folder;
    char *whole = alloc_printf("%s/%s", listing->root, path);
    if (stat(whole, &info) == 0)
        json_array_append_new(listing->files, json_pack("{s:s, s:I}", "path", path, "size",
                                                        (json_int_t)info.st_size));
    free(whole);
    return false;
}

json_t *upload_show(const char *folder, const char *name, struct error *err)
{
    char *root = upload_folder(folder, name);
    json_t *json = files_read_json(root, UPLOAD_FILE, err);
    if (json) {
        struct listing listing = {.root = root, .files = json_array()};
        files_walk(root, "", list_one, &listing);
        json_object_set_new(json, "files", listing.files);
    } else if (err->code == NOT_FOUND) {
        fail(err, NOT_FOUND, "there is no dataset '%s'", name);
    }
    free(root);
    return json;
}

/* --- to a dataset --- */

static const char *hash_of(const struct dataset_files *files, const char *path)
{
    for (int i = 0; i < files->files_count; i++) {
        if (!strcmp(files->files[i].name, path))
            return files->files[i].sha256;
    }
    return NULL;
}

static bool check_expected(const char *root, const struct dataset_files *files,
                           const json_t *expected, struct error *err)
{
    const char *path;
    json_t *value;
    json_object_foreach((json_t *)expected, path, value)
    {
        char own[DATASET_SHA256_TEXT];
        int64_t bytes;
        const char *wanted = json_string_value(value), *hash = hash_of(files, path);
        if (!check_path(path, err))
            return false;
        if (!wanted)
            return error_at(err, "/files", INVALID, "%.100s has no SHA-256 as text", path);
        if (!hash) { /* of no format's files, but sent */
            char *whole = alloc_printf("%s/%s", root, path);
            bool ok = dataset_files_sha256(whole, own, &bytes, err);
            free(whole);
            if (!ok)
                return error_at(err, "/files", INVALID, "the file %s has not come", path);
            hash = own;
        }
        if (strcasecmp(hash, wanted) != 0)
            return error_at(err, "/files", INVALID,
                            "%s has come with another SHA-256 (%s) than %.64s", path, hash,
                            wanted);
    }
    return true;
}

/* Our folders are nobody's business: names are told as they were sent. */
static void cut_folder(const char *root, struct error *err)
{
    char *at;
    size_t size = strlen(root);
    while ((at = strstr(err->text, root))) {
        size_t cut = size + (at[size] == '/');
        memmove(at, at + cut, strlen(at + cut) + 1);
    }
}

/* Whether the dataset is there, and is what `expected` says, as after an answer that was lost.
 */
static bool is_published(const struct upload *upload, const json_t *expected,
                         struct dataset_files *files, struct error *err)
{
    char *place = alloc_printf("%s/datasets/%s", upload->folder, upload->name);
    struct error none;
    bool ok = dataset_files_read(place, files, &none);
    if (ok && (strcmp(files->added_by, upload->user) != 0 ||
               !check_expected(place, files, expected, &none)))
        ok = fail(err, EXISTS, "there is another dataset '%s' already", upload->name);
    free(place);
    return ok;
}

/* Describes the files.  What came otherwise than it was sent is told first. */
static bool look_into(const char *root, const json_t *expected, struct dataset_files *files,
                      struct error *err)
{
    struct error other;
    bool ok = dataset_files_describe(root, files, err);
    bool whole = check_expected(root, files, expected, &other);
    if (!whole)
        *err = other;
    else if (!ok && (err->code == NOT_FOUND || err->code == DATA_LOSS ||
                     err->code == OUT_OF_RANGE || err->code == UNIMPLEMENTED))
        err->code = INVALID; /* who sent them can mend it, nobody else */
    return ok && whole;
}

static bool publish_locked(const struct upload *upload, const char *root,
                           const json_t *expected, struct dataset_files *files,
                           struct error *err)
{
    char *place = alloc_printf("%s/datasets/%s", upload->folder, upload->name);
    char *mark = alloc_printf("%s/" UPLOAD_FILE, root);
    bool ok = look_into(root, expected, files, err);
    if (ok) {
        snprintf(files->added_by, sizeof(files->added_by), "%s", upload->user);
        files->added_us = (int64_t)clock_wall_us();
        ok = dataset_files_write(root, upload->name, files, err);
    }
    if (ok && access(place, F_OK) == 0)
        ok = fail(err, EXISTS, "there is a dataset '%s' already", upload->name);
    ok = ok && dataset_files_publish(root, place, err);
    if (ok) {
        free(mark);
        mark = alloc_printf("%s/" UPLOAD_FILE, place);
        unlink(mark); /* hidden: it harms nobody when it stays */
    } else {
        cut_folder(root, err);
    }
    free(mark);
    free(place);
    return ok;
}

bool upload_publish(const struct upload *upload, const json_t *expected,
                    struct dataset_files *files, struct error *err)
{
    *files = (struct dataset_files){0};
    char *root = upload_folder(upload->folder, upload->name);
    int lock = upload_lock(upload, root, LOCK_EX, err);
    bool ok;
    if (lock < 0 && err->code == NOT_FOUND)
        ok = is_published(upload, expected, files, err);
    else
        ok = lock >= 0 && publish_locked(upload, root, expected, files, err);
    if (lock >= 0)
        close(lock);
    free(root);
    return ok;
}

/* --- away --- */

/* Under another name first, so that nobody finds half of it. */
static bool folder_remove(const char *folder, const char *from, struct error *err)
{
    char *away = alloc_printf("%s/datasets/.removed.%llx", folder,
                              (unsigned long long)clock_monotonic_us());
    bool ok = rename(from, away) == 0;
    if (ok)
        files_remove_folder(away);
    else
        error_errno(err, errno == ENOENT ? NOT_FOUND : INTERNAL, "cannot remove %s", from);
    free(away);
    used_anew();
    return ok;
}

bool upload_abandon(const struct upload *upload, struct error *err)
{
    char *root = upload_folder(upload->folder, upload->name);
    int lock = upload_lock(upload, root, LOCK_EX, err);
    bool ok = lock >= 0 && folder_remove(upload->folder, root, err);
    if (lock >= 0)
        close(lock);
    free(root);
    return ok;
}

bool upload_remove(const char *folder, const char *name, struct error *err)
{
    char *place = alloc_printf("%s/datasets/%s", folder, name);
    bool ok = folder_remove(folder, place, err);
    if (!ok && err->code == NOT_FOUND)
        fail(err, NOT_FOUND, "there is no dataset '%s'", name);
    free(place);
    return ok;
}

struct newest {
    const char *root;
    int64_t us;
};

static bool newest_one(void *self, const char *path, bool is_folder)
{
    struct newest *newest = self;
    struct stat info;
    char *whole = alloc_printf("%s/%s", newest->root, path);
    if (stat(whole, &info) == 0) {
        int64_t us =
            (int64_t)info.st_mtim.tv_sec * 1000000 + (int64_t)info.st_mtim.tv_nsec / 1000;
        if (us > newest->us)
            newest->us = us;
    }
    free(whole);
    return is_folder;
}

int upload_clean(const char *folder, int64_t before_us)
{
    char *parent = alloc_printf("%s/datasets", folder);
    DIR *list = opendir(parent);
    struct dirent *entry;
    int count = 0;
    while (list && (entry = readdir(list))) {
        const char *name = entry->d_name, *dot = strrchr(name, '.');
        if (name[0] != '.' || !dot ||
            (strcmp(dot, ".upload") != 0 && strncmp(name, ".removed.", 9) != 0))
            continue;
        char *root = alloc_printf("%s/%s", parent, name);
        struct newest newest = {.root = root};
        struct error err;
        files_walk(root, "", newest_one, &newest);
        if (newest.us < before_us && folder_remove(folder, root, &err))
            count++;
        free(root);
    }
    if (list)
        closedir(list);
    free(parent);
    return count;
}
