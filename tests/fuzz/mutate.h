/*
 * mutate.h - changes a protobuf message where it matters: a field, not a byte.
 *
 * Byte mutations of a GraphDef seldom parse.  This one takes the message apart by its
 * descriptor and changes a number, a name, a list or a whole message in it, mostly into what
 * occurs elsewhere in the same message.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>

#include "base/base.h"

/* Names that are good in a string field: `name(index)` for index below `count`. */
struct mutate_words {
    const char *(*name)(int index);
    int count;
};

/*
 * Mutates the serialized message in `data` (`size` bytes, room for `size_max`) a few times and
 * returns its new size; 0 if it is not a message of that type or has outgrown the room.
 */
size_t mutate_message(const ProtobufCMessageDescriptor *descriptor, uint8_t *data, size_t size,
                      size_t size_max, uint64_t seed, const struct mutate_words *words);
