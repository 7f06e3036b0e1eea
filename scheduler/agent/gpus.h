/*
 * gpus.h - which GPUs of the machine the node offers, and by which number the server knows
 * them.
 *
 * `trainyard-task gpus` asks NVIDIA's driver, in a process of its own with a time limit: a
 * driver that hangs takes that process, not the agent.  A GPU is offered when it answers, no
 * program uses it and no other agent has claimed it (a lock on a file with its UUID).  As long
 * as tasks hold GPUs the numbers stay as they are written in gpus.json, also over restarts.
 */
#pragma once

#include <jansson.h>

#include "base/base.h"

struct str;

#define GPUS_MAX 64
#define GPUS_ASK_MS 10000 /* for the driver to answer */

struct gpu {
    char uuid[96];
    char name[96];
    int64_t memory_bytes;
    int lock;  /* -1: not claimed */
    bool busy; /* some process uses it, ours or not */
    bool lost; /* it does not answer */
    bool away; /* lost, or used by others: nothing is to be started on it */
    char why[160];
    int utilization; /* per cent of the last second in which it did something; -1: not told */
    int64_t used_bytes;
};

struct gpus {
    struct gpu list[GPUS_MAX]; /* what is offered; all are of one name */
    int count;
    bool asked; /* there is a driver to ask */
    int silent; /* so often in a row it did not answer */
};

/*
 * Finds them; what is not offered is logged with its reason.  `held`: tasks of an earlier agent
 * hold some, so that the list is the one in FOLDER/gpus.json.
 */
void gpus_find(const char *task_path, const char *folder, bool held, struct gpus *out);

/* A question that is under way, in a process of its own. */
struct gpus_query {
    int fd; /* becomes readable; -1: there is none */
    int pid;
    uint64_t until_us; /* monotonic: then no answer is waited for any more */
    struct str *text;
};

enum gpus_answer { GPUS_WAIT, GPUS_ANSWERED, GPUS_SILENT };

/* Asks; false when that cannot be, as one asked before still hangs in the driver. */
bool gpus_query_begin(struct gpus_query *query, const char *task_path);

/* Reads what has come, without waiting.  GPUS_ANSWERED: `*answer` is owned. */
enum gpus_answer gpus_query_go_on(struct gpus_query *query, json_t **answer);
void gpus_query_end(struct gpus_query *query); /* whether or not there is one */

/*
 * Takes in how they are now; `answer` NULL: the driver did not say.  Those in `held` may have
 * processes of ours.  New ones that nobody uses are added behind the others.  True when
 * something is other than it was, which is logged.
 */
bool gpus_look(struct gpus *gpus, const json_t *answer, uint64_t held, const char *folder);
uint64_t gpus_away(const struct gpus *gpus); /* bit i: GPU i */

/* Gives the claims back. */
void gpus_release(struct gpus *gpus);
