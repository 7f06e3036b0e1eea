/* deadline.c - one list, one thread that walks it each second. */

#include <pthread.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "server/deadline.h"

#define DEADLINE_PERIOD_MS 1000

struct deadline_entry {
    struct deadline_entry *next;
    struct deadline_entry **link; /* what points here */
    int fd;
    uint64_t until_us; /* monotonic; 0: not watched */
};

struct deadline {
    pthread_mutex_t lock; /* guards: entries and their fields, stopping */
    pthread_cond_t changed;
    struct deadline_entry *entries;
    bool stopping;
    pthread_t thread;
};

static void *deadline_main(void *argument)
{
    struct deadline *deadline = argument;
    pthread_mutex_lock(&deadline->lock);
    while (!deadline->stopping) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += DEADLINE_PERIOD_MS / 1000;
        pthread_cond_timedwait(&deadline->changed, &deadline->lock, &until);
        uint64_t now = clock_monotonic_us();
        for (struct deadline_entry *e = deadline->entries; e; e = e->next) {
            if (e->until_us && now >= e->until_us) {
                shutdown(e->fd, SHUT_RDWR); /* the fd is ours until deadline_remove() */
                e->until_us = 0;
            }
        }
    }
    pthread_mutex_unlock(&deadline->lock);
    return NULL;
}

struct deadline *deadline_new(void)
{
    struct deadline *deadline = alloc_bytes(sizeof(*deadline));
    pthread_mutex_init(&deadline->lock, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&deadline->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    int failed = pthread_create(&deadline->thread, NULL, deadline_main, deadline);
    assert(!failed);
    return deadline;
}

void deadline_free(struct deadline *deadline)
{
    if (!deadline)
        return;
    pthread_mutex_lock(&deadline->lock);
    deadline->stopping = true;
    pthread_cond_signal(&deadline->changed);
    pthread_mutex_unlock(&deadline->lock);
    pthread_join(deadline->thread, NULL);
    assert(!deadline->entries);
    pthread_cond_destroy(&deadline->changed);
    pthread_mutex_destroy(&deadline->lock);
    free(deadline);
}

static uint64_t until(int limit_ms)
{
    return limit_ms ? clock_monotonic_us() + (uint64_t)limit_ms * 1000 : 0;
}

struct deadline_entry *deadline_add(struct deadline *deadline, int fd)
{
    struct deadline_entry *entry = alloc_bytes(sizeof(*entry));
    entry->fd = fd;
    entry->until_us = until(DEADLINE_HEAD_MS);
    pthread_mutex_lock(&deadline->lock);
    entry->next = deadline->entries;
    entry->link = &deadline->entries;
    if (entry->next)
        entry->next->link = &entry->next;
    deadline->entries = entry;
    pthread_mutex_unlock(&deadline->lock);
    return entry;
}

void deadline_remove(struct deadline *deadline, struct deadline_entry *entry)
{
    pthread_mutex_lock(&deadline->lock);
    *entry->link = entry->next;
    if (entry->next)
        entry->next->link = entry->link;
    pthread_mutex_unlock(&deadline->lock);
    free(entry);
}

void deadline_set(struct deadline *deadline, struct deadline_entry *entry, int limit_ms)
{
    uint64_t at = until(limit_ms);
    pthread_mutex_lock(&deadline->lock);
    entry->until_us = at;
    pthread_mutex_unlock(&deadline->lock);
}
