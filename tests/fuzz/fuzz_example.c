/* fuzz_example.c - up to three Examples or SequenceExamples, cut at bytes 0xfe of the input. */

#include "base/alloc.h"
#include "kernels/io/parse_sequence.h"
#include "tests/fuzz/fuzz.h"

enum { KEYS = 7, TEXTS = 3 };

/* Keys "a" to "g": all kinds and types; fixed, variable and without a default. */
static const struct {
    enum feature_kind kind;
    enum dtype dtype;
    bool has_default;
    struct shape shape;
} wanted[KEYS] = {
    {FEATURE_DENSE, I64, true, {.rank = 0}},
    {FEATURE_DENSE, F32, true, {.rank = 2, .dims = {-1, 2}}},
    {FEATURE_DENSE, STRING, true, {.rank = 1, .dims = {2}}},
    {FEATURE_SPARSE, I64, false, {.rank = 0}},
    {FEATURE_SPARSE, STRING, false, {.rank = 0}},
    {FEATURE_RAGGED, F32, false, {.rank = 0}},
    {FEATURE_RAGGED, STRING, false, {.rank = 0}},
};

static void make_keys(struct feature_keys *keys, struct tensor *defaults)
{
    struct error err;
    kernel_feature_keys_init(keys, KEYS);
    for (int i = 0; i < KEYS; i++) {
        struct feature_key *key = &keys->keys[i];
        struct shape shape = wanted[i].shape;
        key->kind = wanted[i].kind;
        key->name = &"abcdefg"[i];
        key->name_size = 1;
        key->dtype = wanted[i].dtype;
        key->splits = i % 2 ? I32 : I64;
        FUZZ_CHECK(kernel_feature_set_shape(key, &shape, &err));
        if (key->variable)
            shape = SHAPE_SCALAR;
        FUZZ_CHECK(tensor_init(&defaults[i], key->dtype, &shape, &err));
        if (key->dtype != STRING)
            memset(defaults[i].data, 0, tensor_bytes(&defaults[i]));
        key->default_value = &defaults[i];
        FUZZ_CHECK(kernel_feature_check_default(key, i, &err));
    }
    FUZZ_CHECK(kernel_feature_index(keys, &err));
}

/* Indices are within the shape, and in order. */
static void check_sparse(const struct tensor *indices, const struct tensor *shape,
                         const struct tensor *values)
{
    int64_t rank = shape->count;
    FUZZ_CHECK(indices->shape.dims[0] == values->count);
    FUZZ_CHECK(indices->shape.dims[1] == rank);
    for (int64_t i = 0; i < values->count; i++)
        for (int64_t d = 0; d < rank; d++) {
            int64_t index = tensor_i64(indices)[i * rank + d];
            FUZZ_CHECK(index >= 0 && index < tensor_i64(shape)[d]);
        }
}

/* Splits rise from 0 to `count`. */
static void check_splits(const struct tensor *splits, int64_t count)
{
    if (splits->count == 0)
        return;
    FUZZ_CHECK(tensor_integer(splits, 0) == 0);
    FUZZ_CHECK(tensor_integer(splits, splits->count - 1) == count);
    for (int64_t i = 1; i < splits->count; i++)
        FUZZ_CHECK(tensor_integer(splits, i - 1) <= tensor_integer(splits, i));
}

static void parse_examples(const struct feature_keys *keys, const struct example_batch *batch)
{
    struct error err;
    struct example_output out[KEYS];
    if (!kernel_example_parse(keys, batch, out, &err)) {
        FUZZ_CHECK(err.code == INVALID);
        return;
    }
    for (int i = 0; i < KEYS; i++) {
        if (keys->keys[i].kind == FEATURE_SPARSE)
            check_sparse(&out[i].indices, &out[i].shape, &out[i].values);
        if (keys->keys[i].kind == FEATURE_RAGGED)
            check_splits(&out[i].indices, out[i].values.count);
    }
    kernel_example_release(out, KEYS);
}

static void parse_sequences(struct feature_keys *keys, const struct example_batch *batch)
{
    struct error err;
    struct sequence_output out[KEYS];
    const bool optional[KEYS] = {true, true, true, true, true, true, true};
    keys->keys[1].shape = SHAPE(2); /* rows have a shape that is known */
    keys->keys[1].variable = false;
    keys->keys[1].stride = 2;
    if (!kernel_sequence_parse(keys, optional, batch, out, &err)) {
        FUZZ_CHECK(err.code == INVALID);
        return;
    }
    for (int i = 0; i < KEYS; i++) {
        if (keys->keys[i].kind == FEATURE_SPARSE)
            check_sparse(&out[i].indices, &out[i].shape, &out[i].values);
        if (keys->keys[i].kind == FEATURE_RAGGED)
            check_splits(&out[i].inner, out[i].values.count);
        tensor_release(&out[i].values);
        tensor_release(&out[i].indices);
        tensor_release(&out[i].shape);
        tensor_release(&out[i].lengths);
        tensor_release(&out[i].outer);
        tensor_release(&out[i].inner);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tensor_string texts[TEXTS] = {{0}};
    int count = 0;
    for (size_t begin = 0; begin <= size && count < TEXTS;) {
        size_t end = begin;
        while (end < size && (data[end] != 0xfe || count == TEXTS - 1))
            end++;
        /* A copy of its own, so that a step beyond its end is seen. */
        texts[count] = (struct tensor_string){malloc(end - begin), end - begin};
        FUZZ_CHECK(texts[count].data || end == begin);
        if (end > begin)
            memcpy(texts[count].data, data + begin, end - begin);
        count++;
        begin = end + 1;
    }
    struct feature_keys keys;
    struct tensor defaults[KEYS];
    make_keys(&keys, defaults);
    struct example_batch batch = {.serialized = texts, .count = count};
    parse_examples(&keys, &batch);
    batch.count = 1;
    batch.single = true;
    parse_examples(&keys, &batch);
    batch.sequence = true;
    parse_sequences(&keys, &batch);
    batch.single = false;
    batch.count = count;
    parse_sequences(&keys, &batch);
    kernel_feature_keys_release(&keys);
    for (int i = 0; i < KEYS; i++)
        tensor_release(&defaults[i]);
    for (int i = 0; i < count; i++)
        free(texts[i].data);
    return 0;
}
