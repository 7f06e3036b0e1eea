/*
 * deadline.h - calls when a time is over: of a run, which is cancelled then, whatever it does.
 *
 * One thread of the process waits for the earliest of all; it ends when there is none.
 */
#pragma once

#include "base/base.h"

/* Embedded in what has a deadline. */
struct deadline {
    uint64_t at_ns; /* by the monotonic clock */
    void (*over)(void *arg);
    void *arg;
    struct deadline *next, *before; /* private, like all below */
    bool waiting;
};

/* `over(arg)` is called at that time, once.  Without a thread for it nothing happens. */
void deadline_begin(struct deadline *deadline, uint64_t at_ns, void (*over)(void *arg),
                    void *arg);

/* No more; afterwards `over` is not running, unless that is what calls this. */
void deadline_end(struct deadline *deadline);
