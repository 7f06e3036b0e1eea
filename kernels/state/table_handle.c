/* table_handle.c - the nodes that make tables: shared by name, or new at every run. */

#include "kernels/state/dense.h"
#include "kernels/state/handle.h"
#include "kernels/state/table.h"

#include "base/alloc.h"

/* --- what the node says --- */

static const struct {
    const char *in_name;
    enum table_kind kind;
} kinds[] = {
    {"DenseHashTable", TABLE_DENSE},
    {"HashTableOfTensors", TABLE_TENSORS},
    {"MutableHashTable", TABLE_MUTABLE},
    {"HashTable", TABLE_HASH},
};

static enum table_kind kind_of(const struct node *node)
{
    for (int i = 0; i < ARRAY_LEN(kinds); i++)
        if (strstr(node->op->name, kinds[i].in_name))
            return kinds[i].kind;
    assert(!"a node that makes a table");
    return TABLE_HASH;
}

static struct table_spec spec_of(const struct node *node)
{
    const struct shape *shape = node_attr_shape(node, "value_shape");
    return (struct table_spec){
        .kind = kind_of(node),
        .key_dtype = (enum dtype)node_attr_type(node, "key_dtype"),
        .value_dtype = (enum dtype)node_attr_type(node, "value_dtype"),
        .value_shape = shape ? *shape : SHAPE_SCALAR,
        .buckets = node_attr_int(node, "initial_num_buckets", 131072),
        .load = node_attr_float(node, "max_load_factor", 0.8f),
    };
}

/* --- which types of keys and values there are, by kind --- */

#define NUMBERS (BIT(I32) | BIT(F32) | BIT(F64))

static uint64_t values_of(enum table_kind kind, enum dtype key)
{
    uint64_t by_key = key == STRING ? NUMBERS | BIT(I64) | BIT(BOOL)
                      : key == I64  ? NUMBERS | BIT(I64)
                      : key == I32  ? NUMBERS
                                    : 0;
    switch (by_key ? kind : TABLE_MUTABLE) {
    case TABLE_HASH:
        return by_key | BIT(STRING);
    case TABLE_DENSE:
        return by_key | (key == STRING ? BIT(RESOURCE) : 0) |
               (key == I64 ? BIT(BOOL) | BIT(VARIANT) : 0);
    case TABLE_MUTABLE:
        return by_key | (key == I64 ? BIT(STRING) | BIT(VARIANT) : 0);
    default:
        return by_key | (key == I64 ? BIT(STRING) : 0);
    }
}

static bool accepts(const struct node *node)
{
    struct table_spec spec = spec_of(node);
    return values_of(spec.kind, spec.key_dtype) & BIT(spec.value_dtype);
}

/* --- making --- */

static bool check_dense(const struct table_spec *spec, struct error *err)
{
    if (!(spec->load > 0 && spec->load < 1))
        return fail(err, INVALID, "max_load_factor must be between 0 and 1, got: %g",
                    (double)spec->load);
    return kernel_dense_buckets_ok(spec->buckets, err);
}

static bool table_read(const struct node *node, void **out, struct error *err)
{
    struct table_spec spec = spec_of(node);
    char text[SHAPE_TEXT_BYTES];
    if (spec.kind == TABLE_DENSE && !check_dense(&spec, err))
        return false;
    if (spec.kind == TABLE_TENSORS && spec.value_shape.rank != 1)
        return fail(err, INVALID, "Default value must be a vector, got shape %s",
                    shape_text(&spec.value_shape, text, sizeof(text)));
    struct table_spec *copy = alloc_bytes(sizeof(*copy));
    *copy = spec;
    *out = copy;
    return true;
}

static struct resource *table_make(const void *arg, const char *name, struct kernel_call *call,
                                   struct error *err)
{
    const struct table_spec *spec = arg;
    const struct tensor *const refused[] = {
        spec->kind == TABLE_DENSE ? call->in[0] : NULL,
        call->in_count > 1 ? call->in[1] : NULL, /* not in the first version */
    };
    struct table *table = kernel_table_new(spec, name, refused[0] ? refused : NULL, err);
    return table ? kernel_table_resource(table) : NULL;
}

static bool table_matches(const struct resource *resource, const void *arg,
                          const struct node *node, struct error *err)
{
    const struct table *table = (const struct table *)resource;
    const struct table_spec *a = kernel_table_spec(table), *b = arg;
    if (a->kind != b->kind || a->key_dtype != b->key_dtype || a->value_dtype != b->value_dtype)
        return fail(err, INVALID,
                    "Conflicting key/value dtypes %s->%s with %s-%s for table %s of node %s",
                    dtype_name(b->key_dtype), dtype_name(b->value_dtype),
                    dtype_name(a->key_dtype), dtype_name(a->value_dtype),
                    kernel_table_name(table), node->name);
    return true;
}

static const struct handle_class table_class = {
    .kind = TABLE_KIND,
    .by_node_name = true,
    .read = table_read,
    .free = free,
    .make = table_make,
    .matches = table_matches,
};

static bool named_prepare(const struct node *node, void **state, struct error *err)
{
    return kernel_handle_prepare(&table_class, node, state, err);
}

/* --- without a name: whoever holds the handle keeps the table --- */

static bool anonymous_prepare(const struct node *node, void **state, struct error *err)
{
    return table_read(node, state, err);
}

static bool anonymous_run(struct kernel_call *call, struct error *err)
{
    struct resource *table = table_make(call->state, call->node->name, call, err);
    bool ok = table && kernel_output_resource(call, 0, table, NULL, NULL, err);
    resource_unref(table);
    return ok;
}

#define NAMED(name_, op_)                                                                      \
    const struct kernel kernel_##name_ = {                                                     \
        .op = op_,                                                                             \
        .device = CPU,                                                                         \
        .accepts = accepts,                                                                    \
        .prepare = named_prepare,                                                              \
        .release = kernel_handle_release,                                                      \
        .run = kernel_handle_run,                                                              \
    }
#define ANONYMOUS(name_, op_)                                                                  \
    const struct kernel kernel_##name_ = {                                                     \
        .op = op_,                                                                             \
        .device = CPU,                                                                         \
        .accepts = accepts,                                                                    \
        .prepare = anonymous_prepare,                                                          \
        .release = free,                                                                       \
        .run = anonymous_run,                                                                  \
    }

NAMED(hash_table, "HashTable");
NAMED(hash_table_v2, "HashTableV2");
NAMED(mutable_hash_table, "MutableHashTable");
NAMED(mutable_hash_table_v2, "MutableHashTableV2");
NAMED(mutable_hash_table_of_tensors, "MutableHashTableOfTensors");
NAMED(mutable_hash_table_of_tensors_v2, "MutableHashTableOfTensorsV2");
NAMED(mutable_dense_hash_table, "MutableDenseHashTable");
NAMED(mutable_dense_hash_table_v2, "MutableDenseHashTableV2");
ANONYMOUS(anonymous_hash_table, "AnonymousHashTable");
ANONYMOUS(anonymous_mutable_hash_table, "AnonymousMutableHashTable");
ANONYMOUS(anonymous_mutable_hash_table_of_tensors, "AnonymousMutableHashTableOfTensors");
ANONYMOUS(anonymous_mutable_dense_hash_table, "AnonymousMutableDenseHashTable");
