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

#define ACCOUNT_RECENT 32 /* steps whose arrivals are told one by one */

struct account *account_new(void);
void account_free(struct account *account); /* NULL is fine */

/* A part of a step is over, of the task "/job:ps/replica:0/task:0", so long after the step
 * began. */
void account_part(struct account *account, const char *task, const struct waits *waits,
                  uint64_t after_ns);

/* All parts of a step have been told. */
void account_step(struct account *account);

/* When a worker has done its share of a step, counted from the step's beginning: what it waited
 * for other workers is not its own. */
struct account_arrival {
    char task[80]; /* "worker:1" */
    double us, max_us;
    double input_us; /* before it: how long it waited for its batch */
    int64_t steps;
    float recent_us[ACCOUNT_RECENT]; /* of the last steps, the oldest first; -1: it had none */
    int recent_count;                /* the same of all workers of a step that all do */
};

/* Of all workers, at most `max`, since account_take(); how many there are. */
int account_arrivals(struct account *account, struct account_arrival *arrivals, int max);

/*
 * Appends, as JSON, means over the `steps` since the last call, in microseconds and bytes:
 *
 *   [{"task": "ps:0", "us": 5200.1, "wait_us": 4100.0, "receive_us": 900.0, "send_us": 80.0,
 *     "from": [{"task": "worker:1", "wait_us": 4000.0, "receive_us": 900.0, "bytes": 41234,
 *               "tensors": 6}]}]
 *
 * What is received is waited for: "receive_us" is of "wait_us", while values were on their way.
 * A task without waits works all the time; "from" has other tasks alone.
 */
void account_take(struct account *account, int64_t steps, struct str *json);
