/*
 * view.h - what a task with a user of its own sees of the machine: not the folders of others,
 * nor the server's own, and a /tmp of its own (scheduler/shim/private.h makes it so).
 */
#pragma once

#include <jansson.h>

#include "base/base.h"

#define VIEW_LABEL "folders" /* of the node: "private", or "shared" where it cannot be done */

struct words;

/* The shim's options for the task in `folder`. */
void view_words(struct words *words, const char *task_path, const char *folder,
                const json_t *start);

/* Whether tasks get it here: 0, else the errno of what the system refuses. */
int view_probe(const char *shim_path);

/* One line for the log; `able` is of view_probe(). */
const char *view_text(int able, char *out, size_t out_size);
