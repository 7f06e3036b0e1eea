/* gzip.h - bytes in memory, compressed and back; of files: stream.h. */
#pragma once

#include "base/base.h"

struct error;
struct str;

/* Appends the bytes as one member of gzip. */
void gzip_compress(const void *bytes, size_t size, struct str *out);

/* Whether the bytes begin as a member of gzip does. */
bool gzip_is(const void *bytes, size_t size);

/*
 * Replaces `out` by what the bytes hold, a stream of zlib or, `is_gzip`, members of gzip one
 * after the other.  `*whole`: the last of them is not cut off; what there was is in `out`.
 * Fails with EXHAUSTED (more than `size_max`) and DATA_LOSS.
 */
bool gzip_decompress(const void *bytes, size_t size, bool is_gzip, size_t size_max,
                     struct str *out, bool *whole, struct error *err) CHECKED;
