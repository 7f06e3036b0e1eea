/*
 * parse_feature.h - the features of a tf.Example that somebody asked for, found by name.
 *
 * What is shared by Example and SequenceExample.
 */
#pragma once

#include "runtime/io/feature.h"

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
