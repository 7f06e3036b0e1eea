/*
 * npz.h - writes NPZ files: NPY files in a zip archive, stored as they are.
 *
 * One after the other and in pieces, so that arrays of any size take no memory.
 */
#pragma once

#include "runtime/tensor.h"

struct error;
struct npz_writer;

/* Owned by the caller.  The file appears when it is finished, whole. */
struct npz_writer *npz_writer_open(const char *path, struct error *err) CHECKED;

/*
 * Begins the array NAME; shape_count(shape) elements are to follow.  INVALID when a name is
 * there twice, is empty or too long; UNIMPLEMENTED as npy_header_add().
 */
bool npz_writer_begin(struct npz_writer *writer, const char *name, enum dtype dtype,
                      const struct shape *shape, struct error *err) CHECKED;

/* Bytes of its elements. */
bool npz_writer_add(struct npz_writer *writer, const void *bytes, size_t size,
                    struct error *err) CHECKED;

/* Frees, whatever happens; on failure nothing is left of the file. */
bool npz_writer_finish(struct npz_writer *writer, struct error *err) CHECKED;
void npz_writer_discard(struct npz_writer *writer); /* NULL is fine */
