/*
 * attempt.h - waiting for one's turn without holding a thread.
 *
 * What is waited at (a queue, an accumulator, a reader) is a counter: it has a lock, lists of
 * attempts in the order in which they came, and a function that serves those it can.  An
 * attempt ends exactly once: served, failed, or cancelled with its run.
 *
 * DESIGN.  All lists and all that an attempt is about are guarded by the counter's lock.
 * Serving moves attempts to a list of ended ones; only when the lock is free again is their
 * done() called, from whatever thread that was.  So done() may do anything, and no lock is
 * ever held while another one is taken.
 */
#pragma once

#include <pthread.h>

#include "base/error.h"

struct attempt;
struct cancel;

struct attempt_list {
    struct attempt *first; /* the one whose turn is next */
    struct attempt *last;
};

struct counter {
    pthread_mutex_t lock;
    /* Ends what can be ended now, with attempt_end_locked(). */
    void (*serve_locked)(struct counter *counter, struct attempt_list *ended);
};

enum attempt_state { ATTEMPT_NEW, ATTEMPT_WAITING, ATTEMPT_ENDED };

/* Embedded first in what a kind of attempt needs; done() frees the whole. */
struct attempt {
    struct attempt *previous, *next;
    struct attempt_list *list;
    struct counter *counter;
    struct cancel *cancel; /* NULL: it cannot be cancelled */
    uint64_t ticket;
    enum attempt_state state; /* what the counter's lock guards, for who cancels */
    bool cancelled;           /* while it was new */
    const char *what;         /* "Dequeue": for "Dequeue operation was cancelled" */
    struct error *failure;    /* owned; NULL: it succeeded */
    void (*done)(struct attempt *attempt);
};

/*
 * Puts the attempt at the end of `list` and serves the counter.  Whoever calls keeps the
 * counter alive until this returns, and the attempt does until its done() was called, which
 * may be before this returns: the attempt is not touched afterwards.
 */
void attempt_begin(struct attempt *attempt, struct counter *counter, struct attempt_list *list,
                   struct cancel *cancel);

/* Serves, after something at the counter has changed. */
void attempt_serve(struct counter *counter);

/* Takes the attempt out of its list; once the lock is free, attempt_finish() it. */
void attempt_end_locked(struct attempt *attempt, struct attempt_list *ended);

/* The attempt will end with this error; the first one counts. */
void attempt_fail(struct attempt *attempt, enum error_code code, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* Ends all of a list made by attempt_end_locked(), in its order; no lock is held. */
void attempt_finish(struct attempt_list *ended);

/* Gives the failure back that attempt_fail() made. */
void attempt_release(struct attempt *attempt);

void attempt_counter_init(struct counter *counter,
                          void (*serve_locked)(struct counter *counter,
                                               struct attempt_list *ended));
void attempt_counter_release(struct counter *counter);
