/* rpc_socket.h - calls over a socket of this machine: the two ends, for the transport's table.
 */
#pragma once

#include "proto/internal.h"

/* --- rpc_socket_host.c --- */

struct rpc_server *rpc_socket_host_start(const struct rpc_server_options *options,
                                         const struct rpc_method *methods, void *self,
                                         struct error *err);
void rpc_socket_host_stop(struct rpc_server *server);
bool rpc_socket_host_later(struct rpc_call *call, void (*work)(void *arg), void *arg);

/* --- rpc_socket_server.c --- */

void rpc_socket_server_answer(struct rpc_call *call, const void *bytes, size_t size,
                              const struct error *err);
void rpc_socket_server_answer_from(struct rpc_call *call, struct rpc_source *source);
bool rpc_socket_server_cancelled(const struct rpc_call *call);
bool rpc_socket_server_watch(struct rpc_call *call, void (*gone)(void *arg), void *arg);
void rpc_socket_server_unwatch(struct rpc_call *call);

/* --- rpc_socket_client.c --- */

struct rpc_client *rpc_socket_client_new(const struct rpc_client_options *options,
                                         struct error *err);
void rpc_socket_client_free(struct rpc_client *client);
void rpc_socket_client_start(struct rpc_client *client, const char *path,
                             const struct str *request, rpc_done *done, void *arg);
void rpc_socket_client_start_into(struct rpc_client *client, const char *path,
                                  const struct str *request, struct rpc_sink *sink);
void rpc_socket_client_cancel_started(struct rpc_client *client, const void *arg);
void rpc_socket_client_cancel(struct rpc_client *client);
void rpc_socket_client_hold(struct rpc_client *client);
void rpc_socket_client_drop(struct rpc_client *client);
void rpc_socket_client_attend(struct rpc_client *client, bool (*over)(void *arg), void *arg,
                              uint64_t until_ns);
void rpc_socket_client_nudge(struct rpc_client *client);
const char *rpc_socket_client_shown(const struct rpc_client *client);

/* --- rpc_socket_wait.c --- */

bool rpc_socket_wait_call(struct rpc_client *client, const char *path,
                          const struct str *request, struct str *response, int timeout_ms,
                          struct error *err);
