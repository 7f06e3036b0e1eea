/* files.c - reading and writing what is small. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/path.h"
#include "scheduler/agent/files.h"

static bool folder_sync(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    return ok;
}

bool files_write(const char *folder, const char *name, const char *text, struct error *err)
{
    char *path = alloc_printf("%s/%s", folder, name);
    char *aside = alloc_printf("%s/%s.tmp", folder, name);
    size_t size = strlen(text), done = 0;
    int fd = open(aside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool ok = fd >= 0;
    while (ok && done < size) {
        ssize_t n = write(fd, text + done, size - done);
        ok = n > 0 || errno == EINTR;
        done += n > 0 ? (size_t)n : 0;
    }
    ok = ok && fsync(fd) == 0;
    if (fd >= 0)
        ok = close(fd) == 0 && ok;
    ok = ok && rename(aside, path) == 0 && folder_sync(folder);
    if (!ok) {
        error_errno(err, errno == ENOSPC ? EXHAUSTED : INTERNAL, "cannot write %s", path);
        unlink(aside);
    }
    free(path);
    free(aside);
    return ok;
}

bool files_write_json(const char *folder, const char *name, json_t *json, struct error *err)
{
    char *text = json_dumps(json, JSON_INDENT(1));
    json_decref(json);
    if (!text)
        return fail(err, INTERNAL, "cannot write %s/%s: not valid UTF-8", folder, name);
    bool ok = files_write(folder, name, text, err);
    free(text);
    return ok;
}

json_t *files_read_json(const char *folder, const char *name, struct error *err)
{
    char *path = alloc_printf("%s/%s", folder, name);
    json_error_t problem;
    json_t *json = NULL;
    /* A task may write beside: nothing is followed or waited for. */
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    if (!file) {
        error_errno(err, errno == ENOENT ? NOT_FOUND : INTERNAL, "cannot read %s", path);
    } else {
        json = json_loadf(file, 0, &problem);
        if (!json)
            fail(err, DATA_LOSS, "%s: line %d: %s", path, problem.line, problem.text);
        fclose(file);
    }
    if (json && !json_is_object(json)) {
        fail(err, DATA_LOSS, "%s: not an object", path);
        json_decref(json);
        json = NULL;
    }
    free(path);
    return json;
}

const char *files_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

int64_t files_int(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

bool files_bool(const json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}

bool files_make_folder(const char *path, struct error *err)
{
    char *part = alloc_text(path);
    bool ok = true;
    for (char *at = part + 1; ok; at++) {
        if (*at != '/' && *at)
            continue;
        char end = *at;
        *at = '\0';
        ok = mkdir(part, 0700) == 0 || errno == EEXIST;
        if (!ok)
            error_errno(err,
                        errno == ENOTDIR                     ? PRECONDITION
                        : errno == ENOSPC || errno == EDQUOT ? EXHAUSTED
                                                             : INTERNAL,
                        "cannot make the folder %s", part);
        *at = end;
        if (!end)
            break;
    }
    free(part);
    return ok;
}

char *files_above(const char *path, int parts)
{
    char *out = alloc_text(path);
    for (int i = 0; i < parts; i++) {
        char *slash = strrchr(out, '/');
        *(slash ? slash : out) = '\0';
    }
    return out;
}

bool files_is_within(const char *path, const char *above)
{
    size_t size = strlen(above);
    return size && strncmp(path, above, size) == 0 && (!path[size] || path[size] == '/');
}

/* Removes what is in `folder` but for the folders that are not empty, which move to `top`. */
static void folder_empty(int folder, int top, unsigned *moved)
{
    char name[32];
    DIR *list = fdopendir(folder);
    struct dirent *entry;
    while (list && (entry = readdir(list))) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
            unlinkat(folder, entry->d_name, 0) == 0 ||
            unlinkat(folder, entry->d_name, AT_REMOVEDIR) == 0)
            continue;
        do {
            snprintf(name, sizeof(name), ".moved-%u", (*moved)++);
        } while (renameat(folder, entry->d_name, top, name) &&
                 (errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR));
    }
    if (list)
        closedir(list);
    else
        close(folder);
}

/* By descriptors and without recursion: what a task has made may be as deep as it likes, and
 * may change meanwhile. */
void files_remove_folder(const char *path)
{
    static const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    unsigned moved = 0;
    bool progress = true;
    while (progress) {
        int top = open(path, flags);
        DIR *list = top >= 0 ? fdopendir(top) : NULL;
        struct dirent *entry;
        progress = false;
        while (list && (entry = readdir(list))) {
            if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
                continue;
            if (unlinkat(top, entry->d_name, 0) == 0) {
                progress = true;
                continue;
            }
            int below = openat(top, entry->d_name, flags);
            if (below < 0)
                continue;
            folder_empty(below, top, &moved);
            progress = unlinkat(top, entry->d_name, AT_REMOVEDIR) == 0 || progress;
        }
        if (list)
            closedir(list);
        else if (top >= 0)
            close(top);
    }
    rmdir(path);
}

struct walk {
    const char *root;
    files_found *found;
    void *self;
    int entries; /* looked at so far */
};

#define WALK_ENTRIES_MAX 20000 /* of a program that writes without end no more is seen */

static void walk_folder(struct walk *walk, const char *path, int depth)
{
    char *whole = alloc_printf("%s/%s", walk->root, path);
    int fd = open(whole, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    free(whole);
    if (fd < 0)
        return;
    DIR *folder = walk->found(walk->self, path, true) ? fdopendir(fd) : NULL;
    struct dirent *entry;
    if (!folder)
        close(fd);
    while (folder && (entry = readdir(folder)) && walk->entries < WALK_ENTRIES_MAX) {
        const char *name = entry->d_name;
        struct stat info;
        if (!strcmp(name, ".") || !strcmp(name, "..") ||
            fstatat(fd, name, &info, AT_SYMLINK_NOFOLLOW))
            continue;
        char *below = alloc_printf("%s%s%s", path, *path ? "/" : "", name);
        walk->entries++;
        if (S_ISDIR(info.st_mode) && depth < PATH_DEPTH_MAX)
            walk_folder(walk, below, depth + 1);
        else if (S_ISREG(info.st_mode))
            walk->found(walk->self, below, false);
        free(below);
    }
    if (folder)
        closedir(folder);
}

void files_walk(const char *root, const char *path, files_found *found, void *self)
{
    struct walk walk = {root, found, self, 0};
    walk_folder(&walk, path, 1);
}

struct syncing { /* of folders */
    const char *root;
    struct error *err;
    bool ok;
};

static bool sync_one(void *self, const char *path, bool is_folder)
{
    struct syncing *syncing = self;
    if (!is_folder || !syncing->ok)
        return false;
    char *folder = alloc_printf("%s%s%s", syncing->root, *path ? "/" : "", path);
    syncing->ok = folder_sync(folder) ||
                  error_errno(syncing->err, INTERNAL, "cannot sync the folder %s", folder);
    free(folder);
    return syncing->ok;
}

bool files_sync_folders(const char *root, struct error *err)
{
    struct syncing syncing = {.root = root, .err = err, .ok = true};
    files_walk(root, "", sync_one, &syncing);
    return syncing.ok;
}

int files_open_below(const char *root, const char *path)
{
    struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    int folder = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = (int)syscall(SYS_openat2, folder, path, &how, sizeof(how));
    if (fd < 0 && errno == ENOSYS) /* a kernel before 5.6: the last part alone is looked at */
        fd = openat(folder, path, (int)how.flags);
    int why = errno;
    if (folder >= 0)
        close(folder);
    errno = why;
    return fd;
}

const char *files_last_line(const char *folder, const char *name, char *out, size_t out_size)
{
    char *path = alloc_printf("%s/%s", folder, name);
    char text[4096];
    ssize_t size = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0) {
        off_t end = lseek(fd, 0, SEEK_END);
        off_t start = end > (off_t)sizeof(text) - 1 ? end - (off_t)sizeof(text) + 1 : 0;
        size = pread(fd, text, sizeof(text) - 1, start);
        close(fd);
    }
    free(path);
    while (size > 0 && (text[size - 1] == '\n' || text[size - 1] == '\r'))
        size--;
    text[size < 0 ? 0 : size] = '\0';
    const char *line = strrchr(text, '\n');
    snprintf(out, out_size, "%s", line ? line + 1 : text);
    return out;
}
