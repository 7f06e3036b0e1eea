/*
 * prefetch.c - elements made ahead, by a thread of the iterator's own.
 *
 * DESIGN: the thread pulls from the input into a ring and sleeps while it is full; whoever asks
 * takes from the ring and sleeps while it is empty, until its run is cancelled.  What the input
 * says (an element, an error, its end) comes out in the same order.  The input is walked under
 * a cancel of its own, which ends what it does when the iterator is freed.  Few pipelines run
 * at a time, but a user's may hold thousands of these: beyond THREADS_MAX they have no thread
 * and pass on what the input gives.
 */

#include <pthread.h>

#include "base/alloc.h"
#include "kernels/data/dataset.h"

#define THREADS_MAX 32 /* of all prefetching iterators of the process */
#define AHEAD_MAX 1024 /* elements; a larger buffer is cut to it */
#define AHEAD_AUTO 4   /* where the size is left to us */

static int threads; /* __atomic */

struct prefetch {
    struct dataset dataset;
    int64_t size;
};

/* What the input said. */
struct item {
    struct tensor *row;    /* NULL: an error, or the end */
    struct error *failure; /* NULL: no error */
};

struct ahead {
    struct iterator it;
    struct pipeline pipeline; /* the input's: with a cancel that is ours */
    struct iterator *at;
    bool begun;
    bool threaded;
    pthread_t thread;

    pthread_mutex_t lock; /* guards: all below */
    pthread_cond_t changed;
    struct item *ring;
    int64_t size, first, count;
    bool stop; /* the thread is to end */
};

static struct prefetch *prefetch_of(const struct ahead *ahead)
{
    return (struct prefetch *)ahead->it.dataset;
}

/* --- the thread --- */

/* False when the iterator is being freed. */
static bool put(struct ahead *ahead, struct item item)
{
    pthread_mutex_lock(&ahead->lock);
    while (ahead->count == ahead->size && !ahead->stop)
        pthread_cond_wait(&ahead->changed, &ahead->lock);
    bool go_on = !ahead->stop;
    if (go_on)
        ahead->ring[(ahead->first + ahead->count++) % ahead->size] = item;
    pthread_cond_broadcast(&ahead->changed);
    pthread_mutex_unlock(&ahead->lock);
    return go_on;
}

static void item_release(struct item *item, int width)
{
    kernel_row_release(item->row, width);
    free(item->row);
    free(item->failure);
}

static void *prefetch_main(void *arg)
{
    struct ahead *ahead = arg;
    int width = ahead->it.dataset->width;
    for (bool over = false; !over;) {
        struct error err = {0};
        struct item item = {.row = kernel_row_new(width)};
        bool end, ok = kernel_iterator_next(ahead->at, item.row, &end, &err);
        over = ok && end;
        if (!ok || over) {
            free(item.row);
            item.row = NULL;
        }
        if (!ok) {
            item.failure = alloc_bytes(sizeof(err));
            *item.failure = err;
        }
        if (!put(ahead, item)) {
            item_release(&item, width);
            break;
        }
    }
    return NULL;
}

/* --- the iterator --- */

static bool ahead_begin(struct iterator *it, struct error *err)
{
    struct ahead *ahead = (struct ahead *)it;
    int64_t size = prefetch_of(ahead)->size;
    ahead->threaded =
        size > 0 && __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED) <= THREADS_MAX;
    if (size > 0 && !ahead->threaded)
        __atomic_sub_fetch(&threads, 1, __ATOMIC_RELAXED);
    if (ahead->threaded) {
        pthread_mutex_init(&ahead->lock, NULL);
        pthread_cond_init(&ahead->changed, NULL);
        kernel_pipeline_init(&ahead->pipeline, cancel_new());
        ahead->pipeline.root = it->pipeline->root ? it->pipeline->root : it->pipeline;
        ahead->size = size;
        ahead->ring = alloc_array((size_t)size, sizeof(*ahead->ring));
    }
    ahead->at = kernel_iterator_new(it->dataset->inputs[0],
                                    ahead->threaded ? &ahead->pipeline : it->pipeline, it, err);
    return ahead->at != NULL;
}

static void stop(struct ahead *ahead)
{
    if (ahead->begun) {
        pthread_mutex_lock(&ahead->lock);
        ahead->stop = true;
        pthread_cond_broadcast(&ahead->changed);
        pthread_mutex_unlock(&ahead->lock);
        cancel_now(ahead->pipeline.cancel);
        pthread_join(ahead->thread, NULL);
    }
    __atomic_sub_fetch(&threads, 1, __ATOMIC_RELAXED);
    for (int64_t i = 0; i < ahead->count; i++)
        item_release(&ahead->ring[(ahead->first + i) % ahead->size], ahead->it.dataset->width);
    free(ahead->ring);
    pthread_mutex_destroy(&ahead->lock);
    pthread_cond_destroy(&ahead->changed);
}

static void ahead_end(struct iterator *it)
{
    struct ahead *ahead = (struct ahead *)it;
    if (ahead->threaded)
        stop(ahead);
    kernel_iterator_free(ahead->at);
    if (ahead->threaded) {
        cancel_free(ahead->pipeline.cancel);
        kernel_pipeline_release(&ahead->pipeline);
    }
}

static void wake(void *arg)
{
    struct ahead *ahead = arg;
    pthread_mutex_lock(&ahead->lock);
    pthread_cond_broadcast(&ahead->changed);
    pthread_mutex_unlock(&ahead->lock);
}

/* The next item; false when the run that asks is cancelled first. */
static bool get(struct ahead *ahead, struct item *item, struct error *err)
{
    struct cancel *cancel = ahead->it.pipeline->cancel;
    uint64_t ticket;
    if (cancel && !cancel_add(cancel, wake, ahead, &ticket))
        return fail(err, CANCELLED, "the run was cancelled");
    pthread_mutex_lock(&ahead->lock);
    while (ahead->count == 0 && !(cancel && cancel_requested(cancel)))
        pthread_cond_wait(&ahead->changed, &ahead->lock);
    bool there = ahead->count > 0;
    if (there) {
        *item = ahead->ring[ahead->first];
        ahead->first = (ahead->first + 1) % ahead->size;
        ahead->count--;
        pthread_cond_broadcast(&ahead->changed);
    }
    pthread_mutex_unlock(&ahead->lock);
    if (cancel)
        cancel_remove(cancel, ticket);
    return there || fail(err, CANCELLED, "the run was cancelled");
}

static bool ahead_next(struct iterator *it, struct tensor *out, bool *end, struct error *err)
{
    struct ahead *ahead = (struct ahead *)it;
    struct item item = {NULL, NULL};
    if (!ahead->threaded)
        return kernel_iterator_next(ahead->at, out, end, err);
    if (!ahead->begun) {
        ahead->begun = pthread_create(&ahead->thread, NULL, prefetch_main, ahead) == 0;
        if (!ahead->begun)
            return fail(err, EXHAUSTED, "no thread can be started to prefetch");
    }
    if (!get(ahead, &item, err))
        return false;
    if (item.row)
        memcpy(out, item.row, (size_t)it->dataset->width * sizeof(*out));
    if (item.failure)
        *err = *item.failure;
    *end = !item.row && !item.failure;
    bool ok = !item.failure;
    free(item.row);
    free(item.failure);
    return ok;
}

static int64_t prefetch_cardinality(const struct dataset *dataset)
{
    return kernel_dataset_cardinality(dataset->inputs[0]);
}

static const struct dataset_type prefetch_type = {
    .name = "Prefetch",
    .dataset_size = sizeof(struct prefetch),
    .iterator_size = sizeof(struct ahead),
    .lazy = true,
    .begin = ahead_begin,
    .next = ahead_next,
    .end = ahead_end,
    .cardinality = prefetch_cardinality,
};

struct dataset *kernel_prefetch_new(struct dataset *input, struct error *err)
{
    struct prefetch *prefetch =
        (struct prefetch *)kernel_dataset_wrap(&prefetch_type, input, err);
    if (prefetch)
        prefetch->size = AHEAD_AUTO;
    return prefetch ? &prefetch->dataset : NULL;
}

static bool prefetch_run(struct kernel_call *call, struct error *err)
{
    int64_t size;
    if (!kernel_scalar(call, 1, "buffer_size", &size, err))
        return false;
    if (size < -1)
        return fail(err, INVALID,
                    "buffer_size must be >= 0 or set buffer_size to be -1 for "
                    "auto-tuning");
    struct prefetch *prefetch =
        (struct prefetch *)kernel_dataset_make(call, &prefetch_type, 0, 1, err);
    if (!prefetch)
        return false;
    prefetch->size = size < 0 ? AHEAD_AUTO : size < AHEAD_MAX ? size : AHEAD_MAX;
    return kernel_dataset_output(call, &prefetch->dataset, err);
}

const struct kernel kernel_prefetch_dataset = {
    .op = "PrefetchDataset", .device = CPU, .run = prefetch_run};
