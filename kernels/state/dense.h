/*
 * dense.h - the buckets of a dense table: a key and a value each, or a key that stands for
 * none.
 *
 * They lie as TensorFlow lays them out, so that what one exports the other imports: quadratic
 * probing from the key's hash, a power of 2 of them, twice as many whenever they would be too
 * full.  As there, a new key takes the first bucket that is free, even if it is in another one
 * further on: then it counts twice.
 */
#pragma once

#include "base/base.h"
#include "runtime/tensor.h"

struct dense {
    struct tensor empty;   /* the key of a bucket that was never used */
    struct tensor deleted; /* ... that was; no dtype: nothing can be deleted */
    int64_t key_size;      /* elements */
    int64_t value_size;
    enum dtype value_dtype;
    float load; /* how full they may be, below 1 */

    struct tensor keys;   /* [buckets, key_size] */
    struct tensor values; /* [buckets, value_size] */
    int64_t count;        /* entries */
};

/* INVALID for a number of buckets that there cannot be. */
bool kernel_dense_buckets_ok(int64_t buckets, struct error *err) CHECKED;

/* Makes `buckets` free ones (a power of 2); all above `keys` is set.  EXHAUSTED. */
bool kernel_dense_begin(struct dense *dense, int64_t buckets, struct error *err) CHECKED;
void kernel_dense_release(struct dense *dense);

/*
 * The bucket of key `i` of the tensor, -1 if there is none; INTERNAL when no bucket is left
 * that was never used, which says that there is none.
 */
bool kernel_dense_find(const struct dense *dense, const struct tensor *keys, int64_t i,
                       int64_t *bucket, struct error *err) CHECKED;

/* Makes room for so many more entries. */
bool kernel_dense_reserve(struct dense *dense, int64_t more, struct error *err) CHECKED;

/* Adds or replaces. */
bool kernel_dense_put(struct dense *dense, const struct tensor *keys,
                      const struct tensor *values, int64_t i, struct error *err) CHECKED;

bool kernel_dense_remove(struct dense *dense, const struct tensor *keys, int64_t i,
                         struct error *err) CHECKED;

/* Takes over buckets that were exported; INVALID when they cannot be such. */
bool kernel_dense_import(struct dense *dense, const struct tensor *keys,
                         const struct tensor *values, struct error *err) CHECKED;
