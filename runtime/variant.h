/*
 * variant.h - what elements of VARIANT tensors are, for those that send them to another
 * process.
 *
 * An element is a resource of some kind (resource.h).  A kind that can be sent says of what
 * tensors its values are made, and makes a value of such tensors again; its names and metadata
 * are TensorFlow's.  Kinds are told at start, before there are threads.
 */
#pragma once

#include "runtime/resource.h"

struct str;

struct variant_kind {
    const char *kind;      /* of the resource */
    const char *type_name; /* "tensorflow::TensorList" */
    /* Appends the metadata; how many tensors it holds, and which (to be freed; they are
     * borrowed). */
    int (*describe)(const struct resource *resource, struct str *metadata,
                    const struct tensor ***tensors);
    /* One reference; the tensors are shared.  From outside: fails with INVALID, EXHAUSTED. */
    struct resource *(*make)(const void *metadata, size_t size, const struct tensor *tensors,
                             int count, struct error *err);
};

/* Twice is once. */
void variant_add_kind(const struct variant_kind *kind);

/* NULL: values of that kind stay where they are. */
const struct variant_kind *variant_kind_of(const char *kind);
const struct variant_kind *variant_kind_named(const char *type_name);

/* --- for files that see generated code: variant_pb.c --- */

struct Tensorflow__TensorProto;
struct arena;

/* Fills in the elements; what stays where it is has a name only. */
void variant_pack(const struct tensor *tensor, struct Tensorflow__TensorProto *proto,
                  struct arena *arena);

/* Sets the elements of `out`, which is as large as its shape says. */
bool variant_unpack(struct tensor *out, const struct Tensorflow__TensorProto *proto,
                    struct error *err) CHECKED;
