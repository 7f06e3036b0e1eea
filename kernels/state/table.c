/*
 * table.c - keys with a number each (keys.h), and values in chunks by number.  A dense table
 * has buckets (dense.h) instead; there the number is that of the bucket.
 */

#include "kernels/state/table.h"
#include "kernels/ref/numbers.h"

#include "base/alloc.h"
#include "base/str.h"
#include "kernels/state/dense.h"
#include "kernels/state/keys.h"

enum { CHUNK_ROWS = 1024 };

struct table {
    struct resource resource; /* first */
    char *name;
    struct table_spec spec;
    struct shape key_shape; /* a scalar but for dense tables */
    int64_t key_size;       /* elements */
    int64_t value_size;

    pthread_rwlock_t lock; /* guards: all below; finding reads, changing writes */
    struct keys *keys;
    struct tensor *chunks; /* of CHUNK_ROWS values each */
    int chunks_count;
    int chunks_capacity;
    bool initialised;
    struct dense dense; /* of a dense table, in place of keys and chunks */
};

static bool is_dense(const struct table *table)
{
    return table->spec.kind == TABLE_DENSE;
}

/* --- keys and values as bytes --- */

static const void *key_bytes(const struct table *table, const struct tensor *keys, int64_t i,
                             size_t *size)
{
    if (keys->dtype == STRING) {
        const struct tensor_string *key = tensor_strings(keys) + i;
        *size = key->size;
        return key->data;
    }
    *size = (size_t)table->key_size * dtype_size(keys->dtype);
    return (const char *)keys->data + (size_t)i * *size;
}

static struct tensor *value_at(struct table *table, int64_t number, int64_t *at)
{
    if (is_dense(table)) {
        *at = number * table->value_size;
        return &table->dense.values;
    }
    *at = number % CHUNK_ROWS * table->value_size;
    return &table->chunks[number / CHUNK_ROWS];
}

/* Room for the value of that number. */
static bool make_room_locked(struct table *table, int64_t number, struct error *err)
{
    while (number / CHUNK_ROWS >= table->chunks_count) {
        table->chunks = alloc_grow(table->chunks, table->chunks_count, &table->chunks_capacity,
                                   sizeof(*table->chunks));
        struct shape shape = SHAPE(CHUNK_ROWS, table->value_size);
        if (!tensor_init(&table->chunks[table->chunks_count], table->spec.value_dtype, &shape,
                         err))
            return false;
        table->chunks_count++;
    }
    return true;
}

/* --- checks --- */

static bool check_types(const struct table *table, enum dtype key, enum dtype value,
                        struct error *err)
{
    if (key != table->spec.key_dtype)
        return fail(err, INVALID, "Key must be type %s but got %s",
                    dtype_name(table->spec.key_dtype), dtype_name(key));
    if (value != DTYPE_NONE && value != table->spec.value_dtype)
        return fail(err, INVALID, "Expected value type %s, got %s",
                    dtype_name(table->spec.value_dtype), dtype_name(value));
    return true;
}

/* How many keys a tensor holds: its shape ends with that of a key. */
static bool check_keys(const struct table *table, const struct tensor *keys, int64_t *count,
                       struct shape *outer, struct error *err)
{
    const struct shape *key = &table->key_shape;
    char text[SHAPE_TEXT_BYTES], wanted[SHAPE_TEXT_BYTES];
    bool fits = keys->shape.rank >= key->rank;
    for (int d = 0; fits && d < key->rank; d++)
        fits = keys->shape.dims[keys->shape.rank - key->rank + d] == key->dims[d];
    if (!fits)
        return fail(err, INVALID, "Input key shape %s must end with the table's key shape %s",
                    shape_text(&keys->shape, text, sizeof(text)),
                    shape_text(key, wanted, sizeof(wanted)));
    int64_t batch = keys->shape.rank ? keys->shape.dims[0] : 1;
    if (is_dense(table) && keys->count != batch * table->key_size)
        return fail(err, INVALID, "Expected a batch of keys of shape %s, got shape %s",
                    shape_text(key, wanted, sizeof(wanted)),
                    shape_text(&keys->shape, text, sizeof(text)));
    *outer = keys->shape;
    outer->rank -= key->rank;
    *count = kernel_span(outer, 0, outer->rank);
    const struct tensor *const refused[] = {&table->dense.empty, &table->dense.deleted};
    for (int r = 0; r < 2 && refused[r]->dtype != DTYPE_NONE; r++) {
        size_t size, other_size;
        const void *other = key_bytes(table, refused[r], 0, &other_size);
        for (int64_t i = 0; i < *count; i++) {
            const void *bytes = key_bytes(table, keys, i, &size);
            if (size == other_size && (!size || !memcmp(bytes, other, size)))
                return fail(err, INVALID, "Using the %s_key as a table key is not allowed",
                            r ? "deleted" : "empty");
        }
    }
    return true;
}

/* `outer` followed by the shape of a value. */
static bool values_shape(const struct table *table, const struct shape *outer,
                         struct shape *out, struct error *err)
{
    *out = *outer;
    return kernel_append_dims(out, &table->spec.value_shape, 0, err);
}

static bool check_values(const struct table *table, const struct tensor *keys,
                         const struct tensor *values, int64_t *count, struct error *err)
{
    struct shape outer, wanted;
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    if (!check_types(table, keys->dtype, values->dtype, err) ||
        !check_keys(table, keys, count, &outer, err) ||
        !values_shape(table, &outer, &wanted, err))
        return false;
    return shape_equal(&wanted, &values->shape) ||
           fail(err, INVALID, "Expected shape %s for value, got %s",
                shape_text(&wanted, a, sizeof(a)), shape_text(&values->shape, b, sizeof(b)));
}

/* --- finding --- */

/* The number of key `i`, -1 if it is not there. */
static bool number_of(const struct table *table, const struct tensor *keys, int64_t i,
                      int64_t *number, struct error *err)
{
    if (is_dense(table))
        return kernel_dense_find(&table->dense, keys, i, number, err);
    size_t bytes;
    const void *key = key_bytes(table, keys, i, &bytes);
    *number = kernel_keys_find(table->keys, key, bytes);
    return true;
}

static bool find_locked(struct table *table, const struct tensor *keys,
                        const struct tensor *missing, int64_t count, struct tensor *out,
                        struct error *err)
{
    int64_t size = table->value_size, at;
    /* A hash table and a dense one look at the first missing value only. */
    bool first = table->spec.kind == TABLE_HASH || is_dense(table);
    int64_t step = missing->count == size || first ? 0 : size;
    if (table->spec.kind == TABLE_HASH && !table->initialised)
        return fail(err, PRECONDITION, "Table not initialized.");
    for (int64_t i = 0; i < count; i++) {
        int64_t number;
        if (!number_of(table, keys, i, &number, err))
            return false;
        if (number >= 0) {
            const struct tensor *chunk = value_at(table, number, &at);
            kernel_copy(out, i * size, chunk, at, size);
        } else {
            kernel_copy(out, i * size, missing, i * step, size);
        }
    }
    return true;
}

bool kernel_table_find(struct table *table, const struct tensor *keys,
                       const struct tensor *missing, struct kernel_call *call,
                       struct error *err)
{
    struct shape outer, shape;
    int64_t count;
    if (!check_types(table, keys->dtype, missing->dtype, err) ||
        !check_keys(table, keys, &count, &outer, err) ||
        !values_shape(table, &outer, &shape, err))
        return false;
    if (!shape_equal(&missing->shape, &table->spec.value_shape) &&
        !shape_equal(&missing->shape, &shape)) {
        char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES], c[SHAPE_TEXT_BYTES];
        return fail(err, INVALID, "Expected shape %s or %s for default value, got %s",
                    shape_text(&table->spec.value_shape, a, sizeof(a)),
                    shape_text(&shape, b, sizeof(b)),
                    shape_text(&missing->shape, c, sizeof(c)));
    }
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    pthread_rwlock_rdlock(&table->lock);
    bool ok = find_locked(table, keys, missing, count, out, err);
    pthread_rwlock_unlock(&table->lock);
    return ok;
}

/* --- changing --- */

static void clear_locked(struct table *table)
{
    kernel_keys_clear(table->keys);
    for (int i = 0; i < table->chunks_count; i++)
        tensor_release(&table->chunks[i]);
    table->chunks_count = 0;
}

static bool set_locked(struct table *table, const struct tensor *keys,
                       const struct tensor *values, int64_t i, struct error *err)
{
    if (is_dense(table))
        return kernel_dense_put(&table->dense, keys, values, i, err);
    size_t bytes;
    const void *key = key_bytes(table, keys, i, &bytes);
    int64_t number = kernel_keys_add(table->keys, key, bytes), at;
    if (!make_room_locked(table, number, err)) {
        kernel_keys_remove(table->keys, key, bytes);
        return false;
    }
    struct tensor *chunk = value_at(table, number, &at);
    kernel_copy(chunk, at, values, i * table->value_size, table->value_size);
    return true;
}

bool kernel_table_insert(struct table *table, const struct tensor *keys,
                         const struct tensor *values, bool only, struct error *err)
{
    int64_t count;
    if (table->spec.kind == TABLE_HASH)
        return fail(err, UNIMPLEMENTED,
                    "Insert not supported by InitializableLookupTable implementations");
    if (!check_values(table, keys, values, &count, err))
        return false;
    bool ok = true;
    pthread_rwlock_wrlock(&table->lock);
    if (only)
        clear_locked(table);
    if (is_dense(table))
        ok = kernel_dense_reserve(&table->dense, count, err);
    for (int64_t i = 0; ok && i < count; i++)
        ok = set_locked(table, keys, values, i, err);
    pthread_rwlock_unlock(&table->lock);
    return ok;
}

static bool remove_locked(struct table *table, const struct tensor *keys, int64_t i,
                          struct error *err)
{
    if (is_dense(table))
        return kernel_dense_remove(&table->dense, keys, i, err);
    size_t bytes;
    const void *key = key_bytes(table, keys, i, &bytes);
    int64_t number = kernel_keys_remove(table->keys, key, bytes), at;
    if (number >= 0) {
        struct tensor *chunk = value_at(table, number, &at);
        kernel_zero(chunk, at, table->value_size);
    }
    return true;
}

bool kernel_table_remove(struct table *table, const struct tensor *keys, struct error *err)
{
    struct shape outer;
    int64_t count;
    if (table->spec.kind == TABLE_HASH)
        return fail(err, UNIMPLEMENTED,
                    "Remove not supported by InitializableLookupTable implementations");
    if (!check_types(table, keys->dtype, DTYPE_NONE, err) ||
        !check_keys(table, keys, &count, &outer, err))
        return false;
    if (is_dense(table) && !keys->shape.rank)
        return fail(err, INVALID, "Keys to remove must be a batch, not a single one");
    bool ok = true;
    pthread_rwlock_wrlock(&table->lock);
    for (int64_t i = 0; ok && i < count; i++)
        ok = remove_locked(table, keys, i, err);
    pthread_rwlock_unlock(&table->lock);
    return ok;
}

bool kernel_table_import(struct table *table, const struct tensor *keys,
                         const struct tensor *values, struct error *err)
{
    if (table->spec.kind == TABLE_HASH)
        return kernel_table_initialise(table, keys, values, err);
    if (!is_dense(table))
        return kernel_table_insert(table, keys, values, true, err);
    if (!check_types(table, keys->dtype, values->dtype, err))
        return false;
    pthread_rwlock_wrlock(&table->lock);
    bool ok = kernel_dense_import(&table->dense, keys, values, err);
    pthread_rwlock_unlock(&table->lock);
    return ok;
}

/* --- filling a hash table --- */

static bool same_value(struct table *table, int64_t number, const struct tensor *values,
                       int64_t i)
{
    int64_t at;
    const struct tensor *chunk = value_at(table, number, &at);
    if (values->dtype == STRING) {
        const struct tensor_string *a = tensor_strings(chunk) + at,
                                   *b = tensor_strings(values) + i;
        return a->size == b->size && (!a->size || !memcmp(a->data, b->data, a->size));
    }
    size_t size = dtype_size(values->dtype);
    return !memcmp((const char *)chunk->data + (size_t)at * size,
                   (const char *)values->data + (size_t)i * size, size);
}

static void add_element(const struct tensor *tensor, int64_t i, struct str *text)
{
    if (tensor->dtype == STRING)
        str_add_bytes(text, tensor_strings(tensor)[i].data, tensor_strings(tensor)[i].size);
    else if (BIT(tensor->dtype) & DTYPES_INTEGER)
        str_printf(text, "%lld", (long long)tensor_integer(tensor, i));
    else
        str_printf(text, "%g", tensor_number(tensor, i));
}

static bool fail_other_value(struct table *table, int64_t number, const struct tensor *keys,
                             const struct tensor *values, int64_t i, struct error *err)
{
    struct str text = {0};
    int64_t at;
    const struct tensor *chunk = value_at(table, number, &at);
    str_add(&text, "Key ");
    add_element(keys, i, &text);
    str_add(&text, " has ");
    add_element(chunk, at, &text);
    str_add(&text, " and trying to add value ");
    add_element(values, i, &text);
    (void)fail(err, PRECONDITION, "HashTable has different value for same key. %s",
               str_text(&text));
    str_release(&text);
    return false;
}

/* What a filling that failed has put in stays there, for the next one to meet. */
static bool fill_locked(struct table *table, const struct tensor *keys,
                        const struct tensor *values, int64_t count, struct error *err)
{
    for (int64_t i = 0; i < count; i++) {
        size_t bytes;
        const void *key = key_bytes(table, keys, i, &bytes);
        int64_t number = kernel_keys_find(table->keys, key, bytes);
        if (number >= 0 && !same_value(table, number, values, i))
            return fail_other_value(table, number, keys, values, i, err);
        if (number < 0 && !set_locked(table, keys, values, i, err))
            return false;
    }
    return true;
}

bool kernel_table_fill(struct table *table, const struct tensor *keys,
                       const struct tensor *values, int64_t count, const struct error *why,
                       struct error *err)
{
    pthread_rwlock_wrlock(&table->lock);
    bool ok = true;
    if (table->initialised) {
        ok = keys->count == kernel_keys_count(table->keys) ||
             fail(err, PRECONDITION, "Table was already initialized with different data.");
    } else {
        ok = fill_locked(table, keys, values, count, err);
        if (ok && why) {
            *err = *why;
            ok = false;
        }
        table->initialised = ok;
    }
    pthread_rwlock_unlock(&table->lock);
    return ok;
}

bool kernel_table_initialise(struct table *table, const struct tensor *keys,
                             const struct tensor *values, struct error *err)
{
    if (!check_types(table, keys->dtype, values->dtype, err))
        return false;
    if (keys->count != values->count)
        return fail(err, INVALID, "Keys and values must have the same size %lld vs %lld",
                    (long long)keys->count, (long long)values->count);
    if (!keys->count)
        return fail(err, INVALID, "keys and values cannot be empty tensors.");
    return kernel_table_fill(table, keys, values, keys->count, NULL, err);
}

int64_t kernel_table_size(struct table *table)
{
    pthread_rwlock_rdlock(&table->lock);
    bool hidden = table->spec.kind == TABLE_HASH && !table->initialised;
    int64_t size = hidden            ? 0
                   : is_dense(table) ? table->dense.count
                                     : kernel_keys_count(table->keys);
    pthread_rwlock_unlock(&table->lock);
    return size;
}

/* --- all of it --- */

static bool export_buckets_locked(struct table *table, struct kernel_call *call,
                                  struct error *err)
{
    const struct tensor *all[] = {&table->dense.keys, &table->dense.values};
    for (int i = 0; i < 2; i++) {
        struct tensor *out = kernel_output(call, i, &all[i]->shape, err);
        if (!out)
            return false;
        kernel_copy(out, 0, all[i], 0, all[i]->count);
    }
    return true;
}

static bool export_locked(struct table *table, struct kernel_call *call, struct error *err)
{
    if (is_dense(table))
        return export_buckets_locked(table, call, err);
    struct shape outer = SHAPE(kernel_keys_count(table->keys)), keys_shape = outer, shape;
    if (!kernel_append_dims(&keys_shape, &table->key_shape, 0, err) ||
        !values_shape(table, &outer, &shape, err))
        return false;
    struct tensor *keys = kernel_output(call, 0, &keys_shape, err);
    struct tensor *values = keys ? kernel_output(call, 1, &shape, err) : NULL;
    int64_t row = 0, at;
    /* The newest first, as it is in TensorFlow as long as there are few. */
    for (int64_t i = kernel_keys_numbers(table->keys); values && i-- > 0;) {
        size_t size;
        const void *key = kernel_keys_at(table->keys, i, &size);
        if (!key)
            continue;
        if (keys->dtype == STRING)
            tensor_set_string(keys, row, key, size);
        else
            memcpy((char *)keys->data + (size_t)row * size, key, size);
        const struct tensor *chunk = value_at(table, i, &at);
        kernel_copy(values, row * table->value_size, chunk, at, table->value_size);
        row++;
    }
    return values;
}

bool kernel_table_export(struct table *table, struct kernel_call *call, struct error *err)
{
    pthread_rwlock_rdlock(&table->lock);
    bool ok = table->spec.kind == TABLE_HASH && !table->initialised
                  ? fail(err, ABORTED, "HashTable is not initialized.")
                  : export_locked(table, call, err);
    pthread_rwlock_unlock(&table->lock);
    return ok;
}

/* --- life --- */

static void destroy(struct resource *resource)
{
    struct table *table = (struct table *)resource;
    clear_locked(table); /* nobody else is left */
    kernel_keys_free(table->keys);
    kernel_dense_release(&table->dense);
    pthread_rwlock_destroy(&table->lock);
    free(table->chunks);
    free(table->name);
    free(table);
}

/* The two keys of a dense table say what a key looks like. */
static bool set_refused(struct table *table, const struct tensor *const *refused,
                        struct error *err)
{
    const struct shape *shape = &refused[0]->shape;
    if (table->spec.key_dtype == STRING ? shape->rank > 0 : shape->rank > 1)
        return fail(err, INVALID, "Empty key must be a scalar or a vector");
    if (table->spec.value_shape.rank > 1)
        return fail(err, INVALID, "Empty value must be a scalar or a vector");
    table->key_shape = *shape;
    table->key_size = refused[0]->count;
    table->dense.key_size = table->key_size;
    table->dense.value_size = table->value_size;
    table->dense.value_dtype = table->spec.value_dtype;
    table->dense.load = table->spec.load;
    tensor_share(&table->dense.empty, refused[0]);
    if (refused[1]) { /* the first version has no deleted key */
        if (!shape_equal(shape, &refused[1]->shape))
            return fail(err, INVALID, "Empty and deleted keys must have same shape");
        if (tensor_equal(refused[0], refused[1]))
            return fail(err, INVALID, "Empty and deleted keys cannot be equal");
        tensor_share(&table->dense.deleted, refused[1]);
    }
    return kernel_dense_begin(&table->dense, table->spec.buckets, err);
}

struct table *kernel_table_new(const struct table_spec *spec, const char *name,
                               const struct tensor *const *refused, struct error *err)
{
    if (!shape_is_full(&spec->value_shape))
        return fail_null(err, INVALID, "the shape of the values of table '%s' is not known",
                         name);
    struct table *table = alloc_bytes(sizeof(*table));
    *table = (struct table){
        .resource = {.kind = TABLE_KIND, .references = 1, .destroy = destroy},
        .name = alloc_text(name),
        .spec = *spec,
        .key_size = 1,
        .value_size = shape_count(&spec->value_shape),
        .keys = kernel_keys_new(),
    };
    pthread_rwlock_init(&table->lock, NULL);
    if (refused && !set_refused(table, refused, err)) {
        resource_unref(&table->resource);
        return NULL;
    }
    return table;
}

struct resource *kernel_table_resource(struct table *table)
{
    return &table->resource;
}

const struct table_spec *kernel_table_spec(const struct table *table)
{
    return &table->spec;
}

const char *kernel_table_name(const struct table *table)
{
    return table->name;
}
