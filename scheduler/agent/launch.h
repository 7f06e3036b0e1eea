/*
 * launch.h - what a task is started with, and how its processes are known again.
 */
#pragma once

#include <jansson.h>
#include <sys/types.h>

#include "base/base.h"

struct agent_start_task;
struct error;

/* start.json: all of StartTask but the spec, and the cookie.  Owned by the caller. */
json_t *launch_start_json(const struct agent_start_task *start, const char *cookie);

/*
 * Starts the shim in `folder`, with the task's command line and environment made from
 * `start` (see launch_start_json()).  Returns once shim.json is there.  A folder whose task has
 * been started before is left as it is, and that is no failure.
 */
bool launch_shim(const char *shim_path, const char *task_path, const char *folder,
                 const json_t *start, struct error *err) CHECKED;

/* True when `pid` is the process that started at `start_time` with `cookie` as an argument. */
bool launch_is_process(pid_t pid, int64_t start_time, const char *cookie);

/* Kills what a dead shim has left: processes with the cookie in their environment, its cgroup.
 */
void launch_kill_strays(const char *cookie, const char *cgroup);
