/*
 * workers.c - threads that do work for datasets.
 *
 * DESIGN: a queue under one lock.  A thread is started when there is work and nobody is idle,
 * at most one for each processor, and ends when there was nothing to do for IDLE_MS.
 */

#include "kernels/data/workers.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 32
#define IDLE_MS 2000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards: all below */
static pthread_cond_t more;
static bool begun; /* `more` is made, by the monotonic clock */
static struct kernel_work *first, *last;
static int threads, idle;

int kernel_workers_max(void)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    return processors < 1 ? 1 : processors < THREADS_MAX ? (int)processors : THREADS_MAX;
}

static void begin_locked(void)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&more, &attr);
    pthread_condattr_destroy(&attr);
    begun = true;
}

static void unlink_locked(struct kernel_work *work)
{
    *(work->before ? &work->before->next : &first) = work->next;
    *(work->next ? &work->next->before : &last) = work->before;
    work->queued = false;
}

/* The next piece of work; NULL when there is none for too long. */
static struct kernel_work *wait_locked(void)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += IDLE_MS / 1000;
    for (int late = 0; !first && !late;) {
        idle++;
        late = pthread_cond_timedwait(&more, &lock, &until);
        idle--;
    }
    struct kernel_work *work = first;
    if (work)
        unlink_locked(work);
    return work;
}

static void *workers_main(void *unused)
{
    pthread_mutex_lock(&lock);
    for (struct kernel_work *work; (work = wait_locked());) {
        pthread_mutex_unlock(&lock);
        work->run(work);
        pthread_mutex_lock(&lock);
    }
    threads--;
    pthread_mutex_unlock(&lock);
    return unused;
}

/* Without a thread whoever waits does the work. */
static void start_locked(void)
{
    pthread_t thread;
    threads++;
    if (pthread_create(&thread, NULL, workers_main, NULL) == 0)
        pthread_detach(thread);
    else
        threads--;
}

void kernel_workers_add(struct kernel_work *work)
{
    pthread_mutex_lock(&lock);
    if (!begun)
        begin_locked();
    assert(!work->queued);
    work->queued = true;
    work->next = NULL;
    work->before = last;
    *(last ? &last->next : &first) = work;
    last = work;
    if (idle > 0)
        pthread_cond_signal(&more);
    else if (threads < kernel_workers_max())
        start_locked();
    pthread_mutex_unlock(&lock);
}

bool kernel_workers_withdraw(struct kernel_work *work)
{
    pthread_mutex_lock(&lock);
    bool there = work->queued;
    if (there)
        unlink_locked(work);
    pthread_mutex_unlock(&lock);
    return there;
}
