/*
 * file.h - whole files: read under a limit, written so that a crash leaves the old or the new.
 *
 * Errors name the path.  Codes: NOT_FOUND, DENIED, EXHAUSTED (disk full, too large), UNKNOWN.
 */
#pragma once

#include "base/base.h"

struct error;
struct str;

/* Sets `err` from errno: "cannot WHAT PATH: No space left on device".  Returns false. */
bool file_error(struct error *err, const char *what, const char *path);

/* As a kernel of TensorFlow says it, with its code: "PATH; No such file or directory". */
bool file_error_stock(struct error *err, const char *path);

/* Replaces `out` by the bytes of the file; EXHAUSTED when there are more than `bytes_max`. */
bool file_read(const char *path, int64_t bytes_max, struct str *out, struct error *err) CHECKED;

/* Writes beside `path`, syncs, renames over it, syncs the folder. */
bool file_write(const char *path, const void *bytes, size_t size, struct error *err) CHECKED;

/* Makes the entries of the folder that holds `path` durable. */
bool file_sync_folder(const char *path, struct error *err) CHECKED;

/* rename() with an error that says both names. */
bool file_rename(const char *from, const char *to, struct error *err) CHECKED;

/* The folder part of `path` ("." when there is none), owned by the caller. */
char *file_folder(const char *path);
