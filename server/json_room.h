/*
 * json_room.h - JSON that lives in an arena.
 *
 * A large body is thousands of small values.  Taken from an arena they cost a fraction of what
 * the heap wants for each, and nothing is freed one by one.
 */
#pragma once

#include <jansson.h>

struct arena;

/* Once, while the process has one thread; what the heap gave before goes back to the heap. */
void json_room_begin(void);

/*
 * After json_room_begin(): as json_loadb(), with all that the value consists of in the arena.
 * The caller reads it and forgets it: it may neither be given up with json_decref() nor be
 * changed or made part of another value.  NULL: `where` says why.
 */
json_t *json_room_load(struct arena *arena, const char *text, size_t size, size_t flags,
                       json_error_t *where);
