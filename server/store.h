/*
 * store.h - files that jobs bring, by what is in them, and files that they leave.
 *
 * DIR/files/ab/SHA256 is a file that was uploaded: its name is the hash of its bytes, so it is
 * never changed, and the same file is kept once.  DIR/jobs/N/artifacts/ROLE-INDEX/PATH is what
 * a task has left in $TRAINYARD_OUT/artifacts/.
 */
#pragma once

#include <jansson.h>

#include "base/base.h"

#define STORE_HASH_DIGITS 64

struct agent_ship_request;
struct arena;
struct error;

/* --- uploaded files --- */

/* Whether `text` is a hash as we write it: 64 digits 0-9 a-f. */
bool store_is_hash(const char *text);

/* Keeps the bytes; INVALID when their hash is not `sha256`.  They are on disk when it returns.
 */
bool store_put(const char *folder, const char *sha256, const void *bytes, size_t size,
               struct error *err) CHECKED;

/* The size of a file, NOT_FOUND when nobody has uploaded it.  Who asks is about to name it: it
 * stays as if it were uploaded now. */
bool store_size(const char *folder, const char *sha256, int64_t *size,
                struct error *err) CHECKED;

/* Up to `size` bytes from `offset` on, into `out`; `*got` is less at the end alone. */
bool store_read(const char *folder, const char *sha256, int64_t offset, void *out, size_t size,
                size_t *got, struct error *err) CHECKED;

/* Removes the file `name` of DIR/files/ab/ that nobody has uploaded or asked the size of since
 * `before_us` (wall clock); `*bytes` is what it had.  False when it stays. */
bool store_remove_unused(const char *folder, const char *name, int64_t before_us,
                         int64_t *bytes);

/* --- artifacts --- */

/* Whether a shipped file is an artifact, by its name. */
bool store_is_artifact(const char *file);

/*
 * Writes a piece of an artifact where it belongs, to be on disk when it returns; with the last
 * piece it gets its name.  Writing a piece again changes nothing.
 */
bool store_ship(const char *folder, const struct agent_ship_request *ship,
                struct error *err) CHECKED;

/* [{task, path, size, modified_at}], in the order of their names; owned. */
json_t *store_artifacts(const char *folder, int64_t job);

/* Opens one to be read; -1 with NOT_FOUND or INVALID. */
int store_open_artifact(const char *folder, int64_t job, const char *task, const char *path,
                        struct error *err) CHECKED;
