/* format_records.c - opens a folder of records: held as numbers, or left where they are. */

#include "runtime/dataset/format_records.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "runtime/dataset/record_index.h"
#include "runtime/dataset/spool.h"

struct reading {
    struct dataset_opening *opening;
    const struct record_format *format;
    struct record_table *table;
    void *reader; /* NULL while columns are not known */
    char **names; /* of the folder's files */
    struct rows *rows[FORMAT_PARTS];
    struct record_index *indexes[FORMAT_PARTS]; /* of parts that are not held */
    int64_t memory;                             /* bytes that may still be held */
    int64_t spooled;                            /* bytes decompressed so far */
};

/* --- names --- */

static char **list(const struct record_format *format, const char *folder)
{
    char **names = format_files(folder, format->endings);
    int count = 0;
    for (int i = 0; names[i]; i++) {
        if (!format->is_name || format->is_name(names[i]))
            names[count++] = names[i];
        else
            free(names[i]);
    }
    names[count] = NULL;
    return names;
}

bool format_records_is(const struct record_format *format, const char *folder)
{
    char **names = list(format, folder);
    bool is = names[0];
    format_files_free(names);
    return is;
}

/* --- one file --- */

/* Classes are 0 to the largest that any part has. */
static bool count_classes(const struct reading *reading, const struct rows *rows,
                          struct error *err)
{
    struct dataset *dataset = reading->opening->dataset;
    for (int i = 0; i < dataset->columns_count; i++) {
        const struct dataset_column *column = &dataset->columns[i];
        bool counted = column->role == DATASET_TARGET && column->dtype == I32 &&
                       !column->shape.rank && !reading->table->vocabularies[i];
        if (counted && !rows_count_class(rows, dataset, i, err))
            return false;
    }
    return true;
}

/* The record at hand becomes an example. */
static bool keep(struct reading *reading, enum format_part part,
                 const struct record_place *place, struct error *err)
{
    struct rows *rows = reading->rows[part];
    if (!rows_add(rows, err))
        return false;
    bool ok =
        reading->format->put(reading->reader, rows, err) && count_classes(reading, rows, err);
    if (!ok || reading->indexes[part])
        rows_drop(rows);
    return ok && (!reading->indexes[part] ||
                  record_index_add(reading->indexes[part], place->offset, place->size, err));
}

static bool is_full(const struct reading *reading, enum format_part part)
{
    return !reading->indexes[part] && rows_bytes(reading->rows[part]) > reading->memory;
}

/* Every record of a file; stops when the part is full. */
static bool read_records(struct reading *reading, const char *path, enum format_part part,
                         struct error *err)
{
    struct record_place place;
    if (!reading->format->open(reading->reader, path, err))
        return false;
    while (!is_full(reading, part)) {
        enum record_next next = reading->format->next(reading->reader, &place, err);
        if (next == NEXT_END)
            return true;
        bool ok = next == NEXT_RECORD && keep(reading, part, &place, err);
        if (!ok && (next == NEXT_FAILED || !format_skip(reading->opening, err)))
            return false;
    }
    return true;
}

/* The same of a file whose records are to be found again. */
static bool index_records(struct reading *reading, const char *path, enum format_part part,
                          struct error *err)
{
    enum stream_format stream = reading->format->stream(path);
    if (stream == STREAM_PLAIN)
        return record_index_add_file(reading->indexes[part], path, true, err) &&
               read_records(reading, path, part, err);
    char *plain = spool_file(path, stream, reading->opening->spool, &reading->spooled, err);
    bool ok = plain && record_index_add_file(reading->indexes[part], plain, false, err) &&
              read_records(reading, plain, part, err);
    if (plain)
        unlink(plain);
    free(plain);
    return ok;
}

/* --- one part --- */

/* Columns, and with them what a reader is. */
static bool find_columns(struct reading *reading, const char *path, struct error *err)
{
    struct record_table *table = reading->table;
    struct dataset *dataset = reading->opening->dataset;
    if (!reading->format->find(table, reading->opening, path, err))
        return false;
    table->dataset = dataset;
    reading->reader = reading->format->reader_new(table);
    return true;
}

/* Whether the files are so large that their examples are not held. */
static bool is_large(const struct reading *reading, enum format_part part)
{
    double bytes = 0;
    for (int i = 0; reading->names[i]; i++) {
        struct stat info;
        char *path = alloc_printf("%s/%s", reading->opening->folder, reading->names[i]);
        if (format_part_of_file(reading->names[i]) == part && !stat(path, &info))
            bytes += (double)info.st_size;
        free(path);
    }
    double each = reading->table->record_bytes;
    return each > 0 &&
           bytes / each * (double)rows_row_bytes(reading->rows[part]) > (double)reading->memory;
}

static bool read_files(struct reading *reading, enum format_part part, struct error *err)
{
    bool ok = true;
    for (int i = 0; reading->names[i] && ok; i++) {
        if (format_part_of_file(reading->names[i]) != part)
            continue;
        char *path = alloc_printf("%s/%s", reading->opening->folder, reading->names[i]);
        bool readable = reading->reader || find_columns(reading, path, err);
        if (readable && !reading->rows[part]) {
            reading->rows[part] = rows_new(reading->opening->dataset);
            if (is_large(reading, part))
                reading->indexes[part] = record_index_new();
        }
        if (!readable)
            ok = err->code == DATA_LOSS && format_skip(reading->opening, err);
        else if (reading->indexes[part])
            ok = index_records(reading, path, part, err);
        else
            ok = read_records(reading, path, part, err);
        free(path);
    }
    return ok;
}

/* A part that turns out to be too large to be held is read once more, noting where records
 * are. */
static bool read_part(struct reading *reading, enum format_part part, struct error *err)
{
    int64_t skipped = reading->opening->dataset->skipped;
    bool ok = read_files(reading, part, err);
    if (ok && reading->rows[part] && is_full(reading, part)) {
        rows_free(reading->rows[part]);
        reading->rows[part] = rows_new(reading->opening->dataset);
        reading->indexes[part] = record_index_new();
        reading->opening->dataset->skipped = skipped;
        ok = read_files(reading, part, err);
    }
    if (ok && reading->rows[part])
        reading->memory -= rows_bytes(reading->rows[part]);
    return ok;
}

static bool read_train(struct reading *reading, struct error *err)
{
    struct dataset *dataset = reading->opening->dataset;
    const char *folder = reading->opening->folder;
    if (!read_part(reading, FORMAT_TRAIN, err))
        return false;
    if (!reading->rows[FORMAT_TRAIN] && dataset->skipped)
        return fail(err, DATA_LOSS, "%s: no record of the files to train on can be read",
                    folder);
    if (!reading->rows[FORMAT_TRAIN])
        return fail(err, NOT_FOUND, "%s has no %s file to train on", folder,
                    reading->format->none);
    for (int i = 0; i < dataset->columns_count; i++) {
        if (reading->table->vocabularies[i])
            rows_settle_words(reading->rows[FORMAT_TRAIN], dataset, i,
                              reading->table->vocabularies[i]);
    }
    return true;
}

/* --- the whole --- */

static void finish(struct reading *reading)
{
    struct dataset *dataset = reading->opening->dataset;
    for (int p = 0; p < FORMAT_PARTS; p++) {
        struct dataset_part *part = format_part(dataset, (enum format_part)p);
        if (reading->indexes[p]) {
            part->examples = format_records_again(reading->indexes[p], reading->table);
            part->count = part->examples->count;
            dataset->records = reading->table;
        } else if (reading->rows[p]) {
            rows_finish(reading->rows[p], part);
            reading->rows[p] = NULL;
        }
        reading->indexes[p] = NULL;
    }
}

bool format_records_open(const struct record_format *format, struct dataset_opening *opening,
                         struct error *err)
{
    struct reading reading = {.opening = opening,
                              .format = format,
                              .table = format->table_new(),
                              .names = list(format, opening->folder),
                              .memory = opening->memory};
    reading.table->format = format;
    bool ok = read_train(&reading, err) && read_part(&reading, FORMAT_VALIDATION, err) &&
              read_part(&reading, FORMAT_TEST, err);
    if (ok)
        finish(&reading);
    if (reading.reader)
        format->reader_free(reading.reader);
    for (int p = 0; p < FORMAT_PARTS; p++) {
        rows_free(reading.rows[p]);
        record_index_free(reading.indexes[p]);
    }
    if (!opening->dataset->records)
        format->table_free(reading.table);
    format_files_free(reading.names);
    return ok;
}
