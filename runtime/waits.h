/*
 * waits.h - how long a part of a step took, for whom it waited meanwhile, and what came.
 *
 * Counted by the thread that runs the part; free of locks and, but for the moments when it
 * waits anyway, of clocks.  A wait is told of the task whose value ended it: that is who was
 * late.
 */
#pragma once

#include "base/base.h"

enum { WAITS_TASK_BYTES = 80 };

struct waits_row {
    char task[WAITS_TASK_BYTES]; /* "/job:ps/replica:0/task:0"; "": kernels that wait */
    uint64_t wait_ns;            /* until something of it came */
    uint64_t receive_ns;         /* of that, while it was on its way */
    int64_t bytes, tensors;      /* that came */
};

struct waits {
    uint64_t total_ns; /* of the part, waits included */
    uint64_t send_ns;  /* of that, giving values to other parts */
    struct waits_row *rows;
    int rows_count, rows_capacity;
};

/* The row of the task that a device ("/job:ps/replica:0/task:0/device:CPU:0") is of; made when
 * it is not there.  Longer names are cut. */
struct waits_row *waits_of(struct waits *waits, const char *device);

void waits_release(struct waits *waits);
