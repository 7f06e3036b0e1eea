/* file.c - reading and writing whole files. */

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/failpoint.h"
#include "base/str.h"
#include "runtime/io/file.h"

bool file_error(struct error *err, const char *what, const char *path)
{
    enum error_code code = UNKNOWN;
    switch (errno) {
    case ENOENT:
    case ENOTDIR:
        code = NOT_FOUND;
        break;
    case EACCES:
    case EPERM:
    case EROFS:
        code = DENIED;
        break;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
        code = EXHAUSTED;
        break;
    }
    return error_errno(err, code, "cannot %s %s", what, path);
}

static enum error_code stock_code(int number)
{
    switch (number) {
    case ENOENT:
    case ENODEV:
    case ENXIO:
        return NOT_FOUND;
    case EEXIST:
        return EXISTS;
    case EACCES:
    case EPERM:
    case EROFS:
        return DENIED;
    case EISDIR:
    case ENOTDIR:
    case ENOTEMPTY:
    case EBADF:
    case EBUSY:
    case ETXTBSY:
        return PRECONDITION;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
        return EXHAUSTED;
    case EFBIG:
    case EOVERFLOW:
        return OUT_OF_RANGE;
    case EINVAL:
    case ENAMETOOLONG:
    case ESPIPE:
        return INVALID;
    default:
        return UNKNOWN;
    }
}

bool file_error_stock(struct error *err, const char *path)
{
    int number = errno;
    return fail(err, stock_code(number), "%s; %s", path, strerror(number));
}

char *file_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return alloc_text(".");
    return alloc_text_n(path, slash == path ? 1 : (size_t)(slash - path));
}

bool file_read(const char *path, int64_t bytes_max, struct str *out, struct error *err)
{
    bool ok = false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) < 0) {
        file_error(err, "read", path);
        goto out;
    }
    if (!S_ISREG(status.st_mode)) {
        fail(err, INVALID, "%s is not a file", path);
        goto out;
    }
    if (status.st_size > bytes_max) {
        fail(err, EXHAUSTED, "%s has %lld bytes, more than the limit of %lld", path,
             (long long)status.st_size, (long long)bytes_max);
        goto out;
    }
    str_clear(out);
    size_t wanted = (size_t)status.st_size;
    char *room = str_extend(out, wanted);
    size_t used = 0;
    while (used < wanted) {
        ssize_t count = read(fd, room + used, wanted - used);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0) {
            file_error(err, "read", path);
            goto out;
        }
        if (!count)
            break; /* it has shrunk meanwhile */
        used += (size_t)count;
    }
    out->size = used;
    room[used] = 0;
    ok = true;
out:
    if (fd >= 0)
        close(fd);
    return ok;
}

bool file_sync_folder(const char *path, struct error *err)
{
    char *folder = file_folder(path);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = fd >= 0 && fsync(fd) == 0;
    if (!ok)
        file_error(err, "sync", folder);
    if (fd >= 0)
        close(fd);
    free(folder);
    return ok;
}

bool file_rename(const char *from, const char *to, struct error *err)
{
    if (rename(from, to) == 0)
        return true;
    char *what = alloc_printf("rename %s to", from);
    file_error(err, what, to);
    free(what);
    return false;
}

static bool write_synced(const char *path, const char *bytes, size_t size, struct error *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return file_error(err, "create", path);
    bool ok = true;
    while (ok && size) {
        ssize_t count = write(fd, bytes, size);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0) {
            ok = file_error(err, "write", path);
        } else {
            bytes += count;
            size -= (size_t)count;
        }
    }
    if (ok && fsync(fd) < 0)
        ok = file_error(err, "sync", path);
    if (close(fd) < 0 && ok)
        ok = file_error(err, "write", path);
    return ok;
}

bool file_write(const char *path, const void *bytes, size_t size, struct error *err)
{
    char *temporary = alloc_printf("%s.tmp-%ld", path, (long)getpid());
    bool ok = write_synced(temporary, bytes, size, err);
    failpoint("task.file_before_rename");
    ok = ok && file_rename(temporary, path, err);
    if (!ok)
        unlink(temporary);
    free(temporary);
    return ok && file_sync_folder(path, err);
}
