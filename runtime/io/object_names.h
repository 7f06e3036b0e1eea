/*
 * object_names.h - what the objects of a TensorFlow 2 checkpoint call its tensors.
 *
 * Such a checkpoint names tensors by a path through objects ("model/layer-0/kernel/.ATTRIBUTES/
 * VARIABLE_VALUE"); the graph of the objects, in the string OBJECT_NAMES_KEY, has the names
 * that variables were given.
 */
#pragma once

#include "base/base.h"

struct arena;
struct error;

#define OBJECT_NAMES_KEY "_CHECKPOINTABLE_OBJECT_GRAPH"

struct object_name {
    const char *key;  /* of the tensor */
    const char *name; /* "sequential/dense/kernel" */
};

/*
 * Reads a serialized TrackableObjectGraph; names live in `arena`, in order of their keys. Fails
 * with DATA_LOSS.
 */
bool object_names_read(const void *bytes, size_t size, struct arena *arena,
                       const struct object_name **out, int *count, struct error *err) CHECKED;

/* The name for a key, NULL if there is none. */
const char *object_names_find(const struct object_name *names, int count, const char *key);
