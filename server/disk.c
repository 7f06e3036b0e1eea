/* disk.c - writes and syncs. */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "server/disk.h"

bool disk_error(struct error *err, const char *what, const char *path)
{
    return error_errno(err, errno == ENOSPC || errno == EDQUOT ? EXHAUSTED : INTERNAL,
                       "cannot %s %s", what, path);
}

bool disk_write_at(int fd, const char *bytes, size_t size, int64_t offset)
{
    while (size) {
        ssize_t n = pwrite(fd, bytes, size, offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        bytes += n;
        offset += n;
        size -= (size_t)n;
    }
    return true;
}

bool disk_read_at(int fd, void *out, size_t size, int64_t offset, size_t *got)
{
    ssize_t n = 0;
    *got = 0;
    while (*got < size &&
           (n = pread(fd, (char *)out + *got, size - *got, offset + (int64_t)*got)) > 0)
        *got += (size_t)n;
    return n >= 0;
}

bool disk_sync_above(const char *file, struct error *err)
{
    char *folder = alloc_text(file);
    char *slash = strrchr(folder, '/');
    if (slash)
        *slash = '\0';
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = (fd >= 0 && fsync(fd) == 0) || disk_error(err, "sync", folder);
    if (fd >= 0)
        close(fd);
    free(folder);
    return ok;
}

/* One at a time: a folder that is there already is on disk. */
static pthread_mutex_t make_lock = PTHREAD_MUTEX_INITIALIZER;

bool disk_make_above(char *file, struct error *err)
{
    bool ok = true;
    pthread_mutex_lock(&make_lock);
    for (char *slash = strchr(file + 1, '/'); slash && ok; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(file, 0700) == 0)
            ok = disk_sync_above(file, err);
        else if (errno != EEXIST)
            ok = disk_error(err, "make the folder", file);
        *slash = '/';
    }
    pthread_mutex_unlock(&make_lock);
    return ok;
}

bool disk_has_room(const char *folder, int64_t size, struct error *err)
{
    struct statvfs disk;
    if (statvfs(folder, &disk))
        return true; /* writing will say it */
    int64_t left = (int64_t)disk.f_bavail * (int64_t)disk.f_frsize;
    return left - size >= LIMIT_DISK_LEFT_BYTES ||
           fail(err, EXHAUSTED,
                "the server's disk has %lld bytes left, of which %lld stay free",
                (long long)left, (long long)LIMIT_DISK_LEFT_BYTES);
}
