/*
 * parse_feature.h - features of a tf.Example: found by name, their values collected.
 *
 * What is shared by Example and SequenceExample.  All pieces point into the serialized bytes.
 */
#pragma once

#include "kernels/io/parse_wire.h"
#include "runtime/tensor.h"

struct error;
struct kernel_call;

/* --- names --- */

enum feature_kind { FEATURE_DENSE, FEATURE_SPARSE, FEATURE_RAGGED };

/* A feature that somebody asked for. */
struct feature_key {
    enum feature_kind kind;
    const char *name; /* borrowed */
    size_t name_size;
    enum dtype dtype; /* I64, F32 or STRING */
    bool variable;    /* dense: any number of rows of `shape`, whose dimension 0 is unknown */
    struct shape shape;
    int64_t stride;                     /* dense: elements, of one row if variable */
    const struct tensor *default_value; /* dense; borrowed */
    enum dtype splits;                  /* ragged: I32 or I64 */
};

struct feature_keys {
    struct feature_key *keys;
    int count;
    int *table; /* open addressing; index + 1, 0 is free */
    uint32_t mask;
};

/* Room for `count` keys, zeroed; fill in and call kernel_feature_index(). */
void kernel_feature_keys_init(struct feature_keys *keys, int count);
void kernel_feature_keys_release(struct feature_keys *keys);

/* Fails with INTERNAL when a name is there twice, INVALID on a type no feature can have. */
bool kernel_feature_index(struct feature_keys *keys, struct error *err) CHECKED;

/* Index of the key, -1 when nobody asked for it. */
int kernel_feature_find(const struct feature_keys *keys, const void *name, size_t size);

/* Splits `shape` into rows, sets variable and stride.  Fails with INVALID. */
bool kernel_feature_set_shape(struct feature_key *key, const struct shape *shape,
                              struct error *err) CHECKED;

/* The default of a dense key suits it.  Fails with INVALID, naming its `index`. */
bool kernel_feature_check_default(const struct feature_key *key, int index,
                                  struct error *err) CHECKED;

/* --- values --- */

/* A growing list; strings are borrowed pieces. */
struct feature_values {
    enum dtype dtype;
    int64_t count;
    int64_t capacity;
    void *data;
};

void kernel_feature_values_release(struct feature_values *values);

/* Of a serialized Feature: DTYPE_NONE when it is empty; false when it is of no known kind. */
bool kernel_feature_dtype(struct wire feature, enum dtype *dtype);

/* Appends the values of a Feature of the list's type; false when it is malformed. */
bool kernel_feature_append(struct wire feature, struct feature_values *values);

/* Appends one number to a list of I64. */
void kernel_feature_push(struct feature_values *values, int64_t number);

/* Copies values [from, from + count) into a tensor of the same type. */
void kernel_feature_store(const struct feature_values *values, int64_t from, int64_t count,
                          struct tensor *out, int64_t index);

/* All values as a vector.  Fails with EXHAUSTED. */
bool kernel_feature_tensor(const struct feature_values *values, struct tensor *out,
                           struct error *err) CHECKED;

/* The most that lie between two of `count` ends, the first of which begins at 0. */
int64_t kernel_feature_longest(const int64_t *ends, int64_t count);

/* A map entry behind its tag: its key and value, empty when absent; false when malformed. */
bool kernel_feature_entry(struct wire *wire, struct wire *name, struct wire *value);

/* "float", "int64", "bytes": what the lists are called in messages. */
const char *kernel_feature_list_name(enum dtype dtype);
