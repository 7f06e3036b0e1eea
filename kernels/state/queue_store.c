/*
 * queue_store.c - a ring, a bag, and a heap of rows.
 *
 * The bag draws with TensorFlow's random stream, and the heap moves its rows in the way of the
 * C++ library, so that equal seeds and equal priorities come out in TensorFlow's order.
 */

#include "kernels/state/queue_store.h"

#include <sys/random.h>

#include "base/alloc.h"
#include "kernels/state/tuple.h"

static uint64_t any_seed(void)
{
    uint64_t seed = 0;
    while (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
        continue;
    return seed;
}

void kernel_queue_store_init(struct queue_store *store, enum queue_kind kind, int64_t seed,
                             int64_t seed2)
{
    bool any = !seed && !seed2;
    *store = (struct queue_store){
        .kind = kind,
        .random = {.key = any ? any_seed() : (uint64_t)seed,
                   .high = any ? any_seed() : (uint64_t)seed2},
        .words_used = ARRAY_LEN(store->words),
    };
}

void kernel_queue_store_release(struct queue_store *store, int components)
{
    while (store->count)
        kernel_tuple_free(kernel_queue_store_take(store), components);
    free(store->rows);
    store->rows = NULL;
}

/* --- a ring --- */

static struct tensor **ring_at(struct queue_store *store, int64_t index)
{
    return &store->rows[(store->first + index) & (store->capacity - 1)];
}

/* Room for one more; the rows of a ring are laid out from the beginning again. */
static void grow(struct queue_store *store)
{
    if (store->count < store->capacity)
        return;
    int64_t capacity = store->capacity ? 2 * store->capacity : 16;
    struct tensor **rows = alloc_array((size_t)capacity, sizeof(*rows));
    for (int64_t i = 0; i < store->count; i++)
        rows[i] = *ring_at(store, i);
    free(store->rows);
    store->rows = rows;
    store->first = 0;
    store->capacity = capacity;
}

static struct tensor *ring_take(struct queue_store *store)
{
    struct tensor *row = *ring_at(store, 0);
    store->first = (store->first + 1) & (store->capacity - 1);
    store->count--;
    return row;
}

/* --- a bag --- */

static uint32_t next_word(struct queue_store *store)
{
    if (store->words_used == ARRAY_LEN(store->words)) {
        philox_block(&store->random, store->block++, store->words);
        store->words_used = 0;
    }
    return store->words[store->words_used++];
}

/* The last row takes the place of the one drawn. */
static struct tensor *bag_take(struct queue_store *store)
{
    int64_t index = (int64_t)(next_word(store) % (uint64_t)store->count);
    struct tensor *row = store->rows[index];
    store->rows[index] = store->rows[--store->count];
    return row;
}

/* --- a heap --- */

static int64_t priority(const struct tensor *row)
{
    return tensor_i64(&row[0])[0];
}

/* Lets `row` rise from the hole at `at`, not above `top`. */
static void heap_rise(struct tensor **rows, int64_t at, int64_t top, struct tensor *row)
{
    int64_t parent = (at - 1) / 2;
    while (at > top && priority(rows[parent]) > priority(row)) {
        rows[at] = rows[parent];
        at = parent;
        parent = (at - 1) / 2;
    }
    rows[at] = row;
}

/* The hole left by the first row sinks to the bottom, and the last row rises from there. */
static struct tensor *heap_take(struct queue_store *store)
{
    struct tensor **rows = store->rows;
    struct tensor *first = rows[0], *last = rows[--store->count];
    int64_t count = store->count, hole = 0, child = 0;
    if (!count)
        return first;
    while (child < (count - 1) / 2) {
        child = 2 * (child + 1);
        if (priority(rows[child]) > priority(rows[child - 1]))
            child--;
        rows[hole] = rows[child];
        hole = child;
    }
    if (!(count & 1) && child == (count - 2) / 2) {
        child = 2 * (child + 1);
        rows[hole] = rows[child - 1];
        hole = child - 1;
    }
    heap_rise(rows, hole, 0, last);
    return first;
}

/* --- all --- */

void kernel_queue_store_put(struct queue_store *store, struct tensor *row)
{
    grow(store);
    int64_t at = store->count++;
    if (store->kind == QUEUE_PRIORITY)
        heap_rise(store->rows, at, 0, row);
    else
        *ring_at(store, at) = row;
}

void kernel_queue_store_put_back(struct queue_store *store, struct tensor *row)
{
    if (store->kind == QUEUE_SHUFFLE || store->kind == QUEUE_PRIORITY) {
        kernel_queue_store_put(store, row);
        return;
    }
    grow(store);
    store->first = (store->first + store->capacity - 1) & (store->capacity - 1);
    store->count++;
    *ring_at(store, 0) = row;
}

struct tensor *kernel_queue_store_take(struct queue_store *store)
{
    assert(store->count > 0);
    switch (store->kind) {
    case QUEUE_SHUFFLE:
        return bag_take(store);
    case QUEUE_PRIORITY:
        return heap_take(store);
    default:
        return ring_take(store);
    }
}
