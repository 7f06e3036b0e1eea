/* reader_formats.c - lines, records of fixed length, TFRecords, whole files, names. */

#include "kernels/io/reader.h"

#include <sys/stat.h>

#include "base/alloc.h"
#include "base/str.h"
#include "runtime/io/file.h"
#include "runtime/io/record_file.h"

static bool check_file(const char *path, struct error *err)
{
    struct stat status;
    if (stat(path, &status))
        return file_error_stock(err, path);
    return !S_ISDIR(status.st_mode) || fail(err, PRECONDITION, "%s; Is a directory", path);
}

static void number_key(struct str *key, const char *path, int64_t number)
{
    str_printf(key, "%s:%lld", path, (long long)number);
}

/* --- lines --- */

enum { TEXT_STEP_BYTES = 64 << 10 };

struct text_file {
    struct stream *stream;
    struct str ahead; /* read, but not yet given */
    size_t scanned;   /* bytes of `ahead` that hold no end of line */
    bool ended;       /* nothing more to read */
    int64_t line;
};

static void text_close(void *arg)
{
    struct text_file *file = arg;
    if (!file)
        return;
    stream_close(file->stream);
    str_release(&file->ahead);
    free(file);
}

/* Reads until there is an end of line; `*size` without it, `*used` with it. */
static bool find_line(struct text_file *file, size_t *size, size_t *used, bool *found,
                      struct error *err)
{
    for (;;) {
        const char *data = str_text(&file->ahead);
        const char *newline = NULL;
        if (file->scanned < file->ahead.size)
            newline = memchr(data + file->scanned, '\n', file->ahead.size - file->scanned);
        if (newline || file->ended) {
            *size = newline ? (size_t)(newline - data) : file->ahead.size;
            *used = *size + (newline ? 1 : 0);
            *found = newline || *size;
            if (newline && *size && data[*size - 1] == '\r')
                --*size;
            return true;
        }
        file->scanned = file->ahead.size;
        size_t count;
        char *room = str_extend(&file->ahead, TEXT_STEP_BYTES);
        if (!stream_read(file->stream, room, TEXT_STEP_BYTES, &count, err))
            return false;
        file->ahead.size -= TEXT_STEP_BYTES - count;
        file->ended = count < TEXT_STEP_BYTES;
    }
}

static bool text_next(void *arg, const char *path, struct str *key, struct str *value,
                      bool *produced, bool *at_end, struct error *err)
{
    struct text_file *file = arg;
    size_t size, used;
    if (!find_line(file, &size, &used, produced, err))
        return false;
    *at_end = !*produced;
    if (*produced) {
        number_key(key, path, ++file->line);
        str_add_bytes(value, str_text(&file->ahead), size);
        str_drop(&file->ahead, used);
        file->scanned = 0;
    }
    return true;
}

static void *text_open(const struct reader_spec *spec, const char *path, struct error *err)
{
    if (!check_file(path, err))
        return NULL;
    struct stream *stream = stream_open(path, STREAM_PLAIN, err);
    if (!stream)
        return NULL;
    struct text_file *file = alloc_bytes(sizeof(*file));
    file->stream = stream;
    bool found = true;
    for (; found && file->line < spec->skip_header_lines; file->line++) {
        size_t size, used;
        if (!find_line(file, &size, &used, &found, err)) {
            text_close(file);
            return NULL;
        }
        str_drop(&file->ahead, used);
        file->scanned = 0;
    }
    return file;
}

const struct reader_format kernel_reader_text = {
    .name = "TextLineReader", .open = text_open, .close = text_close, .next = text_next};

/* --- records of fixed length --- */

struct fixed_file {
    struct reader_spec spec;
    struct stream *stream;
    struct str ahead; /* a record and what stands where the footer would */
    int64_t number;
};

static void fixed_close(void *arg)
{
    struct fixed_file *file = arg;
    if (!file)
        return;
    stream_close(file->stream);
    str_release(&file->ahead);
    free(file);
}

/* Fills `ahead` to `size` bytes; false at the end of the file too, with `*at_end`. */
static bool fixed_fill(struct fixed_file *file, int64_t size, bool *at_end, struct error *err)
{
    while ((int64_t)file->ahead.size < size) {
        int64_t left = size - (int64_t)file->ahead.size;
        size_t part = left < TEXT_STEP_BYTES ? (size_t)left : TEXT_STEP_BYTES, count;
        char *room = str_extend(&file->ahead, part);
        if (!stream_read(file->stream, room, part, &count, err))
            return false;
        file->ahead.size -= part - count;
        if (count < part) {
            *at_end = true;
            return false;
        }
    }
    return true;
}

/* Drops `size` bytes, of what is ahead and then of the file. */
static bool fixed_skip(struct fixed_file *file, int64_t size, bool *at_end, struct error *err)
{
    while (size) {
        int64_t part = size < TEXT_STEP_BYTES ? size : TEXT_STEP_BYTES;
        if (!fixed_fill(file, part, at_end, err))
            return false;
        str_drop(&file->ahead, (size_t)part);
        size -= part;
    }
    return true;
}

static bool fixed_next(void *arg, const char *path, struct str *key, struct str *value,
                       bool *produced, bool *at_end, struct error *err)
{
    struct fixed_file *file = arg;
    const struct reader_spec *spec = &file->spec;
    int64_t skip = file->number ? spec->hop_bytes : 0;
    *at_end = false;
    *produced = fixed_skip(file, skip, at_end, err) &&
                fixed_fill(file, spec->record_bytes + spec->footer_bytes, at_end, err);
    if (*produced) {
        str_add_bytes(value, str_text(&file->ahead), (size_t)spec->record_bytes);
        number_key(key, path, file->number++);
    }
    return *produced || *at_end;
}

static void *fixed_open(const struct reader_spec *spec, const char *path, struct error *err)
{
    if (!spec->record_bytes)
        return fail_null(err, INVALID, "record_bytes must be > 0 to read %s", path);
    struct stream *stream = check_file(path, err)
                                ? stream_open(path, (enum stream_format)spec->compression, err)
                                : NULL;
    if (!stream)
        return NULL;
    struct fixed_file *file = alloc_bytes(sizeof(*file));
    file->spec = *spec;
    file->stream = stream;
    bool at_end = false;
    if (fixed_skip(file, spec->header_bytes, &at_end, err))
        return file;
    fixed_close(file);
    return at_end ? fail_null(err, OUT_OF_RANGE, "reached end of file: %s", path) : NULL;
}

const struct reader_format kernel_reader_fixed = {.name = "FixedLengthRecordReader",
                                                  .open = fixed_open,
                                                  .close = fixed_close,
                                                  .next = fixed_next};

/* --- TFRecords --- */

static void *record_open(const struct reader_spec *spec, const char *path, struct error *err)
{
    if (!check_file(path, err))
        return NULL;
    return record_file_open(path, (enum stream_format)spec->compression, err);
}

static void record_close(void *file)
{
    record_file_close(file);
}

static bool record_next(void *file, const char *path, struct str *key, struct str *value,
                        bool *produced, bool *at_end, struct error *err)
{
    const void *data;
    size_t size;
    int64_t offset = record_file_offset(file);
    *produced = record_file_next(file, &data, &size, err);
    *at_end = !*produced && err->code == OUT_OF_RANGE;
    if (*produced) {
        number_key(key, path, offset);
        str_add_bytes(value, data, size);
    }
    return *produced || *at_end;
}

const struct reader_format kernel_reader_record = {
    .name = "TFRecordReader", .open = record_open, .close = record_close, .next = record_next};

/* --- whole files, names --- */

static bool whole_next(void *file, const char *path, struct str *key, struct str *value,
                       bool *produced, bool *at_end, struct error *err)
{
    (void)file;
    if (!check_file(path, err) || !file_read(path, LIMIT_TENSOR_BYTES, value, err))
        return false;
    str_add(key, path);
    *produced = *at_end = true;
    return true;
}

const struct reader_format kernel_reader_whole = {
    .name = "WholeFileReader", .has_state = true, .next = whole_next};

static bool identity_next(void *file, const char *path, struct str *key, struct str *value,
                          bool *produced, bool *at_end, struct error *err)
{
    (void)file;
    (void)err;
    str_add(key, path);
    str_add(value, path);
    *produced = *at_end = true;
    return true;
}

const struct reader_format kernel_reader_identity = {
    .name = "IdentityReader", .has_state = true, .next = identity_next};
