/* table_ops.c - the nodes that fill tables, look things up in them and change them. */

#include "kernels/state/handle.h"
#include "kernels/state/table.h"

#include "base/alloc.h"
#include "kernels/state/table_text.h"

typedef bool table_use(struct table *table, struct kernel_call *call, struct error *err);

/* Runs `use` with the table behind input 0. */
static bool with_table(struct kernel_call *call, table_use *use, struct error *err)
{
    struct table *table = (struct table *)kernel_handle_get(call, 0, TABLE_KIND, err);
    if (!table)
        return false;
    bool ok = use(table, call, err);
    resource_unref(kernel_table_resource(table));
    return ok;
}

static bool find(struct table *table, struct kernel_call *call, struct error *err)
{
    return kernel_table_find(table, kernel_in(call, 1), kernel_in(call, 2), call, err);
}

static bool insert(struct table *table, struct kernel_call *call, struct error *err)
{
    return kernel_table_insert(table, kernel_in(call, 1), kernel_in(call, 2), false, err);
}

static bool import(struct table *table, struct kernel_call *call, struct error *err)
{
    return kernel_table_import(table, kernel_in(call, 1), kernel_in(call, 2), err);
}

static bool take_out(struct table *table, struct kernel_call *call, struct error *err)
{
    return kernel_table_remove(table, kernel_in(call, 1), err);
}

static bool size(struct table *table, struct kernel_call *call, struct error *err)
{
    struct tensor *out = kernel_output(call, 0, &SHAPE_SCALAR, err);
    if (out)
        *(int64_t *)out->data = kernel_table_size(table);
    return out;
}

static bool check_export(struct table *table, struct kernel_call *call, struct error *err)
{
    const struct table_spec *spec = kernel_table_spec(table);
    const int *types = call->node->output_types;
    if (types[0] != (int)spec->key_dtype || types[1] != (int)spec->value_dtype)
        return fail(err, INVALID, "Signature mismatch: table '%s' holds %s->%s, not %s->%s",
                    kernel_table_name(table), dtype_name(spec->key_dtype),
                    dtype_name(spec->value_dtype), dtype_name(types[0]), dtype_name(types[1]));
    return kernel_table_export(table, call, err);
}

static bool check_hash(struct table *table, struct error *err)
{
    return kernel_table_spec(table)->kind == TABLE_HASH ||
           fail(err, INVALID, "Table '%s' cannot be initialized", kernel_table_name(table));
}

static bool initialise(struct table *table, struct kernel_call *call, struct error *err)
{
    const struct tensor *keys = kernel_in(call, 1), *values = kernel_in(call, 2);
    char text[SHAPE_TEXT_BYTES];
    if (!check_hash(table, err))
        return false;
    if (keys->shape.rank != 1 || values->shape.rank != 1)
        return fail(err, INVALID, "Keys and values must be vectors, not of shape %s",
                    shape_text(keys->shape.rank != 1 ? &keys->shape : &values->shape, text,
                               sizeof(text)));
    return kernel_table_initialise(table, keys, values, err);
}

static bool initialise_from_text(struct table *table, struct kernel_call *call,
                                 struct error *err)
{
    const struct tensor *name = kernel_in(call, 1);
    if (!check_hash(table, err))
        return false;
    if (name->count != 1)
        return fail(err, INVALID, "filename should be a single string, but got %lld",
                    (long long)name->count);
    const struct tensor_string *path = tensor_strings(name);
    char *text = alloc_text_n(path->size ? path->data : "", path->size);
    bool ok = kernel_table_text_read(table, text, call->node, err);
    free(text);
    return ok;
}

static bool text_prepare(const struct node *node, void **state, struct error *err)
{
    (void)state;
    return strlen(node_attr_string(node, "delimiter", "\t")) == 1 ||
           fail(err, INVALID, "delimiter should be only 1 char");
}

#define TABLE_KERNEL(name_, op_, use_, prepare_)                                               \
    static bool name_##_run(struct kernel_call *call, struct error *err)                       \
    {                                                                                          \
        return with_table(call, use_, err);                                                    \
    }                                                                                          \
    const struct kernel kernel_##name_ = {                                                     \
        .op = op_, .device = CPU, .prepare = prepare_, .run = name_##_run}
#define BOTH(name_, op_, use_, prepare_)                                                       \
    TABLE_KERNEL(name_, op_, use_, prepare_);                                                  \
    TABLE_KERNEL(name_##_v2, op_ "V2", use_, prepare_)

BOTH(lookup_table_find, "LookupTableFind", find, NULL);
BOTH(lookup_table_insert, "LookupTableInsert", insert, NULL);
BOTH(lookup_table_import, "LookupTableImport", import, NULL);
TABLE_KERNEL(lookup_table_remove_v2, "LookupTableRemoveV2", take_out, NULL);
BOTH(lookup_table_size, "LookupTableSize", size, NULL);
BOTH(lookup_table_export, "LookupTableExport", check_export, NULL);
BOTH(initialize_table, "InitializeTable", initialise, NULL);
BOTH(initialize_table_from_text_file, "InitializeTableFromTextFile", initialise_from_text,
     text_prepare);
