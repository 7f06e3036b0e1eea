/*
 * account.h - where the time of steps over several tasks goes: of each task how long its part
 * takes, for whom it waits, and what comes from whom.
 *
 * Callable from any thread.
 */
#pragma once

#include "base/base.h"

struct account;
struct str;
struct waits;

struct account *account_new(void);
void account_free(struct account *account); /* NULL is fine */

/* A part of a step is over, of the task "/job:ps/replica:0/task:0", so long after the step
 * began. */
void account_part(struct account *account, const char *task, const struct waits *waits,
                  uint64_t after_ns);

/* When a worker has done its share of a step, counted from the step's beginning: what it waited
 * for other workers is not its own. */
struct account_arrival {
    char task[80]; /* "worker:1" */
    double us, max_us;
    int64_t steps;
};

/* Of all workers, at most `max`, since account_take(); how many there are. */
int account_arrivals(struct account *account, struct account_arrival *arrivals, int max);

/*
 * Appends, as JSON, means over the `steps` since the last call, in microseconds and bytes:
 *
 *   [{"task": "ps:0", "us": 5200.1, "wait_us": 4100.0,
 *     "from": [{"task": "worker:1", "wait_us": 4000.0, "bytes": 41234, "tensors": 6}]}]
 *
 * A task without waits works all the time; "from" has other tasks alone.
 */
void account_take(struct account *account, int64_t steps, struct str *json);
