/*
 * rpc_grpc.h - the calling end of gRPC, by its C core, for rpc_grpc*.c alone.
 *
 * DESIGN: every completion queue has a thread that looks after it (rpc_client_main), so that
 * keepalive pings are always answered.  A tag in a queue is a struct with the function that
 * handles its completion.
 */
#pragma once

#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>
#include <grpc/support/alloc.h>
#include <stdatomic.h>

#include "proto/internal.h"

/* Keepalive, both ways: a peer that is frozen or unplugged is noticed within their sum. */
#define RPC_GRPC_KEEPALIVE_MS 10000
#define RPC_GRPC_KEEPALIVE_TIMEOUT_MS 5000

/* Trailing metadata of every call that a server of ours fails: err->pointer. */
#define RPC_GRPC_POINTER_KEY "trainyard-pointer-bin"

struct tag {
    void (*completed)(struct tag *tag, bool ok);
    atomic_bool given; /* orders giver before taker, where a sanitizer sees it too */
};

/* To be called before the library is given the tag. */
static inline void *rpc_grpc_give(struct tag *tag)
{
    atomic_store_explicit(&tag->given, true, memory_order_release);
    return tag;
}

/* Opens the library; each needs its own grpc_shutdown(). */
void rpc_grpc_open(void);

/* What a queue has given: a tag, which is told. */
void rpc_grpc_completed(const grpc_event *event);

grpc_arg rpc_grpc_arg(const char *key, int64_t value);

/* Starts operations on a call, which must be of a kind and at a time that gRPC allows. */
void rpc_grpc_batch(grpc_call *call, const grpc_op *ops, size_t count, struct tag *tag);

/* Appends a message, decompressed if need be, and frees it.  False when it cannot be read. */
bool rpc_grpc_read(grpc_byte_buffer *buffer, struct str *out);

/* A copy of `bytes`, owned. */
grpc_byte_buffer *rpc_grpc_buffer(const void *bytes, size_t size);

/* --- see struct rpc_transport --- */

struct rpc_client *rpc_grpc_client_new(const struct rpc_client_options *options,
                                       struct error *err);
void rpc_grpc_client_free(struct rpc_client *client);
bool rpc_grpc_client_call(struct rpc_client *client, const char *path,
                          const struct str *request, struct str *response, int timeout_ms,
                          struct error *err);
void rpc_grpc_client_start(struct rpc_client *client, const char *path,
                           const struct str *request, rpc_done *done, void *arg);
bool rpc_grpc_client_peer(const struct rpc_client *client, struct endpoint *peer);
void rpc_grpc_client_start_into(struct rpc_client *client, const char *path,
                                const struct str *request, struct rpc_sink *sink);
void rpc_grpc_client_cancel_started(struct rpc_client *client, const void *arg);
void rpc_grpc_client_cancel(struct rpc_client *client);
