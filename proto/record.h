/*
 * record.h - TFRecord framing in memory: length, its crc, data, its crc (little-endian).
 *
 * Used by writers of event files and datasets and by the server, which parses what agents ship.
 */
#pragma once

#include "base/base.h"

struct error;
struct str;

#define RECORD_HEADER_BYTES 12
#define RECORD_FOOTER_BYTES 4

/* Appends one framed record to `out`. */
void record_add(struct str *out, const void *data, size_t size);

enum record_result { RECORD_OK, RECORD_MORE, RECORD_BAD };

/*
 * Looks at the record at the front of `bytes`.  RECORD_OK: `*data` (borrowed from bytes) and
 * `*data_size` are set and `*used` is the size of the whole frame.  RECORD_MORE: the record is
 * not complete yet.  RECORD_BAD: a checksum is wrong or it is longer than LIMIT_RECORD_BYTES;
 * `err` (DATA_LOSS) names the place in the file, in which the frame begins at `offset`.  As
 * TensorFlow does: a wrong length is at `offset`, wrong data at `offset` + 12.
 */
enum record_result record_parse(const void *bytes, size_t size, int64_t offset,
                                const void **data, size_t *data_size, size_t *used,
                                struct error *err) CHECKED;
