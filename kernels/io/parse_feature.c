/* parse_feature.c - finds features by name and reads their lists of values. */

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

bool kernel_feature_tensor(const struct feature_values *values, struct tensor *out,
                           struct error *err)
{
    if (!tensor_init(out, values->dtype, &SHAPE(values->count), err))
        return false;
    kernel_feature_store(values, 0, values->count, out, 0);
    return true;
}

int64_t kernel_feature_longest(const int64_t *ends, int64_t count)
{
    int64_t most = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t length = ends[i] - (i ? ends[i - 1] : 0);
        most = length > most ? length : most;
    }
    return most;
}

bool kernel_feature_entry(struct wire *wire, struct wire *name, struct wire *value)
{
    struct wire entry;
    if (!kernel_wire_piece(wire, &entry))
        return false;
    *name = *value = (struct wire){entry.at, entry.at};
    while (entry.at < entry.end) {
        uint64_t tag;
        if (!kernel_wire_varint(&entry, &tag))
            return false;
        bool ok = tag == WIRE_TAG(1, WIRE_BYTES)   ? kernel_wire_piece(&entry, name)
                  : tag == WIRE_TAG(2, WIRE_BYTES) ? kernel_wire_piece(&entry, value)
                                                   : kernel_wire_skip(&entry, tag);
        if (!ok)
            return false;
    }
    return true;
}

/* --- values --- */

const char *kernel_feature_list_name(enum dtype dtype)
{
    return dtype == STRING ? "bytes" : dtype_name(dtype);
}

void kernel_feature_values_release(struct feature_values *values)
{
    free(values->data);
    *values = (struct feature_values){.dtype = values->dtype};
}

static size_t value_size(enum dtype dtype)
{
    return dtype == STRING ? sizeof(struct tensor_string) : dtype_size(dtype);
}

/* Room for `more` values: never more than the message has bytes. */
static void *values_extend(struct feature_values *values, int64_t more)
{
    size_t size = value_size(values->dtype);
    if (values->count + more > values->capacity) {
        values->capacity = 2 * values->capacity + more;
        values->data = alloc_resize(values->data, (size_t)values->capacity * size);
    }
    void *room = (char *)values->data + (size_t)values->count * size;
    values->count += more;
    return room;
}

void kernel_feature_push(struct feature_values *values, int64_t number)
{
    assert(values->dtype == I64);
    memcpy(values_extend(values, 1), &number, sizeof(number));
}

bool kernel_feature_dtype(struct wire feature, enum dtype *dtype)
{
    static const enum dtype types[] = {STRING, F32, I64};
    *dtype = DTYPE_NONE;
    if (feature.at == feature.end)
        return true;
    for (int i = 0; i < ARRAY_LEN(types); i++)
        if (*feature.at == WIRE_TAG(i + 1, WIRE_BYTES))
            *dtype = types[i];
    return *dtype != DTYPE_NONE;
}

static bool append_packed(struct wire piece, struct feature_values *values)
{
    if (values->dtype == F32) {
        size_t size = kernel_wire_left(&piece);
        if (size % 4)
            return false;
        if (size)
            memcpy(values_extend(values, (int64_t)(size / 4)), piece.at, size);
        return true;
    }
    while (piece.at < piece.end) {
        uint64_t number;
        if (!kernel_wire_varint(&piece, &number))
            return false;
        memcpy(values_extend(values, 1), &number, sizeof(number));
    }
    return true;
}

/* One field of a list: a string, numbers packed, or one number. */
static bool append_field(struct wire *list, uint64_t tag, struct feature_values *values)
{
    struct wire piece;
    uint64_t number;
    if (tag == WIRE_TAG(1, WIRE_BYTES)) {
        if (!kernel_wire_piece(list, &piece))
            return false;
        if (values->dtype != STRING)
            return append_packed(piece, values);
        struct tensor_string *text = values_extend(values, 1);
        *text = (struct tensor_string){(char *)piece.at, kernel_wire_left(&piece)};
        return true;
    }
    if (values->dtype == I64 && tag == WIRE_TAG(1, WIRE_VARINT)) {
        if (!kernel_wire_varint(list, &number))
            return false;
        memcpy(values_extend(values, 1), &number, sizeof(number));
        return true;
    }
    if (values->dtype == F32 && tag == WIRE_TAG(1, WIRE_FIXED32)) {
        if (kernel_wire_left(list) < 4)
            return false;
        memcpy(values_extend(values, 1), list->at, 4);
        list->at += 4;
        return true;
    }
    return false;
}

bool kernel_feature_append(struct wire feature, struct feature_values *values)
{
    struct wire list;
    feature.at++; /* its tag, which said the type */
    if (!kernel_wire_piece(&feature, &list))
        return false;
    while (list.at < list.end) {
        uint64_t tag;
        if (!kernel_wire_varint(&list, &tag) || !append_field(&list, tag, values))
            return false;
    }
    return true;
}

void kernel_feature_store(const struct feature_values *values, int64_t from, int64_t count,
                          struct tensor *out, int64_t index)
{
    size_t size = value_size(values->dtype);
    if (values->dtype == STRING) {
        const struct tensor_string *texts = values->data;
        for (int64_t i = 0; i < count; i++)
            tensor_set_string(out, index + i, texts[from + i].data, texts[from + i].size);
    } else if (count) {
        memcpy((char *)out->data + (size_t)index * size,
               (const char *)values->data + (size_t)from * size, (size_t)count * size);
    }
}
