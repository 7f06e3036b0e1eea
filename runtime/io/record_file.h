/*
 * record_file.h - TFRecord files, plain or compressed, from front to end.
 *
 * The end is as TensorFlow's readers see it: fewer than 12 bytes left is the end, silently; a
 * record that is cut or whose checksums do not fit is DATA_LOSS and names its place.
 */
#pragma once

#include "runtime/io/stream.h"

/* --- reading --- */

struct record_file;

struct record_file *record_file_open(const char *path, enum stream_format format,
                                     struct error *err) CHECKED;
void record_file_close(struct record_file *file); /* NULL is fine */

/*
 * The next record, borrowed until the next call.  Fails with OUT_OF_RANGE ("end of file") at
 * the end, DATA_LOSS when damaged, and from then on always with the same error.
 */
bool record_file_next(struct record_file *file, const void **data, size_t *size,
                      struct error *err) CHECKED;

/*
 * After DATA_LOSS: goes on behind the damaged record.  False when there is no way on, because
 * its length is damaged, or what was compressed.
 */
bool record_file_pass(struct record_file *file);

/* Where the next record begins, in uncompressed bytes. */
int64_t record_file_offset(const struct record_file *file);

/* --- writing --- */

struct record_file_writer;

struct record_file_writer *record_file_create(const char *path, enum stream_format format,
                                              struct error *err) CHECKED;
bool record_file_add(struct record_file_writer *writer, const void *data, size_t size,
                     struct error *err) CHECKED;

/* Syncs, closes and frees, whatever happens. */
bool record_file_finish(struct record_file_writer *writer, struct error *err) CHECKED;
