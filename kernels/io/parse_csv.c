/* parse_csv.c - DecodeCSV: each field of a record becomes an element of an output (RFC 4180).
 */

#include <ctype.h>
#include <errno.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "kernels/list.h"

/* What the attributes say. */
struct csv {
    char delimiter;
    bool quotes;
    const char *missing; /* borrowed from the node, like columns */
    const int64_t *columns;
    int columns_count; /* 0: all */
    int fields_count;
};

/* The fields of one record that are wanted, one behind the other. */
struct record {
    struct str text;
    size_t *ends;
    int count;
    int capacity;
};

static bool csv_prepare(const struct node *node, void **state, struct error *err)
{
    const char *delimiter = node_attr_string(node, "field_delim", ",");
    struct csv csv = {
        .delimiter = delimiter[0],
        .quotes = node_attr_bool(node, "use_quote_delim", true),
        .missing = node_attr_string(node, "na_value", ""),
        .fields_count = node_attr(node, "OUT_TYPE")->count,
    };
    csv.columns = node_attr_ints(node, "select_cols", &csv.columns_count);
    if (strlen(delimiter) != 1)
        return fail(err, INVALID, "field_delim should be only 1 char");
    if (csv.columns_count && csv.columns_count != csv.fields_count)
        return fail(err, INVALID, "select_cols should match output size");
    for (int i = 0; i < csv.columns_count; i++)
        if (csv.columns[i] < (i ? csv.columns[i - 1] + 1 : 0))
            return fail(err, INVALID,
                        "select_cols should be strictly increasing, non-negative indices");
    struct csv *kept = alloc_bytes(sizeof(*kept));
    *kept = csv;
    *state = kept;
    return true;
}

/* --- one record --- */

static void end_field(struct record *record)
{
    record->ends =
        alloc_grow(record->ends, record->count, &record->capacity, sizeof(*record->ends));
    record->ends[record->count++] = record->text.size;
}

static bool plain_field(const struct csv *csv, const struct tensor_string *in, size_t *at,
                        struct str *out, struct error *err)
{
    for (; *at < in->size && in->data[*at] != csv->delimiter; ++*at) {
        char c = in->data[*at];
        if ((csv->quotes && c == '"') || c == '\n' || c == '\r')
            return fail(err, INVALID, "Unquoted fields cannot have quotes/CRLFs inside");
        if (out)
            str_add_char(out, c);
    }
    ++*at;
    return true;
}

/* Behind the opening quote; ends with a quote before a delimiter or the end. */
static bool quoted_field(const struct csv *csv, const struct tensor_string *in, size_t *at,
                         struct str *out, struct error *err)
{
    for (; *at < in->size; ++*at) {
        bool last = *at + 1 == in->size;
        if (in->data[*at] == '"') {
            if (last || in->data[*at + 1] == csv->delimiter) {
                *at += 2;
                return true;
            }
            if (in->data[*at + 1] != '"')
                return fail(err, INVALID,
                            "Quote inside a string has to be escaped by another quote");
            ++*at;
        }
        if (out && *at < in->size)
            str_add_char(out, in->data[*at]);
    }
    return fail(err, INVALID, "Quoted field has to end with quote followed by delim or end");
}

static bool wanted(const struct csv *csv, const struct record *record, int64_t column)
{
    return !csv->columns_count || csv->columns[record->count] == column;
}

static bool split(const struct csv *csv, const struct tensor_string *in, struct record *record,
                  struct error *err)
{
    int64_t column = 0;
    record->count = 0;
    str_clear(&record->text);
    for (size_t at = 0; at < in->size;) {
        if (in->data[at] == '\n' || in->data[at] == '\r') {
            at++;
            continue;
        }
        bool want = wanted(csv, record, column);
        bool quoted = csv->quotes && in->data[at] == '"';
        struct str *out = want ? &record->text : NULL;
        at += quoted;
        if (!(quoted ? quoted_field : plain_field)(csv, in, &at, out, err))
            return false;
        column++;
        if (want)
            end_field(record);
        if (csv->columns_count && record->count == csv->columns_count)
            return true;
    }
    /* A delimiter at the end has an empty field behind it. */
    if (in->size && in->data[in->size - 1] == csv->delimiter && wanted(csv, record, column))
        end_field(record);
    return true;
}

/* --- values --- */

static bool read_integer(const char *text, int64_t low, int64_t high, int64_t *value)
{
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    while (isspace((unsigned char)*end))
        end++;
    *value = number;
    return end != text && !*end && errno == 0 && number >= low && number <= high;
}

/* One rounding: a float is not read as a double first. */
static bool read_float(const char *text, struct tensor *out, int64_t i)
{
    char *end;
    if (out->dtype == F32)
        ((float *)out->data)[i] = strtof(text, &end);
    else
        ((double *)out->data)[i] = strtod(text, &end);
    bool any = end != text;
    while (isspace((unsigned char)*end))
        end++;
    return any && !*end;
}

static bool set_value(struct tensor *out, int64_t i, const char *text, size_t size)
{
    int64_t number;
    switch (out->dtype) {
    case STRING:
        tensor_set_string(out, i, text, size);
        return true;
    case I32:
        if (!read_integer(text, INT32_MIN, INT32_MAX, &number))
            return false;
        ((int32_t *)out->data)[i] = (int32_t)number;
        return true;
    case I64:
        if (!read_integer(text, INT64_MIN, INT64_MAX, &number))
            return false;
        ((int64_t *)out->data)[i] = number;
        return true;
    default:
        return read_float(text, out, i);
    }
}

static void set_default(struct tensor *out, int64_t i, const struct tensor *value)
{
    size_t size = dtype_size(out->dtype);
    if (out->dtype == STRING)
        tensor_set_string(out, i, tensor_strings(value)->data, tensor_strings(value)->size);
    else
        memcpy((char *)out->data + (size_t)i * size, value->data, size);
}

/* Field `f` of record `i`; the text is copied so that a NUL ends it. */
static bool read_field(struct kernel_call *call, const struct csv *csv,
                       const struct record *record, int f, int64_t i, struct error *err)
{
    size_t from = f ? record->ends[f - 1] : 0, size = record->ends[f] - from;
    const struct tensor *fallback = kernel_in(call, 1 + f);
    struct tensor *out = &call->out[f];
    char *text = alloc_text_n(str_text(&record->text) + from, size);
    bool ok = true;
    if (size == 0 || strcmp(text, csv->missing) == 0) {
        ok = fallback->count == 1 ||
             fail(err, INVALID, "Field %d is required but missing in record %lld!", f,
                  (long long)i);
        if (ok)
            set_default(out, i, fallback);
    } else if ((strlen(text) != size && out->dtype != STRING) ||
               !set_value(out, i, text, size)) {
        ok = fail(err, INVALID, "Field %d in record %lld is not a valid %s: %s", f,
                  (long long)i, dtype_name(out->dtype), text);
    }
    free(text);
    return ok;
}

static bool csv_run(struct kernel_call *call, struct error *err)
{
    const struct csv *csv = call->state;
    const struct tensor *records = kernel_in(call, 0);
    struct record record = {0};
    bool ok = true;
    for (int f = 0; f < csv->fields_count; f++) {
        const struct tensor *fallback = kernel_in(call, 1 + f);
        if (fallback->shape.rank > 1)
            return fail(err, INVALID, "Each record default should be at most rank 1");
        if (fallback->count > 1)
            return fail(err, INVALID,
                        "There should only be 1 default per field but field %d has %lld", f,
                        (long long)fallback->count);
        if (!kernel_output(call, f, &records->shape, err))
            return false;
    }
    for (int64_t i = 0; ok && i < records->count; i++) {
        ok = split(csv, &tensor_strings(records)[i], &record, err);
        if (ok && record.count != csv->fields_count)
            ok = fail(err, INVALID, "Expect %d fields but have %d in record %lld",
                      csv->fields_count, record.count, (long long)i);
        for (int f = 0; ok && f < csv->fields_count; f++)
            ok = read_field(call, csv, &record, f, i, err);
    }
    str_release(&record.text);
    free(record.ends);
    return ok;
}

const struct kernel kernel_decode_csv = {
    .op = "DecodeCSV", .device = CPU, .prepare = csv_prepare, .release = free, .run = csv_run};
