/*
 * format_csv.h - the cells of a table as columns of a dataset.
 */
#pragma once

#include "runtime/dataset/format_records.h"
#include "runtime/io/csv.h"
#include "runtime/spec/spec.h"

#define FORMAT_CSV_NUMBERS "numbers" /* the feature that numeric columns are joined in */

struct format_csv_column {
    char *name;
    enum spec_column_type
        type; /* NUMERIC, INTEGER, CATEGORICAL, IGNORED; FOUND: not yet known */
    const struct spec_column *spec; /* NULL: the spec says nothing of it */
    bool target, weight;
    struct vocabulary *vocabulary; /* of CATEGORICAL; owned */
    int column, place;             /* of the dataset, and the element in it */

    /* of the first rows */
    bool numbers, integers, any;
};

struct format_csv_table {
    struct record_table table; /* first */
    struct format_csv_column *columns;
    int count, capacity;
};

/*
 * Adds the dataset's columns: types are those of the spec, else as cells of the first rows
 * look, which format_csv_look() was shown.  Fails with INVALID and the pointer of a column.
 */
bool format_csv_decide(struct dataset_opening *opening, struct format_csv_table *table,
                       struct error *err) CHECKED;
void format_csv_look(struct format_csv_table *table, const struct csv_cell *cells, int count);
void format_csv_release(struct format_csv_table *table);

/* Puts the cells into the last row; an error names the column. */
bool format_csv_put(const struct format_csv_table *table, const struct csv_cell *cells,
                    int count, struct rows *rows, struct error *err) CHECKED;

/* Whether a cell is a number, and which. */
bool format_csv_number(const struct csv_cell *cell, double *number);
