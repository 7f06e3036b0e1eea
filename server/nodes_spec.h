/* nodes_spec.h - what of a job's spec the node of a task must know. */
#pragma once

#include "base/base.h"

struct loop_task;

/*
 * How long the task may write nothing; 0: as long as it likes.  The first one alone is watched:
 * when another hangs it waits for that one, and there are tasks that never write anything.
 */
int64_t nodes_stall_ms(const char *spec, const struct loop_task *task);

/*
 * How often a task that falls may be started again by itself: a worker that others need not
 * wait for, save the first, whose loop it is.
 */
int nodes_restarts(const char *spec, const struct loop_task *task);
