/*
 * table.h - from keys to values: lookup tables of all kinds.
 *
 * A plain hash table is filled once, by whoever initialises it; the others change.  Values may
 * be tensors of one shape.  A dense table has two keys that it refuses, as TensorFlow's uses
 * them for marks.
 */
#pragma once

#include "kernels/ref/numbers.h"
#include "runtime/resource.h"

#define TABLE_KIND "table"

enum table_kind { TABLE_HASH, TABLE_MUTABLE, TABLE_TENSORS, TABLE_DENSE };

struct table_spec {
    enum table_kind kind;
    enum dtype key_dtype;
    enum dtype value_dtype;
    struct shape value_shape;
    int64_t buckets; /* of a dense table, at its beginning */
    float load;      /* how full they may be */
};

struct table;

/* `refused`: NULL, or for a dense table the empty and the deleted key. */
struct table *kernel_table_new(const struct table_spec *spec, const char *name,
                               const struct tensor *const *refused, struct error *err) CHECKED;
struct resource *kernel_table_resource(struct table *table);
const struct table_spec *kernel_table_spec(const struct table *table);
const char *kernel_table_name(const struct table *table);

/*
 * The values of the keys, in the shape of `keys` followed by that of a value; `missing` (one
 * value, or one for each key) where there is none.  Fails with PRECONDITION before a hash table
 * was initialised, INVALID when types or shapes do not fit.
 */
bool kernel_table_find(struct table *table, const struct tensor *keys,
                       const struct tensor *missing, struct kernel_call *call,
                       struct error *err) CHECKED;

/* Adds or replaces; UNIMPLEMENTED for a hash table. `only`: and removes all others, not of a
 * dense table. */
bool kernel_table_insert(struct table *table, const struct tensor *keys,
                         const struct tensor *values, bool only, struct error *err) CHECKED;

/*
 * Takes what an export gave in place of all there is.  Into a hash table that is to initialise
 * it; a dense table gives and takes its buckets, free ones too.
 */
bool kernel_table_import(struct table *table, const struct tensor *keys,
                         const struct tensor *values, struct error *err) CHECKED;

bool kernel_table_remove(struct table *table, const struct tensor *keys,
                         struct error *err) CHECKED;

/*
 * Fills a hash table.  Once it is filled, another filling is compared by its size alone and
 * changes nothing: PRECONDITION when it differs, or when a key has two values.
 */
bool kernel_table_initialise(struct table *table, const struct tensor *keys,
                             const struct tensor *values, struct error *err) CHECKED;

/*
 * The same of vectors of the right types, of which only the first `count` could be read; `why`,
 * unless NULL, says why not more, and is the error when nothing was wrong before.
 */
bool kernel_table_fill(struct table *table, const struct tensor *keys,
                       const struct tensor *values, int64_t count, const struct error *why,
                       struct error *err) CHECKED;

int64_t kernel_table_size(struct table *table);

/* All keys and all values (of a dense table: its buckets), as outputs 0 and 1. */
bool kernel_table_export(struct table *table, struct kernel_call *call,
                         struct error *err) CHECKED;
