/*
 * idx.h - IDX files, the format of MNIST: a header with type and dimensions, then the elements.
 *
 * Plain or gzip, told by the content.  What the header claims is held against the size of the
 * file before memory is taken; damage is DATA_LOSS with file and byte offset.
 */
#pragma once

#include "runtime/tensor.h"

struct error;

/* Reads a whole file; numbers become those of this machine. */
bool idx_read(const char *path, struct tensor *out, struct error *err) CHECKED;

/*
 * Reads `SET-images-idx3-ubyte` and `SET-labels-idx1-ubyte` of a folder, each with or without
 * ".gz": images uint8 [N, height, width], labels uint8 [N].  SET is "train" or "t10k".  Fails
 * with NOT_FOUND naming the file that is not there, with DATA_LOSS when type, rank or counts do
 * not fit.
 */
bool idx_read_set(const char *folder, const char *set, struct tensor *images,
                  struct tensor *labels, struct error *err) CHECKED;
