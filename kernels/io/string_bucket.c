/* string_bucket.c - strings dealt out to buckets by their hashes. */

#include "kernels/io/string_hash.h"
#include "kernels/ref/numbers.h"

typedef uint64_t hash(const uint64_t key[2], const void *bytes, size_t size);

static bool to_buckets(struct kernel_call *call, hash *function, const uint64_t key[2],
                       struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    uint64_t buckets = (uint64_t)node_attr_int(call->node, "num_buckets", 1);
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    if (!out)
        return false;
    for (int64_t i = 0; i < out->count; i++) {
        const struct tensor_string *text = tensor_strings(in) + i;
        ((int64_t *)out->data)[i] =
            (int64_t)(function(key, text->data ? text->data : "", text->size) % buckets);
    }
    return true;
}

static uint64_t fast(const uint64_t key[2], const void *bytes, size_t size)
{
    (void)key;
    return kernel_fingerprint64(bytes, size);
}

static uint64_t legacy(const uint64_t key[2], const void *bytes, size_t size)
{
    (void)key;
    return kernel_legacy_hash64(bytes, size);
}

static bool fast_run(struct kernel_call *call, struct error *err)
{
    return to_buckets(call, fast, NULL, err);
}

static bool legacy_run(struct kernel_call *call, struct error *err)
{
    return to_buckets(call, legacy, NULL, err);
}

static bool strong_run(struct kernel_call *call, struct error *err)
{
    int count;
    const int64_t *key = node_attr_ints(call->node, "key", &count);
    if (count != 2)
        return fail(err, INVALID, "Key must have 2 elements");
    return to_buckets(call, kernel_siphash,
                      (const uint64_t[]){(uint64_t)key[0], (uint64_t)key[1]}, err);
}

/* --- fingerprints as bytes --- */

/* Rows of the first dimension; of strings all bytes of a row's fingerprints. */
static bool fingerprint_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *data = kernel_in(call, 0), *method = kernel_in(call, 1);
    char shape[SHAPE_TEXT_BYTES];
    if (method->shape.rank != 0)
        return fail(err, INVALID, "`method` should be a scalar string: %s",
                    shape_text(&method->shape, shape, sizeof(shape)));
    if (data->shape.rank < 1)
        return fail(err, INVALID, "`data` should have at least one dimension: %s",
                    shape_text(&data->shape, shape, sizeof(shape)));
    const struct tensor_string *name = tensor_strings(method);
    if (name->size != 10 || memcmp(name->data, "farmhash64", 10) != 0)
        return fail(err, INVALID, "Unsupported fingerprint method: %.*s", (int)name->size,
                    name->data);
    int64_t rows = data->shape.dims[0], inner = kernel_span(&data->shape, 1, data->shape.rank);
    struct tensor *out = kernel_output(call, 0, &SHAPE(rows, 8), err);
    uint64_t *parts = out ? kernel_scratch(call, (size_t)inner * 8 + 1, err) : NULL;
    if (!parts)
        return false;
    for (int64_t r = 0; r < rows; r++) {
        uint64_t print;
        if (data->dtype == STRING) {
            for (int64_t i = 0; i < inner; i++) {
                const struct tensor_string *text = tensor_strings(data) + r * inner + i;
                parts[i] = kernel_fingerprint64(text->data ? text->data : "", text->size);
            }
            print = inner == 1 ? parts[0]
                               : kernel_fingerprint64(parts, (size_t)inner * sizeof(*parts));
        } else {
            size_t bytes = (size_t)inner * dtype_size(data->dtype);
            print = kernel_fingerprint64((const char *)data->data + (size_t)r * bytes, bytes);
        }
        memcpy((char *)out->data + r * 8, &print, 8);
    }
    return true;
}

const struct kernel kernel_string_to_hash_bucket_fast = {
    .op = "StringToHashBucketFast", .device = CPU, .run = fast_run};
const struct kernel kernel_string_to_hash_bucket = {
    .op = "StringToHashBucket", .device = CPU, .run = legacy_run};
const struct kernel kernel_string_to_hash_bucket_strong = {
    .op = "StringToHashBucketStrong", .device = CPU, .run = strong_run};
const struct kernel kernel_fingerprint = {
    .op = "Fingerprint", .device = CPU, .run = fingerprint_run};
