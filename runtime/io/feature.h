/*
 * feature.h - features of a tf.Example: a map of names to lists of values, read in place.
 *
 * All pieces point into the serialized bytes.
 */
#pragma once

#include "runtime/io/wire.h"
#include "runtime/tensor.h"

struct error;

/* A growing list; strings are borrowed pieces. */
struct feature_values {
    enum dtype dtype;
    int64_t count;
    int64_t capacity;
    void *data;
};

void feature_values_release(struct feature_values *values);

/* Of a serialized Feature: DTYPE_NONE when it is empty; false when it is of no known kind. */
bool feature_dtype(struct wire feature, enum dtype *dtype);

/* Appends the values of a Feature of the list's type; false when it is malformed. */
bool feature_append(struct wire feature, struct feature_values *values);

/* Appends one number to a list of I64. */
void feature_push(struct feature_values *values, int64_t number);

/* Copies values [from, from + count) into a tensor of the same type. */
void feature_store(const struct feature_values *values, int64_t from, int64_t count,
                   struct tensor *out, int64_t index);

/* All values as a vector.  Fails with EXHAUSTED. */
bool feature_tensor(const struct feature_values *values, struct tensor *out,
                    struct error *err) CHECKED;

/* The most that lie between two of `count` ends, the first of which begins at 0. */
int64_t feature_longest(const int64_t *ends, int64_t count);

/* A map entry behind its tag: its key and value, empty when absent; false when malformed. */
bool feature_entry(struct wire *wire, struct wire *name, struct wire *value);

/* "float", "int64", "bytes": what the lists are called in messages. */
const char *feature_list_name(enum dtype dtype);
