/*
 * spec_array.h - arrays: a grid of parameters over one spec.
 */
#pragma once

#include "base/base.h"

struct arena;
struct error;

#define SPEC_ARRAY_JOBS_MAX 1000
#define SPEC_ARRAY_PARAMETERS_MAX 16
#define SPEC_ARRAY_POINTER_BYTES 200
#define SPEC_ARRAY_BYTES_MAX (32 << 20) /* of all the specs */

struct spec_array;

/*
 * Reads the field "array" of a spec: JSON pointers into it, each with a list of values.  Fails
 * with INVALID and a pointer; what the specs say is not looked at yet.  To be closed.
 */
struct spec_array *spec_array_open(struct arena *arena, const char *text, size_t size,
                                   struct error *err) CHECKED;
void spec_array_close(struct spec_array *array); /* NULL is fine */

/* Points of the grid; 0: the spec has no array, and is its own point 0. */
int spec_array_count(const struct spec_array *array);

/* Whether the pointer is one of the parameters. */
bool spec_array_has(const struct spec_array *array, const char *pointer);

/* The spec of a point, and {pointer: value} of it, both JSON in the arena.  The last parameter
 * changes first. */
const char *spec_array_at(const struct spec_array *array, struct arena *arena, int index,
                          const char **parameters);
