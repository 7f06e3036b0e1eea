/* format_csv_columns.c - what a table's columns are, and their cells as numbers. */

#include <math.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/dataset/format_csv.h"
#include "runtime/spec/spec.h"

/* --- cells --- */

bool format_csv_number(const struct csv_cell *cell, double *number)
{
    char *end;
    const char *text = cell->text;
    while (*text == ' ' || *text == '\t')
        text++;
    bool begins =
        (*text >= '0' && *text <= '9') || *text == '-' || *text == '+' || *text == '.';
    if (!begins || text[1] == 'x' || text[1] == 'X')
        return false;
    *number = strtod(text, &end);
    while (*end == ' ' || *end == '\t')
        end++;
    return end == cell->text + cell->size && isfinite(*number);
}

/* What people write where a number is not known. */
static bool is_missing(const struct csv_cell *cell, enum spec_column_type type)
{
    static const char *const words[] = {"NA", "N/A", "NaN", "nan", "null", "NULL", "?"};
    if (!cell->size)
        return true;
    for (int i = 0; i < ARRAY_LEN(words) && type != COLUMN_CATEGORICAL; i++) {
        if (!strcmp(words[i], cell->text))
            return true;
    }
    return false;
}

static bool is_integer(double number)
{
    return number >= INT32_MIN && number <= INT32_MAX && number == (int32_t)number;
}

/* --- what columns are --- */

void format_csv_look(struct format_csv_table *table, const struct csv_cell *cells, int count)
{
    for (int i = 0; i < count && i < table->count; i++) {
        struct format_csv_column *column = &table->columns[i];
        double number = 0;
        if (is_missing(&cells[i], COLUMN_NUMERIC))
            continue;
        bool is_number = format_csv_number(&cells[i], &number);
        if (!column->any)
            column->numbers = column->integers = true;
        column->any = true;
        column->numbers &= is_number;
        column->integers &= is_number && is_integer(number) && number >= 0;
    }
}

static bool is_named(const struct spec_data *data, const char *name)
{
    for (int i = 0; i < data->features_count; i++) {
        if (!strcmp(data->features[i], name))
            return true;
    }
    return false;
}

static bool refuse(const struct format_csv_column *column, const char *why, struct error *err)
{
    char pointer[128];
    snprintf(pointer, sizeof(pointer), "/data/columns/%.90s", column->name);
    return error_at(err, column->spec ? column->spec->pointer : pointer, INVALID,
                    "column \"%.100s\" %s", column->name, why);
}

/* The type of a column of which the spec says none. */
static enum spec_column_type type_of(const struct dataset_opening *opening,
                                     const struct format_csv_column *column)
{
    const struct spec_data *data = opening->data;
    if (column->weight)
        return COLUMN_NUMERIC;
    if (data->features_count && !column->target && !is_named(data, column->name) &&
        !(column->numbers && is_named(data, FORMAT_CSV_NUMBERS)))
        return COLUMN_IGNORED;
    if (!column->any)
        return COLUMN_FOUND;
    if (column->target && column->integers)
        return COLUMN_INTEGER;
    return column->numbers ? COLUMN_NUMERIC : COLUMN_CATEGORICAL;
}

/* The target: the spec's, else the one whose name says so, else the last column. */
static bool find_target(struct dataset_opening *opening, struct format_csv_table *table,
                        struct error *err)
{
    const char *wanted = opening->data->target;
    int target = -1;
    if (wanted && !strcmp(wanted, FORMAT_CSV_NUMBERS))
        return true; /* all of the numeric columns */
    int last = -1;
    for (int i = 0; i < table->count; i++) {
        struct format_csv_column *column = &table->columns[i];
        column->weight = format_is_weight(opening->data, column->name);
        if (target < 0 && format_is_target(opening->data, column->name))
            target = i;
        last = column->weight ? last : i;
    }
    if (target < 0 && wanted)
        return error_at(err, "/data/target", INVALID, "the data has no column \"%.60s\"",
                        wanted);
    if (target < 0 && last < 0)
        return error_at(err, "/data/weight", INVALID,
                        "the column \"%.60s\" is all that there is", opening->data->weight);
    table->columns[target < 0 ? last : target].target = true;
    return true;
}

static bool check_initial(const struct format_csv_column *column, struct error *err)
{
    const char *text = column->spec ? column->spec->initial : NULL;
    double number;
    if (!text || column->type == COLUMN_CATEGORICAL)
        return true;
    const struct csv_cell cell = {text, strlen(text), false};
    return (format_csv_number(&cell, &number) &&
            (column->type != COLUMN_INTEGER || is_integer(number))) ||
           refuse(column, "has a default that is none of its type", err);
}

static bool set_type(struct dataset_opening *opening, struct format_csv_column *column,
                     struct error *err)
{
    const struct spec_column *spec = column->spec;
    column->type = spec && spec->type ? spec->type : type_of(opening, column);
    if (column->type == COLUMN_FOUND)
        return refuse(column,
                      "is empty in all of the first rows; say whether it is \"numeric\", "
                      "\"integer\", \"categorical\" or \"ignored\"",
                      err);
    if (column->type == COLUMN_IMAGE)
        return refuse(column, "holds text, no files of images", err);
    if (spec && spec->rank >= 0)
        return refuse(column, "holds one value in a row, so it has no shape to give", err);
    if (column->target && column->type == COLUMN_IGNORED)
        return refuse(column, "is the target, so it cannot be ignored", err);
    return check_initial(column, err);
}

static void add_column(struct dataset_opening *opening, struct format_csv_column *column)
{
    bool is_number = column->type == COLUMN_NUMERIC;
    struct dataset_column added = {
        .name = column->name,
        .role = column->target ? DATASET_TARGET : DATASET_FEATURE,
        .stored = is_number ? F32 : I32,
        .dtype = is_number ? F32 : I32,
        .shape = is_number && !column->target && !column->weight ? SHAPE(1) : SHAPE_SCALAR,
    };
    if (column->type == COLUMN_CATEGORICAL)
        column->vocabulary = vocabulary_new(!column->target);
    column->column = format_add_column(opening->dataset, &added);
}

/* Whether a numeric column is an element of the joined feature. */
static bool is_joined(const struct dataset_opening *opening,
                      const struct format_csv_column *column)
{
    return column->type == COLUMN_NUMERIC && !column->target && !column->weight &&
           !(column->spec && column->spec->alone) && !is_named(opening->data, column->name);
}

static void set_vocabularies(struct format_csv_table *table, int columns_count)
{
    struct vocabulary **vocabularies =
        alloc_array((size_t)columns_count + 1, sizeof(*vocabularies));
    for (int i = 0; i < table->count; i++) {
        if (table->columns[i].vocabulary)
            vocabularies[table->columns[i].column] = table->columns[i].vocabulary;
    }
    table->table.vocabularies = vocabularies;
}

bool format_csv_decide(struct dataset_opening *opening, struct format_csv_table *table,
                       struct error *err)
{
    int joined = 0;
    if (!find_target(opening, table, err))
        return false;
    for (int i = 0; i < table->count; i++) {
        struct format_csv_column *column = &table->columns[i];
        column->spec = format_column_spec(opening, column->name);
        if (!set_type(opening, column, err))
            return false;
        if (is_joined(opening, column))
            column->place = joined++;
    }
    const struct dataset_column numbers = {
        .name = FORMAT_CSV_NUMBERS, .stored = F32, .dtype = F32, .shape = SHAPE(joined)};
    int numbers_at = joined ? format_add_column(opening->dataset, &numbers) : -1;
    for (int i = 0; i < table->count; i++) {
        struct format_csv_column *column = &table->columns[i];
        if (is_joined(opening, column))
            column->column = numbers_at;
        else if (column->type != COLUMN_IGNORED)
            add_column(opening, column);
    }
    set_vocabularies(table, opening->dataset->columns_count);
    return true;
}

void format_csv_release(struct format_csv_table *table)
{
    for (int i = 0; i < table->count; i++) {
        free(table->columns[i].name);
        vocabulary_free(table->columns[i].vocabulary);
    }
    free(table->columns);
    free(table->table.vocabularies);
}

/* --- cells into rows --- */

static bool put_number(const struct format_csv_column *column, const struct csv_cell *cell,
                       float *to, struct error *err)
{
    double number;
    if (!format_csv_number(cell, &number))
        return fail(err, INVALID, "\"%.60s\" is no number", cell->text);
    if (column->spec && column->spec->has_scale)
        number *= column->spec->scale;
    if (number != 0 && !isfinite((float)number))
        return fail(err, INVALID, "\"%.60s\" is more than a float holds", cell->text);
    *to = (float)number;
    return true;
}

static bool put_integer(const struct csv_cell *cell, int32_t *to, struct error *err)
{
    double number;
    if (!format_csv_number(cell, &number) || !is_integer(number))
        return fail(err, INVALID, "\"%.60s\" is no integer that int32 holds", cell->text);
    *to = (int32_t)number;
    return true;
}

static bool put_cell(const struct format_csv_column *column, struct csv_cell cell,
                     struct rows *rows, struct error *err)
{
    void *to = rows_at(rows, column->column);
    if (is_missing(&cell, column->type)) {
        const char *initial = column->spec ? column->spec->initial : NULL;
        if (!initial)
            return fail(err, INVALID,
                        "a value is missing (\"default\" in \"columns\" of the spec says what "
                        "to take in its place)");
        cell = (struct csv_cell){initial, strlen(initial), false};
    }
    switch (column->type) {
    case COLUMN_NUMERIC:
        return put_number(column, &cell, (float *)to + column->place, err);
    case COLUMN_INTEGER:
        return put_integer(&cell, to, err);
    default:
        *(int32_t *)to = vocabulary_number(column->vocabulary, cell.text, cell.size, err);
        return *(int32_t *)to >= 0;
    }
}

bool format_csv_put(const struct format_csv_table *table, const struct csv_cell *cells,
                    int count, struct rows *rows, struct error *err)
{
    if (count != table->count)
        return fail(err, INVALID, "%d cells, wanted: %d, one for each column", count,
                    table->count);
    for (int i = 0; i < count; i++) {
        const struct format_csv_column *column = &table->columns[i];
        if (column->type != COLUMN_IGNORED && !put_cell(column, cells[i], rows, err))
            return error_prefix(err, "column \"%.100s\": ", column->name);
    }
    return true;
}
