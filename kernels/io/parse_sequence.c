/* parse_sequence.c - reads feature lists in place: rows of values, by key and Example. */

#include "kernels/io/parse_sequence.h"

#include "base/alloc.h"
#include "base/error.h"

/* What was collected for one key. */
struct rows {
    struct feature_values values;
    struct feature_values ends; /* I64: values up to the end of each row */
    int64_t *examples;          /* rows up to the end of each Example */
    struct wire list;           /* of the Example at hand; at is NULL when absent */
};

struct parse {
    const struct feature_keys *keys;
    const bool *optional;
    const struct example_batch *batch;
    struct rows *rows; /* by key */
};

/* --- reading --- */

static bool read_lists(struct parse *parse, struct wire lists)
{
    while (lists.at < lists.end) {
        struct wire name, value;
        uint64_t tag;
        if (!wire_varint(&lists, &tag))
            return false;
        if (tag != WIRE_TAG(1, WIRE_BYTES)) {
            if (!wire_skip(&lists, tag))
                return false;
            continue;
        }
        if (!feature_entry(&lists, &name, &value))
            return false;
        int k = kernel_feature_find(parse->keys, name.at, wire_left(&name));
        if (k >= 0)
            parse->rows[k].list = value;
    }
    return true;
}

static bool read_example(struct parse *parse, struct wire example)
{
    while (example.at < example.end) {
        struct wire lists;
        uint64_t tag;
        if (!wire_varint(&example, &tag))
            return false;
        bool ok = tag == WIRE_TAG(2, WIRE_BYTES)
                      ? wire_piece(&example, &lists) && read_lists(parse, lists)
                      : wire_skip(&example, tag);
        if (!ok)
            return false;
    }
    return true;
}

static bool bad_list(const struct parse *parse, int k, int64_t i, const char *what,
                     struct error *err)
{
    const struct feature_key *key = &parse->keys->keys[k];
    return fail(err, INVALID, "Error in sequence feature %.*s in example %lld: %s",
                (int)key->name_size, key->name, (long long)i, what);
}

/* One Feature of a list is one row. */
static bool read_row(struct parse *parse, int k, int64_t i, struct wire feature,
                     struct error *err)
{
    const struct feature_key *key = &parse->keys->keys[k];
    struct rows *rows = &parse->rows[k];
    int64_t before = rows->values.count;
    enum dtype dtype;
    char text[160];
    if (!feature_dtype(feature, &dtype))
        return bad_list(parse, k, i, "Unsupported data type.", err);
    if (dtype != DTYPE_NONE && dtype != key->dtype) {
        snprintf(text, sizeof(text),
                 "Data types don't match. Data type: %s but expected type: %s",
                 dtype_name(dtype), dtype_name(key->dtype));
        return bad_list(parse, k, i, text, err);
    }
    if (dtype != DTYPE_NONE && !feature_append(feature, &rows->values))
        return bad_list(parse, k, i, "Can't parse serialized Example.", err);
    int64_t count = rows->values.count - before;
    if (key->kind == FEATURE_DENSE && count != key->stride) {
        snprintf(text, sizeof(text), "Unexpected number of elements: %lld, not %lld",
                 (long long)count, (long long)key->stride);
        return bad_list(parse, k, i, text, err);
    }
    feature_push(&rows->ends, rows->values.count);
    return true;
}

static bool read_rows(struct parse *parse, int k, int64_t i, struct error *err)
{
    const struct feature_key *key = &parse->keys->keys[k];
    struct wire list = parse->rows[k].list;
    if (!list.at && key->kind == FEATURE_DENSE && !parse->optional[k])
        return fail(err, INVALID,
                    "Name: <unknown>, Feature list '%.*s' is required but could not be found.  "
                    "Did you mean to include it in feature_list_dense_missing_assumed_empty or "
                    "feature_list_dense_defaults?",
                    (int)key->name_size, key->name);
    while (list.at < list.end) {
        struct wire feature;
        uint64_t tag;
        if (!wire_varint(&list, &tag))
            return bad_list(parse, k, i, "Can't parse serialized Example.", err);
        bool row = tag == WIRE_TAG(1, WIRE_BYTES);
        if (!(row ? wire_piece(&list, &feature) : wire_skip(&list, tag)))
            return bad_list(parse, k, i, "Can't parse serialized Example.", err);
        if (row && !read_row(parse, k, i, feature, err))
            return false;
    }
    parse->rows[k].examples[i] = parse->rows[k].ends.count;
    return true;
}

static bool parse_one(struct parse *parse, int64_t i, struct error *err)
{
    const struct tensor_string *bytes = &parse->batch->serialized[i];
    for (int k = 0; k < parse->keys->count; k++)
        parse->rows[k].list = (struct wire){NULL, NULL};
    if (!read_example(parse, wire_of(bytes->data, bytes->size)))
        return fail(err, INVALID, "Invalid protocol message input, example id: %lld",
                    (long long)i);
    for (int k = 0; k < parse->keys->count; k++)
        if (!read_rows(parse, k, i, err))
            return false;
    return true;
}

/* --- tensors --- */

static int64_t begin_of(const int64_t *ends, int64_t i)
{
    return i ? ends[i - 1] : 0;
}

static bool finish_sparse(const struct parse *parse, int k, struct sequence_output *out,
                          struct error *err)
{
    const struct rows *rows = &parse->rows[k];
    const int64_t *ends = rows->ends.data;
    int64_t count = parse->batch->count;
    int64_t dims[3] = {count, feature_longest(rows->examples, count),
                       feature_longest(ends, rows->ends.count)};
    int rank = parse->batch->single ? 2 : 3;
    if (!feature_tensor(&rows->values, &out->values, err) ||
        !tensor_init(&out->indices, I64, &SHAPE(rows->values.count, rank), err) ||
        !tensor_init_copy(&out->shape, I64, &SHAPE(rank), dims + 3 - rank, err))
        return false;
    int64_t *to = out->indices.data;
    for (int64_t i = 0; i < count; i++)
        for (int64_t first = begin_of(rows->examples, i), row = first; row < rows->examples[i];
             row++)
            for (int64_t j = 0, at = begin_of(ends, row); at < ends[row]; at++, j++) {
                if (rank == 3)
                    *to++ = i;
                *to++ = row - first;
                *to++ = j;
            }
    return true;
}

/* 0 and the `ends`, as row splits. */
static bool splits_of(const int64_t *ends, int64_t count, enum dtype dtype, struct tensor *out,
                      struct error *err)
{
    if (!tensor_init(out, dtype, &SHAPE(count + 1), err))
        return false;
    for (int64_t i = 0; i <= count; i++)
        if (dtype == I64)
            ((int64_t *)out->data)[i] = begin_of(ends, i);
        else
            ((int32_t *)out->data)[i] = (int32_t)begin_of(ends, i);
    return true;
}

static bool finish_ragged(const struct parse *parse, int k, struct sequence_output *out,
                          struct error *err)
{
    const struct rows *rows = &parse->rows[k];
    enum dtype dtype = parse->keys->keys[k].splits;
    int64_t outer = parse->batch->single ? -1 : parse->batch->count;
    if (!feature_tensor(&rows->values, &out->values, err) ||
        !splits_of(rows->ends.data, rows->ends.count, dtype, &out->inner, err))
        return false;
    if (outer >= 0)
        return splits_of(rows->examples, outer, dtype, &out->outer, err);
    /* Of one example a scalar, which TensorFlow leaves undefined. */
    if (!tensor_init(&out->outer, dtype, &SHAPE_SCALAR, err))
        return false;
    tensor_set_number(&out->outer, 0, 0);
    return true;
}

/* Rows behind the end of a shorter list are zero, or empty strings. */
static bool finish_dense(const struct parse *parse, int k, struct sequence_output *out,
                         struct error *err)
{
    const struct feature_key *key = &parse->keys->keys[k];
    const struct rows *rows = &parse->rows[k];
    int64_t count = parse->batch->count, most = feature_longest(rows->examples, count);
    int lead = parse->batch->single ? 1 : 2;
    struct shape shape = {.rank = key->shape.rank + lead, .dims = {count, most}};
    if (shape.rank > LIMIT_TENSOR_RANK)
        return bad_list(parse, k, 0, "it has too many dimensions", err);
    shape.dims[lead - 1] = most;
    memcpy(shape.dims + lead, key->shape.dims, (size_t)key->shape.rank * sizeof(int64_t));
    if (!tensor_init(&out->values, key->dtype, &shape, err) ||
        !tensor_init(&out->lengths, I64, parse->batch->single ? &SHAPE_SCALAR : &SHAPE(count),
                     err))
        return false;
    if (key->dtype != STRING)
        memset(out->values.data, 0, tensor_bytes(&out->values));
    for (int64_t i = 0; i < count; i++) {
        int64_t first = begin_of(rows->examples, i), length = rows->examples[i] - first;
        ((int64_t *)out->lengths.data)[i] = length;
        feature_store(&rows->values, first * key->stride, length * key->stride, &out->values,
                      i * most * key->stride);
    }
    return true;
}

static void release(struct sequence_output *out, int count)
{
    for (int k = 0; k < count; k++) {
        tensor_release(&out[k].values);
        tensor_release(&out[k].indices);
        tensor_release(&out[k].shape);
        tensor_release(&out[k].lengths);
        tensor_release(&out[k].outer);
        tensor_release(&out[k].inner);
    }
}

bool kernel_sequence_parse(const struct feature_keys *keys, const bool *optional,
                           const struct example_batch *batch, struct sequence_output *out,
                           struct error *err)
{
    struct parse parse = {keys, optional, batch,
                          alloc_array((size_t)keys->count, sizeof(*parse.rows))};
    memset(out, 0, (size_t)keys->count * sizeof(*out));
    for (int k = 0; k < keys->count; k++) {
        parse.rows[k].values.dtype = keys->keys[k].dtype;
        parse.rows[k].ends.dtype = I64;
        parse.rows[k].examples = alloc_array((size_t)batch->count, sizeof(int64_t));
    }
    bool ok = true;
    for (int64_t i = 0; ok && i < batch->count; i++)
        ok = parse_one(&parse, i, err);
    for (int k = 0; ok && k < keys->count; k++) {
        enum feature_kind kind = keys->keys[k].kind;
        ok = (kind == FEATURE_SPARSE   ? finish_sparse
              : kind == FEATURE_RAGGED ? finish_ragged
                                       : finish_dense)(&parse, k, &out[k], err);
    }
    for (int k = 0; k < keys->count; k++) {
        feature_values_release(&parse.rows[k].values);
        feature_values_release(&parse.rows[k].ends);
        free(parse.rows[k].examples);
    }
    free(parse.rows);
    if (!ok)
        release(out, keys->count);
    return ok;
}
