/* stream.c - files through zlib. */

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/io/file.h"
#include "runtime/io/stream.h"

#define STREAM_BUFFER_BYTES (256 << 10)

/* windowBits of zlib */
static const int stream_bits[] = {[STREAM_GZIP] = 16 + MAX_WBITS, [STREAM_ZLIB] = MAX_WBITS};

/* --- reading --- */

struct stream {
    char *path;
    int fd;
    enum stream_format format;
    z_stream zlib;
    bool zlib_ready;
    bool zlib_ended;  /* of a ZLIB file: what follows is not looked at */
    bool zlib_inside; /* between the begin and the end of a member */
    bool input_ended;
    unsigned char *input; /* compressed bytes; none when PLAIN */
    unsigned char *output;
    size_t output_size;
    size_t output_used;
    int64_t offset;
    int64_t place; /* bytes read from the file */
    int64_t bytes;
};

static bool fill_from_file(struct stream *stream, unsigned char *buffer, size_t *size,
                           struct error *err)
{
    ssize_t count;
    do
        count = read(stream->fd, buffer, STREAM_BUFFER_BYTES);
    while (count < 0 && errno == EINTR);
    if (count < 0)
        return file_error(err, "read", stream->path);
    *size = (size_t)count;
    stream->place += count;
    return true;
}

/* Inflates until a whole block is there or the file ends. */
static bool fill_by_zlib(struct stream *stream, struct error *err)
{
    z_stream *zlib = &stream->zlib;
    zlib->next_out = stream->output;
    zlib->avail_out = STREAM_BUFFER_BYTES;
    while (zlib->avail_out && !stream->zlib_ended) {
        if (!zlib->avail_in && !stream->input_ended) {
            size_t size;
            if (!fill_from_file(stream, stream->input, &size, err))
                return false;
            zlib->next_in = stream->input;
            zlib->avail_in = (uInt)size;
            stream->input_ended = !size;
        }
        if (!zlib->avail_in)
            break;
        int result = inflate(zlib, Z_NO_FLUSH);
        stream->zlib_inside = result != Z_STREAM_END;
        if (result == Z_STREAM_END) {
            stream->zlib_ended = stream->format == STREAM_ZLIB;
            if (!stream->zlib_ended && inflateReset(zlib) != Z_OK)
                return fail(err, INTERNAL, "cannot go on inflating %s", stream->path);
        } else if (result != Z_OK && result != Z_BUF_ERROR) {
            return fail(err, DATA_LOSS, "inflate() failed with error %d: %s", result,
                        zlib->msg ? zlib->msg : "no reason given");
        }
    }
    stream->output_size = STREAM_BUFFER_BYTES - zlib->avail_out;
    return true;
}

static bool fill(struct stream *stream, struct error *err)
{
    stream->output_used = 0;
    stream->output_size = 0;
    if (stream->format == STREAM_PLAIN)
        return fill_from_file(stream, stream->output, &stream->output_size, err);
    return fill_by_zlib(stream, err);
}

/* Whether the file begins as a gzip file does. */
static enum stream_format guess_format(int fd)
{
    unsigned char start[2] = {0};
    bool is_gzip = pread(fd, start, 2, 0) == 2 && start[0] == 0x1f && start[1] == 0x8b;
    return is_gzip ? STREAM_GZIP : STREAM_PLAIN;
}

enum stream_format stream_guess(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    enum stream_format format = fd < 0 ? STREAM_PLAIN : guess_format(fd);
    if (fd >= 0)
        close(fd);
    return format;
}

struct stream *stream_open(const char *path, enum stream_format format, struct error *err)
{
    struct stream *stream = alloc_bytes(sizeof(*stream));
    stream->path = alloc_text(path);
    stream->fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (stream->fd < 0 || fstat(stream->fd, &status) < 0) {
        file_error(err, "read", path);
        stream_close(stream);
        return NULL;
    }
    stream->bytes = status.st_size;
    stream->format = format == STREAM_AUTO ? guess_format(stream->fd) : format;
    stream->output = alloc_bytes(STREAM_BUFFER_BYTES);
    if (stream->format != STREAM_PLAIN) {
        stream->input = alloc_bytes(STREAM_BUFFER_BYTES);
        stream->zlib_ready = inflateInit2(&stream->zlib, stream_bits[stream->format]) == Z_OK;
        if (!stream->zlib_ready) {
            stream_close(stream);
            return fail_null(err, INTERNAL, "cannot begin inflating %s", path);
        }
    }
    return stream;
}

void stream_close(struct stream *stream)
{
    if (!stream)
        return;
    if (stream->zlib_ready)
        inflateEnd(&stream->zlib);
    if (stream->fd >= 0)
        close(stream->fd);
    free(stream->input);
    free(stream->output);
    free(stream->path);
    free(stream);
}

bool stream_read(struct stream *stream, void *out, size_t size, size_t *count,
                 struct error *err)
{
    char *at = out;
    *count = 0;
    while (*count < size) {
        if (stream->output_used == stream->output_size) {
            if (!fill(stream, err))
                return false;
            if (!stream->output_size)
                break;
        }
        size_t part = stream->output_size - stream->output_used;
        if (part > size - *count)
            part = size - *count;
        memcpy(at + *count, stream->output + stream->output_used, part);
        stream->output_used += part;
        *count += part;
        stream->offset += (int64_t)part;
    }
    return true;
}

const void *stream_peek(const struct stream *stream, size_t *size)
{
    *size = stream->output_size - stream->output_used;
    return stream->output + stream->output_used;
}

void stream_take(struct stream *stream, size_t size)
{
    assert(size <= stream->output_size - stream->output_used);
    stream->output_used += size;
    stream->offset += (int64_t)size;
}

int64_t stream_offset(const struct stream *stream)
{
    return stream->offset;
}

int64_t stream_place(const struct stream *stream)
{
    return stream->place - (int64_t)stream->zlib.avail_in;
}

int64_t stream_bytes(const struct stream *stream)
{
    return stream->bytes;
}

bool stream_is_plain(const struct stream *stream)
{
    return stream->format == STREAM_PLAIN;
}

bool stream_is_whole(const struct stream *stream)
{
    return !stream->zlib_inside;
}

/* --- writing --- */

struct stream_writer {
    char *path;
    int fd;
    enum stream_format format;
    z_stream zlib;
    bool zlib_ready;
    unsigned char *buffer; /* what goes to the file next */
    size_t buffer_size;
};

static void writer_free(struct stream_writer *writer)
{
    if (writer->zlib_ready)
        deflateEnd(&writer->zlib);
    if (writer->fd >= 0)
        close(writer->fd);
    free(writer->buffer);
    free(writer->path);
    free(writer);
}

struct stream_writer *stream_create(const char *path, enum stream_format format,
                                    struct error *err)
{
    assert(format != STREAM_AUTO);
    struct stream_writer *writer = alloc_bytes(sizeof(*writer));
    writer->path = alloc_text(path);
    writer->format = format;
    writer->buffer = alloc_bytes(STREAM_BUFFER_BYTES);
    writer->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    bool ok = writer->fd >= 0 || file_error(err, "create", path);
    if (ok && format != STREAM_PLAIN) {
        writer->zlib_ready = deflateInit2(&writer->zlib, Z_DEFAULT_COMPRESSION, Z_DEFLATED,
                                          stream_bits[format], 8, Z_DEFAULT_STRATEGY) == Z_OK;
        ok = writer->zlib_ready || fail(err, INTERNAL, "cannot begin deflating %s", path);
    }
    if (ok)
        return writer;
    writer_free(writer);
    return NULL;
}

static bool buffer_flush(struct stream_writer *writer, struct error *err)
{
    for (size_t done = 0; done < writer->buffer_size;) {
        ssize_t count = write(writer->fd, writer->buffer + done, writer->buffer_size - done);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return file_error(err, "write", writer->path);
        done += (size_t)count;
    }
    writer->buffer_size = 0;
    return true;
}

static bool deflate_some(struct stream_writer *writer, int flush, struct error *err)
{
    z_stream *zlib = &writer->zlib;
    int result;
    do {
        if (writer->buffer_size == STREAM_BUFFER_BYTES && !buffer_flush(writer, err))
            return false;
        uInt room = (uInt)(STREAM_BUFFER_BYTES - writer->buffer_size);
        zlib->next_out = writer->buffer + writer->buffer_size;
        zlib->avail_out = room;
        result = deflate(zlib, flush);
        assert(result != Z_STREAM_ERROR);
        writer->buffer_size += room - zlib->avail_out;
    } while (flush == Z_FINISH ? result != Z_STREAM_END : zlib->avail_in > 0);
    return true;
}

bool stream_write(struct stream_writer *writer, const void *bytes, size_t size,
                  struct error *err)
{
    const unsigned char *at = bytes;
    while (size) {
        size_t part = size < STREAM_BUFFER_BYTES ? size : STREAM_BUFFER_BYTES;
        if (writer->format == STREAM_PLAIN) {
            size_t room = STREAM_BUFFER_BYTES - writer->buffer_size;
            part = part < room ? part : room;
            memcpy(writer->buffer + writer->buffer_size, at, part);
            writer->buffer_size += part;
            if (writer->buffer_size == STREAM_BUFFER_BYTES && !buffer_flush(writer, err))
                return false;
        } else {
            writer->zlib.next_in = (unsigned char *)at;
            writer->zlib.avail_in = (uInt)part;
            if (!deflate_some(writer, Z_NO_FLUSH, err))
                return false;
        }
        at += part;
        size -= part;
    }
    return true;
}

bool stream_finish(struct stream_writer *writer, struct error *err)
{
    bool ok = writer->format == STREAM_PLAIN || deflate_some(writer, Z_FINISH, err);
    ok = ok && buffer_flush(writer, err);
    if (ok && fsync(writer->fd) < 0)
        ok = file_error(err, "sync", writer->path);
    if (ok) {
        int fd = writer->fd;
        writer->fd = -1;
        ok = close(fd) == 0 || file_error(err, "write", writer->path);
    }
    writer_free(writer);
    return ok;
}
