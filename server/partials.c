/* partials.c - a map of what waits, and how much that is. */

#include "server/partials.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/map.h"
#include "base/str.h"

#define BYTES_MAX (INT64_C(512) << 20) /* all files together */
#define STALE_US UINT64_C(600000000)

struct partial {
    int64_t offset; /* of the first byte */
    struct str bytes;
    uint64_t touched_us; /* when it last grew */
};

struct partials {
    struct map *map; /* of struct partial */
    int64_t bytes;
};

struct partials *partials_new(void)
{
    struct partials *partials = alloc_bytes(sizeof(*partials));
    partials->map = map_new();
    return partials;
}

void partials_drop(struct partials *partials, const char *key)
{
    struct partial *partial = map_remove(partials->map, key);
    if (!partial)
        return;
    partials->bytes -= (int64_t)partial->bytes.size;
    str_release(&partial->bytes);
    free(partial);
}

void partials_free(struct partials *partials)
{
    if (!partials)
        return;
    while (map_count(partials->map))
        partials_drop(partials, map_key(partials->map, 0));
    map_free(partials->map);
    free(partials);
}

/*
 * A task that is killed leaves the start of a record, whose end never comes.  One that is
 * alive after all is asked for it again.
 */
static void partials_age(struct partials *partials, uint64_t now_us)
{
    for (int i = map_count(partials->map) - 1; i >= 0; i--) {
        const struct partial *partial = map_value(partials->map, i);
        if (now_us - partial->touched_us < STALE_US)
            continue;
        char *key = alloc_text(map_key(partials->map, i));
        partials_drop(partials, key);
        free(key);
    }
}

bool partials_continue(struct partials *partials, const char *key, struct piece *piece,
                       uint64_t now_us)
{
    struct partial *partial = map_find(partials->map, key);
    if (!partial)
        return false;
    if (partial->offset + (int64_t)partial->bytes.size != piece->offset) {
        partials_drop(partials, key);
        return false;
    }
    str_add_bytes(&partial->bytes, piece->bytes, piece->size);
    partials->bytes += (int64_t)piece->size;
    partial->touched_us = now_us;
    *piece = (struct piece){partial->offset, partial->bytes.data, partial->bytes.size};
    return true;
}

bool partials_keep(struct partials *partials, const char *key, const struct piece *piece,
                   size_t used, int64_t *cursor, uint64_t now_us, struct error *err)
{
    int64_t stored = piece->offset + (int64_t)used, end = piece->offset + (int64_t)piece->size;
    if (*cursor != stored || used == piece->size) {
        partials_drop(partials, key); /* all is stored, or somebody else stored another piece */
        return true;
    }
    struct partial *partial = map_find(partials->map, key);
    if (partial) {
        str_drop(&partial->bytes, used);
        partials->bytes -= (int64_t)used;
    } else {
        partials_age(partials, now_us);
        partial = alloc_bytes(sizeof(*partial));
        partial->touched_us = now_us;
        str_add_bytes(&partial->bytes, piece->bytes + used, piece->size - used);
        partials->bytes += (int64_t)partial->bytes.size;
        map_set(partials->map, key, partial);
    }
    partial->offset = stored;
    *cursor = end;
    if (partials->bytes > BYTES_MAX) {
        partials_drop(partials, key);
        return fail(err, EXHAUSTED, "too many unfinished records are waiting for their end");
    }
    return true;
}
