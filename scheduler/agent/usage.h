/*
 * usage.h - what the processes of a task use of the machine.
 *
 * By /proc, which is there for every agent: cgroups are not, and count the same.  A shim takes
 * in all orphans of its task, so a task is what descends from its shim; what the dead have used
 * is in the counters of who has waited for them.
 */
#pragma once

#include <sys/types.h>

#include "base/base.h"
#include "scheduler/agent/network.h"

#define USAGE_FOLDER                                                                           \
    "hw" /* of an attempt's folder: its samples, and their names, lie there                    \
          */

struct usage_sum {
    double cpu_seconds;     /* of processors, since the task began */
    int64_t memory_bytes;   /* resident now; what processes share counts for each of them */
    int64_t read_bytes;     /* from disks since the task began; -1: not to be known */
    int64_t written_bytes;  /* to disks */
    int64_t received_bytes; /* by TCP since the task was first looked at; -1: not to be known */
    int64_t sent_bytes;
};

struct usage {          /* of usage_watch.c; times are monotonic */
    bool adopted;       /* an earlier agent started the task */
    uint64_t began_us;  /* when it was first seen to run */
    uint64_t due_us;    /* the next sample; 0: it has not been seen yet */
    uint64_t looked_us; /* when `last` was; 0: there is none */
    struct usage_sum last;
    struct network network;
    int64_t file; /* a part of its name; 0: none yet */
    int64_t step; /* of the last sample */
};

/* The processes of the machine at one moment. */
struct usage_table;

struct usage_table *usage_look(void);
void usage_free(struct usage_table *table); /* NULL is fine */

/*
 * What descends from the process `shim` has used; false when that is not there.  `network` is
 * the task's, from one look to the next.
 */
bool usage_of(struct usage_table *table, pid_t shim, struct network *network,
              struct usage_sum *sum) CHECKED;
