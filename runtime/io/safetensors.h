/*
 * safetensors.h - named tensors in one file: a JSON header of names, types, shapes and places,
 * then the elements, little-endian, row by row.
 *
 * Reading believes nothing: the header's size is bounded, names are UTF-8 and differ, every
 * tensor's bytes are as many as its type and shape need, and together they fill the file
 * without holes or overlaps.  Damage is DATA_LOSS with the byte or tensor it shows at, a type
 * that we lack UNIMPLEMENTED.  A reader is used by one thread at a time.
 */
#pragma once

#include "runtime/tensor.h"

struct error;
struct str;

#define SAFETENSORS_HEADER_BYTES_MAX 100000000 /* the format's own limit */

struct safetensors_item {
    const char *name;
    enum dtype dtype;
    struct shape shape;
    int64_t offset; /* of its first byte, counted from the end of the header */
    int64_t bytes;
};

/* A line of "__metadata__": any texts. */
struct safetensors_note {
    const char *key, *value;
};

/* --- reading --- */

struct safetensors;

/* Opens the file and checks its header.  Owned by the caller; errors name the file. */
struct safetensors *safetensors_open(const char *path, struct error *err) CHECKED;
void safetensors_close(struct safetensors *file); /* NULL is fine */

/* All tensors in the order in which they are stored; borrowed from the file. */
const struct safetensors_item *safetensors_items(const struct safetensors *file, int *count);
const struct safetensors_note *safetensors_notes(const struct safetensors *file, int *count);

/* Reads `size` bytes of a tensor from its byte `from` on. */
bool safetensors_read(struct safetensors *file, const struct safetensors_item *item,
                      int64_t from, void *out, size_t size, struct error *err) CHECKED;

/* --- writing --- */

/*
 * Puts the items in the order in which they are to be stored (wide types first, so that all are
 * aligned; then by name) and sets `offset` and `bytes`.  Fails with INVALID when a name is
 * there twice, is not UTF-8 or is "__metadata__", with UNIMPLEMENTED for types that the format
 * lacks (complex128, string, resource, variant); quantized ones are stored as the integers they
 * are.
 */
bool safetensors_layout(struct safetensors_item *items, int count, struct error *err) CHECKED;

/* "int8 with the bits of qint8" for a type that the format lacks and has the bits of; else
 * NULL. */
const char *safetensors_note_of(enum dtype dtype);

/* Appends the header for items that are laid out; their bytes are to follow in that order. */
void safetensors_add_header(struct str *out, const struct safetensors_item *items, int count,
                            const struct safetensors_note *notes, int notes_count);
