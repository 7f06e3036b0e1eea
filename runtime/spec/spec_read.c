/* spec_read.c - typed fields out of JSON, see spec_read.h. */

#include <ctype.h>
#include <math.h>

#include "base/arena.h"
#include "base/limits.h"
#include "base/nearest.h"
#include "base/str.h"
#include "runtime/spec/spec.h"
#include "runtime/spec/spec_read.h"

json_t *spec_read_value(const struct spec_object *object, const char *field)
{
    json_t *value = object->json ? json_object_get(object->json, field) : NULL;
    return json_is_null(value) ? NULL : value;
}

const char *spec_read_pointer(const struct spec_object *object, const char *field, int index)
{
    size_t before = strlen(object->pointer);
    size_t room = before + 1 + 2 * strlen(field) + sizeof("/-2147483648");
    char *pointer = arena_alloc(object->arena, room);
    memcpy(pointer, object->pointer, before);
    char *end = pointer + before;
    *end++ = '/';
    for (const char *c = field; *c; c++) {
        bool escaped = *c == '~' || *c == '/';
        if (escaped)
            *end++ = '~';
        *end++ = escaped ? *c == '~' ? '0' : '1' : *c;
    }
    if (index >= 0)
        snprintf(end, room - (size_t)(end - pointer), "/%d", index);
    return pointer;
}

const char *spec_read_found(const json_t *json, char *out, size_t out_size)
{
    switch (json_typeof(json)) {
    case JSON_STRING:
        if (json_string_length(json) > 40)
            snprintf(out, out_size, "\"%.40s...\"", json_string_value(json));
        else
            snprintf(out, out_size, "\"%s\"", json_string_value(json));
        break;
    case JSON_INTEGER:
        snprintf(out, out_size, "%lld", (long long)json_integer_value(json));
        break;
    case JSON_REAL:
        snprintf(out, out_size, "%.15g", json_real_value(json));
        break;
    case JSON_OBJECT:
        snprintf(out, out_size, "an object");
        break;
    case JSON_ARRAY:
        snprintf(out, out_size, "a list of %zu", json_array_size(json));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
    case JSON_NULL:
        snprintf(out, out_size, "%s",
                 json_is_true(json)    ? "true"
                 : json_is_false(json) ? "false"
                                       : "null");
        break;
    }
    return out;
}

/* "steps is "many", allowed: an integer from 1 to 9"; always false. */
static bool refuse(const struct spec_object *object, const char *field, const char *allowed)
{
    char found[SPEC_FOUND_BYTES];
    return error_at(
        object->err, spec_read_pointer(object, field, -1), INVALID, "%s is %s, allowed: %s",
        field, spec_read_found(spec_read_value(object, field), found, sizeof(found)), allowed);
}

/* --- names that were meant --- */

static bool same_letters(const char *a, const char *b)
{
    for (;; a++, b++) {
        while (*a == '_')
            a++;
        while (*b == '_')
            b++;
        if (tolower((unsigned char)*a) != tolower((unsigned char)*b))
            return false;
        if (!*a)
            return true;
    }
}

int spec_read_find(const char *const *names, const char *name)
{
    for (int i = 0; names[i]; i++) {
        if (same_letters(names[i], name))
            return i;
    }
    return -1;
}

bool spec_read_suggest(struct error *err, const char *pointer, const char *what,
                       const char *found, const char *const *names)
{
    const char *nearest = nearest_name(found, names);
    struct str all = {0};
    for (int i = 0; names[i]; i++)
        str_printf(&all, "%s%s", i ? ", " : "", names[i]);
    if (nearest)
        error_at(err, pointer, INVALID, "%s \"%.60s\"; did you mean \"%s\"? Allowed: %s", what,
                 found, nearest, str_text(&all));
    else
        error_at(err, pointer, INVALID, "%s \"%.60s\"; allowed: %s", what, found,
                 str_text(&all));
    str_release(&all);
    return false;
}

/* --- the readers --- */

bool spec_read_only(const struct spec_object *object, const char *const *allowed)
{
    const char *field;
    json_t *value;
    json_object_foreach(object->json, field, value)
    {
        bool known = false;
        for (int i = 0; allowed[i] && !known; i++)
            known = !strcmp(allowed[i], field);
        if (!known)
            return spec_read_suggest(object->err, spec_read_pointer(object, field, -1),
                                     "unknown field", field, allowed);
    }
    return true;
}

bool spec_read_object(const struct spec_object *object, const char *field,
                      struct spec_object *out)
{
    json_t *value = spec_read_value(object, field);
    if (value && !json_is_object(value))
        return refuse(object, field, "an object");
    *out = (struct spec_object){value, spec_read_pointer(object, field, -1), object->arena,
                                object->err};
    return true;
}

/* 20.0 is a whole number too, as many programs write it. */
static bool whole(const json_t *json, int64_t *value)
{
    double real = json_real_value(json);
    *value =
        json_is_real(json) && fabs(real) <= 0x1p53 ? (int64_t)real : json_integer_value(json);
    return json_is_integer(json) || (json_is_real(json) && (double)*value == real);
}

bool spec_read_integer(const struct spec_object *object, const char *field, int64_t min,
                       int64_t max, int64_t *value)
{
    json_t *json = spec_read_value(object, field);
    int64_t found = 0;
    if (!json)
        return true;
    if (!whole(json, &found) || found < min || found > max) {
        char allowed[100];
        snprintf(allowed, sizeof(allowed), "an integer from %lld to %lld", (long long)min,
                 (long long)max);
        return refuse(object, field, allowed);
    }
    *value = found;
    return true;
}

bool spec_read_number(const struct spec_object *object, const char *field, double min,
                      double max, double *value)
{
    json_t *json = spec_read_value(object, field);
    if (!json)
        return true;
    if (!json_is_number(json) || !(json_number_value(json) >= min) ||
        !(json_number_value(json) <= max)) {
        char allowed[100];
        snprintf(allowed, sizeof(allowed), "a number from %.15g to %.15g", min, max);
        return refuse(object, field, allowed);
    }
    *value = json_number_value(json);
    return true;
}

bool spec_read_bool(const struct spec_object *object, const char *field, bool *value)
{
    json_t *json = spec_read_value(object, field);
    if (!json)
        return true;
    if (!json_is_boolean(json))
        return refuse(object, field, "true or false");
    *value = json_is_true(json);
    return true;
}

bool spec_read_text(const struct spec_object *object, const char *field, size_t bytes_max,
                    const char **value)
{
    json_t *json = spec_read_value(object, field);
    if (!json)
        return true;
    if (!json_is_string(json))
        return refuse(object, field, "text");
    const char *text = json_string_value(json);
    size_t size = json_string_length(json);
    if (size > bytes_max)
        return error_at(object->err, spec_read_pointer(object, field, -1), INVALID,
                        "%s has %zu bytes, allowed: at most %zu", field, size, bytes_max);
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
            return error_at(object->err, spec_read_pointer(object, field, -1), INVALID,
                            "%s holds the control character 0x%02x at byte %zu", field, c, i);
    }
    *value = arena_text_n(object->arena, text, size);
    return true;
}

bool spec_read_name(const struct spec_object *object, const char *field, const char **value)
{
    json_t *json = spec_read_value(object, field);
    if (!json)
        return true;
    if (!json_is_string(json) || !spec_is_name(json_string_value(json)))
        return refuse(object, field, "1 to 128 of the letters A-Z a-z 0-9 . _ -");
    *value = arena_text(object->arena, json_string_value(json));
    return true;
}

bool spec_read_choice(const struct spec_object *object, const char *field,
                      const char *const *choices, int *value)
{
    json_t *json = spec_read_value(object, field);
    if (!json)
        return true;
    const char *pointer = spec_read_pointer(object, field, -1);
    char found[SPEC_FOUND_BYTES];
    if (!json_is_string(json))
        return spec_read_suggest(object->err, pointer, field,
                                 spec_read_found(json, found, sizeof(found)), choices);
    int index = spec_read_find(choices, json_string_value(json));
    if (index < 0) {
        char what[80];
        snprintf(what, sizeof(what), "unknown %s", field);
        return spec_read_suggest(object->err, pointer, what, json_string_value(json), choices);
    }
    *value = index;
    return true;
}

bool spec_read_pair(const struct spec_object *object, const char *field, int64_t max,
                    int64_t value[2])
{
    json_t *json = spec_read_value(object, field);
    if (!json)
        return true;
    json_t *first = json, *second = json;
    if (json_is_array(json) && json_array_size(json) == 2) {
        first = json_array_get(json, 0);
        second = json_array_get(json, 1);
    }
    bool fits = json_is_integer(first) && json_is_integer(second) &&
                json_integer_value(first) >= 1 && json_integer_value(first) <= max &&
                json_integer_value(second) >= 1 && json_integer_value(second) <= max;
    if (!fits) {
        char allowed[100];
        snprintf(allowed, sizeof(allowed),
                 "an integer from 1 to %lld, or a list of two of them", (long long)max);
        return refuse(object, field, allowed);
    }
    value[0] = json_integer_value(first);
    value[1] = json_integer_value(second);
    return true;
}

bool spec_read_required(const struct spec_object *object, const char *field, const char *wanted)
{
    if (spec_read_value(object, field))
        return true;
    return error_at(object->err, spec_read_pointer(object, field, -1), INVALID,
                    "%s is missing: %s", field, wanted);
}

bool spec_read_not_yet(const struct spec_object *object, const char *field, json_t *only,
                       const char *why)
{
    json_t *json = spec_read_value(object, field);
    bool fine = !json || (only && json_equal(json, only));
    json_decref(only);
    if (fine)
        return true;
    char found[SPEC_FOUND_BYTES];
    return error_at(object->err, spec_read_pointer(object, field, -1), UNIMPLEMENTED,
                    "%s is %s: %s", field, spec_read_found(json, found, sizeof(found)), why);
}
