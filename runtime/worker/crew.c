/* crew.c - threads that wait for work a while before they end. */

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/worker/crew.h"

enum { IDLE_SECONDS = 10 };

struct job {
    struct job *next;
    void (*work)(void *arg);
    void *arg;
};

struct crew {
    int threads_max;
    pthread_mutex_t lock;   /* guards: all below */
    pthread_cond_t changed; /* by the monotonic clock: a job came, or it closes */
    pthread_cond_t ended;   /* the last thread or guest has */
    struct job *jobs;       /* nobody does them yet; oldest first */
    struct job **end;
    int jobs_count;
    int threads;
    int idle;
    int guests; /* that do work of their own */
    bool closing;
};

struct crew *crew_new(int threads_max)
{
    struct crew *crew = alloc_bytes(sizeof(*crew));
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&crew->lock, NULL);
    pthread_cond_init(&crew->changed, &attr);
    pthread_cond_init(&crew->ended, NULL);
    pthread_condattr_destroy(&attr);
    crew->threads_max = threads_max;
    crew->end = &crew->jobs;
    return crew;
}

void crew_free(struct crew *crew)
{
    if (!crew)
        return;
    pthread_mutex_lock(&crew->lock);
    crew->closing = true;
    pthread_cond_broadcast(&crew->changed);
    while (crew->threads || crew->guests)
        pthread_cond_wait(&crew->ended, &crew->lock);
    pthread_mutex_unlock(&crew->lock);
    assert(!crew->jobs);
    pthread_cond_destroy(&crew->changed);
    pthread_cond_destroy(&crew->ended);
    pthread_mutex_destroy(&crew->lock);
    free(crew);
}

void crew_join(struct crew *crew)
{
    pthread_mutex_lock(&crew->lock);
    crew->guests++;
    pthread_mutex_unlock(&crew->lock);
}

void crew_leave(struct crew *crew)
{
    pthread_mutex_lock(&crew->lock);
    if (!--crew->guests)
        pthread_cond_broadcast(&crew->ended);
    pthread_mutex_unlock(&crew->lock);
}

/* The oldest job; NULL when none came for a while, or none will. */
static struct job *take_locked(struct crew *crew)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += IDLE_SECONDS;
    int result = 0;
    crew->idle++;
    while (!crew->jobs && !crew->closing && result != ETIMEDOUT)
        result = pthread_cond_timedwait(&crew->changed, &crew->lock, &until);
    crew->idle--;
    struct job *job = crew->jobs;
    if (job) {
        crew->jobs = job->next;
        crew->jobs_count--;
        if (!crew->jobs)
            crew->end = &crew->jobs;
    }
    return job;
}

static void *crew_main(void *arg)
{
    struct crew *crew = arg;
    struct job *job;
    pthread_mutex_lock(&crew->lock);
    while ((job = take_locked(crew))) {
        pthread_mutex_unlock(&crew->lock);
        job->work(job->arg);
        free(job);
        pthread_mutex_lock(&crew->lock);
    }
    if (!--crew->threads)
        pthread_cond_broadcast(&crew->ended);
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

/* One more thread, unless there are enough that are idle. */
static bool make_room_locked(struct crew *crew, struct error *err)
{
    if (crew->idle > crew->jobs_count)
        return true;
    pthread_t thread;
    pthread_attr_t attr;
    if (crew->threads >= crew->threads_max)
        return fail(err, EXHAUSTED,
                    "%d steps or parts of them run already: no thread for another",
                    crew->threads);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    int failed = pthread_create(&thread, &attr, crew_main, crew);
    pthread_attr_destroy(&attr);
    if (failed)
        return fail(err, EXHAUSTED, "no thread for another step: %s", strerror(failed));
    crew->threads++;
    return true;
}

bool crew_do(struct crew *crew, void (*work)(void *arg), void *arg, struct error *err)
{
    struct job *job = alloc_bytes(sizeof(*job));
    *job = (struct job){.work = work, .arg = arg};
    pthread_mutex_lock(&crew->lock);
    bool ok = make_room_locked(crew, err);
    if (ok) {
        *crew->end = job;
        crew->end = &job->next;
        crew->jobs_count++;
        pthread_cond_signal(&crew->changed);
    }
    pthread_mutex_unlock(&crew->lock);
    if (!ok)
        free(job);
    return ok;
}
