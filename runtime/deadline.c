/*
 * deadline.c - calls those whose time is over.
 *
 * DESIGN: a list in the order of time under one lock, and a thread that sleeps until the first.
 * It calls without the lock; who ends a deadline waits while his is being called.
 */

#include "runtime/deadline.h"

#include <pthread.h>
#include <time.h>

#include "base/clock.h"

#define IDLE_NS 2000000000u /* the thread stays that long for others to come */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards: all below */
static pthread_cond_t changed;
static bool begun; /* `changed` is made, by the monotonic clock */
static bool running;
static struct deadline *first;
static const struct deadline *called; /* whose `over` is being called now, */
static pthread_t caller;              /* ... by this thread */

static void begin_locked(void)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &attr);
    pthread_condattr_destroy(&attr);
    begun = true;
}

static void unlink_locked(struct deadline *deadline)
{
    *(deadline->before ? &deadline->before->next : &first) = deadline->next;
    if (deadline->next)
        deadline->next->before = deadline->before;
    deadline->waiting = false;
}

static void call_locked(struct deadline *deadline)
{
    void (*over)(void *arg) = deadline->over;
    void *arg = deadline->arg;
    unlink_locked(deadline);
    called = deadline;
    caller = pthread_self();
    pthread_mutex_unlock(&lock);
    over(arg); /* `deadline` may be gone after this */
    pthread_mutex_lock(&lock);
    called = NULL;
    pthread_cond_broadcast(&changed);
}

static void *deadline_main(void *unused)
{
    pthread_mutex_lock(&lock);
    uint64_t last_ns = clock_monotonic_ns() + IDLE_NS;
    for (;;) {
        uint64_t now_ns = clock_monotonic_ns();
        if (first && first->at_ns <= now_ns) {
            call_locked(first);
            continue;
        }
        if (first)
            last_ns = now_ns + IDLE_NS;
        else if (last_ns <= now_ns)
            break;
        uint64_t until_ns = first ? first->at_ns : last_ns;
        const struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000),
                                       .tv_nsec = (long)(until_ns % 1000000000)};
        pthread_cond_timedwait(&changed, &lock, &until);
    }
    running = false;
    pthread_mutex_unlock(&lock);
    return unused;
}

void deadline_begin(struct deadline *deadline, uint64_t at_ns, void (*over)(void *arg),
                    void *arg)
{
    pthread_t thread;
    *deadline = (struct deadline){.at_ns = at_ns, .over = over, .arg = arg, .waiting = true};
    pthread_mutex_lock(&lock);
    if (!begun)
        begin_locked();
    struct deadline **link = &first;
    for (; *link && (*link)->at_ns <= at_ns; link = &(*link)->next)
        deadline->before = *link;
    deadline->next = *link;
    if (*link)
        (*link)->before = deadline;
    *link = deadline;
    if (running) {
        if (first == deadline)
            pthread_cond_broadcast(&changed);
    } else if (pthread_create(&thread, NULL, deadline_main, NULL) == 0) {
        pthread_detach(thread);
        running = true;
    }
    pthread_mutex_unlock(&lock);
}

void deadline_end(struct deadline *deadline)
{
    pthread_mutex_lock(&lock);
    if (deadline->waiting)
        unlink_locked(deadline);
    while (called == deadline && !pthread_equal(caller, pthread_self()))
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}
