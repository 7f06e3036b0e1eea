/*
 * cancel.h - asking a run to end early.
 *
 * Who waits for something (a queue, a message) registers what wakes it; who wants the run to
 * end calls cancel_now() once.  Callable from any thread.
 */
#pragma once

#include "base/base.h"

struct cancel;

/* Called at most once, by the thread that cancels, while no lock of the cancel is held. */
typedef void cancel_callback(void *arg);

struct cancel *cancel_new(void);
void cancel_free(struct cancel *cancel); /* NULL is fine; nobody is registered any more */

/*
 * Registers `callback` and sets `*ticket`.  False if cancel_now() was called before: then
 * nothing is registered, and the caller ends its wait itself.
 */
bool cancel_add(struct cancel *cancel, cancel_callback *callback, void *arg,
                uint64_t *ticket) CHECKED;

/*
 * Withdraws it.  False if it was called; if another thread is calling it right now, waits until
 * it returns.  After this `arg` may be freed.
 */
bool cancel_remove(struct cancel *cancel, uint64_t ticket);

/* Calls all callbacks, in the order in which they were added.  The second call does nothing. */
void cancel_now(struct cancel *cancel);

bool cancel_requested(const struct cancel *cancel);

/* As new, to be used for another run; nobody is registered or calls. */
void cancel_clear(struct cancel *cancel);
