/* output.c - see output.h. */

#include "runtime/io/output.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/io/file.h"

enum { BUFFER_BYTES = 1 << 16 };

struct output {
    char *path, *temporary;
    int fd;
    int64_t bytes;
    size_t used; /* of the buffer */
    struct error failure;
    char buffer[BUFFER_BYTES];
};

struct output *output_open(const char *path, struct error *err)
{
    char *temporary = alloc_printf("%s.tmp-%ld", path, (long)getpid());
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) {
        file_error(err, "create", path);
        free(temporary);
        return NULL;
    }
    struct output *output = alloc_bytes(sizeof(*output));
    output->path = alloc_text(path);
    output->temporary = temporary;
    output->fd = fd;
    return output;
}

static bool put(struct output *output, const char *bytes, size_t size, struct error *err)
{
    while (size) {
        ssize_t count = write(output->fd, bytes, size);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0) {
            file_error(&output->failure, "write", output->path);
            *err = output->failure;
            return false;
        }
        bytes += count;
        size -= (size_t)count;
    }
    return true;
}

bool output_write(struct output *output, const void *bytes, size_t size, struct error *err)
{
    if (output->failure.code) {
        *err = output->failure;
        return false;
    }
    output->bytes += (int64_t)size;
    if (size <= BUFFER_BYTES - output->used) {
        if (size)
            memcpy(output->buffer + output->used, bytes, size);
        output->used += size;
        return true;
    }
    size_t used = output->used;
    output->used = 0;
    return put(output, output->buffer, used, err) && put(output, bytes, size, err);
}

bool output_rewrite(struct output *output, int64_t offset, const void *bytes, size_t size,
                    struct error *err)
{
    assert(offset >= 0 && (int64_t)size <= output->bytes - offset);
    int64_t written = output->bytes - (int64_t)output->used;
    if (offset + (int64_t)size > written) {
        size_t used = output->used;
        output->used = 0;
        if (output->failure.code || !put(output, output->buffer, used, err)) {
            *err = output->failure;
            return false;
        }
    }
    const char *from = bytes;
    while (size) {
        ssize_t count = pwrite(output->fd, from, size, offset);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0) {
            file_error(&output->failure, "write", output->path);
            *err = output->failure;
            return false;
        }
        from += count;
        offset += count;
        size -= (size_t)count;
    }
    return true;
}

int64_t output_bytes(const struct output *output)
{
    return output->bytes;
}

bool output_finish(struct output *output, struct error *err)
{
    bool ok = !output->failure.code;
    if (!ok)
        *err = output->failure;
    ok = ok && put(output, output->buffer, output->used, err);
    if (ok && fsync(output->fd) < 0)
        ok = file_error(err, "sync", output->path);
    if (close(output->fd) < 0 && ok)
        ok = file_error(err, "write", output->path);
    output->fd = -1;
    ok = ok && file_rename(output->temporary, output->path, err) &&
         file_sync_folder(output->path, err);
    output_discard(output); /* the temporary name is gone when it has worked */
    return ok;
}

void output_discard(struct output *output)
{
    if (!output)
        return;
    if (output->fd >= 0)
        close(output->fd);
    unlink(output->temporary);
    free(output->path);
    free(output->temporary);
    free(output);
}
