/*
 * rows.h - examples gathered one by one, for formats that do not know how many there are.
 *
 * Each column's elements lie side by side, as struct dataset_examples wants them.
 */
#pragma once

#include "runtime/dataset/dataset.h"

struct rows;
struct vocabulary;

/* No rows yet, with the columns that the dataset has now. */
struct rows *rows_new(const struct dataset *dataset);
void rows_free(struct rows *rows); /* NULL is fine */

/* Adds a row, zeroed.  Fails with EXHAUSTED when there are more than memory allows. */
bool rows_add(struct rows *rows, struct error *err) CHECKED;

/* Takes the last row back. */
void rows_drop(struct rows *rows);

/* The place of a column in the last row, and in any row. */
void *rows_at(const struct rows *rows, int column);
void *rows_at_row(const struct rows *rows, int column, int64_t row);

int64_t rows_count(const struct rows *rows);
size_t rows_row_bytes(const struct rows *rows); /* of one row */
int64_t rows_bytes(const struct rows *rows);    /* of all of them */

/* Gives a column's words, numbered as they came, the numbers they have once sorted. */
void rows_settle_words(struct rows *rows, struct dataset *dataset, int column,
                       struct vocabulary *vocabulary);

/* Raises an integer column's classes to hold the last row's.  INVALID when it is negative. */
bool rows_count_class(const struct rows *rows, struct dataset *dataset, int column,
                      struct error *err) CHECKED;

/* Makes them the examples of a part; takes them. */
void rows_finish(struct rows *rows, struct dataset_part *part);
