/*
 * files.c - datasets of what files hold: records, lines, pieces of equal length.
 *
 * A file that cannot be opened fails every call; one that is damaged fails once, then the next
 * file is read.
 */

#include "base/alloc.h"
#include "base/str.h"
#include "kernels/data/dataset.h"
#include "runtime/io/record_file.h"

#define READ_BYTES (256 << 10)

struct files {
    struct dataset dataset;
    struct tensor names;   /* STRING */
    struct tensor offsets; /* none, or where the first record of each begins */
    enum stream_format format;
    int64_t header, record, footer; /* of pieces */
};

struct reading {
    struct iterator it;
    int64_t file;
    struct record_file *records;
    struct stream *stream;
    struct str ahead; /* read from the stream, from `place` on not given yet */
    size_t place;
    bool over; /* the stream is */
};

static const struct files *files_of(const struct iterator *it)
{
    return (const struct files *)it->dataset;
}

static char *path_of(const struct reading *reading)
{
    const struct tensor_string *name =
        &tensor_strings(&files_of(&reading->it)->names)[reading->file];
    return alloc_text_n(name->data ? name->data : "", name->size);
}

static void close_file(struct reading *reading)
{
    record_file_close(reading->records);
    stream_close(reading->stream);
    reading->records = NULL;
    reading->stream = NULL;
    str_clear(&reading->ahead);
    reading->place = 0;
    reading->over = false;
}

static void next_file(struct reading *reading)
{
    close_file(reading);
    reading->file++;
}

static void reading_end(struct iterator *it)
{
    struct reading *reading = (struct reading *)it;
    close_file(reading);
    str_release(&reading->ahead);
}

static bool give(struct tensor *out, const void *data, size_t size, struct error *err)
{
    return tensor_init_string(out, data, size, err);
}

static bool open_stream(struct reading *reading, struct error *err)
{
    char *path = path_of(reading);
    reading->stream = stream_open(path, files_of(&reading->it)->format, err);
    free(path);
    return reading->stream != NULL;
}

/* Reads on, so that at least `size` bytes lie ahead, unless the file ends before. */
static bool read_ahead(struct reading *reading, size_t size, struct error *err)
{
    if (reading->place > READ_BYTES) {
        str_drop(&reading->ahead, reading->place);
        reading->place = 0;
    }
    while (!reading->over && reading->ahead.size - reading->place < size) {
        size_t count, before = reading->ahead.size;
        char *room = str_extend(&reading->ahead, READ_BYTES);
        bool ok = stream_read(reading->stream, room, READ_BYTES, &count, err);
        reading->ahead.size = before + (ok ? count : 0);
        if (!ok)
            return false;
        reading->over = count < READ_BYTES;
    }
    return true;
}

static size_t left(const struct reading *reading)
{
    return reading->ahead.size - reading->place;
}

/* --- records --- */

static bool open_records(struct reading *reading, struct error *err)
{
    const struct files *files = files_of(&reading->it);
    int64_t offset =
        files->offsets.dtype == I64 ? tensor_i64(&files->offsets)[reading->file] : 0;
    char *path = path_of(reading);
    const void *data;
    size_t size;
    reading->records = record_file_open(path, files->format, err);
    bool ok = reading->records != NULL;
    while (ok && record_file_offset(reading->records) < offset)
        ok = record_file_next(reading->records, &data, &size, err);
    if (ok && record_file_offset(reading->records) != offset)
        ok = fail(err, DATA_LOSS, "%s: no record begins at %lld", path, (long long)offset);
    free(path);
    if (!ok)
        close_file(reading);
    return ok;
}

static bool records_next(struct iterator *it, struct tensor *out, bool *end, struct error *err)
{
    struct reading *reading = (struct reading *)it;
    while (reading->file < files_of(it)->names.count) {
        const void *data;
        size_t size;
        if (!reading->records && !open_records(reading, err))
            return false;
        if (record_file_next(reading->records, &data, &size, err))
            return give(out, data, size, err);
        next_file(reading);
        if (err->code != OUT_OF_RANGE)
            return false;
    }
    *end = true;
    return true;
}

/* --- lines --- */

/* The next line without its end; carriage returns are not part of it. */
static bool read_line(struct reading *reading, struct tensor *out, bool *found,
                      struct error *err)
{
    size_t seen = 0;
    const char *newline = NULL;
    do {
        if (!read_ahead(reading, seen + 1, err))
            return false;
        const char *text = str_text(&reading->ahead) + reading->place;
        newline = memchr(text + seen, '\n', left(reading) - seen);
        seen = left(reading);
    } while (!newline && !reading->over);
    *found = newline || seen > 0;
    if (!*found)
        return true;
    char *line = reading->ahead.data + reading->place;
    size_t size = newline ? (size_t)(newline - line) : seen, kept = 0;
    reading->place += size + (newline != NULL);
    for (size_t i = 0; i < size; i++)
        if (line[i] != '\r')
            line[kept++] = line[i];
    return give(out, line, kept, err);
}

static bool lines_next(struct iterator *it, struct tensor *out, bool *end, struct error *err)
{
    struct reading *reading = (struct reading *)it;
    while (reading->file < files_of(it)->names.count) {
        bool found;
        if (!reading->stream && !open_stream(reading, err))
            return false;
        if (!read_line(reading, out, &found, err))
            return false;
        if (found)
            return true;
        next_file(reading);
    }
    *end = true;
    return true;
}

/* --- pieces --- */

static bool open_pieces(struct reading *reading, struct error *err)
{
    const struct files *files = files_of(&reading->it);
    if (!open_stream(reading, err))
        return false;
    /* Without a sign, as TensorFlow has it: an empty file may pass. */
    int64_t body = stream_bytes(reading->stream) - files->header - files->footer;
    if (files->format == STREAM_PLAIN && (uint64_t)body % (uint64_t)files->record) {
        char *path = path_of(reading);
        fail(
            err, INVALID,
            "Excluding the header (%lld bytes) and footer (%lld bytes), input file \"%s\" has "
            "body length %lld bytes, which is not an exact multiple of the record length (%lld "
            "bytes).",
            (long long)files->header, (long long)files->footer, path, (long long)body,
            (long long)files->record);
        free(path);
        close_file(reading);
        return false;
    }
    if (!read_ahead(reading, (size_t)files->header, err))
        return false;
    if (left(reading) < (size_t)files->header) {
        next_file(reading);
        return fail(err, INTERNAL, "Read less bytes than requested");
    }
    reading->place += (size_t)files->header;
    return true;
}

static bool pieces_next(struct iterator *it, struct tensor *out, bool *end, struct error *err)
{
    struct reading *reading = (struct reading *)it;
    const struct files *files = files_of(it);
    size_t record = (size_t)files->record, wanted = record + (size_t)files->footer;
    while (reading->file < files->names.count) {
        if (!reading->stream && !open_pieces(reading, err))
            return false;
        if (!read_ahead(reading, wanted, err))
            return false;
        if (left(reading) >= wanted) {
            const char *data = reading->ahead.data + reading->place;
            reading->place += record;
            return give(out, data, record, err);
        }
        bool cut = files->format != STREAM_PLAIN && left(reading) != (size_t)files->footer;
        next_file(reading);
        if (cut)
            return fail(err, DATA_LOSS,
                        "a file's body is not an exact multiple of the record length (%lld "
                        "bytes).",
                        (long long)files->record);
    }
    *end = true;
    return true;
}

/* --- kernels --- */

static void files_release(struct dataset *dataset)
{
    tensor_release(&((struct files *)dataset)->names);
    tensor_release(&((struct files *)dataset)->offsets);
}

#define FILES_TYPE(name_, next_)                                                               \
    {                                                                                          \
        .name = name_, .dataset_size = sizeof(struct files),                                   \
        .iterator_size = sizeof(struct reading), .next = next_, .end = reading_end,            \
        .release = files_release                                                               \
    }

static const struct dataset_type records_type = FILES_TYPE("TFRecord", records_next);
static const struct dataset_type lines_type = FILES_TYPE("TextLine", lines_next);
static const struct dataset_type pieces_type = FILES_TYPE("FixedLengthRecord", pieces_next);

static bool read_format(const struct kernel_call *call, int input, enum stream_format *format,
                        struct error *err)
{
    static const struct {
        const char *name;
        enum stream_format format;
    } known[] = {{"", STREAM_PLAIN}, {"ZLIB", STREAM_ZLIB}, {"GZIP", STREAM_GZIP}};
    const struct tensor *text = kernel_in(call, input);
    if (text->shape.rank != 0)
        return fail(err, INVALID, "compression_type must be a scalar");
    for (int i = 0; i < ARRAY_LEN(known); i++)
        if (tensor_strings(text)->size == strlen(known[i].name) &&
            memcmp(known[i].name, tensor_strings(text)->data ? tensor_strings(text)->data : "",
                   tensor_strings(text)->size) == 0) {
            *format = known[i].format;
            return true;
        }
    return fail(err, INVALID, "unsupported compression_type: %.*s.",
                (int)tensor_strings(text)->size, tensor_strings(text)->data);
}

/* A dataset of strings; input 0 are names of files. */
static struct files *files_new(struct kernel_call *call, const struct dataset_type *type,
                               struct error *err)
{
    const struct tensor *names = kernel_in(call, 0);
    const int types[] = {STRING};
    const struct shape shapes[] = {SHAPE_SCALAR};
    const struct signature signature = {1, types, shapes};
    if (names->shape.rank > 1)
        return fail_null(err, INVALID, "`filenames` must be a scalar or a vector.");
    struct files *files = (struct files *)kernel_dataset_new(type, &signature, NULL, 0, err);
    if (files)
        tensor_share(&files->names, names);
    return files;
}

static bool check_buffer(const struct kernel_call *call, int input, struct error *err)
{
    int64_t size;
    if (!kernel_scalar(call, input, "buffer_size", &size, err))
        return false;
    return size >= 0 || fail(err, INVALID, "`buffer_size` must be >= 0 (0 == no buffering)");
}

/* Inputs: filenames, compression_type, buffer_size; V2 of records: byte_offsets too. */
static bool stream_files_run(struct kernel_call *call, const struct dataset_type *type,
                             struct error *err)
{
    enum stream_format format;
    if (!read_format(call, 1, &format, err) ||
        (type == &lines_type && !check_buffer(call, 2, err)))
        return false;
    if (call->in_count > 3 && kernel_in(call, 3)->count &&
        kernel_in(call, 3)->count != kernel_in(call, 0)->count)
        return fail(err, INVALID, "`byte_offsets` must be of same size as `filenames`");
    struct files *files = files_new(call, type, err);
    if (!files)
        return false;
    files->format = format;
    if (call->in_count > 3 && kernel_in(call, 3)->count)
        tensor_share(&files->offsets, kernel_in(call, 3));
    return kernel_dataset_output(call, &files->dataset, err);
}

static bool records_run(struct kernel_call *call, struct error *err)
{
    return stream_files_run(call, &records_type, err);
}

static bool lines_run(struct kernel_call *call, struct error *err)
{
    return stream_files_run(call, &lines_type, err);
}

/* Inputs: filenames, header_bytes, record_bytes, footer_bytes, buffer_size, V2: a format. */
static bool pieces_run(struct kernel_call *call, struct error *err)
{
    int64_t header, record, footer;
    enum stream_format format = STREAM_PLAIN;
    if (!kernel_scalar(call, 1, "header_bytes", &header, err) ||
        !kernel_scalar(call, 2, "record_bytes", &record, err) ||
        !kernel_scalar(call, 3, "footer_bytes", &footer, err) || !check_buffer(call, 4, err) ||
        (call->in_count > 5 && !read_format(call, 5, &format, err)))
        return false;
    if (header < 0)
        return fail(err, INVALID, "`header_bytes` must be >= 0");
    if (record <= 0)
        return fail(err, INVALID, "`record_bytes` must be > 0");
    if (footer < 0)
        return fail(err, INVALID, "`footer_bytes` must be >= 0");
    if (header > LIMIT_RECORD_BYTES || record > LIMIT_RECORD_BYTES ||
        footer > LIMIT_RECORD_BYTES)
        return fail(err, EXHAUSTED, "header, record and footer have at most %lld bytes",
                    (long long)LIMIT_RECORD_BYTES);
    struct files *files = files_new(call, &pieces_type, err);
    if (!files)
        return false;
    files->format = format;
    files->header = header;
    files->record = record;
    files->footer = footer;
    return kernel_dataset_output(call, &files->dataset, err);
}

#define DATASET(name_, run_)                                                                   \
    {                                                                                          \
        .op = name_, .device = CPU, .run = run_                                                \
    }

const struct kernel kernel_tf_record_dataset = DATASET("TFRecordDataset", records_run);
const struct kernel kernel_tf_record_dataset_v2 = DATASET("TFRecordDatasetV2", records_run);
const struct kernel kernel_text_line_dataset = DATASET("TextLineDataset", lines_run);
const struct kernel kernel_fixed_length_record_dataset =
    DATASET("FixedLengthRecordDataset", pieces_run);
const struct kernel kernel_fixed_length_record_dataset_v2 =
    DATASET("FixedLengthRecordDatasetV2", pieces_run);
