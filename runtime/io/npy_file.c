/* npy_file.c - see npy_file.h. */

#include "runtime/io/npy_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/io/file.h"

struct npy_file {
    char *path;
    int fd;
    struct npy_header header;
};

/* Reads until `size` bytes are there or the file ends; how many, or -1. */
static ssize_t read_some(int fd, void *out, size_t size, int64_t offset)
{
    size_t done = 0;
    while (done < size) {
        ssize_t count = pread(fd, (char *)out + done, size - done, offset + (int64_t)done);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return -1;
        if (!count)
            break;
        done += (size_t)count;
    }
    return (ssize_t)done;
}

static bool read_header(struct npy_file *file, struct error *err)
{
    struct stat status;
    if (fstat(file->fd, &status))
        return error_errno(err, UNKNOWN, "cannot be read");
    if (!S_ISREG(status.st_mode))
        return fail(err, INVALID, "this is not a file");
    char *front = alloc_bytes(NPY_HEADER_BYTES_MAX);
    ssize_t size = read_some(file->fd, front, NPY_HEADER_BYTES_MAX, 0);
    bool ok = size >= 0 ? npy_header_parse(front, (size_t)size, &file->header, err)
                        : error_errno(err, UNKNOWN, "cannot be read");
    free(front);
    return ok && npy_check_size(&file->header, status.st_size, err);
}

struct npy_file *npy_file_open(const char *path, struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        file_error(err, "read", path);
        return NULL;
    }
    struct npy_file *file = alloc_bytes(sizeof(*file));
    file->path = alloc_text(path);
    file->fd = fd;
    if (read_header(file, err))
        return file;
    error_prefix(err, "%s: ", path);
    npy_file_close(file);
    return NULL;
}

void npy_file_close(struct npy_file *file)
{
    if (!file)
        return;
    close(file->fd);
    free(file->path);
    free(file);
}

const struct npy_header *npy_file_header(const struct npy_file *file)
{
    return &file->header;
}

const char *npy_file_path(const struct npy_file *file)
{
    return file->path;
}

bool npy_file_read(const struct npy_file *file, int64_t first, int64_t count, void *out,
                   struct error *err)
{
    int64_t each = (int64_t)dtype_size(file->header.dtype);
    int64_t offset = file->header.bytes + first * each;
    assert(first >= 0 && count >= 0 && (first + count) * each <= file->header.data_bytes);
    ssize_t size = read_some(file->fd, out, (size_t)(count * each), offset);
    bool ok = size == count * each;
    if (size < 0)
        error_errno(err, UNKNOWN, "cannot be read");
    else if (!ok)
        fail(err, DATA_LOSS, "ends at byte %lld, it was shortened meanwhile",
             (long long)(offset + size));
    return (ok && npy_settle(&file->header, out, first, count, err)) ||
           error_prefix(err, "%s: ", file->path);
}
