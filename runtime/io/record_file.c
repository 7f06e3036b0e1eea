/* record_file.c - reads and writes files of records. */

#include "runtime/io/record_file.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "proto/crc32c.h"
#include "proto/record.h"

#define RECORD_STEP_BYTES (1 << 20) /* a length is believed so far ahead of what was read */

struct record_file {
    struct stream *stream;
    char *path;
    struct str frame;
    int64_t offset;
    bool failed;
    struct error failure;
    size_t passable; /* bytes of a frame that was read whole and is damaged; else 0 */
};

struct record_file *record_file_open(const char *path, enum stream_format format,
                                     struct error *err)
{
    struct stream *stream = stream_open(path, format, err);
    if (!stream)
        return NULL;
    struct record_file *file = alloc_bytes(sizeof(*file));
    file->stream = stream;
    file->path = alloc_text(path);
    return file;
}

void record_file_close(struct record_file *file)
{
    if (!file)
        return;
    stream_close(file->stream);
    str_release(&file->frame);
    free(file->path);
    free(file);
}

/* Adds up to `size` bytes to the frame; `*complete` says whether that many were there. */
static bool frame_read(struct record_file *file, uint64_t size, bool *complete,
                       struct error *err)
{
    while (size) {
        size_t part = size < RECORD_STEP_BYTES ? (size_t)size : RECORD_STEP_BYTES, count;
        char *room = str_extend(&file->frame, part);
        if (!stream_read(file->stream, room, part, &count, err))
            return false;
        if (count < part) {
            *complete = false;
            return true;
        }
        size -= part;
    }
    *complete = true;
    return true;
}

/* Checks the header in the frame and sets the length it tells. */
static bool header_check(struct record_file *file, uint64_t *length, struct error *err)
{
    uint32_t crc;
    memcpy(length, file->frame.data, 8);
    memcpy(&crc, file->frame.data + 8, 4);
    if (crc32c_unmask(crc) != crc32c(file->frame.data, 8))
        return fail(err, DATA_LOSS, "corrupted record at %lld%s", (long long)file->offset,
                    file->offset ? "" : " (Is this even a TFRecord file?)");
    uint64_t left = UINT64_MAX;
    if (stream_is_plain(file->stream))
        left = (uint64_t)(stream_bytes(file->stream) - stream_offset(file->stream));
    if (left < RECORD_FOOTER_BYTES || *length > left - RECORD_FOOTER_BYTES)
        return fail(err, DATA_LOSS, "truncated record at %lld", (long long)file->offset);
    if (*length > LIMIT_RECORD_BYTES)
        return fail(err, stream_is_plain(file->stream) ? EXHAUSTED : DATA_LOSS,
                    "the record at %lld has %llu bytes, more than the limit of %lld",
                    (long long)file->offset, (unsigned long long)*length,
                    (long long)LIMIT_RECORD_BYTES);
    return true;
}

static bool next_record(struct record_file *file, const void **data, size_t *size,
                        struct error *err)
{
    bool complete;
    uint64_t length;
    size_t used, ready;
    const void *window = stream_peek(file->stream, &ready);
    if (record_parse(window, ready, file->offset, data, size, &used, err) == RECORD_OK) {
        stream_take(file->stream, used);
        file->offset += (int64_t)used;
        return true;
    }
    str_clear(&file->frame);
    if (!frame_read(file, RECORD_HEADER_BYTES, &complete, err))
        return false;
    if (!complete)
        return fail(err, OUT_OF_RANGE, "end of file");
    if (!header_check(file, &length, err) ||
        !frame_read(file, length + RECORD_FOOTER_BYTES, &complete, err))
        return false;
    if (!complete)
        return fail(err, DATA_LOSS, "truncated record at %lld", (long long)file->offset);

    enum record_result result =
        record_parse(file->frame.data, file->frame.size, file->offset, data, size, &used, err);
    assert(result != RECORD_MORE);
    if (result == RECORD_OK)
        file->offset += (int64_t)used;
    else
        file->passable = file->frame.size;
    return result == RECORD_OK;
}

bool record_file_next(struct record_file *file, const void **data, size_t *size,
                      struct error *err)
{
    if (!file->failed && next_record(file, data, size, err))
        return true;
    if (!file->failed) {
        if (err->code != OUT_OF_RANGE)
            error_prefix(err, "%s: ", file->path);
        file->failed = true;
        file->failure = *err;
    }
    *err = file->failure;
    return false;
}

bool record_file_pass(struct record_file *file)
{
    if (!file->failed || !file->passable)
        return false;
    file->offset += (int64_t)file->passable;
    file->passable = 0;
    file->failed = false;
    return true;
}

int64_t record_file_offset(const struct record_file *file)
{
    return file->offset;
}

/* --- writing --- */

struct record_file_writer {
    struct stream_writer *stream;
    struct str frame;
};

struct record_file_writer *record_file_create(const char *path, enum stream_format format,
                                              struct error *err)
{
    struct stream_writer *stream = stream_create(path, format, err);
    if (!stream)
        return NULL;
    struct record_file_writer *writer = alloc_bytes(sizeof(*writer));
    writer->stream = stream;
    return writer;
}

bool record_file_add(struct record_file_writer *writer, const void *data, size_t size,
                     struct error *err)
{
    str_clear(&writer->frame);
    record_add(&writer->frame, data, size);
    return stream_write(writer->stream, writer->frame.data, writer->frame.size, err);
}

bool record_file_finish(struct record_file_writer *writer, struct error *err)
{
    bool ok = stream_finish(writer->stream, err);
    str_release(&writer->frame);
    free(writer);
    return ok;
}
