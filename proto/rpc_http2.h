/* rpc_http2.h - gRPC: the functions for the transport's table. */
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
void rpc_http2_call_answer_pieces(struct rpc_call *call, const struct rpc_piece *pieces,
                                  int count);
void rpc_http2_call_answer_from(struct rpc_call *call, struct rpc_source *source);
bool rpc_http2_call_cancelled(const struct rpc_call *call);
bool rpc_http2_call_watch(struct rpc_call *call, void (*gone)(void *arg), void *arg);
void rpc_http2_call_unwatch(struct rpc_call *call);

/* --- rpc_http2_client.c --- */

struct rpc_client *rpc_http2_client_new(const struct rpc_client_options *options,
                                        struct error *err);
void rpc_http2_client_free(struct rpc_client *client);
bool rpc_http2_client_call(struct rpc_client *client, const char *path,
                           const struct str *request, struct str *response, int timeout_ms,
                           struct error *err);
void rpc_http2_client_start(struct rpc_client *client, const char *path,
                            const struct str *request, rpc_done *done, void *arg);
bool rpc_http2_client_peer(const struct rpc_client *client, struct endpoint *peer);
void rpc_http2_client_start_into(struct rpc_client *client, const char *path,
                                 const struct str *request, struct rpc_sink *sink);
void rpc_http2_client_cancel_started(struct rpc_client *client, const void *arg);
void rpc_http2_client_cancel(struct rpc_client *client);
