/* workers.c - one list of work, and the threads that take from it. */

#include <pthread.h>

#include "base/alloc.h"
#include "server/workers.h"

struct workers {
    workers_fn *fn;
    pthread_t *threads;
    int count;
    pthread_mutex_t lock; /* guards: all below */
    pthread_cond_t filled;
    struct work *first;
    struct work *last;
    bool stopping;
};

static void *workers_main(void *argument)
{
    struct workers *workers = argument;
    pthread_mutex_lock(&workers->lock);
    for (;;) {
        while (!workers->first && !workers->stopping)
            pthread_cond_wait(&workers->filled, &workers->lock);
        struct work *work = workers->first;
        if (!work)
            break;
        workers->first = work->next;
        pthread_mutex_unlock(&workers->lock);
        workers->fn(work);
        pthread_mutex_lock(&workers->lock);
    }
    pthread_mutex_unlock(&workers->lock);
    return NULL;
}

struct workers *workers_new(int count, workers_fn *fn)
{
    struct workers *workers = alloc_bytes(sizeof(*workers));
    workers->fn = fn;
    workers->threads = alloc_array((size_t)count, sizeof(*workers->threads));
    pthread_mutex_init(&workers->lock, NULL);
    pthread_cond_init(&workers->filled, NULL);
    while (workers->count < count &&
           !pthread_create(&workers->threads[workers->count], NULL, workers_main, workers))
        workers->count++;
    if (workers->count == count)
        return workers;
    workers_stop(workers);
    workers_free(workers);
    return NULL;
}

bool workers_give(struct workers *workers, struct work *work)
{
    work->next = NULL;
    pthread_mutex_lock(&workers->lock);
    bool taken = !workers->stopping;
    if (taken) {
        if (workers->first)
            workers->last->next = work;
        else
            workers->first = work;
        workers->last = work;
        pthread_cond_signal(&workers->filled);
    }
    pthread_mutex_unlock(&workers->lock);
    return taken;
}

void workers_stop(struct workers *workers)
{
    if (!workers)
        return;
    pthread_mutex_lock(&workers->lock);
    workers->stopping = true;
    pthread_cond_broadcast(&workers->filled);
    pthread_mutex_unlock(&workers->lock);
    for (int i = 0; i < workers->count; i++)
        pthread_join(workers->threads[i], NULL);
    workers->count = 0;
}

void workers_free(struct workers *workers)
{
    if (!workers)
        return;
    assert(!workers->first && !workers->count);
    pthread_cond_destroy(&workers->filled);
    pthread_mutex_destroy(&workers->lock);
    free(workers->threads);
    free(workers);
}
