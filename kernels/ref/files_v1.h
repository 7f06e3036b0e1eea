/* files_v1.h - tensors of checkpoints in the V1 format, for all ops that restore. */
#pragma once

#include "runtime/io/slice_file.h"

/*
 * Reads a tensor, or what `slice` ("10 20 0,5:-"; "": all) names of it, as the ops that restore
 * do.  Fails with INVALID when it is of another type than `wanted`.
 */
bool files_v1_read(struct slice_file_reader *reader, const char *name, const char *slice,
                   enum dtype wanted, struct tensor *value, struct error *err) CHECKED;
