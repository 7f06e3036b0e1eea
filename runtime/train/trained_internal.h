/* trained_internal.h - what trained.c and trained_keras.c share. */
#pragma once

#include "runtime/train/trained.h"

/* The graph of the spec for the dataset's feeds, in a session, and room for the values. */
bool trained_build(struct trained *trained, const struct session_options *options,
                   struct error *err) CHECKED;

/* Whether evaluation or prediction needs a variable, by its index; owned by the caller. */
bool *trained_needed(const struct model *model);

/* Gives variable `index` its value, which is shared.  Fails with DATA_LOSS when it does not
 * suit. */
bool trained_set(struct trained *trained, int index, const struct tensor *value,
                 struct error *err) CHECKED;

/* --- trained_keras.c --- */

/* Opens a file of Keras 3, its layers and its weights. */
bool trained_open_keras(struct trained *trained, const char *path,
                        const struct session_options *options, struct error *err) CHECKED;
bool trained_is_keras(const char *path);
