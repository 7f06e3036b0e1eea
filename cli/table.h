/*
 * table.h - rows of text under a head, columns as wide as they need to be.
 */
#pragma once

#include "base/base.h"

#define TABLE_COLUMNS_MAX 12

struct table;

/* `head` has `columns` texts; a name that begins with '>' is aligned to the right. */
struct table *table_new(const char *const *head, int columns);

/* Adds a cell; copies.  Rows are filled from left to right. */
void table_cell(struct table *table, const char *format, ...) PRINTF_LIKE(2, 3);

/* Prints on stdout and frees. */
void table_print(struct table *table);

/* "1m 42s", "3h 5m", "2d 4h"; "-" below 0.  Returns `out`. */
const char *table_duration(double seconds, char *out, size_t size);

/* Seconds since an RFC 3339 time, -1 for NULL. */
double table_age(const char *time);
