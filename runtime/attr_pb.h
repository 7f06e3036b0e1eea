/*
 * attr_pb.h - attributes from and to AttrValue, for files that see generated code.
 */
#pragma once

#include "runtime/attr.h"

struct Tensorflow__AttrValue;
struct Tensorflow__NodeDef;
struct arena;
struct error;

/*
 * Reads one attribute into `arena`; `proto` NULL: one without a value.  Also after a failure
 * `*out` is to be given to attr_release().  Fails with INVALID, EXHAUSTED.
 */
bool attr_unpack(struct attr *out, const char *name, const struct Tensorflow__AttrValue *proto,
                 struct arena *arena, struct error *err) CHECKED;

/*
 * A message in `arena` that borrows the values.  Tensors above `const_bytes_max` lose their
 * contents (0: keep all).
 */
struct Tensorflow__AttrValue *attr_pack(const struct attr *attr, size_t const_bytes_max,
                                        struct arena *arena);

/* What errors call the node, in `arena`, where its message tells another name than its own;
 * NULL where not. */
const char *attr_shown_name(const struct Tensorflow__NodeDef *proto, struct arena *arena);
