/*
 * parse_json.c - DecodeJSONExample: a tf.Example as JSON, in protobuf's mapping, serialized.
 *
 *   {"features": {"feature": {"a": {"int64List": {"value": ["1", 2]}}}}}
 */

#include <errno.h>
#include <jansson.h>
#include <math.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "kernels/list.h"
#include "runtime/io/wire.h"

static void add_varint(struct str *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        str_add_char(out, (char)(value | 0x80));
    str_add_char(out, (char)value);
}

static void add_piece(struct str *out, int field, const void *data, size_t size)
{
    add_varint(out, WIRE_TAG(field, WIRE_BYTES));
    add_varint(out, size);
    str_add_bytes(out, data, size);
}

static int base64_digit(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

/* Either alphabet, padded or not. */
static bool add_base64(struct str *out, const char *text, size_t size)
{
    uint32_t bits = 0;
    int count = 0;
    while (size && text[size - 1] == '=')
        size--;
    for (size_t i = 0; i < size; i++) {
        int digit = base64_digit(text[i]);
        if (digit < 0)
            return false;
        bits = bits << 6 | (uint32_t)digit;
        count += 6;
        if (count >= 8) {
            count -= 8;
            str_add_char(out, (char)(bits >> count));
        }
    }
    return size % 4 != 1;
}

/* A number, or a string that holds one. */
static bool add_int64(struct str *out, const json_t *value)
{
    int64_t number = json_integer_value(value);
    if (json_is_real(value)) {
        double real = json_real_value(value);
        if (real != trunc(real) || fabs(real) >= 9.2e18)
            return false;
        number = (int64_t)real;
    } else if (json_is_string(value)) {
        char *end;
        const char *text = json_string_value(value);
        errno = 0;
        number = strtoll(text, &end, 10);
        if (end == text || *end || errno)
            return false;
    } else if (!json_is_integer(value)) {
        return false;
    }
    add_varint(out, (uint64_t)number);
    return true;
}

static bool add_float(struct str *out, const json_t *value)
{
    float number = (float)json_number_value(value);
    if (json_is_string(value)) {
        char *end;
        const char *text = json_string_value(value);
        number = strtof(text, &end);
        if (end == text || *end)
            return false;
    } else if (!json_is_number(value)) {
        return false;
    }
    str_add_bytes(out, &number, sizeof(number));
    return true;
}

/* The three kinds of a Feature, by both spellings of their names. */
static const struct {
    const char *name;
    const char *other;
    int field;
} kinds[] = {
    {"bytesList", "bytes_list", 1},
    {"floatList", "float_list", 2},
    {"int64List", "int64_list", 3},
};

static bool add_value(struct str *list, int field, const json_t *value)
{
    if (field == 2) {
        add_varint(list, WIRE_TAG(1, WIRE_FIXED32));
        return add_float(list, value);
    }
    if (field == 3) {
        add_varint(list, WIRE_TAG(1, WIRE_VARINT));
        return add_int64(list, value);
    }
    struct str bytes = {0};
    bool ok = json_is_string(value) &&
              add_base64(&bytes, json_string_value(value), json_string_length(value));
    if (ok)
        add_piece(list, 1, bytes.data, bytes.size);
    str_release(&bytes);
    return ok;
}

/* Appends the list of a Feature, its values one by one, as TensorFlow writes them. */
static bool add_list(struct str *feature, int field, const json_t *object)
{
    const json_t *values = json_object_get(object, "value");
    if (!json_is_object(object) || (values && !json_is_array(values)))
        return false;
    struct str list = {0};
    bool ok = true;
    for (size_t i = 0; ok && i < json_array_size(values); i++)
        ok = add_value(&list, field, json_array_get(values, i));
    if (ok)
        add_piece(feature, field, str_text(&list), list.size);
    str_release(&list);
    return ok;
}

static bool add_feature(struct str *out, const char *key, json_t *object)
{
    struct str feature = {0}, entry = {0};
    bool none = json_is_null(object), ok = none || json_is_object(object);
    const char *name;
    json_t *list;
    json_object_foreach(object, name, list)
    {
        int field = 0;
        for (int i = 0; i < ARRAY_LEN(kinds); i++)
            if (strcmp(name, kinds[i].name) == 0 || strcmp(name, kinds[i].other) == 0)
                field = kinds[i].field;
        ok = ok && field && add_list(&feature, field, list);
    }
    if (ok) {
        add_piece(&entry, 1, key, strlen(key));
        if (!none)
            add_piece(&entry, 2, str_text(&feature), feature.size);
        add_piece(out, 1, entry.data, entry.size);
    }
    str_release(&feature);
    str_release(&entry);
    return ok;
}

static bool add_example(struct str *out, json_t *root)
{
    json_t *features = json_object_get(root, "features");
    if (json_is_null(features) && json_object_size(root) == 1)
        return true;
    json_t *map = json_object_get(features, "feature"), *feature;
    if (!json_is_object(root) || json_object_size(root) != (features ? 1u : 0u) ||
        (features && !json_is_object(features)) ||
        (features && json_object_size(features) != (map ? 1u : 0u)) ||
        (map && !json_is_object(map)))
        return false;
    struct str all = {0};
    const char *key;
    bool ok = true;
    json_object_foreach(map, key, feature)
    {
        ok = ok && add_feature(&all, key, feature);
    }
    if (ok && features)
        add_piece(out, 1, str_text(&all), all.size);
    str_release(&all);
    return ok;
}

static bool json_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    if (!out)
        return false;
    for (int64_t i = 0; i < in->count; i++) {
        const struct tensor_string *text = &tensor_strings(in)[i];
        struct str bytes = {0};
        json_error_t problem = {.text = "not an Example"};
        json_t *root = json_loadb(text->data ? text->data : "", text->size,
                                  JSON_REJECT_DUPLICATES, &problem);
        bool ok = root && add_example(&bytes, root);
        if (ok)
            tensor_set_string(out, i, bytes.data, bytes.size);
        json_decref(root);
        str_release(&bytes);
        if (!ok)
            return fail(err, INVALID, "Error while parsing JSON: record %lld, line %d: %s",
                        (long long)i, problem.line, root ? "not an Example" : problem.text);
    }
    return true;
}

const struct kernel kernel_decode_json_example = {
    .op = "DecodeJSONExample", .device = CPU, .run = json_run};
