/*
 * spec_read.h - takes typed fields out of JSON; what is wrong is named by its pointer.
 *
 * A reader leaves the value alone when the field is absent or null: set the default before the
 * call. Every reader returns false after setting the object's error.
 */
#pragma once

#include <jansson.h>

#include "base/error.h"

struct arena;

/* One object of the document; `json` NULL: it was not given, so every field is absent. */
struct spec_object {
    json_t *json;
    const char *pointer; /* "" for the whole document */
    struct arena *arena;
    struct error *err;
};

/* Fails at the first field that is not in `allowed` (ends with NULL), with the nearest name. */
bool spec_read_only(const struct spec_object *object, const char *const *allowed) CHECKED;

/* The object in `field`; `json` NULL when absent.  With `wanted` it must be there. */
bool spec_read_object(const struct spec_object *object, const char *field,
                      struct spec_object *out) CHECKED;

bool spec_read_integer(const struct spec_object *object, const char *field, int64_t min,
                       int64_t max, int64_t *value) CHECKED;
bool spec_read_number(const struct spec_object *object, const char *field, double min,
                      double max, double *value) CHECKED;
bool spec_read_bool(const struct spec_object *object, const char *field, bool *value) CHECKED;

/* Text without control characters of at most `bytes_max` bytes, copied into the arena. */
bool spec_read_text(const struct spec_object *object, const char *field, size_t bytes_max,
                    const char **value) CHECKED;
/* A name as spec_is_name() has it. */
bool spec_read_name(const struct spec_object *object, const char *field,
                    const char **value) CHECKED;

/* One of `choices` (ends with NULL), case and underscores aside; its index. */
bool spec_read_choice(const struct spec_object *object, const char *field,
                      const char *const *choices, int *value) CHECKED;

/* A positive integer or a list of two, as kernel sizes and strides are given. */
bool spec_read_pair(const struct spec_object *object, const char *field, int64_t max,
                    int64_t value[2]) CHECKED;

/* Fails with INVALID when the field is absent; `wanted` says what belongs there. */
bool spec_read_required(const struct spec_object *object, const char *field,
                        const char *wanted) CHECKED;

/* Fails with UNIMPLEMENTED when the field is there and is not `only` (may be NULL). */
bool spec_read_not_yet(const struct spec_object *object, const char *field, json_t *only,
                       const char *why) CHECKED;

/* The field's value; NULL when absent or null. */
json_t *spec_read_value(const struct spec_object *object, const char *field);

/* "/train/steps": the pointer of a field, or of an element of a list in it (index -1: none). */
const char *spec_read_pointer(const struct spec_object *object, const char *field, int index);

/* "-5", "\"adam\"", "a list": how a value is quoted in an error. */
const char *spec_read_found(const json_t *json, char *out, size_t out_size);
#define SPEC_FOUND_BYTES 80

/* The index of `name` in `names`, case and underscores aside; -1 if it is none of them. */
int spec_read_find(const char *const *names, const char *name);

/* Refuses `found` at `pointer`: the nearest of `names`, and all of them.  Returns false. */
bool spec_read_suggest(struct error *err, const char *pointer, const char *what,
                       const char *found, const char *const *names);
