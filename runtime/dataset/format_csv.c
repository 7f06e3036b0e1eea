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

static const char *const endings[] = {".csv", ".csv.gz", ".tsv", ".tsv.gz", NULL};

struct reading {
    struct dataset_opening *opening;
    struct format_csv_table table;
    struct rows *rows[FORMAT_PARTS];
};

static struct csv *open_file(const char *path, struct error *err)
{
    return csv_open(path, strstr(path, ".tsv") ? '\t' : ',', err);
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

/* --- reading --- */

/* Names, and from the first rows types, of the columns. */
static bool find_columns(struct reading *reading, const char *path, struct error *err)
{
    const struct csv_cell *cells;
    int count;
    struct csv *csv = open_file(path, err);
    bool ok = csv && csv_next(csv, &cells, &count, err);
    if (ok && !count)
        ok = fail(err, INVALID, "%s holds no examples", path);
    ok = ok && name_columns(&reading->table, path, cells, count, err);
    if (ok && !is_header(cells, count))
        format_csv_look(&reading->table, cells, count);
    for (int i = 0; ok && i < CSV_LOOKED_AT; i++) {
        struct error later; /* what is damaged is told when all is read */
        if (!csv_next(csv, &cells, &count, &later))
            continue;
        if (!count)
            break;
        if (count == reading->table.count)
            format_csv_look(&reading->table, cells, count);
    }
    csv_close(csv);
    return ok && (format_csv_decide(reading->opening, &reading->table, err) ||
                  error_prefix(err, "%s: ", path));
}

/* A row becomes an example. */
static bool put_row(struct reading *reading, const char *path, const struct csv *csv,
                    const struct csv_cell *cells, int count, struct rows *rows,
                    struct error *err)
{
    if (!rows_add(rows, err))
        return false;
    if (format_csv_put(&reading->table, cells, count, rows, err))
        return true;
    rows_drop(rows);
    return error_prefix(err, "%s: line %lld: ", path, (long long)csv_line(csv));
}

static bool read_file(struct reading *reading, const char *path, struct rows *rows,
                      struct error *err)
{
    const struct csv_cell *cells;
    int count;
    struct csv *csv = open_file(path, err);
    bool first = true, ok = csv;
    while (ok) {
        bool good = csv_next(csv, &cells, &count, err);
        if (good && !count)
            break;
        if (good && first && is_header(cells, count)) {
            ok = check_header(&reading->table, path, cells, count, err);
            first = false;
            continue;
        }
        first = false;
        good = good && put_row(reading, path, csv, cells, count, rows, err);
        ok = good || format_skip(reading->opening, err);
    }
    csv_close(csv);
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
        ok = reading->table.count || find_columns(reading, path, err);
        if (ok && !reading->rows[part])
            reading->rows[part] = rows_new(reading->opening->dataset);
        ok = ok && read_file(reading, path, reading->rows[part], err);
        free(path);
    }
    return ok;
}

static void settle_words(struct reading *reading)
{
    for (int i = 0; i < reading->table.count; i++) {
        struct format_csv_column *column = &reading->table.columns[i];
        if (!column->vocabulary)
            continue;
        rows_settle_words(reading->rows[FORMAT_TRAIN], reading->opening->dataset,
                          column->column, column->vocabulary);
        column->vocabulary_done = true;
    }
}

static bool finish(struct reading *reading, struct error *err)
{
    struct dataset *dataset = reading->opening->dataset;
    bool ok = true;
    for (int i = 0; i < reading->table.count; i++) {
        const struct format_csv_column *column = &reading->table.columns[i];
        if (!column->target || column->type != COLUMN_INTEGER)
            continue;
        for (int p = 0; ok && p < FORMAT_PARTS; p++)
            ok = !reading->rows[p] ||
                 rows_count_classes(reading->rows[p], dataset, column->column, err) ||
                 error_prefix(err, "%s: ", reading->opening->folder);
    }
    for (int p = 0; ok && p < FORMAT_PARTS; p++) {
        if (reading->rows[p])
            rows_finish(reading->rows[p], format_part(dataset, (enum format_part)p));
        reading->rows[p] = NULL;
    }
    return ok;
}

/* --- the format --- */

static bool csv_is(const char *folder)
{
    char **names = format_files(folder, endings);
    bool is = names[0];
    format_files_free(names);
    return is;
}

static bool csv_open_folder(struct dataset_opening *opening, struct error *err)
{
    struct reading reading = {.opening = opening};
    char **names = format_files(opening->folder, endings);
    bool ok = read_part(&reading, names, FORMAT_TRAIN, err);
    if (ok && !reading.rows[FORMAT_TRAIN])
        ok = fail(err, NOT_FOUND, "%s has no .csv file to train on", opening->folder);
    if (ok)
        settle_words(&reading);
    ok = ok && read_part(&reading, names, FORMAT_VALIDATION, err) &&
         read_part(&reading, names, FORMAT_TEST, err) && finish(&reading, err);
    for (int p = 0; p < FORMAT_PARTS; p++)
        rows_free(reading.rows[p]);
    format_csv_release(&reading.table);
    format_files_free(names);
    return ok;
}

const struct dataset_format format_csv = {
    .name = "csv",
    .wanted = "train.csv, test.csv, or another .csv, .tsv (a row for each example; also .gz)",
    .is = csv_is,
    .open = csv_open_folder,
};
