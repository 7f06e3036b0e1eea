/*
 * spool.h - compressed files decompressed once, where their records are to be found again.
 */
#pragma once

#include "runtime/io/stream.h"

struct error;

/*
 * Decompresses `path` to a new file in `folder` (NULL: that of temporary files), whose name is
 * the result; owned by the caller, as the file is.  `*spooled`: the bytes that a dataset's
 * files have come to so far, which this adds to.
 *
 * NULL after setting `err`: EXHAUSTED (more than LIMIT_SPOOL_BYTES, or than the disk holds),
 * DATA_LOSS (damaged).
 */
char *spool_file(const char *path, enum stream_format format, const char *folder,
                 int64_t *spooled, struct error *err) CHECKED;
