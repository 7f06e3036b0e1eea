/* seen.c - the last numbers that came: a ring, and a table with open addressing over it. */

#include <stdlib.h>

#include "base/alloc.h"
#include "runtime/worker/seen.h"

struct seen {
    uint64_t *ring;  /* 0: empty */
    uint64_t *table; /* 0: empty; twice the ring at least, a power of two */
    size_t count;
    size_t mask;
    size_t next;
};

struct seen *seen_new(int count)
{
    struct seen *seen = alloc_bytes(sizeof(*seen));
    size_t size = 1;
    while (size < 2 * (size_t)count)
        size *= 2;
    seen->count = (size_t)count;
    seen->mask = size - 1;
    seen->ring = alloc_array(seen->count, sizeof(*seen->ring));
    seen->table = alloc_array(size, sizeof(*seen->table));
    return seen;
}

void seen_free(struct seen *seen)
{
    free(seen->ring);
    free(seen->table);
    free(seen);
}

static size_t home_of(const struct seen *seen, uint64_t number)
{
    return (size_t)((number * 0x9e3779b97f4a7c15u) >> 32) & seen->mask;
}

/* Takes it out, and moves those behind it that would no longer be found. */
static void take_out(struct seen *seen, uint64_t number)
{
    size_t at = home_of(seen, number);
    while (seen->table[at] != number)
        at = (at + 1) & seen->mask;
    for (size_t to = at;;) {
        seen->table[to] = 0;
        size_t from = to;
        do {
            from = (from + 1) & seen->mask;
            if (!seen->table[from])
                return;
        } while (((from - home_of(seen, seen->table[from])) & seen->mask) <
                 ((from - to) & seen->mask));
        seen->table[to] = seen->table[from];
        to = from;
    }
}

bool seen_first(struct seen *seen, uint64_t number)
{
    if (!number)
        return true;
    size_t at = home_of(seen, number);
    while (seen->table[at]) {
        if (seen->table[at] == number)
            return false;
        at = (at + 1) & seen->mask;
    }
    seen->table[at] = number;
    uint64_t oldest = seen->ring[seen->next];
    seen->ring[seen->next] = number;
    seen->next = (seen->next + 1) % seen->count;
    if (oldest)
        take_out(seen, oldest);
    return true;
}
