/* spec_example.c - the shipped examples, built into every program, and jobs made from them. */

#include "base/arena.h"
#include "base/map.h"
#include "runtime/spec/spec_internal.h"

/* Made from examples/NAME.json by the Makefile, in the order of their names. */
static const struct spec_example examples[] = {
#include "examples.inc"
};

int spec_example_count(void)
{
    return ARRAY_LEN(examples);
}

const struct spec_example *spec_example_at(int index)
{
    assert(index >= 0 && index < ARRAY_LEN(examples));
    return &examples[index];
}

const struct spec_example *spec_example_find(const char *name)
{
    for (int i = 0; i < ARRAY_LEN(examples); i++) {
        if (!strcmp(examples[i].name, name))
            return &examples[i];
    }
    return NULL;
}

/* An optimizer of another name shares no arguments with the one it replaces. */
static bool replaces(const char *field, json_t *old, json_t *value)
{
    if (!json_is_object(old) || !json_is_object(value))
        return true;
    return !strcmp(field, "optimizer") && json_object_get(value, "name") &&
           !json_equal(json_object_get(old, "name"), json_object_get(value, "name"));
}

/* Puts the fields of `from` over those of `into`, object by object down to `depth`. */
static void merge(json_t *into, json_t *from, int depth)
{
    if (json_object_get(from, "epochs"))
        json_object_del(into, "steps");
    if (json_object_get(from, "steps"))
        json_object_del(into, "epochs");
    const char *field;
    json_t *value;
    json_object_foreach(from, field, value)
    {
        json_t *old = json_object_get(into, field);
        if (!old || !depth || replaces(field, old, value))
            json_object_set(into, field, value);
        else
            merge(old, value, depth - 1);
    }
}

json_t *spec_example_merge(json_t *document, struct error *err)
{
    json_t *field = json_object_get(document, "example");
    if (!field || json_is_null(field))
        return json_incref(document);
    const char *names[ARRAY_LEN(examples) + 1] = {0};
    for (int i = 0; i < ARRAY_LEN(examples); i++)
        names[i] = examples[i].name;
    char found[SPEC_FOUND_BYTES];
    if (!json_is_string(field)) {
        error_at(err, "/example", INVALID, "example is %s, allowed: its name",
                 spec_read_found(field, found, sizeof(found)));
        return NULL;
    }
    const struct spec_example *example = spec_example_find(json_string_value(field));
    if (!example) {
        spec_read_suggest(err, "/example", "there is no example", json_string_value(field),
                          names);
        err->code = NOT_FOUND;
        return NULL;
    }
    if (json_object_get(document, "command")) {
        error_at(err, "/command", INVALID, "allowed: one of example and command");
        return NULL;
    }
    json_t *whole = json_loadb(example->json, example->size, JSON_REJECT_DUPLICATES, NULL);
    assert(whole);
    merge(whole, document, 4);
    json_object_del(whole, "example");
    if (!json_object_get(whole, "name"))
        json_object_set_new(whole, "name", json_string(example->name));
    return whole;
}

const char *spec_patch(struct arena *arena, const char *spec, const char *patch,
                       size_t patch_size, struct error *err)
{
    json_t *whole = spec_load(spec, strlen(spec), err);
    json_t *over = whole ? spec_load(patch, patch_size, err) : NULL;
    char *text = NULL;
    if (over) {
        merge(whole, over, 4);
        text = json_dumps(whole, JSON_COMPACT);
    }
    const char *copy = text ? arena_text(arena, text) : NULL;
    free(text);
    json_decref(whole);
    json_decref(over);
    return copy;
}
