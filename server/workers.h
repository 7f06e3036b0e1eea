/*
 * workers.h - threads for requests that wait for the disk.
 *
 * A thread of libmicrohttpd serves many connections, one after the other: it must not sleep
 * until a commit.  So what changes something is called by one of these, and those that wait at
 * the same time are on disk with one commit.
 */
#pragma once

#include "base/base.h"

struct workers;

/* Embedded in what is to be done. */
struct work {
    struct work *next;
};

typedef void workers_fn(struct work *work);

/* NULL when no thread can be started. */
struct workers *workers_new(int count, workers_fn *fn);

/* Has `work` done soon, in the order in which it comes.  False when they have stopped. */
bool workers_give(struct workers *workers, struct work *work);

/* Does what was given, and ends the threads. */
void workers_stop(struct workers *workers); /* NULL is fine */
void workers_free(struct workers *workers); /* after workers_stop(); NULL is fine */
