/*
 * sequences.c - ids of the steps of graphs with collectives.
 *
 * Who runs the same graph from clients of their own meet in the same step: the leader has drawn
 * the first id, and each goes on from there by one.
 */

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/alloc.h"
#include "base/limits.h"
#include "base/map.h"
#include "runtime/worker/collective.h"

#define STEP_ID_MASK (((UINT64_C(1) << 56) - 1) | UINT64_C(1) << 56)

struct sequences {
    pthread_mutex_t lock; /* guards: all below */
    struct map *next;     /* int64_t by graph key; -1: not known any more */
};

struct sequences *sequences_new(void)
{
    struct sequences *sequences = alloc_bytes(sizeof(*sequences));
    pthread_mutex_init(&sequences->lock, NULL);
    sequences->next = map_new();
    return sequences;
}

void sequences_free(struct sequences *sequences)
{
    if (!sequences)
        return;
    for (int i = 0; i < map_count(sequences->next); i++)
        free(map_value(sequences->next, i));
    map_free(sequences->next);
    pthread_mutex_destroy(&sequences->lock);
    free(sequences);
}

/* Its place; NULL: it has none, and there is no room. */
static int64_t *find_locked(struct sequences *sequences, int64_t graph_key, bool make)
{
    char key[24];
    snprintf(key, sizeof(key), "%" PRId64, graph_key);
    int64_t *next = map_find(sequences->next, key);
    if (next || !make || map_count(sequences->next) >= LIMIT_COLLECTIVE_INSTANCES)
        return next;
    next = alloc_bytes(sizeof(*next));
    *next = -1;
    map_set(sequences->next, key, next);
    return next;
}

bool sequences_next(struct sequences *sequences, int64_t graph_key, bool begin,
                    int64_t *step_id)
{
    pthread_mutex_lock(&sequences->lock);
    int64_t *next = find_locked(sequences, graph_key, begin);
    if (next && *next < 0 && begin) {
        uint64_t id = 0;
        ssize_t got = getrandom(&id, sizeof(id), 0);
        assert(got == (ssize_t)sizeof(id));
        *next = (int64_t)(id & STEP_ID_MASK);
    }
    bool known = next && *next >= 0;
    if (known)
        *step_id = *next;
    pthread_mutex_unlock(&sequences->lock);
    return known;
}

void sequences_set(struct sequences *sequences, int64_t graph_key, int64_t step_id)
{
    pthread_mutex_lock(&sequences->lock);
    int64_t *next = find_locked(sequences, graph_key, true);
    if (next)
        *next = step_id;
    pthread_mutex_unlock(&sequences->lock);
}

void sequences_retire(struct sequences *sequences, int64_t graph_key, int64_t step_id)
{
    pthread_mutex_lock(&sequences->lock);
    int64_t *next = find_locked(sequences, graph_key, false);
    if (next)
        *next = *next == step_id ? (int64_t)(((uint64_t)step_id + 1) & STEP_ID_MASK) : -1;
    pthread_mutex_unlock(&sequences->lock);
}
