/*
 * internal.h - what rpc.c and its transports share.
 *
 * A transport embeds these structs as the first member of its own.
 */
#pragma once

#include <pthread.h>
#include <time.h>

#include "base/str.h"
#include "proto/rpc.h"

struct rpc_transport;

struct rpc_server {
    const struct rpc_transport *transport;
    char *address;
};

struct rpc_client {
    const struct rpc_transport *transport;
    char *address;
};

struct rpc_call { /* as the server sees it */
    const struct rpc_transport *transport;
    struct str request;
    const char *peer;        /* of its connection, which it holds, as is: */
    const char *certificate; /* (optional) */
    void (*gone)(void *arg); /* (optional) */
    void *gone_arg;          /* owned */
};

struct rpc_transport {
    struct rpc_server *(*server_start)(const struct rpc_server_options *options,
                                       const struct rpc_method *methods, void *self,
                                       struct error *err);
    void (*server_stop)(struct rpc_server *server);
    bool (*later)(struct rpc_call *call, void (*work)(void *arg), void *arg); /* (optional) */
    void (*answer)(struct rpc_call *call, const void *bytes, size_t size,
                   const struct error *err); /* err is NULL for a reply */
    void (*answer_pieces)(struct rpc_call *call, const struct rpc_piece *pieces,
                          int count);                                      /* (optional) */
    void (*answer_from)(struct rpc_call *call, struct rpc_source *source); /* (optional) */
    bool (*cancelled)(const struct rpc_call *call);
    /* (optional) Notes who is to be called; false: the client has gone already. */
    bool (*watch)(struct rpc_call *call, void (*gone)(void *arg), void *arg);
    void (*unwatch)(struct rpc_call *call); /* (optional) */

    struct rpc_client *(*client_new)(const struct rpc_client_options *options,
                                     struct error *err);
    void (*client_free)(struct rpc_client *client);
    bool (*client_call)(struct rpc_client *client, const char *path, const struct str *request,
                        struct str *response, int timeout_ms, struct error *err);
    void (*client_start)(struct rpc_client *client, const char *path, const struct str *request,
                         rpc_done *done, void *arg); /* (optional) */
    bool (*client_peer)(const struct rpc_client *client,
                        struct endpoint *peer); /* (optional) */
    void (*client_start_into)(struct rpc_client *client, const char *path,
                              const struct str *request,
                              struct rpc_sink *sink);                          /* (optional) */
    void (*client_cancel_started)(struct rpc_client *client, const void *arg); /* (as above) */
    void (*client_cancel)(struct rpc_client *client);

    /* (optional) See attention.h.  One that is held can be freed: then it only does no more. */
    void (*client_hold)(struct rpc_client *client);
    void (*client_drop)(struct rpc_client *client);
    void (*client_attend)(struct rpc_client *client, bool (*over)(void *arg), void *arg,
                          uint64_t until_ns);
    void (*client_nudge)(struct rpc_client *client);
};

extern const struct rpc_transport rpc_http2_transport;
extern const struct rpc_transport rpc_local_transport;
extern const struct rpc_transport rpc_socket_transport;

#define RPC_SOCKET_PREFIX "socket:"

/* The handler of `path` and what it is given, or NULL. */
rpc_handler *rpc_find_handler(const struct rpc_service *services, const char *path, size_t size,
                              void **self);

/* A condition variable that waits by the monotonic clock, and the moment to wait for. */
void rpc_cond_init(pthread_cond_t *cond);
struct timespec rpc_deadline(int timeout_ms);
