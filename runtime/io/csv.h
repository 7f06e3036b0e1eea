/*
 * csv.h - tables as text: comma-separated values, cell by cell, from plain or gzip files.
 *
 * As RFC 4180 has it: a cell in quotes may hold separators, line ends, and quotes written
 * twice.  Lines end in LF or CRLF; empty lines and a byte order mark are passed over.
 */
#pragma once

#include "base/base.h"

struct csv;
struct error;

#define CSV_ROW_BYTES_MAX (64 << 20)
#define CSV_CELLS_MAX 100000

struct csv_cell {
    const char *text; /* ends with a NUL that is not counted */
    size_t size;
    bool quoted;
};

/* Owned by the caller.  Fails with NOT_FOUND, DENIED and so on, naming the path. */
struct csv *csv_open(const char *path, char separator, struct error *err) CHECKED;
void csv_close(struct csv *csv); /* NULL is fine */

/*
 * For rows that are in memory: csv_set_bytes() says which come next, borrowed until the next
 * call; `path` stands in errors.
 */
struct csv *csv_open_bytes(void);
void csv_set_bytes(struct csv *csv, const char *path, char separator, const void *bytes,
                   size_t size);

/*
 * The cells of the next row, borrowed until the next call; `*count` is 0 at the end of the
 * file.  Fails with DATA_LOSS, naming path and line: a quote that never ends or is followed by
 * more, a row too long.  After a quote gone wrong reading goes on with the next line.
 */
bool csv_next(struct csv *csv, const struct csv_cell **cells, int *count,
              struct error *err) CHECKED;

/* The line, from 1, at which the last row began. */
int64_t csv_line(const struct csv *csv);

/* The byte at which it began, and the one behind it, of what is decompressed. */
int64_t csv_begin(const struct csv *csv);
int64_t csv_end(const struct csv *csv);
