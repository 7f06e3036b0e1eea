/* duty.c - threads that wait for the events of an epoll. */

#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "proto/duty.h"

enum {
    THREADS_KEPT = 2,
    IDLE_MS = 10000, /* until others than those end */
};

struct duty {
    struct duty_options options;
    int wake;

    pthread_mutex_t lock; /* guards: all below */
    pthread_cond_t changed;
    int waiting;    /* threads that have not left */
    int threads;    /* all */
    int references; /* the owner's, each thread's */
    bool over;
};

static void unref(struct duty *duty)
{
    pthread_mutex_lock(&duty->lock);
    bool last = !--duty->references;
    pthread_mutex_unlock(&duty->lock);
    if (!last)
        return;
    pthread_cond_destroy(&duty->changed);
    pthread_mutex_destroy(&duty->lock);
    free(duty);
}

/* Whether a thread is to go on; one that has had nothing to do for long ends, if there are
 * others.  One that has left and come back when all is over ends, too. */
static bool goes_on(struct duty *duty, bool idle)
{
    pthread_mutex_lock(&duty->lock);
    bool goes = !duty->over && !(idle && duty->waiting > THREADS_KEPT);
    if (!goes) {
        duty->waiting--;
        duty->threads--;
        pthread_cond_broadcast(&duty->changed);
    }
    pthread_mutex_unlock(&duty->lock);
    return goes;
}

static _Thread_local struct duty_work *later; /* NULL: the thread serves no event */

static void come_back(struct duty *duty)
{
    pthread_mutex_lock(&duty->lock);
    duty->waiting++;
    pthread_mutex_unlock(&duty->lock);
}

static void serve(struct duty *duty, const struct epoll_event *event)
{
    struct duty_work left = {0};
    later = &left;
    duty->options.serve(duty->options.self, event);
    later = NULL;
    if (!left.work)
        return;
    if (left.begin)
        left.begin(left.held);
    left.work(left.arg);
    if (left.end)
        left.end(left.held);
    come_back(duty);
}

static void *duty_main(void *arg)
{
    struct duty *duty = arg;
    struct epoll_event event;
    int count = 1;
    while (goes_on(duty, !count)) {
        count = epoll_wait(duty->options.epoll, &event, 1, IDLE_MS);
        if (count > 0 && event.data.ptr != &duty->wake)
            serve(duty, &event);
    }
    unref(duty);
    return NULL;
}

static bool add_thread_locked(struct duty *duty)
{
    pthread_t thread;
    pthread_attr_t attr;
    if (duty->threads >= LIMIT_WORKER_THREADS)
        return false;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    bool ok = !pthread_create(&thread, &attr, duty_main, duty);
    pthread_attr_destroy(&attr);
    if (ok) {
        pthread_setname_np(thread, duty->options.name);
        duty->threads++;
        duty->waiting++;
        duty->references++;
    }
    return ok;
}

static bool leave(struct duty *duty)
{
    pthread_mutex_lock(&duty->lock);
    bool others = !duty->over && (duty->waiting > 1 || add_thread_locked(duty));
    if (others)
        duty->waiting--;
    pthread_mutex_unlock(&duty->lock);
    return others;
}

bool duty_later(struct duty *duty, const struct duty_work *work)
{
    if (!later || later->work || !leave(duty))
        return false;
    *later = *work;
    return true;
}

/* Its threads see that it is over. */
static void call_off(struct duty *duty)
{
    const uint64_t one = 1;
    pthread_mutex_lock(&duty->lock);
    duty->over = true;
    ssize_t wrote = write(duty->wake, &one, sizeof(one));
    assert(wrote == (ssize_t)sizeof(one));
    while (duty->waiting)
        pthread_cond_wait(&duty->changed, &duty->lock);
    pthread_mutex_unlock(&duty->lock);
    (void)epoll_ctl(duty->options.epoll, EPOLL_CTL_DEL, duty->wake, NULL);
    close(duty->wake);
}

void duty_end(struct duty *duty)
{
    call_off(duty);
    unref(duty);
}

struct duty *duty_start(const struct duty_options *options, struct error *err)
{
    struct duty *duty = alloc_bytes(sizeof(*duty));
    struct epoll_event wakes = {.events = EPOLLIN, .data.ptr = &duty->wake};
    duty->options = *options;
    duty->references = 1;
    pthread_mutex_init(&duty->lock, NULL);
    pthread_cond_init(&duty->changed, NULL);
    duty->wake = eventfd(0, EFD_CLOEXEC);
    if (duty->wake < 0 || epoll_ctl(options->epoll, EPOLL_CTL_ADD, duty->wake, &wakes)) {
        (void)error_errno(err, UNAVAILABLE, "cannot wait for events");
        if (duty->wake >= 0)
            close(duty->wake);
        unref(duty);
        return NULL;
    }
    pthread_mutex_lock(&duty->lock);
    while (duty->threads < THREADS_KEPT && add_thread_locked(duty)) {
    }
    bool ok = duty->threads;
    pthread_mutex_unlock(&duty->lock);
    if (ok)
        return duty;
    (void)fail(err, EXHAUSTED, "no thread to wait for events with");
    duty_end(duty);
    return NULL;
}
