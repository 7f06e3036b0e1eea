/*
 * runs.h - the runs of a session that go on, each with what ends it.
 *
 * Callable from any thread.
 */
#pragma once

#include <pthread.h>

#include "base/base.h"

struct cancel;
struct error;

struct running {
    struct running *next, *previous;
    struct cancel *cancel; /* of this run alone */
    int cancelling;        /* how many threads are about to cancel it */
};

struct runs {
    pthread_mutex_t lock;   /* guards: all below */
    pthread_cond_t changed; /* a run has ended, or need not wait for a canceller any more */
    struct running *running;
    struct running *idle; /* kept for later ones */
    bool closed;
};

void runs_init(struct runs *runs);
void runs_release(struct runs *runs); /* none goes on */

/* Fails with CANCELLED after runs_close(). */
struct running *runs_begin(struct runs *runs, struct error *err) CHECKED;
void runs_end(struct runs *runs, struct running *run);

/* Cancels those that go on now; does not wait for them. */
void runs_cancel(struct runs *runs);

/* Lets none begin any more, cancels all, and returns when none is left. */
void runs_close(struct runs *runs);

/* False; when a run was cancelled by closing, `err` says so. */
bool runs_explain(struct runs *runs, struct error *err);
