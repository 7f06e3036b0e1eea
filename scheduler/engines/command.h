/*
 * command.h - runs a program of the engine's, with a bound on its time and on what it says.
 */
#pragma once

#include <stdatomic.h>

#include "base/base.h"

struct error;
struct str;

#define COMMAND_OUTPUT_MAX (4 << 20)

struct command {
    char *const *words;       /* the first is searched for in PATH when it has no '/' */
    char *const *environment; /* NULL: ours */
    const char *input;        /* what it reads; NULL: nothing */
    int timeout_ms;
    const atomic_bool *stop; /* ends it early; NULL */
};

/*
 * Runs it to its end; `out` gets what it wrote to its output.  INTERNAL when it cannot be
 * started, DEADLINE after `timeout_ms` (it is killed, with its children), CANCELLED by `stop`,
 * EXHAUSTED when it writes more than COMMAND_OUTPUT_MAX, UNAVAILABLE when it fails, with what
 * it complained of.
 */
bool command_run(const struct command *command, struct str *out, struct error *err) CHECKED;
