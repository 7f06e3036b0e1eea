/* parse_example.c - reads tf.Examples in place and collects what was asked for. */

#include "kernels/io/parse_example.h"

#include "base/alloc.h"
#include "base/error.h"

struct parse {
    const struct feature_keys *keys;
    const struct example_batch *batch;
    struct wire *last;             /* by key: the feature that counts, in the Example at hand */
    struct feature_values *values; /* by key; of fixed dense ones, of the Example at hand */
    int64_t **ends; /* by key, not fixed dense: values up to each Example's end */
    struct example_output *out;
};

/* A dense key whose rows are all of one size, so that it is written where it belongs. */
static bool is_fixed(const struct feature_key *key)
{
    return key->kind == FEATURE_DENSE && !key->variable;
}

/* --- reading one Example --- */

/* The last of equal keys counts; for a dense one, the last that is not empty. */
static bool read_features(struct parse *parse, struct wire features)
{
    while (features.at < features.end) {
        struct wire name, value;
        uint64_t tag;
        if (!wire_varint(&features, &tag))
            return false;
        if (tag != WIRE_TAG(1, WIRE_BYTES)) {
            if (!wire_skip(&features, tag))
                return false;
            continue;
        }
        if (!feature_entry(&features, &name, &value))
            return false;
        int k = kernel_feature_find(parse->keys, name.at, wire_left(&name));
        if (k >= 0 && (value.at < value.end || parse->batch->sequence ||
                       parse->keys->keys[k].kind != FEATURE_DENSE))
            parse->last[k] = value;
    }
    return true;
}

static bool read_example(struct parse *parse, struct wire example)
{
    while (example.at < example.end) {
        struct wire features;
        uint64_t tag;
        if (!wire_varint(&example, &tag))
            return false;
        bool ok = tag == WIRE_TAG(1, WIRE_BYTES)
                      ? wire_piece(&example, &features) && read_features(parse, features)
                      : wire_skip(&example, tag);
        if (!ok)
            return false;
    }
    return true;
}

/* --- one feature of one Example --- */

/* The name a message gives to Example `i`, "" for a single one. */
static const char *place(const struct parse *parse, int64_t i, char *out, size_t out_size)
{
    const struct tensor *names = parse->batch->names;
    if (parse->batch->single)
        return "";
    struct tensor_string name = {(char *)"<unknown>", 9};
    if (names)
        name = tensor_strings(names)[i];
    snprintf(out, out_size, "Name: %.*s, ", (int)(name.size < 100 ? name.size : 100),
             name.data ? name.data : "");
    return out;
}

static bool bad_feature(const struct parse *parse, const struct feature_key *key, int64_t i,
                        struct error *err, const char *text)
{
    char name[128], index[48] = "";
    if (!parse->batch->single)
        snprintf(index, sizeof(index), ", Index: %lld", (long long)i);
    return fail(err, INVALID, "%sKey: %.*s%s.  %s", place(parse, i, name, sizeof(name)),
                (int)key->name_size, key->name, index, text);
}

static bool bad_count(const struct parse *parse, const struct feature_key *key, int64_t i,
                      int64_t count, struct error *err)
{
    char text[512], shape[SHAPE_TEXT_BYTES];
    snprintf(text, sizeof(text),
             key->variable ? "Number of %s values is not a multiple of stride length. Saw %lld "
                             "values but output shape is: %s"
                           : "Number of %s values != expected.  Values size: %lld but output "
                             "shape: %s",
             feature_list_name(key->dtype), (long long)count,
             shape_text(&key->shape, shape, sizeof(shape)));
    return bad_feature(parse, key, i, err, text);
}

/* Appends the values of the feature found for key `k`, if any. */
static bool append(struct parse *parse, int k, int64_t i, struct error *err)
{
    const struct feature_key *key = &parse->keys->keys[k];
    struct wire feature = parse->last[k];
    enum dtype dtype;
    if (!feature_dtype(feature, &dtype))
        return bad_feature(parse, key, i, err, "Unsupported data type.");
    if (dtype != DTYPE_NONE && dtype != key->dtype) {
        char text[128];
        snprintf(text, sizeof(text),
                 "Data types don't match. Data type: %s but expected type: %s",
                 dtype_name(dtype), dtype_name(key->dtype));
        return bad_feature(parse, key, i, err, text);
    }
    return dtype == DTYPE_NONE || feature_append(feature, &parse->values[k]) ||
           bad_feature(parse, key, i, err, "Can't parse serialized Example.");
}

/* A row of a fixed dense key: the values found, or the default. */
static bool parse_fixed(struct parse *parse, int k, int64_t i, struct error *err)
{
    const struct feature_key *key = &parse->keys->keys[k];
    struct feature_values *values = &parse->values[k];
    struct tensor *out = &parse->out[k].values;
    char name[128];
    values->count = 0;
    if (parse->last[k].at) {
        if (!append(parse, k, i, err))
            return false;
        if (values->count != key->stride)
            return bad_count(parse, key, i, values->count, err);
        feature_store(values, 0, key->stride, out, i * key->stride);
        return true;
    }
    const struct tensor *fallback = key->default_value;
    if (fallback->count == 0)
        return fail(err, INVALID,
                    "%sFeature: %.*s (data type: %s) is required but could not be found.",
                    place(parse, i, name, sizeof(name)), (int)key->name_size, key->name,
                    dtype_name(key->dtype));
    struct feature_values all = {key->dtype, fallback->count, 0, fallback->data};
    feature_store(&all, 0, key->stride, out, i * key->stride);
    return true;
}

static bool parse_one(struct parse *parse, int64_t i, struct error *err)
{
    const struct tensor_string *bytes = &parse->batch->serialized[i];
    memset(parse->last, 0, (size_t)parse->keys->count * sizeof(*parse->last));
    if (!read_example(parse, wire_of(bytes->data, bytes->size)))
        return fail(err, INVALID, "Could not parse example input, value: '%.*s'",
                    (int)(bytes->size < 400 ? bytes->size : 400), bytes->data);
    for (int k = 0; k < parse->keys->count; k++) {
        const struct feature_key *key = &parse->keys->keys[k];
        if (is_fixed(key)) {
            if (!parse_fixed(parse, k, i, err))
                return false;
            continue;
        }
        int64_t before = parse->values[k].count;
        if (parse->last[k].at && !append(parse, k, i, err))
            return false;
        int64_t more = parse->values[k].count - before;
        if (key->variable && (key->stride ? more % key->stride : more))
            return bad_count(parse, key, i, more, err);
        parse->ends[k][i] = parse->values[k].count;
    }
    return true;
}

/* --- tensors --- */

static bool finish_sparse(const struct parse *parse, int k, struct error *err)
{
    const struct feature_values *values = &parse->values[k];
    const int64_t *ends = parse->ends[k];
    struct example_output *out = &parse->out[k];
    int64_t count = parse->batch->count, most = feature_longest(ends, count);
    int64_t both[2] = {count, most};
    int rank = parse->batch->single ? 1 : 2;
    if (!feature_tensor(values, &out->values, err) ||
        !tensor_init(&out->indices, I64, &SHAPE(values->count, rank), err) ||
        !tensor_init_copy(&out->shape, I64, &SHAPE(rank), both + 2 - rank, err))
        return false;
    int64_t *indices = out->indices.data, at = 0;
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; at < ends[i]; at++, j++) {
            if (rank == 2)
                *indices++ = i;
            *indices++ = j;
        }
    return true;
}

static bool finish_ragged(const struct parse *parse, int k, struct error *err)
{
    const struct feature_key *key = &parse->keys->keys[k];
    struct example_output *out = &parse->out[k];
    int64_t rows = parse->batch->single ? 0 : parse->batch->count + 1;
    if (!feature_tensor(&parse->values[k], &out->values, err) ||
        !tensor_init(&out->indices, key->splits, &SHAPE(rows), err))
        return false;
    for (int64_t i = 0; i < rows; i++) {
        int64_t end = i ? parse->ends[k][i - 1] : 0;
        if (key->splits == I64)
            ((int64_t *)out->indices.data)[i] = end;
        else
            ((int32_t *)out->indices.data)[i] = (int32_t)end;
    }
    return true;
}

/* Rows of any number, padded to the longest with the one value of the default. */
static bool finish_variable(const struct parse *parse, int k, struct error *err)
{
    const struct feature_key *key = &parse->keys->keys[k];
    const struct feature_values *values = &parse->values[k];
    const int64_t *ends = parse->ends[k];
    struct tensor *out = &parse->out[k].values;
    int64_t count = parse->batch->count, most = feature_longest(ends, count);
    int lead = parse->batch->single ? 0 : 1;
    struct shape shape = {.rank = key->shape.rank + lead, .dims = {count}};
    if (shape.rank > LIMIT_TENSOR_RANK)
        return fail(err, INVALID, "feature '%.*s' has too many dimensions", (int)key->name_size,
                    key->name);
    memcpy(shape.dims + lead, key->shape.dims, (size_t)key->shape.rank * sizeof(int64_t));
    shape.dims[lead] = key->stride ? most / key->stride : 0;
    if (!tensor_init(out, key->dtype, &shape, err))
        return false;
    struct feature_values pad = {key->dtype, 1, 0, key->default_value->data};
    for (int64_t i = 0, from = 0; i < count; from = ends[i], i++) {
        feature_store(values, from, ends[i] - from, out, i * most);
        for (int64_t j = ends[i] - from; j < most; j++)
            feature_store(&pad, 0, 1, out, i * most + j);
    }
    return true;
}

static bool finish(const struct parse *parse, int k, struct error *err)
{
    const struct feature_key *key = &parse->keys->keys[k];
    switch (key->kind) {
    case FEATURE_SPARSE:
        return finish_sparse(parse, k, err);
    case FEATURE_RAGGED:
        return finish_ragged(parse, k, err);
    default:
        return is_fixed(key) || finish_variable(parse, k, err);
    }
}

/* --- all --- */

static bool begin(struct parse *parse, struct error *err)
{
    const struct feature_keys *keys = parse->keys;
    size_t count = (size_t)keys->count;
    parse->last = alloc_array(count, sizeof(*parse->last));
    parse->values = alloc_array(count, sizeof(*parse->values));
    parse->ends = alloc_array(count, sizeof(*parse->ends));
    for (int k = 0; k < keys->count; k++) {
        const struct feature_key *key = &keys->keys[k];
        struct shape shape = key->shape;
        parse->values[k].dtype = key->dtype;
        if (!is_fixed(key)) {
            parse->ends[k] = alloc_array((size_t)parse->batch->count, sizeof(int64_t));
            continue;
        }
        if (parse->batch->sequence && parse->batch->count == 0 && key->stride &&
            key->default_value->count == 0)
            return fail(err, INVALID,
                        "Inconsistent max number of elements for feature %.*s: expected %lld, "
                        "but found 0",
                        (int)key->name_size, key->name, (long long)key->stride);
        if (!parse->batch->single) {
            if (shape.rank == LIMIT_TENSOR_RANK)
                return fail(err, INVALID, "feature '%.*s' has too many dimensions",
                            (int)key->name_size, key->name);
            shape = (struct shape){.rank = key->shape.rank + 1, .dims = {parse->batch->count}};
            memcpy(shape.dims + 1, key->shape.dims, (size_t)key->shape.rank * sizeof(int64_t));
        }
        if (!tensor_init(&parse->out[k].values, key->dtype, &shape, err))
            return false;
    }
    return true;
}

bool kernel_example_parse(const struct feature_keys *keys, const struct example_batch *batch,
                          struct example_output *out, struct error *err)
{
    struct parse parse = {.keys = keys, .batch = batch, .out = out};
    memset(out, 0, (size_t)keys->count * sizeof(*out));
    bool ok = begin(&parse, err);
    for (int64_t i = 0; ok && i < batch->count; i++)
        ok = parse_one(&parse, i, err);
    for (int k = 0; ok && k < keys->count; k++)
        ok = finish(&parse, k, err);
    for (int k = 0; k < keys->count; k++) {
        feature_values_release(&parse.values[k]);
        free(parse.ends[k]);
    }
    free(parse.last);
    free(parse.values);
    free(parse.ends);
    if (!ok)
        kernel_example_release(out, keys->count);
    return ok;
}

void kernel_example_release(struct example_output *out, int count)
{
    for (int k = 0; k < count; k++) {
        tensor_release(&out[k].values);
        tensor_release(&out[k].indices);
        tensor_release(&out[k].shape);
    }
}
