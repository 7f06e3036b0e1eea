/*
 * message.h - takes a protobuf message from outside apart, safely.
 *
 * protobuf-c itself recurses without a limit and lets four megabytes grow into hundreds.  So
 * every message is first walked by an iterative scan that checks depth and counts against
 * limits.h, and is then unpacked into an arena with a budget.
 *
 * Only files that may see generated code (*_pb.c, rpc_*.c) include this.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>

#include "base/base.h"

struct arena;
struct error;

/*
 * Walks `size` bytes of a message of type `descriptor` without unpacking: framing, depth at
 * most LIMIT_MESSAGE_DEPTH, fields at most LIMIT_MESSAGE_FIELDS.  Adds the memory that
 * unpacking will take to `*memory_bytes`.  Fails with INVALID (framing) or EXHAUSTED (a limit).
 */
bool message_scan(const ProtobufCMessageDescriptor *descriptor, const void *bytes, size_t size,
                  size_t *memory_bytes, struct error *err) CHECKED;

/*
 * Scans and unpacks.  The message lives in `arena` (never protobuf_c_message_free_unpacked()).
 * NULL on failure: INVALID when malformed, EXHAUSTED when over a limit or the arena's budget.
 */
void *message_unpack(const ProtobufCMessageDescriptor *descriptor, const void *bytes,
                     size_t size, struct arena *arena, struct error *err) CHECKED;

struct str;

/* Appends the serialized message to `out`. */
void message_pack(const ProtobufCMessage *message, struct str *out);
