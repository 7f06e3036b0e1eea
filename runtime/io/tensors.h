/*
 * tensors.h - the named tensors of a file or checkpoint, whatever its format, read in pieces.
 *
 * Formats: TensorFlow's checkpoints (V2: prefix, .index or folder; V1), safetensors, NPY, NPZ,
 * HDF5 and Keras's .keras.  The contents decide, not the name.  Tensors of many gigabytes are
 * read in pieces from checkpoints and safetensors files; the other formats are read whole.
 */
#pragma once

#include "runtime/tensor.h"

struct error;
struct tensors;

#define TENSORS_PIECE_BYTES (4 << 20) /* what is worth reading at once */

struct tensors_item {
    const char *name;
    int dtype; /* may be a number that dtype_known() does not know */
    struct shape shape;
    int64_t bytes;    /* stored; of strings with their lengths */
    int slices_count; /* parts that it is stored in; 0: whole */
    int shard;        /* the data file it is in, when there are several */
    bool has_crc;
    uint32_t crc; /* CRC-32C of all its bytes */
    int index;    /* for the format */
};

/*
 * Opens what `path` names: a file, a checkpoint's prefix or one of its files, or a folder with
 * the newest checkpoint that its state file names (of a run, a SavedModel too).  Owned by the
 * caller.  NOT_FOUND, DATA_LOSS, or INVALID when the contents are none of the formats.
 */
struct tensors *tensors_open(const char *path, struct error *err) CHECKED;
void tensors_close(struct tensors *tensors); /* NULL is fine */

/* All of them in order of their names (bytes); borrowed. */
const struct tensors_item *tensors_items(const struct tensors *tensors, int *count);
const struct tensors_item *tensors_find(const struct tensors *tensors, const char *name);

const char *tensors_path(const struct tensors *tensors);   /* what was opened in the end */
const char *tensors_format(const struct tensors *tensors); /* "TensorFlow checkpoint (V2)" */

/* Reads a tensor whole, strings too. */
bool tensors_read(struct tensors *tensors, const struct tensors_item *item, struct tensor *out,
                  struct error *err) CHECKED;

/* --- in pieces --- */

struct tensors_cursor {
    struct tensors *tensors;
    const struct tensors_item *item;
    int64_t at, count; /* elements read, and all */
    uint32_t crc;
};

/* Begins at the first element.  UNIMPLEMENTED for strings and types that are not known. */
bool tensors_begin(struct tensors_cursor *cursor, struct tensors *tensors,
                   const struct tensors_item *item, struct error *err) CHECKED;

/*
 * The next elements, at most `max`; `*count` is how many, 0 at the end.  With the last ones the
 * checksum is compared: DATA_LOSS.
 */
bool tensors_next(struct tensors_cursor *cursor, void *out, int64_t max, int64_t *count,
                  struct error *err) CHECKED;
