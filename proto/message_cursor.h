/*
 * message_cursor.h - a protobuf message from outside, read where it lies.
 *
 * For the few messages whose bulk is copied once, from where it came to where it belongs.
 * What returns false has met the end of the message too early, or something malformed.
 */
#pragma once

#include "base/base.h"

struct str;

struct message_cursor {
    const uint8_t *at, *end;
};

/* A field with a length: text, bytes, or a message. */
#define MESSAGE_TAG(field) ((uint64_t)(field) << 3 | 2)

struct message_cursor message_cursor_of(const void *bytes, size_t size);

bool message_cursor_varint(struct message_cursor *cursor, uint64_t *value);

/* The bytes of a field whose tag was read; the cursor is behind them. */
bool message_cursor_enter(struct message_cursor *cursor, struct message_cursor *field);

/* Over a field whose tag was read. */
bool message_cursor_skip(struct message_cursor *cursor, uint64_t tag);

/* --- writing --- */

void message_add_varint(struct str *out, uint64_t value);
size_t message_varint_bytes(uint64_t value);
