/*
 * buffers.h - where the members of collectives meet: values by key, each given once.
 *
 * The counterpart of TensorFlow's BufRendezvous.  Who provides hears when it was taken, as its
 * step must not end before.  Callable from any thread.
 */
#pragma once

#include "base/base.h"

struct buffers;
struct error;
struct tensor;

typedef void buffers_taken(void *arg, const struct error *err);

/* The value is borrowed; `err` not NULL: there is none. */
typedef void buffers_taker(void *arg, const struct tensor *value, const struct error *err);

struct buffers *buffers_new(void);
void buffers_free(struct buffers *buffers); /* nobody waits; NULL is fine */

/* Each calls back once, perhaps at once, under no lock. */
void buffers_provide(struct buffers *buffers, const char *key, const struct tensor *value,
                     buffers_taken *taken, void *arg);
void buffers_take(struct buffers *buffers, const char *key, buffers_taker *taker, void *arg);

/* The taker will not be called; false if it was, or is being called. */
bool buffers_withdraw(struct buffers *buffers, const void *arg);

/* All who wait, and all later calls, fail with `err`; the first abort decides. */
void buffers_abort(struct buffers *buffers, const struct error *err);
