/*
 * format_tfrecord.c - files of tf.Examples, plain, gzip or zlib, in as many pieces as there
 * are.
 *
 *   train.tfrecord  test.tfrecord.gz  train-00000-of-00004.tfrecords
 * mnist_val.tfrecord-00001-of-00002
 *
 * Which features they have is told by the first records.
 */

#include "runtime/dataset/format_tfrecord.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "proto/crc32c.h"
#include "proto/record.h"
#include "runtime/spec/spec.h"

#define TFRECORD_LOOKED_AT 100 /* records that say what the columns are */

/* --- files --- */

static bool is_name(const char *name)
{
    const char *found = strstr(name, ".tfrecord");
    return name[0] != '.' && found && !strstr(name, ".index");
}

/* Plain when it begins with the length of a record; else by how compressed files begin. */
static enum stream_format stream_of(const char *path)
{
    struct error ignored; /* whoever opens it says why it cannot */
    unsigned char bytes[RECORD_HEADER_BYTES] = {0};
    size_t count = 0;
    struct stream *stream = stream_open(path, STREAM_PLAIN, &ignored);
    bool ok = stream && stream_read(stream, bytes, sizeof(bytes), &count, &ignored);
    stream_close(stream);
    uint32_t crc;
    memcpy(&crc, bytes + 8, 4);
    if (ok && count == sizeof(bytes) && crc32c_unmask(crc) == crc32c(bytes, 8))
        return STREAM_PLAIN;
    if (ok && count > 2 && (bytes[0] & 0x0f) == 8 && (bytes[0] << 8 | bytes[1]) % 31 == 0)
        return STREAM_ZLIB;
    return stream_guess(path);
}

/* --- columns --- */

/* Damaged records are left to who reads them all. */
static bool tfrecord_find(struct record_table *record_table, struct dataset_opening *opening,
                          const char *path, struct error *err)
{
    struct tensor_string records[TFRECORD_LOOKED_AT];
    int64_t offsets[TFRECORD_LOOKED_AT];
    int count = 0;
    const void *data;
    size_t size;
    struct record_file *file = record_file_open(path, stream_of(path), err);
    if (!file)
        return false;
    bool going = true;
    while (going && count < TFRECORD_LOOKED_AT) {
        offsets[count] = record_file_offset(file);
        if (record_file_next(file, &data, &size, err)) {
            char *copy = alloc_bytes(size);
            memcpy(copy, data, size);
            records[count++] = (struct tensor_string){copy, size};
        } else {
            going = record_file_pass(file);
        }
    }
    if (count)
        record_table->record_bytes = (double)record_file_offset(file) / count;
    record_file_close(file);
    bool ok = count > 0 || err->code != OUT_OF_RANGE;
    if (!ok)
        fail(err, INVALID, "%s holds no examples", path);
    else if (!count)
        ok = false; /* the reason stands in `err` */
    else
        ok = format_tfrecord_find(opening, records, offsets, count,
                                  (struct format_tfrecord_table *)record_table, err) ||
             error_prefix(err, "%s: ", path);
    for (int i = 0; i < count; i++)
        free(records[i].data);
    return ok;
}

/* --- reading --- */

static void *reader_new(const struct record_table *table)
{
    struct format_tfrecord_reader *reader = alloc_bytes(sizeof(*reader));
    reader->table = (const struct format_tfrecord_table *)table;
    reader->seen = alloc_array((size_t)reader->table->columns_count, sizeof(*reader->seen));
    return reader;
}

static void reader_free(void *state)
{
    struct format_tfrecord_reader *reader = state;
    record_file_close(reader->file);
    feature_values_release(&reader->values);
    free(reader->seen);
    free(reader->path);
    free(reader);
}

static bool reader_open(void *state, const char *path, struct error *err)
{
    struct format_tfrecord_reader *reader = state;
    record_file_close(reader->file);
    free(reader->path);
    reader->path = alloc_text(path);
    reader->file = record_file_open(path, stream_of(path), err);
    reader->ended = false;
    reader->in_file = 0;
    return reader->file;
}

static enum record_next reader_next(void *state, struct record_place *place, struct error *err)
{
    struct format_tfrecord_reader *reader = state;
    if (reader->ended)
        return NEXT_END;
    reader->offset = place->offset = record_file_offset(reader->file);
    reader->in_file++;
    if (record_file_next(reader->file, &reader->record, &reader->size, err)) {
        place->size = (size_t)(record_file_offset(reader->file) - place->offset);
        return NEXT_RECORD;
    }
    if (err->code == OUT_OF_RANGE)
        return NEXT_END;
    error_prefix(err, "record %lld: ", (long long)reader->in_file);
    reader->ended = !record_file_pass(reader->file);
    return NEXT_DAMAGED;
}

static bool reader_take(void *state, const char *path, const void *bytes, size_t size,
                        struct error *err)
{
    (void)path;
    struct format_tfrecord_reader *reader = state;
    size_t used;
    enum record_result result =
        record_parse(bytes, size, 0, &reader->record, &reader->size, &used, err);
    return result == RECORD_OK ||
           fail(err, DATA_LOSS, "it is damaged, and was not when the data was opened");
}

static bool reader_put(void *state, struct rows *rows, struct error *err)
{
    struct format_tfrecord_reader *reader = state;
    return format_tfrecord_put(reader, rows, err) ||
           (reader->path &&
            error_prefix(err, "%s: record %lld at byte %lld: ", reader->path,
                         (long long)reader->in_file, (long long)reader->offset));
}

/* --- the format --- */

static struct record_table *table_new(void)
{
    struct format_tfrecord_table *table = alloc_bytes(sizeof(*table));
    return &table->table;
}

static void table_free(struct record_table *table)
{
    format_tfrecord_release((struct format_tfrecord_table *)table);
    free(table);
}

static const struct record_format records = {
    .endings = (const char *const[]){"", NULL},
    .is_name = is_name,
    .none = ".tfrecord",
    .stream = stream_of,
    .table_new = table_new,
    .table_free = table_free,
    .find = tfrecord_find,
    .reader_new = reader_new,
    .reader_free = reader_free,
    .open = reader_open,
    .next = reader_next,
    .take = reader_take,
    .put = reader_put,
};

static bool tfrecord_is(const char *folder)
{
    return format_records_is(&records, folder);
}

static bool tfrecord_open(struct dataset_opening *opening, struct error *err)
{
    return format_records_open(&records, opening, err);
}

const struct dataset_format format_tfrecord = {
    .name = "tfrecord",
    .wanted = "train.tfrecord, test.tfrecord-00000-of-00002 and the like (tf.Examples)",
    .is = tfrecord_is,
    .open = tfrecord_open,
};
