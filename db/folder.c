/* folder.c - makes, holds and syncs the folder of a server. */

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "db/folder.h"

bool db_folder_make(const char *folder, struct error *err)
{
    if (mkdir(folder, 0700) == 0 || errno == EEXIST)
        return true;
    return error_errno(err, errno == ENOSPC ? EXHAUSTED : DENIED, "cannot make the folder %s",
                       folder);
}

/* Who holds the lock has written his process id into it. */
static bool folder_taken(const char *folder, int fd, struct error *err)
{
    char pid[32] = "";
    ssize_t size = pread(fd, pid, sizeof(pid) - 1, 0);
    pid[size > 0 ? size : 0] = '\0';
    pid[strcspn(pid, "\n")] = '\0';
    return fail(err, PRECONDITION, "another trainyard serve (pid %s) uses %s",
                pid[0] ? pid : "unknown", folder);
}

static bool lock_take(const char *folder, int fd, struct error *err)
{
    if (flock(fd, LOCK_EX | LOCK_NB))
        return errno == EWOULDBLOCK ? folder_taken(folder, fd, err)
                                    : error_errno(err, DENIED, "cannot lock %s/lock", folder);
    char pid[32];
    int size = snprintf(pid, sizeof(pid), "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) || pwrite(fd, pid, (size_t)size, 0) != size)
        return error_errno(err, EXHAUSTED, "cannot write %s/lock", folder);
    return true;
}

int db_folder_lock(const char *folder, struct error *err)
{
    char *path = alloc_printf("%s/lock", folder);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 && errno == ENOTDIR)
        fail(err, INVALID, "%s is no folder", folder);
    else if (fd < 0)
        error_errno(err, errno == ENOSPC ? EXHAUSTED : DENIED, "cannot open %s", path);
    free(path);
    if (fd >= 0 && !lock_take(folder, fd, err)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

bool db_folder_sync(const char *folder, struct error *err)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, DENIED, "cannot open %s", folder);
    bool ok = fsync(fd) == 0 || error_errno(err, UNAVAILABLE, "cannot sync %s", folder);
    close(fd);
    return ok;
}
