/*
 * files.h - the small files of the agent's folder.
 *
 * A file is there whole or not at all: written aside, synced, renamed, folder synced.
 */
#pragma once

#include <jansson.h>

#include "base/base.h"

struct error;

bool files_write(const char *folder, const char *name, const char *text,
                 struct error *err) CHECKED;

/* As files_write(), the text being `json`, which is released whatever happens. */
bool files_write_json(const char *folder, const char *name, json_t *json,
                      struct error *err) CHECKED;

/* An owned object, or NULL: NOT_FOUND when there is no such file, DATA_LOSS when it is damaged.
 */
json_t *files_read_json(const char *folder, const char *name, struct error *err) CHECKED;

/* Members of an object; "" and 0 when absent or of another type. */
const char *files_text(const json_t *object, const char *key);
int64_t files_int(const json_t *object, const char *key);
bool files_bool(const json_t *object, const char *key);

/* Makes a folder and those above it, for the owner alone.  PRECONDITION when one of those is a
 * file, EXHAUSTED when the disk is full. */
bool files_make_folder(const char *path, struct error *err) CHECKED;

/* The path without its last `parts`; owned. */
char *files_above(const char *path, int parts);

/* Whether `path` is `above` or below it; nothing is below "". */
bool files_is_within(const char *path, const char *above);

/* Removes a folder with all that is in it; what cannot be removed stays. */
void files_remove_folder(const char *path);

/*
 * Calls `found` for the folder `path` of `root` ("" for itself) and for all that is below it,
 * each by its path from `root`, a folder before what is in it.  Links are left out, and so is
 * what `found` wants to know nothing of (it returns false for a folder).
 */
typedef bool files_found(void *self, const char *path, bool is_folder);
void files_walk(const char *root, const char *path, files_found *found, void *self);

/* Syncs `root` and the folders below it: the names of what is in them outlive a power cut. */
bool files_sync_folders(const char *root, struct error *err) CHECKED;

/* Opens a file by its path from `root` to be read, where no part of it is a link; -1. */
int files_open_below(const char *root, const char *path);

/* The last line of a text file that is not empty, cut to fit; "" when there is none. */
const char *files_last_line(const char *folder, const char *name, char *out, size_t out_size);
