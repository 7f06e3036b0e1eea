/* rpc_http2.h - serving gRPC: the functions for the transport's table. */
#pragma once

#include "proto/internal.h"

/* --- rpc_http2_host.c --- */

struct rpc_server *rpc_http2_host_start(const struct rpc_server_options *options,
                                        const struct rpc_method *methods, void *self,
                                        struct error *err);
void rpc_http2_host_stop(struct rpc_server *server);
bool rpc_http2_host_later(struct rpc_call *call, void (*work)(void *arg), void *arg);

/* --- rpc_http2_call.c --- */

void rpc_http2_call_answer(struct rpc_call *call, const void *bytes, size_t size,
                           const struct error *err);
void rpc_http2_call_answer_from(struct rpc_call *call, struct rpc_source *source);
bool rpc_http2_call_cancelled(const struct rpc_call *call);
bool rpc_http2_call_watch(struct rpc_call *call, void (*gone)(void *arg), void *arg);
void rpc_http2_call_unwatch(struct rpc_call *call);
