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

#include "base/base.h"

#define GPUS_MAX 64
#define GPUS_ASK_MS 10000 /* for the driver to answer */

struct gpu {
    char uuid[96];
    char name[96];
    int64_t memory_bytes;
    int lock; /* -1: not claimed */
};

struct gpus {
    struct gpu list[GPUS_MAX]; /* what is offered; all are of one name */
    int count;
};

/*
 * Finds them; what is not offered is logged with its reason.  `held`: tasks of an earlier agent
 * hold some, so that the list is the one in FOLDER/gpus.json.
 */
void gpus_find(const char *task_path, const char *folder, bool held, struct gpus *out);

/* Gives the claims back. */
void gpus_release(struct gpus *gpus);
