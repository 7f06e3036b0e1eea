/* slice_file_writer.c - a file of the V1 format: gathered, sorted by key, written at once. */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/io/file.h"
#include "runtime/io/internal.h"
#include "runtime/io/slice_file.h"
#include "runtime/io/table.h"

/* A key of the table and its value. */
struct item {
    struct str key;
    struct str value;
};

struct slice_file_writer {
    struct slice_file_tensor *tensors;
    int tensors_count;
    int tensors_capacity;
    struct item *items;
    int items_count;
    int items_capacity;
};

struct slice_file_writer *slice_file_writer_new(void)
{
    return alloc_bytes(sizeof(struct slice_file_writer));
}

void slice_file_writer_free(struct slice_file_writer *writer)
{
    if (!writer)
        return;
    for (int i = 0; i < writer->tensors_count; i++) {
        free((char *)writer->tensors[i].name);
        free(writer->tensors[i].slices);
    }
    for (int i = 0; i < writer->items_count; i++) {
        str_release(&writer->items[i].key);
        str_release(&writer->items[i].value);
    }
    free(writer->tensors);
    free(writer->items);
    free(writer);
}

static struct slice_file_tensor *find_tensor(struct slice_file_writer *writer, const char *name,
                                             const struct shape *full, enum dtype dtype)
{
    for (int i = 0; i < writer->tensors_count; i++)
        if (strcmp(writer->tensors[i].name, name) == 0)
            return &writer->tensors[i];
    writer->tensors = alloc_grow(writer->tensors, writer->tensors_count,
                                 &writer->tensors_capacity, sizeof(*writer->tensors));
    struct slice_file_tensor *tensor = &writer->tensors[writer->tensors_count++];
    *tensor = (struct slice_file_tensor){
        .name = alloc_text(name), .dtype = (int)dtype, .shape = *full};
    return tensor;
}

static bool check_slice(const struct slice_file_tensor *tensor, const struct shape *full,
                        const struct bundle_slice *slice, enum dtype dtype, struct error *err)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    if (!shape_equal(&tensor->shape, full))
        return fail(err, INTERNAL,
                    "Mismatching shapes: existing tensor = %s, trying to add name %s, shape = "
                    "%s",
                    shape_text(&tensor->shape, a, sizeof(a)), tensor->name,
                    shape_text(full, b, sizeof(b)));
    if (tensor->dtype != (int)dtype)
        return fail(err, INTERNAL,
                    "Mismatching types: existing type = %s, trying to add name %s, type = %s",
                    dtype_name(tensor->dtype), tensor->name, dtype_name(dtype));
    for (int i = 0; i < tensor->slices_count; i++)
        if (bundle_slice_common(full, &tensor->slices[i], slice) ||
            bundle_slice_equal(&tensor->slices[i], slice))
            return fail(err, INTERNAL, "Overlapping slices of tensor '%s'", tensor->name);
    return true;
}

bool slice_file_writer_add(struct slice_file_writer *writer, const char *name,
                           const struct shape *full, const struct bundle_slice *slice,
                           const struct tensor *tensor, struct error *err)
{
    struct bundle_slice all = {.rank = full->rank};
    for (int d = 0; d < full->rank; d++)
        all.length[d] = -1;
    if (!slice)
        slice = &all;
    if (!(BIT(tensor->dtype) & (DTYPES_NUMBER | DTYPES_QUANTIZED | BIT(BOOL) | BIT(STRING))))
        return fail(err, UNIMPLEMENTED, "tensor '%s': type %s cannot be saved", name,
                    dtype_name(tensor->dtype));
    struct slice_file_tensor *entry = find_tensor(writer, name, full, tensor->dtype);
    if (!check_slice(entry, full, slice, tensor->dtype, err))
        return false;
    entry->slices = alloc_grow(entry->slices, entry->slices_count, &entry->slices_capacity,
                               sizeof(*entry->slices));
    entry->slices[entry->slices_count++] = *slice;
    writer->items = alloc_grow(writer->items, writer->items_count, &writer->items_capacity,
                               sizeof(*writer->items));
    struct item *item = &writer->items[writer->items_count++];
    bundle_slice_key(name, strlen(name), slice, &item->key);
    slice_file_add_data(&item->value, name, slice, tensor);
    return true;
}

static int compare_items(const void *a, const void *b)
{
    const struct str *x = &((const struct item *)a)->key, *y = &((const struct item *)b)->key;
    size_t size = x->size < y->size ? x->size : y->size;
    int order = memcmp(x->data, y->data, size);
    return order ? order : (x->size > y->size) - (x->size < y->size);
}

bool slice_file_writer_finish(struct slice_file_writer *writer, const char *path,
                              struct error *err)
{
    struct table_writer table;
    struct str meta = {0};
    table_writer_init(&table);
    slice_file_add_meta(&meta, writer->tensors, writer->tensors_count);
    table_writer_add(&table, "", 0, meta.data, meta.size);
    if (writer->items_count)
        qsort(writer->items, (size_t)writer->items_count, sizeof(*writer->items),
              compare_items);
    for (int i = 0; i < writer->items_count; i++)
        table_writer_add(&table, writer->items[i].key.data, writer->items[i].key.size,
                         writer->items[i].value.data, writer->items[i].value.size);
    table_writer_finish(&table);
    bool ok = file_write(path, table.out.data, table.out.size, err);
    table_writer_release(&table);
    str_release(&meta);
    return ok;
}
