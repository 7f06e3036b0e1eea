/*
 * wire.h - protobuf's wire format, read from a piece of memory that has an end.
 *
 * For messages whose fields are read in place, millions per second: nothing is unpacked,
 * nothing is believed beyond the end of the piece.
 */
#pragma once

#include "base/base.h"

struct wire {
    const uint8_t *at;
    const uint8_t *end;
};

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

/* The tag of a field, as it lies on the wire. */
#define WIRE_TAG(field, type) ((uint64_t)(field) << 3 | (type))

static inline struct wire wire_of(const void *data, size_t size)
{
    const uint8_t *bytes = data;
    return (struct wire){bytes, size ? bytes + size : bytes};
}

static inline size_t wire_left(const struct wire *wire)
{
    return (size_t)(wire->end - wire->at);
}

/* At most ten bytes; false when it is cut or longer. */
static inline bool wire_varint(struct wire *wire, uint64_t *value)
{
    uint64_t result = 0;
    for (int shift = 0; shift < 70 && wire->at < wire->end; shift += 7) {
        uint8_t byte = *wire->at++;
        result |= (uint64_t)(byte & 0x7f) << (shift < 64 ? shift : 63);
        if (byte < 0x80) {
            *value = result;
            return true;
        }
    }
    return false;
}

/* A field of bytes behind its tag. */
static inline bool wire_piece(struct wire *wire, struct wire *piece)
{
    uint64_t size;
    if (!wire_varint(wire, &size) || size > wire_left(wire))
        return false;
    *piece = (struct wire){wire->at, wire->at + size};
    wire->at += size;
    return true;
}

/* Steps over the value behind a tag that nobody wants; false on groups and what is cut. */
static inline bool wire_skip(struct wire *wire, uint64_t tag)
{
    uint64_t value;
    struct wire piece;
    size_t size = (tag & 7) == WIRE_FIXED64 ? 8 : 4;
    if (tag >> 3 == 0 || tag > UINT32_MAX)
        return false;
    switch (tag & 7) {
    case WIRE_VARINT:
        return wire_varint(wire, &value);
    case WIRE_BYTES:
        return wire_piece(wire, &piece);
    case WIRE_FIXED64:
    case WIRE_FIXED32:
        if (wire_left(wire) < size)
            return false;
        wire->at += size;
        return true;
    default:
        return false;
    }
}
