/*
 * show.h - verbs that ask the server one thing and print the answer.
 */
#pragma once

#include <jansson.h>

#include "base/base.h"

struct show {
    const char *usage;
    const char *path;              /* "/api/v1/jobs/" */
    bool takes_job;                /* one word, which comes after `path` ... */
    const char *after;             /* ... and before this */
    void (*print)(json_t *answer); /* for people */
};

/* The whole verb: options --dir and --json, the request, the answer. */
int show_answer(int argc, char **argv, const struct show *show);
