/*
 * hdf5.h - HDF5 files as a flat list of what they hold: Keras's weights.
 *
 * DESIGN.  libhdf5 reads well what it wrote itself; on damaged or hostile files it crashes,
 * loops or takes all memory.  So it never reads in this process: a child, forked for one file,
 * reads with a limit on its memory and processor time and sends back what it finds over a pipe
 * (hdf5_child.c), and every size in that is checked here as if the file's author had sent it.
 * Whatever becomes of the child, the caller gets an error that names the file.
 *
 * A file is read whole.  Objects of types that tensors have not are listed with DTYPE_NONE.
 */
#pragma once

#include "runtime/tensor.h"

struct error;
struct str;

#define HDF5_ITEMS_MAX 1000000
#define HDF5_NAME_BYTES 4096

/* A dataset, an attribute of a group or dataset, or a group (no attribute, no value). */
struct hdf5_item {
    char *path;      /* "layers/dense/vars/0"; "" for the root */
    char *attribute; /* NULL: the object itself */
    bool group;
    struct tensor value; /* DTYPE_NONE: of a type that cannot be read, or a group */
};

struct hdf5 {
    char *name;              /* of the file, for errors */
    struct hdf5_item *items; /* an object is followed by its attributes */
    int items_count;
};

/*
 * Reads a file.  Fails with NOT_FOUND, DENIED, DATA_LOSS (no HDF5 file, damaged), EXHAUSTED
 * (too large).  On success the caller owns `out`: hdf5_release().
 */
bool hdf5_read(const char *path, struct hdf5 *out, struct error *err) CHECKED;

/* The same of bytes in memory; `name` stands in errors. */
bool hdf5_read_bytes(const char *name, const void *bytes, size_t size, struct hdf5 *out,
                     struct error *err) CHECKED;

void hdf5_release(struct hdf5 *file); /* fine on {0} */

/* The dataset or group at that path; NULL when there is none. */
const struct hdf5_item *hdf5_find(const struct hdf5 *file, const char *path);

/* An attribute of what is at that path; NULL when there is none. */
const struct hdf5_item *hdf5_attribute(const struct hdf5 *file, const char *path,
                                       const char *attribute);

/*
 * Appends a file that holds the items to `out`: groups on the way are made, strings are UTF-8
 * of any length.  The same items give the same bytes.  One thread at a time.  Fails with
 * INTERNAL.
 */
bool hdf5_write(const struct hdf5_item *items, int count, struct str *out,
                struct error *err) CHECKED;
