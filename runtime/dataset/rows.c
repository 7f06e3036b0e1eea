/* rows.c - columns that grow together. */

#include "runtime/dataset/rows.h"

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/dataset/format.h"
#include "runtime/dataset/vocabulary.h"

#define ROWS_FIRST 64

struct rows {
    struct dataset_examples examples; /* first */
    int64_t capacity;
    size_t row_bytes; /* of all columns */
    int columns_count;
    struct rows_column {
        char *data;
        size_t bytes; /* of one example */
    } columns[];
};

static const void *row_at(const struct dataset_examples *examples, int column, int64_t row,
                          void *scratch, struct error *err)
{
    (void)scratch;
    (void)err;
    const struct rows_column *of = &((const struct rows *)examples)->columns[column];
    return of->data + (size_t)row * of->bytes;
}

static void release(struct dataset_examples *examples)
{
    rows_free((struct rows *)examples);
}

struct rows *rows_new(const struct dataset *dataset)
{
    int count = dataset->columns_count;
    struct rows *rows = alloc_bytes(sizeof(*rows) + (size_t)count * sizeof(rows->columns[0]));
    rows->examples = (struct dataset_examples){.at = row_at, .free = release};
    rows->columns_count = count;
    for (int i = 0; i < count; i++) {
        const struct dataset_column *column = &dataset->columns[i];
        rows->columns[i].bytes =
            (size_t)shape_count(&column->shape) * dtype_size(column->stored);
        rows->row_bytes += rows->columns[i].bytes;
    }
    return rows;
}

void rows_free(struct rows *rows)
{
    for (int i = 0; rows && i < rows->columns_count; i++)
        free(rows->columns[i].data);
    free(rows);
}

static bool grow(struct rows *rows, struct error *err)
{
    int64_t capacity = rows->capacity ? rows->capacity + rows->capacity / 2 : ROWS_FIRST;
    int64_t most = format_bytes_max(), bytes;
    if (__builtin_mul_overflow(capacity, (int64_t)rows->row_bytes, &bytes) || bytes > most)
        return fail(err, EXHAUSTED,
                    "more than %lld examples of %zu bytes, which the memory of %lld bytes "
                    "does not hold; make the dataset smaller, or its files in parts",
                    (long long)rows->capacity, rows->row_bytes, (long long)most);
    for (int i = 0; i < rows->columns_count; i++) {
        struct rows_column *column = &rows->columns[i];
        size_t size = (size_t)capacity * column->bytes;
        char *data = realloc(column->data, size ? size : 1);
        if (!data)
            return fail(err, EXHAUSTED, "no memory for %lld examples of %zu bytes",
                        (long long)capacity, rows->row_bytes);
        column->data = data;
    }
    rows->capacity = capacity;
    return true;
}

bool rows_add(struct rows *rows, struct error *err)
{
    if (rows->examples.count == rows->capacity && !grow(rows, err))
        return false;
    rows->examples.count++;
    for (int i = 0; i < rows->columns_count; i++)
        memset(rows_at(rows, i), 0, rows->columns[i].bytes);
    return true;
}

void rows_drop(struct rows *rows)
{
    assert(rows->examples.count > 0);
    rows->examples.count--;
}

void *rows_at_row(const struct rows *rows, int column, int64_t row)
{
    const struct rows_column *of = &rows->columns[column];
    assert(row >= 0 && row < rows->examples.count);
    return of->data + (size_t)row * of->bytes;
}

void *rows_at(const struct rows *rows, int column)
{
    return rows_at_row(rows, column, rows->examples.count - 1);
}

int64_t rows_count(const struct rows *rows)
{
    return rows->examples.count;
}

size_t rows_row_bytes(const struct rows *rows)
{
    return rows->row_bytes;
}

int64_t rows_bytes(const struct rows *rows)
{
    return rows->examples.count * (int64_t)rows->row_bytes;
}

void rows_settle_words(struct rows *rows, struct dataset *dataset, int column,
                       struct vocabulary *vocabulary)
{
    struct dataset_column *of = &dataset->columns[column];
    int32_t *after = vocabulary_sort(vocabulary);
    assert(of->stored == I32);
    for (int64_t i = 0; i < rows->examples.count; i++) {
        int32_t *number = rows_at_row(rows, column, i);
        *number = after[*number];
    }
    free(after);
    of->classes = vocabulary_count(vocabulary);
    format_set_vocabulary(dataset, of, vocabulary_words(vocabulary));
}

bool rows_count_class(const struct rows *rows, struct dataset *dataset, int column,
                      struct error *err)
{
    struct dataset_column *of = &dataset->columns[column];
    const void *at = rows_at(rows, column);
    assert(of->stored == I32 || of->stored == U8);
    int32_t value = of->stored == I32 ? *(const int32_t *)at : *(const uint8_t *)at;
    if (value < 0)
        return fail(err, INVALID,
                    "\"%s\" holds %d, allowed: classes from 0 (\"numeric\" in \"columns\" of "
                    "the spec makes it a number)",
                    of->name, value);
    if (value >= of->classes)
        of->classes = (int64_t)value + 1;
    return true;
}

void rows_finish(struct rows *rows, struct dataset_part *part)
{
    assert(!part->examples);
    part->examples = &rows->examples;
    part->count = rows->examples.count;
}
