/* runs.c - a list of those that go on, so that all of them can be cancelled. */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/cancel.h"
#include "runtime/runs.h"

static const char closed_text[] = "Session has been closed.";

void runs_init(struct runs *runs)
{
    *runs = (struct runs){0};
    pthread_mutex_init(&runs->lock, NULL);
    pthread_cond_init(&runs->changed, NULL);
}

void runs_release(struct runs *runs)
{
    assert(!runs->running);
    while (runs->idle) {
        struct running *run = runs->idle;
        runs->idle = run->next;
        cancel_free(run->cancel);
        free(run);
    }
    pthread_cond_destroy(&runs->changed);
    pthread_mutex_destroy(&runs->lock);
}

static struct running *new_running(void)
{
    struct running *run = alloc_bytes(sizeof(*run));
    run->cancel = cancel_new();
    return run;
}

struct running *runs_begin(struct runs *runs, struct error *err)
{
    struct running *run = NULL;
    pthread_mutex_lock(&runs->lock);
    if (!runs->closed) {
        run = runs->idle;
        if (run)
            runs->idle = run->next;
        else
            run = new_running();
        run->previous = NULL;
        run->next = runs->running;
        if (run->next)
            run->next->previous = run;
        runs->running = run;
    }
    pthread_mutex_unlock(&runs->lock);
    return run ? run : fail_null(err, CANCELLED, "%s", closed_text);
}

void runs_end(struct runs *runs, struct running *run)
{
    pthread_mutex_lock(&runs->lock);
    while (run->cancelling)
        pthread_cond_wait(&runs->changed, &runs->lock);
    *(run->previous ? &run->previous->next : &runs->running) = run->next;
    if (run->next)
        run->next->previous = run->previous;
    if (cancel_requested(run->cancel))
        cancel_clear(run->cancel);
    run->next = runs->idle;
    runs->idle = run;
    if (runs->closed)
        pthread_cond_broadcast(&runs->changed);
    pthread_mutex_unlock(&runs->lock);
}

/*
 * Walks the list; who is being cancelled stays in it, so its neighbour can be found.  The lock
 * is not held meanwhile, as cancelling calls whoever waits in the run.
 */
static void cancel_all_locked(struct runs *runs)
{
    struct running *run = runs->running;
    if (run)
        run->cancelling++;
    while (run) {
        pthread_mutex_unlock(&runs->lock);
        cancel_now(run->cancel);
        pthread_mutex_lock(&runs->lock);
        struct running *next = run->next;
        if (next)
            next->cancelling++;
        run->cancelling--;
        pthread_cond_broadcast(&runs->changed);
        run = next;
    }
}

void runs_cancel(struct runs *runs)
{
    pthread_mutex_lock(&runs->lock);
    cancel_all_locked(runs);
    pthread_mutex_unlock(&runs->lock);
}

void runs_close(struct runs *runs)
{
    pthread_mutex_lock(&runs->lock);
    runs->closed = true;
    cancel_all_locked(runs);
    while (runs->running)
        pthread_cond_wait(&runs->changed, &runs->lock);
    pthread_mutex_unlock(&runs->lock);
}

bool runs_explain(struct runs *runs, struct error *err)
{
    pthread_mutex_lock(&runs->lock);
    bool closed = runs->closed;
    pthread_mutex_unlock(&runs->lock);
    if (closed && err->code == CANCELLED)
        return fail(err, CANCELLED, "%s", closed_text);
    return false;
}
