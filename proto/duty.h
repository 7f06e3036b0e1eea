/*
 * duty.h - threads that wait for the events of an epoll, each of which one of them is told.
 *
 * DESIGN: there are always some that wait, so that one may leave and do what takes long where
 * the event was told: no thread has to be woken for that, and nobody else is held up.  Those
 * above the number that is kept end after a while.
 */
#pragma once

#include "base/base.h"

struct duty;
struct epoll_event;
struct error;

struct duty_options {
    int epoll;        /* borrowed */
    const char *name; /* of the threads */
    void (*serve)(void *self, const struct epoll_event *event);
    void *self;
};

/* `serve` should not block; what watches the epoll's files must have them told once. */
struct duty *duty_start(const struct duty_options *options, struct error *err) CHECKED;

/* What takes long, with what it needs: `begin` and `end` (or NULL) are called around it. */
struct duty_work {
    void (*work)(void *arg);
    void *arg;
    void (*begin)(void *held);
    void (*end)(void *held);
    void *held;
};

/* In `serve`: the same thread does this when that has returned, while others wait for events,
 * also when the duty has ended.  False: it does not, as it has such work already, or nobody
 * else could wait. */
bool duty_later(struct duty *duty, const struct duty_work *work);

/* No thread is told of events any more when this returns.  Gone after this. */
void duty_end(struct duty *duty);
