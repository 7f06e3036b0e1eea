/*
 * disk.h - writing files of the server's folder so that they are there after a power cut.
 */
#pragma once

#include "base/base.h"

struct error;

/* "cannot WHAT PATH: why", from errno: EXHAUSTED when the disk is full, else INTERNAL.  False.
 */
bool disk_error(struct error *err, const char *what, const char *path);

/* Writes all of `bytes` at `offset`; false with errno. */
bool disk_write_at(int fd, const char *bytes, size_t size, int64_t offset);

/* Reads up to `size` bytes from `offset` on; `*got` is less at the end alone.  False with
 * errno. */
bool disk_read_at(int fd, void *out, size_t size, int64_t offset, size_t *got);

/* Has the folder of `file` say on disk that it is there. */
bool disk_sync_above(const char *file, struct error *err) CHECKED;

/* Makes the folders above a file; new ones are on disk when it returns.  `file` is as it was
 * then. */
bool disk_make_above(char *file, struct error *err) CHECKED;

/* Whether `size` bytes more leave free what the disk of `folder` keeps free
 * (LIMIT_DISK_LEFT_BYTES); EXHAUSTED, with the numbers, when not. */
bool disk_has_room(const char *folder, int64_t size, struct error *err) CHECKED;
