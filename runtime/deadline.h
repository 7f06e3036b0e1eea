/*
 * deadline.h - cancels a run when its time is over, whatever it does then.
 *
 * One thread of the process waits for the earliest of all; it ends when there is none.
 */
#pragma once

#include "base/base.h"

struct cancel;

/* Embedded in what has a deadline. */
struct deadline {
    uint64_t at_ns; /* by the monotonic clock */
    struct cancel *cancel;
    struct deadline *next, *before; /* private, like all below */
    bool waiting;
};

/* cancel_now() is called at that time.  Without a thread for it nothing happens. */
void deadline_begin(struct deadline *deadline, uint64_t at_ns, struct cancel *cancel);

/* No more; afterwards `cancel` is not being called. */
void deadline_end(struct deadline *deadline);
