/*
 * tensor_pb.h - tensors and shapes from and to TensorProto.
 *
 * Read: tensor_content or the typed fields; the last value given fills the rest.
 * Written: tensor_content for plain types, string_val for strings, handles by name, variants
 * as variant.h says.
 */
#pragma once

#include "runtime/tensor.h"

struct arena;
struct error;
struct str;

/* A serialized TensorProto, from outside.  Fails with INVALID, EXHAUSTED, UNIMPLEMENTED
 * (variants that cannot be sent). */
bool tensor_parse(struct tensor *out, const void *bytes, size_t size,
                  struct error *err) CHECKED;

/* Appends the tensor as a serialized TensorProto. */
void tensor_serialize(const struct tensor *tensor, struct str *out);

/* The same with strings in tensor_content: all lengths as varints, then all bytes. */
void tensor_serialize_content(const struct tensor *tensor, struct str *out);

/* A serialized TensorShapeProto, from outside and to it. */
bool tensor_parse_shape(struct shape *out, const void *bytes, size_t size,
                        struct error *err) CHECKED;
void tensor_serialize_shape(const struct shape *shape, struct str *out);

/* --- for files that see generated code --- */

struct ProtobufCMessageDescriptor;
struct Tensorflow__TensorProto;
struct Tensorflow__TensorShapeProto;

/*
 * As message_unpack(), of a message that has tensors in its field `number`, each a TensorProto
 * or in a NamedTensorProto.  The elements of those that take `large` bytes or more are not
 * copied: they are borrowed from `bytes`.
 */
enum { TENSOR_LARGE_BYTES = 64 << 10 };
void *tensor_unpack_message(const struct ProtobufCMessageDescriptor *descriptor,
                            unsigned number, int large, const void *bytes, size_t size,
                            struct arena *arena, struct error *err) CHECKED;

/* As tensor_parse(), of a message that was unpacked. */
bool tensor_unpack(struct tensor *out, const struct Tensorflow__TensorProto *proto,
                   struct error *err) CHECKED;

/*
 * The same of a message whose elements lie apart: `content_bytes` of tensor_content, which the
 * caller copies to `out->data`; then tensor_settle().  Plain types only.  Or `buffer` (else
 * NULL), which is taken over, has them already.
 */
bool tensor_unpack_apart(struct tensor *out, const struct Tensorflow__TensorProto *proto,
                         int64_t content_bytes, struct buffer *buffer,
                         struct error *err) CHECKED;

/* The elements of a STRING tensor from tensor_content, which is not empty. */
bool tensor_unpack_string_content(struct tensor *out,
                                  const struct Tensorflow__TensorProto *proto,
                                  struct error *err) CHECKED;
void tensor_settle(struct tensor *tensor); /* what came as a bool is one */

/*
 * A message in `arena` that borrows the elements of `tensor`; `contents` false: only its type
 * and shape.
 */
struct Tensorflow__TensorProto *tensor_pack(const struct tensor *tensor, bool contents,
                                            struct arena *arena);

/* Shapes; unknown parts stay unknown.  Fails with INVALID. */
bool tensor_unpack_shape(struct shape *out, const struct Tensorflow__TensorShapeProto *proto,
                         struct error *err) CHECKED;
struct Tensorflow__TensorShapeProto *tensor_pack_shape(const struct shape *shape,
                                                       struct arena *arena);
