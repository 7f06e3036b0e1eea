/*
 * bundle.h - checkpoints in TensorFlow's V2 format: PREFIX.index and
 * PREFIX.data-?????-of-?????.
 *
 * Byte for byte what TensorFlow writes; read with every checksum checked.  Errors have
 * TensorFlow's codes: NOT_FOUND (no such file or tensor), DATA_LOSS (damage), OUT_OF_RANGE
 * (data cut short), INVALID (duplicate names, slices that do not fit).
 *
 * A tensor may be stored in slices, the parts of a partitioned variable.  Readers and writers
 * are used by one thread at a time.
 */
#pragma once

#include "runtime/tensor.h"

struct error;

/* A part of a tensor: start and length per dimension; length -1 is all of that dimension. */
struct bundle_slice {
    int rank;
    int64_t start[LIMIT_TENSOR_RANK];
    int64_t length[LIMIT_TENSOR_RANK];
};

/*
 * Reads the text that SaveV2 and RestoreV2 take, "10 20 0,5:-": the full shape and the slice.
 * Fails with INVALID, quoting it.  (An empty text means the whole tensor: not for here.)
 */
bool bundle_slice_parse(const char *text, struct shape *full, struct bundle_slice *slice,
                        struct error *err) CHECKED;

/* --- writing --- */

struct bundle_writer;

/*
 * Begins a checkpoint with one data file, under temporary names until it is finished.  The
 * folder must exist.  Owned by the caller.
 */
struct bundle_writer *bundle_writer_open(const char *prefix, struct error *err) CHECKED;

/*
 * Adds a tensor: its data goes to the file now.  Fails with INVALID when the name was added
 * already, with UNIMPLEMENTED for types that cannot be stored (resource, variant).  A failure
 * sticks: finishing then fails too.
 */
bool bundle_writer_add(struct bundle_writer *writer, const char *name,
                       const struct tensor *tensor, struct error *err) CHECKED;

/* Adds one part of the tensor `name`, whose shape is `full`; a part that is all of it is added
 * as the tensor itself. */
bool bundle_writer_add_slice(struct bundle_writer *writer, const char *name,
                             const struct shape *full, const struct bundle_slice *slice,
                             const struct tensor *tensor, struct error *err) CHECKED;

/*
 * Syncs both files and gives them their names, data first, index last: a reader never sees an
 * index without its data.  Frees the writer, whatever happens; on failure nothing of it is
 * left.
 */
bool bundle_writer_finish(struct bundle_writer *writer, struct error *err) CHECKED;

/* Gives up: removes the temporary files and frees.  NULL is fine. */
void bundle_writer_discard(struct bundle_writer *writer);

/* --- reading --- */

struct bundle_reader;

/* Opens PREFIX.index and checks its frame and header; data is opened when first needed. */
struct bundle_reader *bundle_reader_open(const char *prefix, struct error *err) CHECKED;
void bundle_reader_close(struct bundle_reader *reader); /* NULL is fine */

struct bundle_item {
    const char *name;
    int dtype; /* may be a number that dtype_known() does not know */
    struct shape shape;
    int slices_count; /* 0 when stored whole */
    int shard;        /* data file and place in it, when stored whole */
    int64_t offset;
    int64_t size;
    uint32_t crc; /* of all its bytes, masked */
};

/* All tensors in order of their names (bytes); borrowed from the reader. */
bool bundle_reader_list(struct bundle_reader *reader, const struct bundle_item **items,
                        int *items_count, struct error *err) CHECKED;

/* Type and full shape of a tensor; NOT_FOUND if it is not there. */
bool bundle_reader_find(struct bundle_reader *reader, const char *name,
                        struct bundle_item *item, struct error *err) CHECKED;

/* Reads a tensor, put together from its slices if it has any; `*out` is overwritten. */
bool bundle_reader_read(struct bundle_reader *reader, const char *name, struct tensor *out,
                        struct error *err) CHECKED;

/*
 * Reads `size` bytes of a tensor that is stored whole and has plain elements, from its byte
 * `from` on.  Its checksum is the caller's affair.
 */
bool bundle_reader_read_bytes(struct bundle_reader *reader, const char *name, int64_t from,
                              void *out, size_t size, struct error *err) CHECKED;

/* Reads a part; it may span any of the slices stored.  INVALID if they do not cover it. */
bool bundle_reader_read_slice(struct bundle_reader *reader, const char *name,
                              const struct bundle_slice *slice, struct tensor *out,
                              struct error *err) CHECKED;

/* --- merging --- */

/*
 * Makes one checkpoint of several (the shards that parameter servers saved): data files are
 * renamed, the indexes joined, the old ones removed.  With `delete_old_folders`, folders of the
 * parts that are empty then are removed too.  INVALID when two parts hold the same tensor.
 */
bool bundle_merge(const char *const *prefixes, int prefixes_count, const char *prefix,
                  bool delete_old_folders, struct error *err) CHECKED;
