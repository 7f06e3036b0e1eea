/*
 * webhooks.h - tells other programs of the states of jobs.
 *
 * What is sent and how it is signed is in delivery.h.  An answer of 2xx in time is success;
 * else it is tried WEBHOOKS_TRIES_MAX times in all, at growing distances.  It may arrive more
 * than once, and out of order: its id tells.
 *
 * DESIGN: one thread (webhooks_main) owns a libcurl multi handle.  It makes deliveries of the
 * events of which the feed tells, sends those that are due, at most one of each webhook and
 * WEBHOOKS_PARALLEL_MAX at a time, and writes down what came of it.  What is in the database is
 * all that there is: after a restart it goes on.
 */
#pragma once

#include "base/base.h"

struct db;
struct error;
struct feed;
struct webhooks;

#define WEBHOOKS_TRIES_MAX 8
#define WEBHOOKS_PARALLEL_MAX 8

/* Borrows both until webhooks_stop().  `anywhere`: see delivery_check_url(). */
struct webhooks *webhooks_start(struct db *db, struct feed *feed, bool anywhere);
void webhooks_stop(struct webhooks *webhooks); /* NULL is fine */

/* There may be something to send.  From any thread. */
void webhooks_wake(struct webhooks *webhooks);

/* As it was started. */
bool webhooks_anywhere(const struct webhooks *webhooks);

/* Seconds between the try that failed as number `tries` and the next; 0: it was the last. */
int webhooks_backoff_s(int tries);
