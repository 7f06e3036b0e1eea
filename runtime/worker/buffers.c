/* buffers.c - where the members of collectives meet: values by key, each given once. */

#include "runtime/worker/buffers.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "runtime/tensor.h"

/* One side that waits for the other. */
struct side {
    struct side *next;
    char *key;
    struct tensor value; /* provided, */
    buffers_taken *taken;
    buffers_taker *taker; /* or NULL */
    void *arg;
};

struct buffers {
    pthread_mutex_t lock; /* guards: all below */
    struct side *sides;
    int count;
    bool aborted;
    struct error err;
};

struct buffers *buffers_new(void)
{
    struct buffers *buffers = alloc_bytes(sizeof(*buffers));
    pthread_mutex_init(&buffers->lock, NULL);
    return buffers;
}

void buffers_free(struct buffers *buffers)
{
    if (!buffers)
        return;
    assert(!buffers->sides);
    pthread_mutex_destroy(&buffers->lock);
    free(buffers);
}

static void free_side(struct side *side)
{
    tensor_release(&side->value);
    free(side->key);
    free(side);
}

/* Takes the other side of `key` out; NULL: it is not there. */
static struct side *find_locked(struct buffers *buffers, const char *key, bool is_taker)
{
    for (struct side **at = &buffers->sides; *at; at = &(*at)->next) {
        struct side *side = *at;
        if (!side->taker == is_taker || strcmp(side->key, key) != 0)
            continue;
        *at = side->next;
        buffers->count--;
        return side;
    }
    return NULL;
}

static bool has_locked(const struct buffers *buffers, const char *key, bool is_taker)
{
    for (const struct side *side = buffers->sides; side; side = side->next)
        if (!side->taker != is_taker && !strcmp(side->key, key))
            return true;
    return false;
}

/* Adds a side that waits; false with why not. */
static bool add_locked(struct buffers *buffers, const struct side *made, const char *key,
                       struct error *err)
{
    if (buffers->aborted) {
        *err = buffers->err;
        return false;
    }
    if (has_locked(buffers, key, made->taker))
        return fail(err, INTERNAL, "two want to %s the buffer of key %s",
                    made->taker ? "take" : "provide", key);
    if (buffers->count >= LIMIT_STEP_BUFFERS)
        return fail(err, EXHAUSTED, "%d buffers of a step wait already", buffers->count);
    struct side *side = alloc_bytes(sizeof(*side));
    *side = *made;
    side->key = alloc_text(key);
    side->next = buffers->sides;
    buffers->sides = side;
    buffers->count++;
    return true;
}

void buffers_provide(struct buffers *buffers, const char *key, const struct tensor *value,
                     buffers_taken *taken, void *arg)
{
    struct side made = {.taken = taken, .arg = arg};
    struct error err;
    pthread_mutex_lock(&buffers->lock);
    struct side *taker = buffers->aborted ? NULL : find_locked(buffers, key, true);
    bool added = true;
    if (!taker) {
        tensor_share(&made.value, value);
        added = add_locked(buffers, &made, key, &err);
    }
    pthread_mutex_unlock(&buffers->lock);
    if (!added) {
        tensor_release(&made.value);
        taken(arg, &err);
    } else if (taker) {
        taker->taker(taker->arg, value, NULL);
        free_side(taker);
        taken(arg, NULL);
    }
}

void buffers_take(struct buffers *buffers, const char *key, buffers_taker *taker, void *arg)
{
    const struct side made = {.taker = taker, .arg = arg};
    struct error err;
    pthread_mutex_lock(&buffers->lock);
    struct side *provided = buffers->aborted ? NULL : find_locked(buffers, key, false);
    bool added = provided || add_locked(buffers, &made, key, &err);
    pthread_mutex_unlock(&buffers->lock);
    if (!added) {
        taker(arg, NULL, &err);
    } else if (provided) {
        taker(arg, &provided->value, NULL);
        tensor_release(&provided->value); /* who provides may write it again */
        provided->taken(provided->arg, NULL);
        free_side(provided);
    }
}

bool buffers_withdraw(struct buffers *buffers, const void *arg)
{
    struct side *found = NULL;
    pthread_mutex_lock(&buffers->lock);
    for (struct side **at = &buffers->sides; *at && !found; at = &(*at)->next) {
        if (!(*at)->taker || (*at)->arg != arg)
            continue;
        found = *at;
        *at = found->next;
        buffers->count--;
        break;
    }
    pthread_mutex_unlock(&buffers->lock);
    if (found)
        free_side(found);
    return found;
}

void buffers_abort(struct buffers *buffers, const struct error *err)
{
    pthread_mutex_lock(&buffers->lock);
    struct side *sides = buffers->sides;
    if (!buffers->aborted)
        buffers->err = *err;
    buffers->aborted = true;
    buffers->sides = NULL;
    buffers->count = 0;
    const struct error why = buffers->err;
    pthread_mutex_unlock(&buffers->lock);
    while (sides) {
        struct side *next = sides->next;
        if (sides->taker)
            sides->taker(sides->arg, NULL, &why);
        else
            sides->taken(sides->arg, &why);
        free_side(sides);
        sides = next;
    }
}
