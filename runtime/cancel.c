/* cancel.c - the list of those to wake when a run is cancelled. */

#include <pthread.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "runtime/cancel.h"

struct waiter {
    struct waiter *next;
    uint64_t ticket;
    cancel_callback *callback;
    void *arg;
};

struct cancel {
    pthread_mutex_t lock;   /* guards: all below */
    pthread_cond_t called;  /* a callback has returned */
    struct waiter *waiters; /* newest last */
    struct waiter **end;
    uint64_t last_ticket;
    uint64_t calling; /* ticket of the callback that runs, 0 for none */
    pthread_t caller; /* the thread that runs it */
    bool requested;   /* __atomic */
};

struct cancel *cancel_new(void)
{
    struct cancel *cancel = alloc_bytes(sizeof(*cancel));
    pthread_mutex_init(&cancel->lock, NULL);
    pthread_cond_init(&cancel->called, NULL);
    cancel->end = &cancel->waiters;
    return cancel;
}

void cancel_free(struct cancel *cancel)
{
    if (!cancel)
        return;
    assert(!cancel->waiters);
    pthread_cond_destroy(&cancel->called);
    pthread_mutex_destroy(&cancel->lock);
    free(cancel);
}

bool cancel_add(struct cancel *cancel, cancel_callback *callback, void *arg, uint64_t *ticket)
{
    pthread_mutex_lock(&cancel->lock);
    bool added = !cancel->requested;
    if (added) {
        struct waiter *waiter = alloc_bytes(sizeof(*waiter));
        *ticket = ++cancel->last_ticket;
        *waiter = (struct waiter){.ticket = *ticket, .callback = callback, .arg = arg};
        *cancel->end = waiter;
        cancel->end = &waiter->next;
    }
    pthread_mutex_unlock(&cancel->lock);
    return added;
}

/* Takes the waiter out of the list; NULL if it is not there. */
static struct waiter *take_locked(struct cancel *cancel, uint64_t ticket)
{
    struct waiter **link = &cancel->waiters;
    while (*link && (*link)->ticket != ticket)
        link = &(*link)->next;
    struct waiter *found = *link;
    if (found) {
        *link = found->next;
        if (!*link)
            cancel->end = link;
    }
    return found;
}

bool cancel_remove(struct cancel *cancel, uint64_t ticket)
{
    pthread_mutex_lock(&cancel->lock);
    struct waiter *found = take_locked(cancel, ticket);
    /* A callback that withdraws itself does not wait for itself. */
    while (cancel->calling == ticket && !pthread_equal(cancel->caller, pthread_self()))
        pthread_cond_wait(&cancel->called, &cancel->lock);
    pthread_mutex_unlock(&cancel->lock);
    free(found);
    return found;
}

void cancel_now(struct cancel *cancel)
{
    pthread_mutex_lock(&cancel->lock);
    bool first = !cancel->requested;
    __atomic_store_n(&cancel->requested, true, __ATOMIC_RELEASE);
    while (first && cancel->waiters) {
        struct waiter *waiter = take_locked(cancel, cancel->waiters->ticket);
        cancel->calling = waiter->ticket;
        cancel->caller = pthread_self();
        pthread_mutex_unlock(&cancel->lock);
        waiter->callback(waiter->arg);
        pthread_mutex_lock(&cancel->lock);
        cancel->calling = 0;
        pthread_cond_broadcast(&cancel->called);
        free(waiter);
    }
    pthread_mutex_unlock(&cancel->lock);
}

bool cancel_requested(const struct cancel *cancel)
{
    return __atomic_load_n(&cancel->requested, __ATOMIC_ACQUIRE);
}

void cancel_clear(struct cancel *cancel)
{
    assert(!cancel->waiters);
    __atomic_store_n(&cancel->requested, false, __ATOMIC_RELAXED);
}
