/*
 * output.h - a file written from front to end, of any size, that appears whole or not at all.
 *
 * It is written beside its place under a temporary name; finishing syncs it and renames it over
 * what is there.
 */
#pragma once

#include "base/base.h"

struct error;
struct output;

/* Owned by the caller.  Errors name the path: NOT_FOUND (no such folder), DENIED, EXHAUSTED. */
struct output *output_open(const char *path, struct error *err) CHECKED;

/* Appends.  A failure sticks: finishing then fails too. */
bool output_write(struct output *output, const void *bytes, size_t size,
                  struct error *err) CHECKED;

/* Writes over bytes that were written before. */
bool output_rewrite(struct output *output, int64_t offset, const void *bytes, size_t size,
                    struct error *err) CHECKED;

int64_t output_bytes(const struct output *output); /* written so far */

/* Gives the file its name.  Frees, whatever happens; on failure nothing is left of it. */
bool output_finish(struct output *output, struct error *err) CHECKED;

/* Gives up: removes what was written and frees.  NULL is fine. */
void output_discard(struct output *output);
