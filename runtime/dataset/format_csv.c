/*
 * format_csv.c - tables as text, a row for each example.
 *
 *   train.csv  test.csv.gz  validation.tsv     parts, by their names
 *   houses.csv                                 all of it to train on; "validation" holds out
 *
 * The first row names the columns, unless all its cells are numbers.  Numeric columns are
 * joined in one feature, "numbers"; words become the numbers of a vocabulary.
 */

#include "runtime/dataset/format_csv.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/spec/spec.h"

#define CSV_LOOKED_AT 1000 /* rows that say what columns are */

struct reader {
    const struct format_csv_table *table;
    struct csv *csv; /* NULL before open() and take() */
    char *path;      /* NULL: rows are given by take() */
    bool first;      /* the first row may name the columns */
    const struct csv_cell *cells;
    int count;
};

static char separator_of(const char *path)
{
    return strstr(path, ".tsv") ? '\t' : ',';
}

/* --- the first row --- */

static bool is_header(const struct csv_cell *cells, int count)
{
    double number;
    for (int i = 0; i < count; i++) {
        if (!format_csv_number(&cells[i], &number))
            return true;
    }
    return false;
}

/* Columns by the names in the first row, or by their places when it has none. */
static bool name_columns(struct format_csv_table *table, const char *path,
                         const struct csv_cell *cells, int count, struct error *err)
{
    bool header = is_header(cells, count);
    for (int i = 0; i < count; i++) {
        if (header && (memchr(cells[i].text, 0, cells[i].size) ||
                       !str_is_utf8(cells[i].text, cells[i].size)))
            return fail(err, DATA_LOSS, "%s: line 1, cell %d: a name that is no text", path,
                        i + 1);
        char *name = header && cells[i].size ? alloc_text(cells[i].text)
                                             : alloc_printf("column_%d", i + 1);
        for (int before = 0; before < i; before++) {
            if (strcmp(table->columns[before].name, name) != 0)
                continue;
            fail(err, INVALID, "%s: line 1: columns %d and %d are both \"%.100s\"", path,
                 before + 1, i + 1, name);
            free(name);
            return false;
        }
        table->columns =
            alloc_grow(table->columns, table->count, &table->capacity, sizeof(*table->columns));
        table->columns[table->count++] = (struct format_csv_column){.name = name};
    }
    return true;
}

/* A later file names the same columns. */
static bool check_header(const struct format_csv_table *table, const char *path,
                         const struct csv_cell *cells, int count, struct error *err)
{
    if (count != table->count)
        return fail(err, INVALID, "%s: line 1: %d columns, wanted: %d", path, count,
                    table->count);
    for (int i = 0; i < count; i++) {
        const char *wanted = table->columns[i].name;
        if (cells[i].size && strcmp(cells[i].text, wanted) != 0)
            return fail(err, INVALID, "%s: line 1: column %d is \"%.100s\", wanted: \"%.100s\"",
                        path, i + 1, cells[i].text, wanted);
    }
    return true;
}

static void forget_columns(struct format_csv_table *table)
{
    while (table->count)
        free(table->columns[--table->count].name);
}

/* Names, and from the first rows types, of the columns. */
static bool csv_find(struct record_table *record_table, struct dataset_opening *opening,
                     const char *path, struct error *err)
{
    struct format_csv_table *table = (struct format_csv_table *)record_table;
    const struct csv_cell *cells;
    int count;
    int64_t rows = 0;
    struct csv *csv = csv_open(path, separator_of(path), err);
    bool ok = csv && csv_next(csv, &cells, &count, err);
    if (ok && !count)
        ok = fail(err, INVALID, "%s holds no examples", path);
    ok = ok && name_columns(table, path, cells, count, err);
    if (ok && !is_header(cells, count))
        format_csv_look(table, cells, count);
    for (int i = 0; ok && i < CSV_LOOKED_AT; i++) {
        struct error later; /* what is damaged is told when all is read */
        if (!csv_next(csv, &cells, &count, &later))
            continue;
        if (!count)
            break;
        rows++;
        if (count == table->count)
            format_csv_look(table, cells, count);
    }
    if (rows)
        table->table.record_bytes = (double)csv_end(csv) / (double)rows;
    csv_close(csv);
    if (!ok)
        forget_columns(table); /* a later file may name them */
    return ok && (format_csv_decide(opening, table, err) || error_prefix(err, "%s: ", path));
}

/* --- reading --- */

static void *reader_new(const struct record_table *table)
{
    struct reader *reader = alloc_bytes(sizeof(*reader));
    reader->table = (const struct format_csv_table *)table;
    return reader;
}

static void reader_free(void *state)
{
    struct reader *reader = state;
    csv_close(reader->csv);
    free(reader->path);
    free(reader);
}

static bool reader_open(void *state, const char *path, struct error *err)
{
    struct reader *reader = state;
    csv_close(reader->csv);
    free(reader->path);
    reader->path = alloc_text(path);
    reader->csv = csv_open(path, separator_of(path), err);
    reader->first = true;
    return reader->csv;
}

static enum record_next reader_next(void *state, struct record_place *place, struct error *err)
{
    struct reader *reader = state;
    bool first = reader->first;
    reader->first = false;
    if (!csv_next(reader->csv, &reader->cells, &reader->count, err))
        return NEXT_DAMAGED;
    if (!reader->count)
        return NEXT_END;
    if (first && is_header(reader->cells, reader->count))
        return check_header(reader->table, reader->path, reader->cells, reader->count, err)
                   ? reader_next(state, place, err)
                   : NEXT_FAILED;
    place->offset = csv_begin(reader->csv);
    place->size = (size_t)(csv_end(reader->csv) - place->offset);
    return NEXT_RECORD;
}

static bool reader_take(void *state, const char *path, const void *bytes, size_t size,
                        struct error *err)
{
    struct reader *reader = state;
    if (!reader->csv)
        reader->csv = csv_open_bytes();
    csv_set_bytes(reader->csv, path, separator_of(path), bytes, size);
    return csv_next(reader->csv, &reader->cells, &reader->count, err);
}

static bool reader_put(void *state, struct rows *rows, struct error *err)
{
    struct reader *reader = state;
    return format_csv_put(reader->table, reader->cells, reader->count, rows, err) ||
           (reader->path && error_prefix(err, "%s: line %lld: ", reader->path,
                                         (long long)csv_line(reader->csv)));
}

/* --- the format --- */

static struct record_table *table_new(void)
{
    struct format_csv_table *table = alloc_bytes(sizeof(*table));
    return &table->table;
}

static void table_free(struct record_table *table)
{
    format_csv_release((struct format_csv_table *)table);
    free(table);
}

static const struct record_format records = {
    .endings = (const char *const[]){".csv", ".csv.gz", ".tsv", ".tsv.gz", NULL},
    .none = ".csv",
    .stream = stream_guess,
    .table_new = table_new,
    .table_free = table_free,
    .find = csv_find,
    .reader_new = reader_new,
    .reader_free = reader_free,
    .open = reader_open,
    .next = reader_next,
    .take = reader_take,
    .put = reader_put,
};

static bool csv_is(const char *folder)
{
    return format_records_is(&records, folder);
}

static bool csv_open_folder(struct dataset_opening *opening, struct error *err)
{
    return format_records_open(&records, opening, err);
}

const struct dataset_format format_csv = {
    .name = "csv",
    .wanted = "train.csv, test.csv, or another .csv, .tsv (a row for each example; also .gz)",
    .is = csv_is,
    .open = csv_open_folder,
};
