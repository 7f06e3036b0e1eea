/* format_records_again.c - examples that stay in their files. */

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/dataset/format_records.h"
#include "runtime/dataset/record_index.h"

struct again {
    struct dataset_examples examples; /* first */
    struct record_index *index;
    const struct record_table *table;
};

/* A thread's own: the example that was asked for last, so that its columns are one read. */
struct last {
    const struct record_format *format;
    void *reader;
    struct rows *rows; /* one row */
    struct str bytes;
    int64_t row; /* -1: none */
};

static void *last_new(const struct dataset_examples *examples)
{
    const struct record_table *table = ((const struct again *)examples)->table;
    struct last *last = alloc_bytes(sizeof(*last));
    last->format = table->format;
    last->reader = table->format->reader_new(table);
    last->rows = rows_new(table->dataset);
    last->row = -1;
    return last;
}

static void last_free(void *scratch)
{
    struct last *last = scratch;
    last->format->reader_free(last->reader);
    rows_free(last->rows);
    str_release(&last->bytes);
    free(last);
}

static bool read_again(const struct again *again, int64_t row, struct last *last,
                       struct error *err)
{
    if (!record_index_read(again->index, row, &last->bytes, err))
        return false;
    last->row = -1;
    if (rows_count(last->rows))
        rows_drop(last->rows);
    if (!rows_add(last->rows, err))
        return false;
    const char *path = record_index_path(again->index, row);
    if (last->format->take(last->reader, path, last->bytes.data, last->bytes.size, err) &&
        last->format->put(last->reader, last->rows, err)) {
        last->row = row;
        return true;
    }
    return record_index_blame(again->index, row, err);
}

static const void *again_at(const struct dataset_examples *examples, int column, int64_t row,
                            void *scratch, struct error *err)
{
    struct last *last = scratch;
    if (last->row != row && !read_again((const struct again *)examples, row, last, err))
        return NULL;
    return rows_at(last->rows, column);
}

static void again_free(struct dataset_examples *examples)
{
    record_index_free(((struct again *)examples)->index);
    free(examples);
}

struct dataset_examples *format_records_again(struct record_index *index,
                                              const struct record_table *table)
{
    struct again *again = alloc_bytes(sizeof(*again));
    *again = (struct again){.examples = {.count = record_index_count(index),
                                         .at = again_at,
                                         .free = again_free,
                                         .is_made = true,
                                         .scratch_new = last_new,
                                         .scratch_free = last_free},
                            .index = index,
                            .table = table};
    return &again->examples;
}
