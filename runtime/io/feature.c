/* feature.c - lists of values, taken out of protobuf's wire format. */

#include "runtime/io/feature.h"

#include "base/alloc.h"
#include "base/error.h"

bool feature_entry(struct wire *wire, struct wire *name, struct wire *value)
{
    struct wire entry;
    if (!wire_piece(wire, &entry))
        return false;
    *name = *value = (struct wire){entry.at, entry.at};
    while (entry.at < entry.end) {
        uint64_t tag;
        if (!wire_varint(&entry, &tag))
            return false;
        bool ok = tag == WIRE_TAG(1, WIRE_BYTES)   ? wire_piece(&entry, name)
                  : tag == WIRE_TAG(2, WIRE_BYTES) ? wire_piece(&entry, value)
                                                   : wire_skip(&entry, tag);
        if (!ok)
            return false;
    }
    return true;
}

/* --- values --- */

const char *feature_list_name(enum dtype dtype)
{
    return dtype == STRING ? "bytes" : dtype_name(dtype);
}

void feature_values_release(struct feature_values *values)
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

void feature_push(struct feature_values *values, int64_t number)
{
    assert(values->dtype == I64);
    memcpy(values_extend(values, 1), &number, sizeof(number));
}

bool feature_dtype(struct wire feature, enum dtype *dtype)
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
        size_t size = wire_left(&piece);
        if (size % 4)
            return false;
        if (size)
            memcpy(values_extend(values, (int64_t)(size / 4)), piece.at, size);
        return true;
    }
    while (piece.at < piece.end) {
        uint64_t number;
        if (!wire_varint(&piece, &number))
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
        if (!wire_piece(list, &piece))
            return false;
        if (values->dtype != STRING)
            return append_packed(piece, values);
        struct tensor_string *text = values_extend(values, 1);
        *text = (struct tensor_string){(char *)piece.at, wire_left(&piece)};
        return true;
    }
    if (values->dtype == I64 && tag == WIRE_TAG(1, WIRE_VARINT)) {
        if (!wire_varint(list, &number))
            return false;
        memcpy(values_extend(values, 1), &number, sizeof(number));
        return true;
    }
    if (values->dtype == F32 && tag == WIRE_TAG(1, WIRE_FIXED32)) {
        if (wire_left(list) < 4)
            return false;
        memcpy(values_extend(values, 1), list->at, 4);
        list->at += 4;
        return true;
    }
    return false;
}

bool feature_append(struct wire feature, struct feature_values *values)
{
    struct wire list;
    feature.at++; /* its tag, which said the type */
    if (!wire_piece(&feature, &list))
        return false;
    while (list.at < list.end) {
        uint64_t tag;
        if (!wire_varint(&list, &tag) || !append_field(&list, tag, values))
            return false;
    }
    return true;
}

void feature_store(const struct feature_values *values, int64_t from, int64_t count,
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

bool feature_tensor(const struct feature_values *values, struct tensor *out, struct error *err)
{
    if (!tensor_init(out, values->dtype, &SHAPE(values->count), err))
        return false;
    feature_store(values, 0, values->count, out, 0);
    return true;
}

int64_t feature_longest(const int64_t *ends, int64_t count)
{
    int64_t most = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t length = ends[i] - (i ? ends[i - 1] : 0);
        most = length > most ? length : most;
    }
    return most;
}
