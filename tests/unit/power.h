/*
 * power.h - a disk whose power is cut; include it in the test only.
 *
 * Between power_record() and power_stop() every call that changes something below a folder is
 * written down: the program's own open(), write(), fsync(), rename() and so on are those below.
 * power_cut() then makes what a disk may hold when the power fails after the first `calls` of
 * them: what was synced is there, of the rest as much as chance has it, in the ways that file
 * systems differ in.  It is as strict as POSIX: a name is safe once its folder was synced, a
 * byte once its file was, and nothing else is.
 *
 * One thread, small files, absolute paths.
 */
/* Faults of docs/reliability.md: F13. */
#pragma once

#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"
#include "tests/unit/test.h"

#define POWER_CALLS 4000
#define POWER_FILES 1000
#define POWER_NAMES 200
#define POWER_BLOCK 512
#define POWER_FDS 256

enum power_kind {
    POWER_NAME,
    POWER_GONE,
    POWER_MOVE,
    POWER_WRITE,
    POWER_SYNC,
    POWER_SYNC_FOLDER
};

/* How much of what was not synced is there: none; all names and no bytes; all; the first so
 * many; any. */
enum power_way { POWER_NONE, POWER_NAMES_ONLY, POWER_ALL, POWER_FIRST, POWER_ANY, POWER_WAYS };

struct power_call {
    enum power_kind kind;
    int file; /* a folder's, too; -1: none */
    char *path;
    char *to;
    int64_t offset;
    struct str bytes;
};

static struct {
    const char *root; /* NULL: nothing is written down */
    struct power_call calls[POWER_CALLS];
    int calls_count;
    int files_count;
    int file_of_fd[POWER_FDS]; /* 0: none that is written down */
    char *folder_of_fd[POWER_FDS];
} power;

static struct power_call *power_add(enum power_kind kind, int file, const char *path)
{
    CHECK(power.calls_count < POWER_CALLS);
    struct power_call *call = &power.calls[power.calls_count++];
    *call = (struct power_call){.kind = kind, .file = file, .path = alloc_text(path)};
    return call;
}

static bool power_is_ours(const char *path)
{
    return power.root && strncmp(path, power.root, strlen(power.root)) == 0;
}

/* --- which file has which name, now or on the disk --- */

struct power_names {
    const char *path[POWER_NAMES];
    int file[POWER_NAMES];
    int count;
};

static int power_find(const struct power_names *names, const char *path)
{
    for (int i = 0; i < names->count; i++) {
        if (strcmp(names->path[i], path) == 0)
            return i;
    }
    return -1;
}

static void power_forget(struct power_names *names, const char *path)
{
    int i = power_find(names, path);
    if (i < 0)
        return;
    names->count--;
    names->path[i] = names->path[names->count];
    names->file[i] = names->file[names->count];
}

static void power_set(struct power_names *names, const char *path, int file)
{
    power_forget(names, path);
    CHECK(names->count < POWER_NAMES);
    names->path[names->count] = path;
    names->file[names->count++] = file;
}

/* FOLDER followed by `below`, the same text each time; never freed. */
static const char *power_path(const char *folder, const char *below)
{
    static char *paths[POWER_NAMES];
    static int count;
    char *path = alloc_printf("%s%s", folder, below);
    for (int i = 0; i < count; i++) {
        if (strcmp(paths[i], path) == 0) {
            free(path);
            return paths[i];
        }
    }
    CHECK(count < POWER_NAMES);
    return paths[count++] = path;
}

/* What is in a folder moves with it. */
static void power_move_below(struct power_names *names, const struct power_call *call)
{
    size_t size = strlen(call->path);
    for (int i = 0; i < names->count; i++) {
        if (strncmp(names->path[i], call->path, size) == 0 && names->path[i][size] == '/')
            names->path[i] = power_path(call->to, names->path[i] + size);
    }
}

static void power_apply(struct power_names *names, const struct power_call *call)
{
    if (call->kind == POWER_MOVE && call->file < 0)
        power_move_below(names, call);
    if (call->kind == POWER_MOVE)
        power_set(names, call->to, call->file);
    if (call->kind == POWER_NAME)
        power_set(names, call->path, call->file);
    else
        power_forget(names, call->path);
}

static bool power_is_name(const struct power_call *call)
{
    return call->kind <= POWER_MOVE;
}

static bool power_is_in(const char *path, const char *folder)
{
    size_t size = strlen(folder);
    return path && strncmp(path, folder, size) == 0 && path[size] == '/' &&
           !strchr(path + size + 1, '/');
}

static int power_file_now(const char *path)
{
    struct power_names names = {.count = 0};
    for (int i = 0; i < power.calls_count; i++) {
        if (power_is_name(&power.calls[i]))
            power_apply(&names, &power.calls[i]);
    }
    int found = power_find(&names, path);
    return found < 0 ? 0 : names.file[found];
}

/* --- the calls --- */

/* Whatever had it; closedir() does not say so. */
static void power_forget_fd(int fd)
{
    if (fd < 0 || fd >= POWER_FDS)
        return;
    power.file_of_fd[fd] = 0;
    free(power.folder_of_fd[fd]);
    power.folder_of_fd[fd] = NULL;
}

int open(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    bool is_new = power_is_ours(path) && flags & O_CREAT && access(path, F_OK) != 0;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    power_forget_fd(fd);
    if (fd < 0 || !power_is_ours(path))
        return fd;
    CHECK(fd < POWER_FDS);
    if (is_new)
        power_add(POWER_NAME, ++power.files_count, path);
    struct stat info;
    CHECK_INT(fstat(fd, &info), 0);
    power.file_of_fd[fd] = S_ISDIR(info.st_mode) ? 0 : power_file_now(path);
    if (S_ISDIR(info.st_mode))
        power.folder_of_fd[fd] = alloc_text(path);
    CHECK(!(flags & O_TRUNC) || info.st_size == 0 || is_new);
    return fd;
}

int close(int fd)
{
    power_forget_fd(fd);
    return (int)syscall(SYS_close, fd);
}

static void power_wrote(int fd, const void *bytes, ssize_t size, int64_t offset)
{
    if (size <= 0 || fd >= POWER_FDS || !power.root || !power.file_of_fd[fd])
        return;
    struct power_call *call = power_add(POWER_WRITE, power.file_of_fd[fd], "");
    call->offset = offset;
    str_add_bytes(&call->bytes, bytes, (size_t)size);
}

ssize_t write(int fd, const void *bytes, size_t size)
{
    bool ours = power.root && fd >= 0 && fd < POWER_FDS && power.file_of_fd[fd];
    int64_t offset = ours ? lseek(fd, 0, SEEK_CUR) : 0;
    ssize_t done = syscall(SYS_write, fd, bytes, size);
    power_wrote(fd, bytes, done, offset);
    return done;
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
    ssize_t done = syscall(SYS_pwrite64, fd, bytes, size, offset);
    power_wrote(fd, bytes, done, offset);
    return done;
}

int fsync(int fd)
{
    if (power.root && fd >= 0 && fd < POWER_FDS && power.folder_of_fd[fd])
        power_add(POWER_SYNC_FOLDER, 0, power.folder_of_fd[fd]);
    else if (power.root && fd >= 0 && fd < POWER_FDS && power.file_of_fd[fd])
        power_add(POWER_SYNC, power.file_of_fd[fd], "");
    return 0; /* the machine stays up: the test need not wait for its disk */
}

int fdatasync(int fd)
{
    return fsync(fd);
}

int rename(const char *from, const char *to)
{
    int failed = (int)syscall(SYS_rename, from, to);
    if (!failed && power_is_ours(from))
        power_add(POWER_MOVE, power_file_now(from), from)->to = alloc_text(to);
    return failed;
}

int unlink(const char *path)
{
    int failed = (int)syscall(SYS_unlink, path);
    if (!failed && power_is_ours(path))
        power_add(POWER_GONE, 0, path);
    return failed;
}

int mkdir(const char *path, mode_t mode)
{
    int failed = (int)syscall(SYS_mkdir, path, mode);
    if (!failed && power_is_ours(path))
        power_add(POWER_NAME, -1, path);
    return failed;
}

int rmdir(const char *path)
{
    int failed = (int)syscall(SYS_rmdir, path);
    if (!failed && power_is_ours(path))
        power_add(POWER_GONE, -1, path);
    return failed;
}

/* --- for tests --- */

static inline void power_record(const char *root)
{
    power.root = root;
}

/* The number of calls so far. */
static inline int power_stop(void)
{
    power.root = NULL;
    return power.calls_count;
}

static uint64_t power_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/* What is on the disk of a file: what was synced, and of later writes what the way says. */
static void power_content(int file, int calls, enum power_way way, uint64_t *seed,
                          struct str *out)
{
    int synced = 0;
    for (int i = 0; i < calls; i++) {
        if (power.calls[i].kind == POWER_SYNC && power.calls[i].file == file)
            synced = i;
    }
    bool more = true;
    for (int i = 0; i < calls; i++) {
        const struct power_call *call = &power.calls[i];
        if (call->kind != POWER_WRITE || call->file != file)
            continue;
        size_t size = call->bytes.size;
        if (i > synced) {
            if (way == POWER_NONE || way == POWER_NAMES_ONLY || !more)
                continue;
            if (way == POWER_FIRST || way == POWER_ANY) {
                size_t blocks = size / POWER_BLOCK + 1;
                size_t kept = (size_t)(power_random(seed) % (blocks + 1)) * POWER_BLOCK;
                more = way == POWER_ANY || kept >= size;
                size = kept < size ? kept : size;
            }
        }
        size_t end = (size_t)call->offset + size;
        if (size && end > out->size) { /* a hole reads as zeros */
            size_t before = out->size;
            char *room = str_extend(out, end - before);
            memset(room, 0, end - before);
            out->size = end;
        }
        if (size)
            memcpy(out->data + call->offset, call->bytes.data, size);
    }
}

/* The names on the disk. */
static void power_names_left(int calls, enum power_way way, uint64_t *seed,
                             struct power_names *names)
{
    static bool applied[POWER_CALLS];
    memset(applied, 0, sizeof(applied));
    for (int i = 0; i < calls; i++) {
        if (power.calls[i].kind != POWER_SYNC_FOLDER)
            continue;
        for (int j = 0; j < i; j++)
            applied[j] =
                applied[j] || (power_is_name(&power.calls[j]) &&
                               (power_is_in(power.calls[j].path, power.calls[i].path) ||
                                power_is_in(power.calls[j].to, power.calls[i].path)));
    }
    int until = way == POWER_FIRST ? (int)(power_random(seed) % (uint64_t)(calls + 1)) : calls;
    for (int i = 0; i < calls; i++) {
        bool lucky = way == POWER_ALL || way == POWER_NAMES_ONLY ||
                     (way == POWER_FIRST && i < until) ||
                     (way == POWER_ANY && power_random(seed) % 2);
        if (power_is_name(&power.calls[i]) && (applied[i] || lucky))
            power_apply(names, &power.calls[i]);
    }
}

/*
 * Makes below `to`, an empty folder, what may be on the disk of `root` after so many calls; the
 * root itself was there before.
 */
static inline void power_cut(const char *root, int calls, enum power_way way, uint64_t seed,
                             const char *to)
{
    struct power_names names = {.count = 0};
    power_names_left(calls, way, &seed, &names);
    for (bool is_folder = true;; is_folder = false) {
        for (int depth = 1; depth < 8; depth++) {
            for (int i = 0; i < names.count; i++) {
                const char *rest = names.path[i] + strlen(root);
                int slashes = 0;
                for (const char *at = rest; *at; at++)
                    slashes += *at == '/';
                if (slashes != depth || (names.file[i] < 0) != is_folder)
                    continue;
                char *path = alloc_printf("%s%s", to, rest);
                struct str bytes = {0};
                if (is_folder) {
                    (void)syscall(SYS_mkdir, path,
                                  0777); /* fails where the one above is lost */
                } else {
                    power_content(names.file[i], calls, way, &seed, &bytes);
                    FILE *file = fopen(path, "wb");
                    if (file) {
                        CHECK_INT(fwrite(str_text(&bytes), 1, bytes.size, file), bytes.size);
                        fclose(file);
                    }
                }
                str_release(&bytes);
                free(path);
            }
        }
        if (!is_folder)
            return;
    }
}
