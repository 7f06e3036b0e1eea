/*
 * npy_file.h - an NPY file whose elements are read piece by piece.
 *
 * Any number of threads may read at once.  Errors name the file.
 */
#pragma once

#include "runtime/io/npy.h"

struct npy_file;

/* Reads the header and holds it against the size of the file, as npy_read(). */
struct npy_file *npy_file_open(const char *path, struct error *err) CHECKED;
void npy_file_close(struct npy_file *file); /* NULL is fine */

const struct npy_header *npy_file_header(const struct npy_file *file); /* borrowed */
const char *npy_file_path(const struct npy_file *file);

/* Elements `first` .. + count in the order of the file, put to `out`.  DATA_LOSS when the file
 * was shortened meanwhile. */
bool npy_file_read(const struct npy_file *file, int64_t first, int64_t count, void *out,
                   struct error *err) CHECKED;
