/*
 * wire_cursor.h - a protobuf message that lies in several places, read where it is.
 *
 * For the few messages whose bulk is copied once, from where it came to where it belongs.
 * What returns false has met the end of the message too early, or something malformed.
 */
#pragma once

#include "proto/rpc.h"

struct wire_cursor {
    const struct rpc_span *spans;
    int count;
    int index;      /* of the span */
    size_t offset;  /* in it */
    size_t at, end; /* in the message */
};

struct wire_cursor wire_cursor_of(const struct rpc_span *spans, int count);

bool wire_cursor_varint(struct wire_cursor *cursor, uint64_t *value);

/* The length of a field, of which all is there. */
bool wire_cursor_length(struct wire_cursor *cursor, size_t *length);

/* Over `size` bytes, which are there, into `to` (NULL: nowhere). */
void wire_cursor_copy(struct wire_cursor *cursor, size_t size, void *to);

/* Over a field whose tag was read. */
bool wire_cursor_skip(struct wire_cursor *cursor, uint64_t tag);

/* --- writing --- */

void wire_add_varint(struct str *out, uint64_t value);
size_t wire_varint_bytes(uint64_t value);
