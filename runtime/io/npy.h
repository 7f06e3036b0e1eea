/*
 * npy.h - NPY files, numpy's format for one array: versions 1 to 3, any byte order, rows or
 * columns first.
 *
 * What the header claims is held against the size of the file before memory is taken.  Damage
 * is DATA_LOSS with the byte it shows at; what numpy can store and a tensor cannot hold
 * (strings, objects, records, dates) is UNIMPLEMENTED.
 */
#pragma once

#include "runtime/tensor.h"

struct error;
struct str;

#define NPY_HEADER_BYTES_MAX 65536 /* of a file: as many are enough for npy_header_parse() */

struct npy_header {
    enum dtype dtype;
    struct shape shape;
    bool is_fortran;    /* the first dimension runs fastest */
    bool is_swapped;    /* big-endian */
    int64_t bytes;      /* where the elements begin */
    int64_t data_bytes; /* of all elements */
};

/* Reads the header at the beginning of a file, of which these are the first bytes. */
bool npy_header_parse(const void *bytes, size_t size, struct npy_header *out,
                      struct error *err) CHECKED;

/*
 * Appends the header that numpy writes for an array of this type; little-endian elements, row
 * by row, are to follow.  Types that numpy lacks are stored as integers of the same bits, see
 * npy_header_note().  Fails with UNIMPLEMENTED for strings, resources and variants.
 */
bool npy_header_add(struct str *out, enum dtype dtype, const struct shape *shape,
                    struct error *err) CHECKED;

/* "uint16 with the bits of bfloat16", for a type that numpy lacks; NULL: it has it. */
const char *npy_header_note(enum dtype dtype);

/*
 * Elements as a file has them become those of a tensor, in their place: bytes swapped, and
 * DATA_LOSS for booleans that are none.  `first`: the number of the first one in its array.
 */
bool npy_settle(const struct npy_header *header, void *elements, int64_t first, int64_t count,
                struct error *err) CHECKED;

/* Whether what the header claims is what `bytes`, the size of the whole file, leave room for.
 */
bool npy_check_size(const struct npy_header *header, int64_t bytes, struct error *err) CHECKED;

/* Reads a whole file; errors name it. */
bool npy_read(const char *path, struct tensor *out, struct error *err) CHECKED;

/* The same from memory: a member of an NPZ file. */
bool npy_parse(const void *bytes, size_t size, struct tensor *out, struct error *err) CHECKED;

/* Writes a file: after a crash there is the old one or the new one. */
bool npy_write(const char *path, const struct tensor *tensor, struct error *err) CHECKED;
