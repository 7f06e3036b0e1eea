/*
 * stragglers.h - workers that come to the end of their share of a step later than the others.
 *
 * Looked at over windows of steps (times.c has some seconds): one whose mean is
 * STRAGGLER_FACTOR times the median of the others', and by more than STRAGGLER_US, in
 * STRAGGLER_WINDOWS windows in a row, is told, and told again when it is as fast as they are.
 */
#pragma once

#include "base/limits.h"
#include "runtime/cluster/account.h"

#define STRAGGLER_FACTOR 1.5
#define STRAGGLER_US 500.0
#define STRAGGLER_WINDOWS 2

struct str;

struct stragglers {
    struct straggler {
        char task[80];
        int slow;  /* windows in a row */
        bool told; /* and it has not caught up since */
    } list[LIMIT_JOB_TASKS];
    int count;
};

/* One window, up to step `step`: appends what a person should know to `notice`, as sentences
 * with "; " between them.  True when there is any. */
bool stragglers_look(struct stragglers *stragglers, const struct account_arrival *arrivals,
                     int count, int64_t step, struct str *notice);

/* The median of the others' means; 0: there are none. */
double stragglers_median(const struct account_arrival *arrivals, int count, int but);
