/*
 * internal.h - what the files of runtime/io share and nobody else needs.
 */
#pragma once

#include "runtime/io/bundle.h"
#include "runtime/shape.h"

struct arena;
struct error;
struct str;

/* --- table --- */

#define TABLE_BLOCK_BYTES 262144
#define TABLE_FOOTER_BYTES 48
#define TABLE_MAGIC UINT64_C(0xdb4775248b80fb57)

void table_add_varint(struct str *out, uint64_t value);
bool table_read_varint(const char **at, const char *end, uint64_t *value);

/* --- entries of a checkpoint's index --- */

/* Of a tensor, of a slice of one, or of a tensor that is stored in slices (then without data).
 */
struct bundle_entry {
    int dtype; /* as the file says, perhaps none of ours */
    struct shape shape;
    int shard;
    int64_t offset;
    int64_t size;
    uint32_t crc; /* masked */
    struct bundle_slice *slices;
    int slices_count;
};

/* The value of key "". */
void bundle_entry_add_header(struct str *out, int shards_count);
bool bundle_entry_parse_header(const void *bytes, size_t size, int *shards_count,
                               struct error *err) CHECKED;

/* The value of any other key; slices live in `arena`. */
void bundle_entry_add(struct str *out, const struct bundle_entry *entry);
bool bundle_entry_parse(const void *bytes, size_t size, struct arena *arena,
                        struct bundle_entry *entry, struct error *err) CHECKED;

/* --- slices --- */

/* Appends the key under which a slice of tensor `name` is stored. */
void bundle_slice_key(const char *name, size_t name_size, const struct bundle_slice *slice,
                      struct str *out);

bool bundle_slice_equal(const struct bundle_slice *a, const struct bundle_slice *b);

/* Whether `slice` lies inside `full`; `shape` becomes its own shape. */
bool bundle_slice_shape(const struct bundle_slice *slice, const struct shape *full,
                        struct shape *shape);

/*
 * Copies what both have in common from `source` (the elements of `from`) to `target` (those of
 * `to`), both of the same type and parts of a tensor of shape `full`.  Returns how many
 * elements that were.
 */
int64_t bundle_slice_copy(const struct shape *full, const struct bundle_slice *from,
                          const struct tensor *source, const struct bundle_slice *to,
                          struct tensor *target);

struct Tensorflow__TensorSliceProto;
struct Tensorflow__TensorSliceProto *bundle_entry_pack_slice(const struct bundle_slice *slice,
                                                             struct arena *arena);
/* False when it does not fit a tensor of shape `full`. */
bool bundle_entry_unpack_slice(const struct Tensorflow__TensorSliceProto *proto,
                               const struct shape *full, struct bundle_slice *slice);

/* Elements that two slices of a tensor of shape `full` have in common. */
int64_t bundle_slice_common(const struct shape *full, const struct bundle_slice *first,
                            const struct bundle_slice *second);

/* --- values in a file of the V1 format --- */

struct slice_file_tensor {
    const char *name;
    int dtype; /* as the file says, perhaps none of ours */
    struct shape shape;
    struct bundle_slice *slices;
    int slices_count;
    int slices_capacity;
};

/* The value of key "". */
void slice_file_add_meta(struct str *out, const struct slice_file_tensor *tensors, int count);
/* What is parsed lives in `arena`.  Fails with DATA_LOSS. */
bool slice_file_parse_meta(const void *bytes, size_t size, struct arena *arena,
                           struct slice_file_tensor **tensors, int *count,
                           struct error *err) CHECKED;

/* The value of a slice's key: its elements.  `shape` is that of the slice. */
void slice_file_add_data(struct str *out, const char *name, const struct bundle_slice *slice,
                         const struct tensor *tensor);
bool slice_file_parse_data(const void *bytes, size_t size, enum dtype dtype,
                           const struct shape *shape, struct tensor *out,
                           struct error *err) CHECKED;

/* "PREFIX.data-00000-of-00001", owned by the caller. */
char *bundle_entry_shard_path(const char *prefix, int shard, int shards_count);
