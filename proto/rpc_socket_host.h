/*
 * rpc_socket_host.h - what the files of the serving end of a socket share.
 *
 * Locks: a host's, then a channel's.
 */
#pragma once

#include "proto/channel.h"
#include "proto/duty.h"

struct visitor {
    struct channel channel;
    struct socket_host *host;
    char *peer;
    uint64_t id;   /* by which its events are told */
    bool is_known; /* it has said the secret; of the thread whose turn it is alone */

    /* guarded by the host's lock */
    struct visitor *next, **at;
    struct socket_call *calls; /* open, or whose answer is on its way */
    int sources;               /* of answers on their way */
    int references;            /* its connection's, its calls' */
};

struct socket_call {
    struct rpc_call base;
    struct visitor *visitor;
    uint64_t id;

    /* guarded by the host's lock */
    struct socket_call *next, **at; /* NULL: in no list */
    struct rpc_source *source;      /* of an answer that is on its way */
    bool is_pumped;                 /* by a thread: no other does it */
    bool is_answered;
    bool is_cancelled;
    bool is_telling; /* a thread tells that the client has gone; it frees what is answered */
};

struct socket_host {
    struct rpc_server base;
    struct rpc_service services;
    char *secret;
    int64_t message_bytes_max;
    int listening, epoll;
    struct duty *duty;

    pthread_mutex_t lock; /* guards: all below, and what says so above */
    pthread_cond_t changed;
    struct visitor *visitors;
    uint64_t last_id; /* of a visitor */
    int references;   /* the owner's, each visitor's */
    int open;         /* calls that are not answered */
    bool refuses;
};

/* --- rpc_socket_server.c: calls --- */

/* Of a visitor that is served, whose turn it is. */
void rpc_socket_server_take(void *visitor, const struct frame *frame, const struct error *err);

/* Answers that waited for room go on. */
void rpc_socket_server_go_on(struct visitor *visitor);

/* Nobody wants the answers to its calls any more; `why` is told, unless it is NULL. */
void rpc_socket_server_give_up(struct visitor *visitor, const struct error *why);

/* --- rpc_socket_host.c: visitors and threads --- */

void rpc_socket_host_leave(struct visitor *visitor); /* one reference less */
