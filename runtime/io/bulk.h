/*
 * bulk.h - large blocks between memory and a file, with their checksum, by all threads.
 *
 * Blocks go in chunks that fit a core's cache: what was just read or is about to be written is
 * summed while it is there.
 */
#pragma once

#include "base/base.h"

struct error;

/*
 * Reads `size` bytes from `offset` on and sets `*crc` to their CRC-32C.  Fails with
 * OUT_OF_RANGE when the file ends before, UNKNOWN when it cannot be read.
 */
bool bulk_read(int fd, int64_t offset, void *bytes, size_t size, uint32_t *crc,
               struct error *err) CHECKED;

/*
 * Writes `size` bytes at `offset`, whatever the file's position, and sets `*crc`.  False with
 * `errno` set when a write failed.
 */
bool bulk_write(int fd, int64_t offset, const void *bytes, size_t size, uint32_t *crc) CHECKED;
