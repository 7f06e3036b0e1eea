/* summaries.c - a ring of summaries, each in an arena of its own. */

#include <pthread.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "server/summaries.h"

#define SUMMARIES_MAX 64
#define SUMMARY_LAYERS_MAX 500

struct kept {
    uint8_t key[SUMMARIES_KEY_BYTES];
    struct arena *arena; /* NULL: an empty place */
    struct model_summary summary;
};

struct summaries {
    pthread_mutex_t lock; /* guards: all below */
    struct kept ring[SUMMARIES_MAX];
    int next;
};

static struct model_summary copy(const struct model_summary *from, struct arena *arena)
{
    struct model_summary to = *from;
    struct model_layer *layers =
        arena_copy(arena, from->layers, (size_t)from->layers_count * sizeof(*layers));
    for (int i = 0; i < from->layers_count; i++) {
        layers[i].name = arena_text(arena, layers[i].name);
        layers[i].class_name = arena_text(arena, layers[i].class_name);
    }
    to.layers = layers;
    return to;
}

static struct kept *find_locked(struct summaries *summaries, const uint8_t *key)
{
    for (int i = 0; i < SUMMARIES_MAX; i++) {
        struct kept *kept = &summaries->ring[i];
        if (kept->arena && memcmp(kept->key, key, sizeof(kept->key)) == 0)
            return kept;
    }
    return NULL;
}

struct summaries *summaries_new(void)
{
    struct summaries *summaries = alloc_bytes(sizeof(*summaries));
    pthread_mutex_init(&summaries->lock, NULL);
    return summaries;
}

void summaries_free(struct summaries *summaries)
{
    if (!summaries)
        return;
    for (int i = 0; i < SUMMARIES_MAX; i++)
        arena_free(summaries->ring[i].arena);
    pthread_mutex_destroy(&summaries->lock);
    free(summaries);
}

bool summaries_find(struct summaries *summaries, const uint8_t key[SUMMARIES_KEY_BYTES],
                    struct arena *arena, struct model_summary *out)
{
    pthread_mutex_lock(&summaries->lock);
    struct kept *kept = find_locked(summaries, key);
    if (kept)
        *out = copy(&kept->summary, arena);
    pthread_mutex_unlock(&summaries->lock);
    return kept != NULL;
}

void summaries_keep(struct summaries *summaries, const uint8_t key[SUMMARIES_KEY_BYTES],
                    const struct model_summary *summary)
{
    if (summary->layers_count > SUMMARY_LAYERS_MAX)
        return;
    struct kept new = {.arena = arena_new()};
    memcpy(new.key, key, sizeof(new.key));
    new.summary = copy(summary, new.arena);
    pthread_mutex_lock(&summaries->lock);
    if (!find_locked(summaries, key)) { /* else another request was as fast */
        struct kept *place = &summaries->ring[summaries->next];
        struct kept old = *place;
        *place = new;
        new = old;
        summaries->next = (summaries->next + 1) % SUMMARIES_MAX;
    }
    pthread_mutex_unlock(&summaries->lock);
    arena_free(new.arena);
}
