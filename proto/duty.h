/*
 * duty.h - threads that wait for the events of an epoll, each of which one of them is told.
 *
 * DESIGN: there are always some that wait, so that one may do what takes long where the event
 * was told: no thread has to be woken for that, and nobody else is held up.  Those above the
 * number that is kept end after a while.
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

/* In `serve`: it may take long from here on.  False: nobody else could wait for events. */
bool duty_leave(struct duty *duty);
void duty_return(struct duty *duty);

/* No thread is told of events any more when this returns; those that have left may go on, and
 * duty_return().  Gone after this. */
void duty_end(struct duty *duty);
