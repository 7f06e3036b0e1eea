/* specs.h - job specs in tests: their usual parts, those that parse, and those that are
 * refused. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "runtime/spec/spec.h"
#include "tests/unit/test.h"

#define DATA "\"data\": {\"dataset\": \"mnist\"}"
#define DENSE "\"model\": {\"layers\": [{\"layer\": \"Dense\", \"units\": 10}]}"
#define LAYER(fields)                                                                          \
    "{\"model\": {\"layers\": [{\"layer\": \"Flatten\"}, {" fields "}]}, " DATA "}"
#define DATA_WITH(fields) "{" DENSE ", \"data\": {\"dataset\": \"m\", " fields "}}"
#define TRAIN(fields) "{" DENSE ", " DATA ", \"train\": {" fields "}}"
#define WITH(fields) "{" DENSE ", " DATA ", " fields "}"

#define BLOCKS(blocks, layers)                                                                 \
    "{\"model\": {\"blocks\": {" blocks "}, \"layers\": [" layers "]}, " DATA "}"

/* A block with two arguments. */
#define RESIDUAL                                                                               \
    "\"residual\": {\"arguments\": {\"units\": null, \"activation\": \"relu\"}, \"layers\": [" \
    "{\"layer\": \"Dense\", \"name\": \"wide\", \"units\": \"$units\", \"activation\": "       \
    "\"$activation\"}, {\"layer\": \"Dense\", \"units\": 4}, "                                 \
    "{\"layer\": \"Add\", \"inputs\": [\"input\", \"dense_1\"]}]}"

/* A spec that must parse. */
static inline const struct spec *parse(struct arena *arena, const char *text)
{
    struct error err;
    const struct spec *spec = spec_parse(arena, text, strlen(text), &err);
    if (!spec)
        CHECK_STOP("%s: %s: %s", text, err.pointer, err.text);
    return spec;
}

struct bad_spec {
    const char *spec;
    enum error_code code;
    const char *pointer;
    const char *text; /* part of it */
};

/* It is refused, with that code, at that place, with those words. */
static inline void check_bad_spec(const struct bad_spec *bad)
{
    struct arena *arena = arena_new();
    struct error err = {0};
    if (spec_parse(arena, bad->spec, strlen(bad->spec), &err))
        CHECK_STOP("%s: did not fail", bad->spec);
    if (err.code != bad->code || strcmp(err.pointer, bad->pointer) ||
        !strstr(err.text, bad->text))
        CHECK_STOP("%s\n gives %s at \"%s\": %s", bad->spec, error_code_name(err.code),
                   err.pointer, err.text);
    arena_free(arena);
}
