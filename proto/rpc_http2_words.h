/*
 * rpc_http2_words.h - what gRPC writes into HTTP/2's headers, and its packed messages.
 *
 * Spec: "gRPC over HTTP2" (PROTOCOL-HTTP2.md of gRPC): Timeout, Status-Message, Binary-Header,
 * Message-Encoding.
 */
#pragma once

#include "base/base.h"

struct error;
struct str;

/* "250m" and the like, in nanoseconds, INT64_MAX at most; -1: it is none. */
int64_t rpc_http2_timeout(const char *text, size_t size);

/* Adds `text` in the characters that a Status-Message may have. */
void rpc_http2_add_percent(struct str *out, const char *text);

/* Adds the text that a Status-Message stands for; what is no percent sign's is left as it is.
 */
void rpc_http2_add_plain(struct str *out, const char *text, size_t size);

/* Adds the bytes that base64 (padded or not) stands for, as far as it is that. */
void rpc_http2_add_decoded(struct str *out, const char *text, size_t size);

/* Adds `size` bytes in base64, without padding. */
void rpc_http2_add_base64(struct str *out, const void *bytes, size_t size);

enum rpc_http2_packing { PACKING_NONE, PACKING_GZIP, PACKING_DEFLATE, PACKING_UNKNOWN };

enum rpc_http2_packing rpc_http2_packing_of(const char *name, size_t size);

/* Replaces a packed message by what is in it, at most `limit` bytes.  Fails with EXHAUSTED when
 * there is more, INVALID when it cannot be read. */
bool rpc_http2_unpack(struct str *message, enum rpc_http2_packing packing, int64_t limit,
                      struct error *err) CHECKED;
