/*
 * mailbox.c - a ring of pointers under one lock.
 *
 * DESIGN: many threads post, one takes.  The eventfd counts one while the ring is not empty or
 * the mailbox is closed; it is written on the first message and drained with the last.
 */

#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/mailbox.h"

struct mailbox {
    pthread_mutex_t lock; /* guards: all below */
    pthread_cond_t filled;
    pthread_cond_t drained;
    void **ring;
    int capacity;
    int first;
    int count;
    bool closed;
    int fd;
};

static void cond_init_monotonic(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

struct mailbox *mailbox_new(int capacity)
{
    assert(capacity > 0);
    struct mailbox *mailbox = alloc_bytes(sizeof(*mailbox));
    pthread_mutex_init(&mailbox->lock, NULL);
    cond_init_monotonic(&mailbox->filled);
    cond_init_monotonic(&mailbox->drained);
    mailbox->ring = alloc_array((size_t)capacity, sizeof(void *));
    mailbox->capacity = capacity;
    mailbox->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return mailbox;
}

void mailbox_free(struct mailbox *mailbox)
{
    if (!mailbox)
        return;
    if (mailbox->fd >= 0)
        close(mailbox->fd);
    pthread_cond_destroy(&mailbox->filled);
    pthread_cond_destroy(&mailbox->drained);
    pthread_mutex_destroy(&mailbox->lock);
    free(mailbox->ring);
    free(mailbox);
}

static void mailbox_signal_locked(struct mailbox *mailbox)
{
    uint64_t one = 1;
    if (mailbox->fd >= 0 && write(mailbox->fd, &one, sizeof(one)) < 0) {
        /* Only a full counter refuses, and then the fd is readable already. */
    }
}

static struct timespec deadline_after(int timeout_ms)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += timeout_ms / 1000;
    at.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_nsec -= 1000000000;
        at.tv_sec++;
    }
    return at;
}

bool mailbox_post_wait(struct mailbox *mailbox, void *message, int timeout_ms)
{
    assert(message);
    struct timespec until = deadline_after(timeout_ms);
    pthread_mutex_lock(&mailbox->lock);
    while (!mailbox->closed && mailbox->count == mailbox->capacity && timeout_ms > 0) {
        if (pthread_cond_timedwait(&mailbox->drained, &mailbox->lock, &until))
            break;
    }
    bool posted = !mailbox->closed && mailbox->count < mailbox->capacity;
    if (posted) {
        mailbox->ring[(mailbox->first + mailbox->count) % mailbox->capacity] = message;
        if (mailbox->count++ == 0)
            mailbox_signal_locked(mailbox);
        pthread_cond_signal(&mailbox->filled);
    }
    pthread_mutex_unlock(&mailbox->lock);
    return posted;
}

bool mailbox_post(struct mailbox *mailbox, void *message)
{
    return mailbox_post_wait(mailbox, message, 0);
}

void *mailbox_take(struct mailbox *mailbox, int timeout_ms)
{
    struct timespec until = deadline_after(timeout_ms);
    pthread_mutex_lock(&mailbox->lock);
    while (!mailbox->count && !mailbox->closed && timeout_ms > 0) {
        if (pthread_cond_timedwait(&mailbox->filled, &mailbox->lock, &until))
            break;
    }
    void *message = NULL;
    if (mailbox->count) {
        message = mailbox->ring[mailbox->first];
        mailbox->first = (mailbox->first + 1) % mailbox->capacity;
        mailbox->count--;
        if (!mailbox->count && !mailbox->closed && mailbox->fd >= 0) {
            uint64_t drained;
            if (read(mailbox->fd, &drained, sizeof(drained)) < 0) {
                /* Already drained: nothing to do. */
            }
        }
        pthread_cond_signal(&mailbox->drained);
    }
    pthread_mutex_unlock(&mailbox->lock);
    return message;
}

void mailbox_close(struct mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->lock);
    mailbox->closed = true;
    mailbox_signal_locked(mailbox);
    pthread_cond_broadcast(&mailbox->filled);
    pthread_cond_broadcast(&mailbox->drained);
    pthread_mutex_unlock(&mailbox->lock);
}

bool mailbox_closed(struct mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->lock);
    bool closed = mailbox->closed;
    pthread_mutex_unlock(&mailbox->lock);
    return closed;
}

int mailbox_count(struct mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->lock);
    int count = mailbox->count;
    pthread_mutex_unlock(&mailbox->lock);
    return count;
}

int mailbox_fd(struct mailbox *mailbox)
{
    return mailbox->fd;
}
