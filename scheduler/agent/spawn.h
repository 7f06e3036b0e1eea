/*
 * spawn.h - starts the shim.
 *
 * The agent shares its process with gRPC's threads: it never runs code of its own between fork
 * and exec (posix_spawn).
 */
#pragma once

#include "base/base.h"

struct error;

/*
 * Runs a program and waits for it (the shim returns at once).  Its environment is `environment`
 * alone; it has no open files but /dev/null and `log_path`, to which stdout and stderr are
 * appended.  False when it cannot be run; its exit code otherwise (128 + signal when killed).
 */
bool spawn_run(char *const *command, char *const *environment, const char *log_path, int *code,
               struct error *err) CHECKED;
