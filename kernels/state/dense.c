/* dense.c - finding buckets, filling them, and making them more. */

#include "kernels/state/dense.h"

#include "base/error.h"
#include "kernels/io/string_hash.h"
#include "kernels/ref/numbers.h"

enum { LEAST_BUCKETS = 4 };

static uint64_t hash_one(const struct tensor *keys, int64_t i)
{
    if (keys->dtype != STRING)
        return (uint64_t)tensor_integer(keys, i);
    const struct tensor_string *text = tensor_strings(keys) + i;
    return kernel_legacy_hash64(text->data, text->size);
}

static uint64_t hash_key(const struct dense *dense, const struct tensor *keys, int64_t i)
{
    if (dense->key_size == 1)
        return hash_one(keys, i);
    uint64_t hash = 0;
    for (int64_t k = 0; k < dense->key_size; k++)
        hash ^= hash_one(keys, i * dense->key_size + k) + UINT64_C(0x9e3779b97f4a7800) +
                (hash << 10) + (hash >> 4);
    return hash;
}

static bool same_key(const struct dense *dense, const struct tensor *a, int64_t i,
                     const struct tensor *b, int64_t j)
{
    int64_t size = dense->key_size;
    if (a->dtype != STRING) {
        size_t bytes = (size_t)size * dtype_size(a->dtype);
        return !memcmp((const char *)a->data + (size_t)i * bytes,
                       (const char *)b->data + (size_t)j * bytes, bytes);
    }
    for (int64_t k = 0; k < size; k++) {
        const struct tensor_string *x = tensor_strings(a) + i * size + k,
                                   *y = tensor_strings(b) + j * size + k;
        if (x->size != y->size || (x->size && memcmp(x->data, y->data, x->size) != 0))
            return false;
    }
    return true;
}

static bool is_empty(const struct dense *dense, const struct tensor *keys, int64_t i)
{
    return same_key(dense, keys, i, &dense->empty, 0);
}

static bool is_deleted(const struct dense *dense, const struct tensor *keys, int64_t i)
{
    return dense->deleted.dtype != DTYPE_NONE && same_key(dense, keys, i, &dense->deleted, 0);
}

static int64_t buckets_of(const struct dense *dense)
{
    return dense->keys.shape.dims[0];
}

/* --- probing --- */

struct probe {
    int64_t bucket;
    int64_t done;
};

static struct probe probe_begin(const struct dense *dense, const struct tensor *keys, int64_t i)
{
    uint64_t mask = (uint64_t)buckets_of(dense) - 1;
    return (struct probe){.bucket = (int64_t)(hash_key(dense, keys, i) & mask)};
}

static bool probe_next(const struct dense *dense, struct probe *probe, struct error *err)
{
    probe->done++;
    probe->bucket = (probe->bucket + probe->done) & (buckets_of(dense) - 1);
    return probe->done < buckets_of(dense) ||
           fail(err, INTERNAL, "all %lld buckets of the dense table are or were used",
                (long long)buckets_of(dense));
}

bool kernel_dense_find(const struct dense *dense, const struct tensor *keys, int64_t i,
                       int64_t *bucket, struct error *err)
{
    struct probe probe = probe_begin(dense, keys, i);
    for (;;) {
        *bucket = probe.bucket;
        if (same_key(dense, &dense->keys, probe.bucket, keys, i))
            return true;
        *bucket = -1;
        if (is_empty(dense, &dense->keys, probe.bucket))
            return true;
        if (!probe_next(dense, &probe, err))
            return false;
    }
}

/* --- changing --- */

bool kernel_dense_buckets_ok(int64_t buckets, struct error *err)
{
    return (buckets >= LEAST_BUCKETS && !(buckets & (buckets - 1))) ||
           fail(err, INVALID,
                "Number of buckets must be at least %d and a power of 2, got: %lld",
                LEAST_BUCKETS, (long long)buckets);
}

bool kernel_dense_begin(struct dense *dense, int64_t buckets, struct error *err)
{
    struct tensor keys, values;
    if (!tensor_init(&keys, dense->empty.dtype, &SHAPE(buckets, dense->key_size), err))
        return false;
    if (!tensor_init(&values, dense->value_dtype, &SHAPE(buckets, dense->value_size), err)) {
        tensor_release(&keys);
        return false;
    }
    for (int64_t i = 0; i < buckets; i++)
        kernel_copy(&keys, i * dense->key_size, &dense->empty, 0, dense->key_size);
    kernel_zero(&values, 0, values.count);
    dense->keys = keys;
    dense->values = values;
    dense->count = 0;
    return true;
}

void kernel_dense_release(struct dense *dense)
{
    tensor_release(&dense->keys);
    tensor_release(&dense->values);
    tensor_release(&dense->empty);
    tensor_release(&dense->deleted);
}

bool kernel_dense_put(struct dense *dense, const struct tensor *keys,
                      const struct tensor *values, int64_t i, struct error *err)
{
    struct probe probe = probe_begin(dense, keys, i);
    while (!same_key(dense, &dense->keys, probe.bucket, keys, i)) {
        if (is_empty(dense, &dense->keys, probe.bucket) ||
            is_deleted(dense, &dense->keys, probe.bucket)) {
            dense->count++;
            kernel_copy(&dense->keys, probe.bucket * dense->key_size, keys, i * dense->key_size,
                        dense->key_size);
            break;
        }
        if (!probe_next(dense, &probe, err))
            return false;
    }
    kernel_copy(&dense->values, probe.bucket * dense->value_size, values, i * dense->value_size,
                dense->value_size);
    return true;
}

bool kernel_dense_remove(struct dense *dense, const struct tensor *keys, int64_t i,
                         struct error *err)
{
    int64_t bucket;
    if (dense->deleted.dtype == DTYPE_NONE)
        return fail(err, INVALID, "a dense table without a deleted key keeps all its keys");
    if (!kernel_dense_find(dense, keys, i, &bucket, err))
        return false;
    if (bucket < 0)
        return true;
    kernel_copy(&dense->keys, bucket * dense->key_size, &dense->deleted, 0, dense->key_size);
    dense->count--;
    return true;
}

/* Puts all entries into so many buckets. */
static bool rebucket(struct dense *dense, int64_t buckets, struct error *err)
{
    struct tensor keys = dense->keys, values = dense->values;
    if (!kernel_dense_begin(dense, buckets, err))
        return false;
    bool ok = true;
    for (int64_t i = 0; ok && i < keys.shape.dims[0]; i++)
        if (!is_empty(dense, &keys, i) && !is_deleted(dense, &keys, i))
            ok = kernel_dense_put(dense, &keys, &values, i, err);
    tensor_release(&keys);
    tensor_release(&values);
    return ok;
}

static bool is_too_full(const struct dense *dense, int64_t count, int64_t buckets)
{
    return (float)count > (float)buckets * dense->load;
}

bool kernel_dense_reserve(struct dense *dense, int64_t more, struct error *err)
{
    int64_t buckets = buckets_of(dense), count = dense->count + more;
    if (!is_too_full(dense, count, buckets))
        return true;
    while (is_too_full(dense, count, buckets))
        if (__builtin_mul_overflow(buckets, 2, &buckets))
            return fail(err, EXHAUSTED, "a dense table cannot hold %lld entries",
                        (long long)count);
    return rebucket(dense, buckets, err);
}

bool kernel_dense_import(struct dense *dense, const struct tensor *keys,
                         const struct tensor *values, struct error *err)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    int64_t buckets = keys->shape.rank ? keys->shape.dims[0] : 0;
    if (!shape_equal(&keys->shape, &SHAPE(buckets, dense->key_size)) ||
        !shape_equal(&values->shape, &SHAPE(buckets, dense->value_size)))
        return fail(err, INVALID,
                    "The buckets of a dense table are a matrix of keys and one of values, not "
                    "of shape %s and %s, with %lld and %lld columns",
                    shape_text(&keys->shape, a, sizeof(a)),
                    shape_text(&values->shape, b, sizeof(b)), (long long)dense->key_size,
                    (long long)dense->value_size);
    if (!kernel_dense_buckets_ok(buckets, err))
        return false;
    struct tensor old_keys = dense->keys, old_values = dense->values;
    if (!kernel_dense_begin(dense, buckets, err))
        return false;
    tensor_release(&old_keys);
    tensor_release(&old_values);
    kernel_copy(&dense->keys, 0, keys, 0, keys->count);
    kernel_copy(&dense->values, 0, values, 0, values->count);
    for (int64_t i = 0; i < buckets; i++)
        dense->count += !is_empty(dense, keys, i) && !is_deleted(dense, keys, i);
    return true;
}
