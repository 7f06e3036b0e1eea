/*
 * shims.h - finds the shim of an attempt's folder, and talks to it.
 *
 * Shims outlive agents: one may be on its way, started by an agent that has died since, and its
 * disk may be slow.
 */
#pragma once

#include <jansson.h>

#include "base/base.h"

struct error;

/*
 * shim.json of `folder`, once the shim has written there which task it runs, or has gone; waits
 * for that (10 s at most; then what is there).  Fails with NOT_FOUND when no shim has the
 * folder; then none gets it as long as `*claim`, which the caller closes, is open.
 */
json_t *shims_find(const char *folder, int *claim, struct error *err) CHECKED;

/*
 * Opens the process that `shim`, a shim.json, names, if it is the very one: same boot, same
 * start, same cookie among its arguments.  A pidfd, or -1.
 */
int shims_open(const json_t *shim);

/* Sends one line to the shim of `folder`; false when it does not answer. */
bool shims_command(const char *folder, const char *line);
