/* json_room.c - Jansson's memory comes from an arena while a thread has one. */

#include <stdlib.h>

#include "base/arena.h"
#include "server/json_room.h"

static _Thread_local struct arena *room; /* NULL: the heap */

static void *take(size_t size)
{
    return room ? arena_try(room, size) : malloc(size);
}

static void give(void *memory)
{
    if (!room)
        free(memory);
}

void json_room_begin(void)
{
    json_set_alloc_funcs(take, give);
}

json_t *json_room_load(struct arena *arena, const char *text, size_t size, size_t flags,
                       json_error_t *where)
{
    room = arena;
    json_t *json = json_loadb(text, size, flags, where);
    room = NULL;
    return json;
}
