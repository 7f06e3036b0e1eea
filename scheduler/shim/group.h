/*
 * group.h - all processes of the task, however they forked.
 *
 * A cgroup (v2) of their own where one can be made.  Else the shim, which is the reaper of all
 * its descendants, finds them by walking /proc; memory is then watched, not enforced by the
 * kernel.
 */
#pragma once

#include "base/base.h"

/* Makes the cgroup `name` (NULL: none) if that is possible; `memory_bytes` 0 is no limit. */
void group_open(const char *name, int64_t memory_bytes);

/* The cgroup's path, "" when there is none. */
const char *group_folder(void);

/* In the child, before exec. */
void group_enter(void);

/* Kills every process but the caller.  To be repeated until none is left to reap. */
void group_kill(void);

/* True when the shim itself has to compare group_memory() with the limit. */
bool group_needs_watch(void);

/* Resident bytes of all processes of the task. */
int64_t group_memory(void);

/* True when the kernel killed one of them for memory. */
bool group_oom(void);

/* Removes the cgroup; all its processes are gone. */
void group_close(void);
