/* attempt.c - lists of those who wait, served in order. */

#include <stdlib.h>

#include "base/alloc.h"
#include "runtime/attempt.h"
#include "runtime/cancel.h"

void attempt_counter_init(struct counter *counter,
                          void (*serve_locked)(struct counter *counter,
                                               struct attempt_list *ended))
{
    pthread_mutex_init(&counter->lock, NULL);
    counter->serve_locked = serve_locked;
}

void attempt_counter_release(struct counter *counter)
{
    pthread_mutex_destroy(&counter->lock);
}

/* --- lists --- */

static void append(struct attempt_list *list, struct attempt *attempt)
{
    attempt->list = list;
    attempt->next = NULL;
    attempt->previous = list->last;
    if (list->last)
        list->last->next = attempt;
    else
        list->first = attempt;
    list->last = attempt;
}

static void unlink_from_list(struct attempt *attempt)
{
    struct attempt_list *list = attempt->list;
    if (attempt->previous)
        attempt->previous->next = attempt->next;
    else
        list->first = attempt->next;
    if (attempt->next)
        attempt->next->previous = attempt->previous;
    else
        list->last = attempt->previous;
}

/* --- ends --- */

void attempt_fail(struct attempt *attempt, enum error_code code, const char *format, ...)
{
    if (attempt->failure)
        return;
    char text[sizeof(attempt->failure->text)];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    attempt->failure = alloc_bytes(sizeof(*attempt->failure));
    fail(attempt->failure, code, "%s", text);
}

void attempt_release(struct attempt *attempt)
{
    free(attempt->failure);
    attempt->failure = NULL;
}

void attempt_end_locked(struct attempt *attempt, struct attempt_list *ended)
{
    assert(attempt->state == ATTEMPT_WAITING);
    unlink_from_list(attempt);
    append(ended, attempt);
    attempt->state = ATTEMPT_ENDED;
}

/* No callback of its run's cancellation looks at the attempt any more. */
static void finish_one(struct attempt *attempt)
{
    if (attempt->cancel)
        cancel_remove(attempt->cancel, attempt->ticket);
    attempt->done(attempt);
}

void attempt_finish(struct attempt_list *ended)
{
    struct attempt *next = ended->first;
    *ended = (struct attempt_list){0};
    while (next) {
        struct attempt *attempt = next;
        next = attempt->next;
        finish_one(attempt);
    }
}

void attempt_serve(struct counter *counter)
{
    struct attempt_list ended = {0};
    pthread_mutex_lock(&counter->lock);
    counter->serve_locked(counter, &ended);
    pthread_mutex_unlock(&counter->lock);
    attempt_finish(&ended);
}

/* --- cancelling --- */

/* The run is over: whoever stood behind this one may be served now. */
static void on_cancel(void *arg)
{
    struct attempt *attempt = arg;
    struct counter *counter = attempt->counter;
    struct attempt_list ended = {0};
    pthread_mutex_lock(&counter->lock);
    if (attempt->state == ATTEMPT_NEW) {
        attempt->cancelled = true;
    } else if (attempt->state == ATTEMPT_WAITING) {
        attempt_fail(attempt, CANCELLED, "%s operation was cancelled", attempt->what);
        attempt_end_locked(attempt, &ended);
        counter->serve_locked(counter, &ended);
    }
    pthread_mutex_unlock(&counter->lock);
    attempt_finish(&ended);
}

void attempt_begin(struct attempt *attempt, struct counter *counter, struct attempt_list *list,
                   struct cancel *cancel)
{
    struct attempt_list ended = {0};
    attempt->counter = counter;
    attempt->cancel = cancel;
    bool refused = cancel && !cancel_add(cancel, on_cancel, attempt, &attempt->ticket);
    if (refused)
        attempt->cancel = NULL;

    pthread_mutex_lock(&counter->lock);
    append(list, attempt);
    attempt->state = ATTEMPT_WAITING;
    if (refused || attempt->cancelled) {
        attempt_fail(attempt, CANCELLED, "%s operation was cancelled", attempt->what);
        attempt_end_locked(attempt, &ended);
    } else {
        counter->serve_locked(counter, &ended);
    }
    pthread_mutex_unlock(&counter->lock);
    attempt_finish(&ended);
}
