/*
 * text.h - a protobuf message in text form ("node { name: \"x\" ... }"), as programs print it.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>

#include "base/base.h"

struct error;
struct str;

/*
 * Appends the message of type `descriptor` that `text` spells, serialized.  Fails with INVALID,
 * naming the line: an unknown field, a value that does not suit it, nesting deeper than
 * LIMIT_MESSAGE_DEPTH.  What the descriptor holds as opaque bytes, but the text as a message,
 * is left out; so are extensions.
 */
bool text_serialize(const ProtobufCMessageDescriptor *descriptor, const char *text, size_t size,
                    struct str *out, struct error *err) CHECKED;

/*
 * Appends a serialized message of that type in text form, as TensorFlow's tools write it: two
 * blanks for each level, fields by their numbers, maps by their keys.  Unknown fields are left
 * out.  Fails as message_unpack() does.
 */
bool text_print(const ProtobufCMessageDescriptor *descriptor, const void *bytes, size_t size,
                struct str *out, struct error *err) CHECKED;
