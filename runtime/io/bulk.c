/* bulk.c - see bulk.h. */

#include "runtime/io/bulk.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "proto/crc32c.h"

enum {
    CHUNK = 1 << 20,
    PARALLEL_MIN = 4 << 20, /* less is not worth waking threads */
};

/* One chunk: how it went and its sum. */
struct chunk {
    int error; /* errno; -1: the file ended */
    uint32_t crc;
};

static int read_chunk(int fd, int64_t offset, char *bytes, size_t size)
{
    while (size) {
        ssize_t count = pread(fd, bytes, size, offset);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return count < 0 ? errno : -1;
        bytes += count;
        offset += count;
        size -= (size_t)count;
    }
    return 0;
}

static int write_chunk(int fd, int64_t offset, const char *bytes, size_t size)
{
    while (size) {
        ssize_t count = pwrite(fd, bytes, size, offset);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return errno;
        bytes += count;
        offset += count;
        size -= (size_t)count;
    }
    return 0;
}

/* All chunks; the first failure in their order, 0 for none, and the sum of all. */
static int move(int fd, int64_t offset, char *bytes, size_t size, bool writing, uint32_t *crc)
{
    long count = (long)((size + CHUNK - 1) / CHUNK);
    struct chunk *chunks = alloc_array((size_t)count, sizeof(*chunks));
#pragma omp parallel for schedule(static) if (size >= PARALLEL_MIN)
    for (long i = 0; i < count; i++) {
        size_t from = (size_t)i * CHUNK;
        size_t part = size - from < CHUNK ? size - from : CHUNK;
        if (writing)
            chunks[i].error = write_chunk(fd, offset + (int64_t)from, bytes + from, part);
        else
            chunks[i].error = read_chunk(fd, offset + (int64_t)from, bytes + from, part);
        chunks[i].crc = crc32c(bytes + from, part);
    }
    int failed = 0;
    *crc = 0;
    for (long i = 0; i < count && !failed; i++) {
        size_t from = (size_t)i * CHUNK;
        failed = chunks[i].error;
        *crc = crc32c_combine(*crc, chunks[i].crc, size - from < CHUNK ? size - from : CHUNK);
    }
    free(chunks);
    return failed;
}

bool bulk_read(int fd, int64_t offset, void *bytes, size_t size, uint32_t *crc,
               struct error *err)
{
    int failed = move(fd, offset, bytes, size, false, crc);
    if (failed < 0)
        return fail(err, OUT_OF_RANGE, "Read less bytes than requested");
    errno = failed;
    return !failed || error_errno(err, UNKNOWN, "cannot read %zu bytes", size);
}

bool bulk_write(int fd, int64_t offset, const void *bytes, size_t size, uint32_t *crc)
{
    int failed = move(fd, offset, (char *)(uintptr_t)bytes, size, true, crc);
    errno = failed;
    return !failed;
}
