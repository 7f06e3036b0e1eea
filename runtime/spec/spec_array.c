/* spec_array.c - one spec with a grid of parameters, as one spec for each of its points. */

#include "runtime/spec/spec_array.h"
#include "base/arena.h"
#include "base/str.h"
#include "runtime/spec/spec_internal.h"

struct parameter {
    const char *pointer;
    json_t *values; /* of the document */
};

struct spec_array {
    json_t *document; /* with its example, without "array" */
    json_t *grid;
    struct parameter parameters[SPEC_ARRAY_PARAMETERS_MAX];
    int parameters_count;
    int count;
};

/* "~1" is "/" and "~0" is "~" within a word of a pointer. */
static char *word_of(struct arena *arena, const char *text, size_t size)
{
    char *word = arena_text_n(arena, text, size), *to = word;
    for (const char *from = word; *from; from++) {
        bool escaped = from[0] == '~' && (from[1] == '0' || from[1] == '1');
        *to++ = !escaped ? *from : (char)(from[1] == '0' ? '~' : '/');
        from += escaped;
    }
    *to = '\0';
    return word;
}

/* The place in a list that a word names; -1. */
static int64_t place_of(const json_t *list, const char *word)
{
    char *end;
    long long place = strtoll(word, &end, 10);
    if (!*word || *end || *word < '0' || *word > '9' || place < 0 ||
        (size_t)place >= json_array_size(list))
        return -1;
    return place;
}

/* What `word` names in an object or a list; an object that is not there yet is made. */
static json_t *step_into(json_t *json, const char *word)
{
    if (json_is_array(json)) {
        int64_t place = place_of(json, word);
        return place < 0 ? NULL : json_array_get(json, (size_t)place);
    }
    json_t *next = json_object_get(json, word);
    if (json_is_object(json) && (!next || json_is_null(next))) {
        json_object_set_new(json, word, json_object());
        next = json_object_get(json, word);
    }
    return next;
}

/* Puts the value where the pointer says; false when there is no such place. */
static bool put(struct arena *arena, json_t *document, const char *pointer, json_t *value)
{
    json_t *json = document;
    const char *at = pointer + 1;
    size_t size;
    for (; at[size = strcspn(at, "/")]; at += size + 1)
        json = step_into(json, word_of(arena, at, size));
    const char *word = word_of(arena, at, size);
    if (json_is_array(json)) {
        int64_t place = place_of(json, word);
        return place >= 0 && json_array_set(json, (size_t)place, value) == 0;
    }
    return json_is_object(json) && json_object_set(json, word, value) == 0;
}

static bool parameter_add(struct spec_array *array, struct arena *arena, const char *pointer,
                          json_t *values, struct error *err)
{
    char found[SPEC_FOUND_BYTES];
    struct spec_object object = {array->grid, "/array", arena, err};
    const char *here = spec_read_pointer(&object, pointer, -1);
    if (array->parameters_count == SPEC_ARRAY_PARAMETERS_MAX)
        return error_at(err, "/array", INVALID, "%zu parameters, allowed: at most %d",
                        json_object_size(array->grid), SPEC_ARRAY_PARAMETERS_MAX);
    if (pointer[0] != '/' || !pointer[1] || !strcmp(pointer, "/array") ||
        !strncmp(pointer, "/array/", 7) || strlen(pointer) > SPEC_ARRAY_POINTER_BYTES)
        return error_at(err, here, INVALID,
                        "\"%.60s\" is no parameter, allowed: a JSON pointer into the spec, "
                        "\"/train/steps\", of at most %d bytes",
                        pointer, SPEC_ARRAY_POINTER_BYTES);
    if (!json_is_array(values) || !json_array_size(values))
        return error_at(err, here, INVALID, "\"%.60s\" is %s, allowed: a list of values",
                        pointer, spec_read_found(values, found, sizeof(found)));
    if (json_array_size(values) > (size_t)(SPEC_ARRAY_JOBS_MAX / array->count))
        return error_at(err, "/array", INVALID, "more than %d jobs, allowed: at most that",
                        SPEC_ARRAY_JOBS_MAX);
    array->count *= (int)json_array_size(values);
    array->parameters[array->parameters_count++] =
        (struct parameter){arena_text(arena, pointer), values};
    json_t *trial = json_deep_copy(array->document);
    bool there = put(arena, trial, pointer, json_array_get(values, 0));
    json_decref(trial);
    return there ||
           error_at(err, here, INVALID, "\"%.100s\" is no place in this spec", pointer);
}

/* All the jobs together are as large as one that comes alone may be, some times over. */
static bool check_bytes(const struct spec_array *array, struct error *err)
{
    char *text = json_dumps(array->document, JSON_COMPACT);
    size_t size = strlen(text);
    free(text);
    if (size <= (size_t)(SPEC_ARRAY_BYTES_MAX / array->count))
        return true;
    return error_at(err, "/array", INVALID,
                    "%d jobs with a spec of %zu bytes, allowed: at most %d bytes in all",
                    array->count, size, SPEC_ARRAY_BYTES_MAX);
}

struct spec_array *spec_array_open(struct arena *arena, const char *text, size_t size,
                                   struct error *err)
{
    struct spec_array *array = arena_alloc(arena, sizeof(*array));
    *array = (struct spec_array){.count = 1};
    json_t *document = spec_load(text, size, err);
    array->document = document ? spec_example_merge(document, err) : NULL;
    json_decref(document);
    if (!array->document)
        return NULL;
    array->grid = json_incref(json_object_get(array->document, "array"));
    bool ok = true;
    if (array->grid && !json_is_null(array->grid)) {
        const char *pointer;
        json_t *values;
        char found[SPEC_FOUND_BYTES];
        ok = json_object_size(array->grid) ||
             error_at(err, "/array", INVALID,
                      "array is %s, allowed: an object of JSON pointers and lists of values",
                      spec_read_found(array->grid, found, sizeof(found)));
        json_object_del(array->document, "array");
        json_object_foreach(array->grid, pointer, values)
        {
            ok = ok && parameter_add(array, arena, pointer, values, err);
        }
        ok = ok && check_bytes(array, err);
    }
    if (ok)
        return array;
    spec_array_close(array);
    return NULL;
}

void spec_array_close(struct spec_array *array)
{
    if (!array)
        return;
    json_decref(array->document);
    json_decref(array->grid);
}

int spec_array_count(const struct spec_array *array)
{
    return array->parameters_count ? array->count : 0;
}

bool spec_array_has(const struct spec_array *array, const char *pointer)
{
    for (int i = 0; i < array->parameters_count; i++) {
        if (!strcmp(array->parameters[i].pointer, pointer))
            return true;
    }
    return false;
}

static const char *dump(struct arena *arena, const json_t *json, size_t flags)
{
    char *text = json_dumps(json, JSON_COMPACT | flags);
    const char *copy = arena_text(arena, text);
    free(text);
    return copy;
}

const char *spec_array_at(const struct spec_array *array, struct arena *arena, int index,
                          const char **parameters)
{
    assert(index >= 0 && index < array->count);
    json_t *document = json_deep_copy(array->document);
    json_t *values = json_object();
    int left = array->count;
    for (int i = 0; i < array->parameters_count; i++) {
        /* The last parameter goes round first. */
        const struct parameter *parameter = &array->parameters[i];
        int many = (int)json_array_size(parameter->values);
        left /= many;
        json_t *value = json_array_get(parameter->values, (size_t)(index / left % many));
        json_object_set(values, parameter->pointer, value);
        bool there = put(arena, document, parameter->pointer, value);
        assert(there || i > 0); /* one before it may have taken the place away */
        (void)there;
    }
    const char *text = dump(arena, document, 0);
    *parameters = dump(arena, values, JSON_REAL_PRECISION(15)); /* for people: 0.1 */
    json_decref(document);
    json_decref(values);
    return text;
}
