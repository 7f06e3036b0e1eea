/*
 * failpoint.h - places where a test may have the process die.
 *
 * TRAINYARD_FAILPOINTS="NAME=kill@N,FILE ..." kills the process (SIGKILL) when it passes the
 * failpoint NAME for the N-th time, if it is the one that can make FILE: whoever comes later
 * passes, so that what is started again lives.  Without the variable a failpoint costs one
 * relaxed load.
 *
 * This file and failpoint.c need libc alone: the shim links them, too.
 */
#pragma once

#include "base/base.h"

#include <stdatomic.h>

#define FAILPOINT_VARIABLE "TRAINYARD_FAILPOINTS"

extern atomic_bool failpoint_armed;

/* All names, in the order of the story, and a NULL at the end. */
extern const char *const failpoint_names[];

/*
 * Reads the variable, in main() before there are threads.  False when it makes no sense: what
 * is wrong has been said on stderr, and no failpoint is armed.
 */
bool failpoint_arm(void) CHECKED;

/* Dies here if it is to; `name` must be one of failpoint_names. */
void failpoint_pass(const char *name);

static inline void failpoint(const char *name)
{
    if (atomic_load_explicit(&failpoint_armed, memory_order_relaxed))
        failpoint_pass(name);
}
