/* hdf5_internal.h - what the child that reads a file tells its parent. */
#pragma once

#include "base/base.h"

struct error;
struct hdf5;

struct hdf5_source { /* one of the two */
    const char *path;
    const void *bytes;
    size_t size; /* of the file in both cases */
};

/* Followed by path, attribute, dimensions and data.  Strings: each a uint32_t and its bytes. */
struct hdf5_head {
    uint32_t kind; /* enum hdf5_kind */
    uint32_t dtype;
    uint32_t rank;
    uint32_t path_size, attribute_size;
    uint32_t pad;
    uint64_t data_size;
};

enum hdf5_kind {
    HDF5_GROUP = 1,
    HDF5_DATASET,
    HDF5_ATTRIBUTE,
    HDF5_FAILED, /* `path` is the reason; nothing follows */
    HDF5_END,    /* all of the file has been told */
};

/* How much larger than its file all data may be: deflate's best. */
#define HDF5_EXPANSION 1032

/* Reads the file and writes records to `fd`; never returns. */
_Noreturn void hdf5_child_main(const struct hdf5_source *source, int fd);

/* Reads what a child says of a file of `size` bytes, believing nothing, until it ends. */
bool hdf5_take(const char *name, int fd, size_t size, struct hdf5 *out,
               struct error *err) CHECKED;
