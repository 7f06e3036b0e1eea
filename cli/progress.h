/*
 * progress.h - a running job as one line that is drawn anew, or as plain lines where there is
 * no terminal.
 */
#pragma once

#include <jansson.h>

#include "base/base.h"

struct client;
struct error;

struct progress_options {
    const char *job;   /* id or number */
    bool json;         /* one event a line, as it came */
    const char *after; /* printed when one leaves with Ctrl-C, NULL for nothing */
};

/*
 * Follows a job until it has ended and shows it on stdout.  Returns the exit code of the verb:
 * 0 when it succeeded, 1 when it failed, 4 when it was cancelled.
 */
int progress_show(struct client *client, const struct progress_options *options);
