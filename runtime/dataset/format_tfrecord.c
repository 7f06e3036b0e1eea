/*
 * format_tfrecord.c - files of tf.Examples, plain, gzip or zlib, in as many pieces as there
 * are.
 *
 *   train.tfrecord  test.tfrecord.gz  train-00000-of-00004.tfrecords
 * mnist_val.tfrecord-00001-of-00002
 *
 * The examples are taken apart once and held as numbers: an epoch costs no parsing.
 */

#include "runtime/dataset/format_tfrecord.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "proto/crc32c.h"
#include "proto/record.h"
#include "runtime/io/file.h"
#include "runtime/io/record_file.h"
#include "runtime/spec/spec.h"

#define TFRECORD_LOOKED_AT 100 /* records that say what the columns are */

/* --- files --- */

static bool is_name(const char *name)
{
    const char *found = strstr(name, ".tfrecord");
    return name[0] != '.' && found && !strstr(name, ".index");
}

/* The names of the folder's record files, sorted. */
static char **list(const char *folder)
{
    static const char *const any[] = {"", NULL};
    char **names = format_files(folder, any);
    int count = 0;
    for (int i = 0; names[i]; i++) {
        if (is_name(names[i]))
            names[count++] = names[i];
        else
            free(names[i]);
    }
    names[count] = NULL;
    return names;
}

/* Plain when it begins with the length of a record; else by how compressed files begin. */
static enum stream_format guess(const char *path)
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
    return STREAM_AUTO;
}

/* --- reading --- */

struct reading {
    struct dataset_opening *opening;
    struct format_tfrecord_reader reader;
    struct rows *rows[FORMAT_PARTS];
    int64_t number; /* of the record, of all files */
};

/* Every record of a file, into rows. */
static bool read_file(struct reading *reading, const char *path, struct rows *rows,
                      struct error *err)
{
    struct record_file *file = record_file_open(path, guess(path), err);
    const void *data;
    size_t size;
    int64_t number = 0; /* of the record in its file */
    if (!file)
        return false;
    while (true) {
        int64_t offset = record_file_offset(file);
        number++;
        bool ok = record_file_next(file, &data, &size, err), more = true;
        if (!ok && err->code == OUT_OF_RANGE)
            break;
        if (!ok) {
            error_prefix(err, "record %lld: ", (long long)number);
            more = record_file_pass(file);
        } else {
            ok = rows_add(rows, err);
            if (ok && !format_tfrecord_put(&reading->reader, reading->opening->dataset, data,
                                           size, ++reading->number, rows, err)) {
                rows_drop(rows);
                ok = error_prefix(err, "%s: record %lld at byte %lld: ", path,
                                  (long long)number, (long long)offset);
            }
        }
        if (!ok && !format_skip(reading->opening, err)) {
            record_file_close(file);
            return false;
        }
        if (!more)
            break;
    }
    record_file_close(file);
    return true;
}

/* Columns, from the first records of a file; damaged ones are left to who reads them all. */
static bool find_columns(struct reading *reading, const char *path, struct error *err)
{
    struct tensor_string records[TFRECORD_LOOKED_AT];
    int64_t offsets[TFRECORD_LOOKED_AT];
    int count = 0;
    const void *data;
    size_t size;
    struct record_file *file = record_file_open(path, guess(path), err);
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
    record_file_close(file);
    bool ok = count > 0 || err->code != OUT_OF_RANGE;
    if (!ok)
        fail(err, INVALID, "%s holds no examples", path);
    else if (!count)
        ok = false; /* the reason stands in `err` */
    else
        ok = format_tfrecord_find(reading->opening, records, offsets, count, &reading->reader,
                                  err) ||
             error_prefix(err, "%s: ", path);
    for (int i = 0; i < count; i++)
        free(records[i].data);
    return ok;
}

static bool read_part(struct reading *reading, char *const *names, enum format_part part,
                      struct error *err)
{
    bool ok = true;
    for (int i = 0; names[i] && ok; i++) {
        if (format_part_of_file(names[i]) != part)
            continue;
        char *path = alloc_printf("%s/%s", reading->opening->folder, names[i]);
        bool readable = reading->reader.columns_count || find_columns(reading, path, err);
        if (readable && !reading->rows[part])
            reading->rows[part] = rows_new(reading->opening->dataset);
        ok = readable ? read_file(reading, path, reading->rows[part], err)
                      : err->code == DATA_LOSS && format_skip(reading->opening, err);
        free(path);
    }
    return ok;
}

/* Classes are 0 to the largest that any part has. */
static bool count_classes(const struct reading *reading, int index, struct error *err)
{
    bool ok = true;
    for (int p = 0; ok && p < FORMAT_PARTS; p++)
        ok = !reading->rows[p] ||
             rows_count_classes(reading->rows[p], reading->opening->dataset, index, err);
    return ok;
}

static bool finish(struct reading *reading, struct error *err)
{
    struct dataset *dataset = reading->opening->dataset;
    for (int i = 0; i < dataset->columns_count; i++) {
        const struct dataset_column *column = &dataset->columns[i];
        if (column->role == DATASET_TARGET && column->dtype == I32 && !column->vocabulary &&
            column->shape.rank == 0 && !count_classes(reading, i, err))
            return error_prefix(err, "%s: ", reading->opening->folder);
    }
    for (int p = 0; p < FORMAT_PARTS; p++) {
        if (reading->rows[p])
            rows_finish(reading->rows[p], format_part(dataset, (enum format_part)p));
        reading->rows[p] = NULL;
    }
    return true;
}

/* --- the format --- */

static bool tfrecord_is(const char *folder)
{
    char **names = list(folder);
    bool is = names[0];
    format_files_free(names);
    return is;
}

static bool tfrecord_open(struct dataset_opening *opening, struct error *err)
{
    struct reading reading = {.opening = opening};
    char **names = list(opening->folder);
    bool ok = read_part(&reading, names, FORMAT_TRAIN, err);
    if (ok && !reading.rows[FORMAT_TRAIN] && opening->dataset->skipped)
        ok = fail(err, DATA_LOSS, "%s: no record of the files to train on can be read",
                  opening->folder);
    if (ok && !reading.rows[FORMAT_TRAIN])
        ok = fail(err, NOT_FOUND, "%s has no .tfrecord file to train on", opening->folder);
    for (int i = 0; ok && i < reading.reader.columns_count; i++) {
        struct format_tfrecord_column *column = &reading.reader.columns[i];
        if (!column->vocabulary)
            continue;
        rows_settle_words(reading.rows[FORMAT_TRAIN], opening->dataset, i, column->vocabulary);
        column->vocabulary_done = true;
    }
    ok = ok && read_part(&reading, names, FORMAT_VALIDATION, err) &&
         read_part(&reading, names, FORMAT_TEST, err) && finish(&reading, err);
    for (int p = 0; p < FORMAT_PARTS; p++)
        rows_free(reading.rows[p]);
    format_tfrecord_release(&reading.reader);
    format_files_free(names);
    return ok;
}

const struct dataset_format format_tfrecord = {
    .name = "tfrecord",
    .wanted = "train.tfrecord, test.tfrecord-00000-of-00002 and the like (tf.Examples)",
    .is = tfrecord_is,
    .open = tfrecord_open,
};
