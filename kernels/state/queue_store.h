/*
 * queue_store.h - the rows that a queue holds, and which of them is next.
 *
 * Not locked: the queue's lock guards it.
 */
#pragma once

#include "kernels/ref/random.h"

struct error;

enum queue_kind { QUEUE_FIFO, QUEUE_PADDING, QUEUE_SHUFFLE, QUEUE_PRIORITY };

struct queue_store {
    enum queue_kind kind;
    struct tensor **rows; /* FIFO: a ring; shuffle: any order; priority: a heap */
    int64_t first;        /* of a ring */
    int64_t count;
    int64_t capacity;
    struct philox random; /* shuffle */
    uint64_t block;
    uint32_t words[4];
    int words_used;
};

/* Seeds of 0 and 0 stand for any. */
void kernel_queue_store_init(struct queue_store *store, enum queue_kind kind, int64_t seed,
                             int64_t seed2);

/* Frees the rows too, each of `components` tensors. */
void kernel_queue_store_release(struct queue_store *store, int components);

/* Takes the row over. */
void kernel_queue_store_put(struct queue_store *store, struct tensor *row);

/* As if the row had never been taken; the last one taken goes back first. */
void kernel_queue_store_put_back(struct queue_store *store, struct tensor *row);

/* The row whose turn it is, owned by the caller; asserts that there is one. */
struct tensor *kernel_queue_store_take(struct queue_store *store);
