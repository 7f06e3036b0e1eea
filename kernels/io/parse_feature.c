/* parse_feature.c - finds features by name. */

#include "kernels/io/parse_feature.h"

#include "base/alloc.h"
#include "base/error.h"

/* --- names --- */

void kernel_feature_keys_init(struct feature_keys *keys, int count)
{
    uint32_t size = 4;
    while (size < 2 * (uint32_t)count)
        size *= 2;
    *keys = (struct feature_keys){
        .keys = alloc_array((size_t)count, sizeof(*keys->keys)),
        .count = count,
        .table = alloc_array(size, sizeof(*keys->table)),
        .mask = size - 1,
    };
}

void kernel_feature_keys_release(struct feature_keys *keys)
{
    free(keys->keys);
    free(keys->table);
}

static uint32_t hash(const uint8_t *name, size_t size)
{
    uint32_t value = 2166136261u;
    for (size_t i = 0; i < size; i++)
        value = (value ^ name[i]) * 16777619u;
    return value ^ value >> 15;
}

int kernel_feature_find(const struct feature_keys *keys, const void *name, size_t size)
{
    for (uint32_t at = hash(name, size);; at++) {
        int index = keys->table[at & keys->mask] - 1;
        if (index < 0)
            return -1;
        const struct feature_key *key = &keys->keys[index];
        if (key->name_size == size && (!size || memcmp(key->name, name, size) == 0))
            return index;
    }
}

bool kernel_feature_index(struct feature_keys *keys, struct error *err)
{
    for (int i = 0; i < keys->count; i++) {
        const struct feature_key *key = &keys->keys[i];
        if (!((BIT(I64) | BIT(F32) | BIT(STRING)) & BIT(key->dtype)))
            return fail(err, INVALID, "Invalid type for feature '%.*s': %s",
                        (int)key->name_size, key->name, dtype_name(key->dtype));
        if (kernel_feature_find(keys, key->name, key->name_size) >= 0)
            return fail(err, INTERNAL, "feature '%.*s' is asked for twice", (int)key->name_size,
                        key->name);
        uint32_t at = hash((const uint8_t *)key->name, key->name_size);
        while (keys->table[at & keys->mask])
            at++;
        keys->table[at & keys->mask] = i + 1;
    }
    return true;
}

bool kernel_feature_set_shape(struct feature_key *key, const struct shape *shape,
                              struct error *err)
{
    char text[SHAPE_TEXT_BYTES];
    struct shape row = *shape;
    key->shape = *shape;
    key->variable = shape->rank > 0 && shape->dims[0] == -1;
    if (key->variable)
        row.dims[0] = 1;
    key->stride = shape_count(&row);
    if (key->stride < 0)
        return fail(err, INVALID,
                    "dense_shapes has unknown rank or unknown inner dimensions: %s",
                    shape_text(shape, text, sizeof(text)));
    return true;
}

bool kernel_feature_check_default(const struct feature_key *key, int index, struct error *err)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    const struct tensor *value = key->default_value;
    shape_text(&key->shape, a, sizeof(a));
    shape_text(&value->shape, b, sizeof(b));
    if (value->dtype != key->dtype)
        return fail(err, INVALID, "dense_defaults[%d].dtype() == %s != dense_types[%d] == %s",
                    index, dtype_name(value->dtype), index, dtype_name(key->dtype));
    if (key->variable && value->count != 1)
        return fail(
            err, INVALID,
            "dense_shape[%d] is a variable length shape: %s, therefore def_value[%d] "
            "must contain a single element (the padding element).  But its shape is: %s",
            index, a, index, b);
    if (!key->variable && value->count > 0 && !shape_compatible(&key->shape, &value->shape))
        return fail(err, INVALID,
                    "def_value[%d].shape() == %s is not compatible with dense_shapes_[%d] == "
                    "%s",
                    index, b, index, a);
    return true;
}
