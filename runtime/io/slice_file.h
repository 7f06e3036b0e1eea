/*
 * slice_file.h - checkpoints in TensorFlow's V1 format: one table with the tensors' names,
 * shapes and slices, and the elements of each slice.  Several files may share the slices.
 *
 * What ops of old graphs (Save, SaveSlices, Restore, RestoreSlice) read and write; new ones use
 * bundle.h.
 */
#pragma once

#include "runtime/io/bundle.h"
#include "runtime/tensor.h"

struct error;

/* --- writing: all is kept until it is written --- */

struct slice_file_writer;

struct slice_file_writer *slice_file_writer_new(void);
void slice_file_writer_free(struct slice_file_writer *writer); /* NULL is fine */

/*
 * Adds a slice of the tensor `name`, whose shape is `full`; `slice` NULL: all of it.  Fails
 * with INTERNAL when what was added of that name has another type or shape, or overlaps;
 * UNIMPLEMENTED for types that cannot be stored.
 */
bool slice_file_writer_add(struct slice_file_writer *writer, const char *name,
                           const struct shape *full, const struct bundle_slice *slice,
                           const struct tensor *tensor, struct error *err) CHECKED;

/* Writes the file in one piece: a reader sees the old one or the new one. */
bool slice_file_writer_finish(struct slice_file_writer *writer, const char *path,
                              struct error *err) CHECKED;

/* --- reading --- */

struct slice_file_reader;

/* All files that match the pattern.  Fails with NOT_FOUND if none does, DATA_LOSS. */
struct slice_file_reader *slice_file_reader_open(const char *pattern,
                                                 struct error *err) CHECKED;
void slice_file_reader_close(struct slice_file_reader *reader); /* NULL is fine */

/* The names in all files, each once; borrowed. */
int slice_file_reader_count(const struct slice_file_reader *reader);
const char *slice_file_reader_name(const struct slice_file_reader *reader, int index);

/* Type and full shape of a tensor; NOT_FOUND. */
bool slice_file_reader_find(const struct slice_file_reader *reader, const char *name,
                            int *dtype, struct shape *shape, struct error *err) CHECKED;

/*
 * Reads a part (`slice` NULL: all), put together from the slices that are there; INVALID if
 * they do not cover it.
 */
bool slice_file_reader_read(struct slice_file_reader *reader, const char *name,
                            const struct bundle_slice *slice, struct tensor *out,
                            struct error *err) CHECKED;
