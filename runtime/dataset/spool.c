/* spool.c - see spool.h. */

#include "runtime/dataset/spool.h"

#include <errno.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "runtime/io/file.h"

#define SPOOL_STEP_BYTES (256 << 10)

static bool write_all(int fd, const char *bytes, size_t size, const char *path,
                      struct error *err)
{
    while (size) {
        ssize_t count = write(fd, bytes, size);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return file_error(err, "write", path);
        bytes += count;
        size -= (size_t)count;
    }
    return true;
}

static bool copy(struct stream *stream, const char *path, int fd, const char *to,
                 int64_t *spooled, struct error *err)
{
    char *bytes = alloc_bytes(SPOOL_STEP_BYTES);
    size_t count = SPOOL_STEP_BYTES;
    bool ok = true;
    while (ok && count == SPOOL_STEP_BYTES) {
        ok = stream_read(stream, bytes, SPOOL_STEP_BYTES, &count, err) ||
             error_prefix(err, "%s: ", path);
        *spooled += ok ? (int64_t)count : 0;
        if (ok && *spooled > LIMIT_SPOOL_BYTES)
            ok = fail(err, EXHAUSTED,
                      "%s: decompressed, the files of this dataset are more than the %lld "
                      "bytes that are put on disk for it; decompress them beforehand",
                      path, (long long)LIMIT_SPOOL_BYTES);
        ok = ok && (write_all(fd, bytes, count, to, err) ||
                    error_prefix(err,
                                 "%s is compressed and too large for memory; "
                                 "decompressing it once for all epochs: ",
                                 path));
    }
    free(bytes);
    return ok &&
           (stream_is_whole(stream) ||
            fail(err, DATA_LOSS, "%s: the compressed file ends before its checksum", path));
}

char *spool_file(const char *path, enum stream_format format, const char *folder,
                 int64_t *spooled, struct error *err)
{
    const char *temporary = getenv("TMPDIR"), *name = strrchr(path, '/');
    folder = folder ? folder : temporary && *temporary ? temporary : "/tmp";
    struct stream *stream = stream_open(path, format, err);
    if (!stream)
        return NULL;
    char *to = alloc_printf("%s/%s.XXXXXX", folder, name ? name + 1 : path);
    int fd = mkstemp(to);
    bool ok = fd >= 0 || file_error(err, "create", to);
    if (ok && !copy(stream, path, fd, to, spooled, err)) {
        unlink(to);
        ok = false;
    }
    if (fd >= 0)
        close(fd);
    stream_close(stream);
    if (ok)
        return to;
    free(to);
    return NULL;
}
