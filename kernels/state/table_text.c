/* table_text.c - lines, columns, and what they say. */

#include "kernels/state/table_text.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/limits.h"
#include "base/str.h"
#include "runtime/io/file.h"

enum { WHOLE_LINE = -2, LINE_NUMBER = -1 };

struct text {
    const char *path;
    char delimiter;
    int64_t offset; /* of the first line's number */
    const char *at; /* the next line */
    const char *begin;
    const char *end;
};

static int64_t count_lines(const char *at, const char *end)
{
    int64_t count = 0;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        count++;
        at = newline ? newline + 1 : end;
    }
    return count;
}

/* The next line, without its end. */
static bool next_line(struct text *text, const char **line, size_t *size, struct error *err)
{
    const char *newline = memchr(text->at, '\n', (size_t)(text->end - text->at));
    const char *end = newline ? newline : text->end;
    *line = text->at;
    *size = (size_t)(end - text->at);
    text->at = newline ? newline + 1 : text->end;
    if (*size && (*line)[*size - 1] == '\r')
        --*size;
    return *size ||
           fail(err, INVALID, "Invalid content in %s: empty line found at position %lld.",
                text->path, (long long)(text->at - text->begin));
}

/* Column `index` of the line. */
static bool find_column(const struct text *text, const char *line, size_t size, int64_t number,
                        int64_t index, const char **column, size_t *column_size,
                        struct error *err)
{
    const char *end = line + size;
    *column = line;
    for (int64_t i = 0;; i++) {
        const char *stop = memchr(*column, text->delimiter, (size_t)(end - *column));
        *column_size = (size_t)((stop ? stop : end) - *column);
        if (i == index)
            return true;
        if (!stop)
            return fail(err, INVALID,
                        "Invalid number of columns in %s line %lld (%.*s) : expected at least "
                        "%lld got %lld",
                        text->path, (long long)number, (int)(size < 100 ? size : 100), line,
                        (long long)index + 1, (long long)i + 1);
        *column = stop + 1;
    }
}

/* --- fields --- */

static bool parse_number(struct tensor *out, int64_t i, const char *text)
{
    char *end;
    errno = 0;
    if (out->dtype == F32 || out->dtype == F64) {
        double number = out->dtype == F32 ? strtof(text, &end) : strtod(text, &end);
        tensor_set_number(out, i, number);
    } else {
        long long number = strtoll(text, &end, 10);
        if (errno || (out->dtype == I32 && (number < INT32_MIN || number > INT32_MAX)))
            return false;
        if (out->dtype == I32)
            ((int32_t *)out->data)[i] = (int32_t)number;
        else
            ((int64_t *)out->data)[i] = number;
    }
    while (*end == ' ')
        end++;
    return end != text && !*end;
}

static bool set_field(struct tensor *out, int64_t i, const char *field, size_t size,
                      int64_t number, struct error *err)
{
    if (out->dtype == STRING) {
        tensor_set_string(out, i, field, size);
        return true;
    }
    char text[64];
    bool fits = size && size < sizeof(text) && !memchr(field, 0, size);
    if (fits) {
        memcpy(text, field, size);
        text[size] = 0;
    }
    return (fits && parse_number(out, i, text)) ||
           fail(err, INVALID, "Field %.*s in line %lld is not a valid %s.",
                (int)(size < 100 ? size : 100), field, (long long)number,
                dtype_name(out->dtype));
}

static bool set_from_line(const struct text *text, struct tensor *out, int64_t i, int64_t index,
                          const char *line, size_t size, struct error *err)
{
    if (index == LINE_NUMBER) {
        ((int64_t *)out->data)[i] = i + text->offset;
        return true;
    }
    const char *field = line;
    size_t field_size = size;
    if (index != WHOLE_LINE &&
        !find_column(text, line, size, i, index, &field, &field_size, err))
        return false;
    return set_field(out, i, field, field_size, i, err);
}

/* --- the file --- */

static bool check_dtype(const char *what, int64_t index, enum dtype dtype, struct error *err)
{
    bool number = BIT(dtype) & (BIT(I32) | BIT(I64));
    if (index == LINE_NUMBER && dtype != I64)
        return fail(err, INVALID,
                    "%s index for line number requires table %s dtype of int64, got %s", what,
                    what, dtype_name(dtype));
    if (index == WHOLE_LINE && dtype != STRING && !number)
        return fail(err, INVALID,
                    "%s index for whole line requires table %s dtype of integer or string, got "
                    "%s",
                    what, what, dtype_name(dtype));
    return (dtype == STRING || number || dtype == F32 || dtype == F64) ||
           fail(err, INVALID, "Data type %s not supported.", dtype_name(dtype));
}

/* What comes before a line that cannot be read goes in: it may be what fails first. */
static bool fill(struct table *table, struct text *text, int64_t lines, int64_t key_index,
                 int64_t value_index, struct error *err)
{
    const struct table_spec *spec = kernel_table_spec(table);
    struct tensor keys = {0}, values = {0};
    struct error why;
    int64_t i = 0;
    bool ok = tensor_init(&keys, spec->key_dtype, &SHAPE(lines), err) &&
              tensor_init(&values, spec->value_dtype, &SHAPE(lines), err);
    for (bool read = ok; read && i < lines; i += read) {
        const char *line;
        size_t size;
        read = next_line(text, &line, &size, &why) &&
               set_from_line(text, &keys, i, key_index, line, size, &why) &&
               set_from_line(text, &values, i, value_index, line, size, &why);
    }
    if (ok && i == 0) {
        *err = why;
        ok = false;
    }
    ok = ok && kernel_table_fill(table, &keys, &values, i, i < lines ? &why : NULL, err);
    tensor_release(&keys);
    tensor_release(&values);
    return ok;
}

static bool read_whole(const char *path, struct str *bytes, struct error *err)
{
    struct stat status;
    if (!stat(path, &status) && S_ISDIR(status.st_mode))
        return fail(err, PRECONDITION, "%s; Is a directory", path);
    return file_read(path, LIMIT_TENSOR_BYTES, bytes, err);
}

bool kernel_table_text_read(struct table *table, const char *path, const struct node *node,
                            struct error *err)
{
    const struct table_spec *spec = kernel_table_spec(table);
    int64_t key_index = node_attr_int(node, "key_index", WHOLE_LINE);
    int64_t value_index = node_attr_int(node, "value_index", LINE_NUMBER);
    int64_t wanted = node_attr_int(node, "vocab_size", -1);
    struct str bytes = {0};
    if (!check_dtype("Key", key_index, spec->key_dtype, err) ||
        !check_dtype("Value", value_index, spec->value_dtype, err))
        return false;
    if (!read_whole(path, &bytes, err)) {
        str_release(&bytes);
        return false;
    }
    const char *begin = str_text(&bytes);
    struct text text = {
        .path = path,
        .delimiter = node_attr_string(node, "delimiter", "\t")[0],
        .offset = node_attr_int(node, "offset", 0),
        .at = begin,
        .begin = begin,
        .end = begin + bytes.size,
    };
    int64_t lines = count_lines(text.begin, text.end);
    bool ok = true;
    if ((!lines && wanted < 0) || !wanted)
        ok = fail(err, OUT_OF_RANGE, "Finished reading 0 of lines from %s", path);
    else if (wanted > lines)
        ok = fail(err, INVALID, "Invalid vocab_size in %s: expected %lld but got %lld", path,
                  (long long)wanted, (long long)lines);
    ok = ok && fill(table, &text, wanted < 0 ? lines : wanted, key_index, value_index, err);
    str_release(&bytes);
    return ok;
}
