/*
 * rpc_http2_host.h - what the files of the serving end of gRPC share (rpc_http2*.c, which alone
 * see <nghttp2/...>): HTTP/2 by libnghttp2, TLS by OpenSSL.
 *
 * DESIGN: threads on duty (duty.h) are told the events of the host's files.  The one that is
 * told of a connection's has its turn: it reads, has the session take what came, calls the
 * handlers of the calls that are whole, and writes.  Answers are written by who gives them,
 * unless a turn is under way, which takes them along.
 *
 * A connection lives until it has hung up, its last call is gone and no thread serves it; a
 * call until its stream is closed and its handler has answered.
 *
 * Locks: a connection's, then its host's.  No handler, source, `gone` or `release` is called
 * under either.
 */
#pragma once

#include <stdatomic.h>

#include "proto/duty.h"
#include "proto/http2_wire.h"
#include "proto/internal.h"
#include "proto/rpc_http2.h"
#include "proto/rpc_http2_words.h"

enum { RPC_HTTP2_LISTENING = 8 };

struct http2_call {
    struct rpc_call base;
    struct http2_connection *connection; /* held */
    int32_t stream;

    /* the request; all that follows is guarded by the connection's lock */
    rpc_handler *handler;
    void *self;
    struct str path;
    bool is_post, is_grpc;
    enum rpc_http2_packing packing;
    int64_t timeout_ns; /* 0: none */
    uint64_t deadline_ns;
    unsigned char prefix[HTTP2_PREFIX];
    size_t prefix_have;
    uint32_t size; /* of the message */
    bool is_whole; /* nothing more of it is looked at */
    bool is_ended; /* by the client: it sends no more */

    struct http2_call *next, **at;  /* of its connection; NULL: its stream is closed */
    struct http2_call *queued_next; /* of those that a turn has to see to */
    int references;                 /* its stream's, handler's, turn's and pump's */
    bool is_queued;
    bool is_waiting, is_called; /* its handler is to be called, has been */
    bool is_answered, is_cancelled;
    bool is_telling; /* that the client has gone */

    /* the answer */
    struct http2_sending sending;
    struct rpc_source *source; /* of those that follow; NULL: none do */
    bool has_begun, is_done;   /* the end of it is on its way */
    bool wants_next;
    bool is_pumped; /* the source is asked by a thread */
};

struct http2_connection {
    struct http2_wire wire;  /* its lock guards what says so, in calls, too */
    struct http2_host *host; /* held */
    uint64_t id;             /* by which its events are told */
    char *peer;
    char *certificate; /* (optional) since the handshake */
    atomic_int references;

    pthread_cond_t changed;
    struct http2_call *calls; /* guarded by the lock, as what follows */
    bool is_leaving;          /* no more calls are begun; who leaves hangs up */
    struct http2_call *queued, **queued_end;
    size_t pumped; /* bytes that sources gave in this go */
};

struct http2_host {
    struct rpc_server base;
    struct rpc_service services;
    int64_t message_bytes_max;
    struct ssl_ctx_st *tls; /* OpenSSL's SSL_CTX; NULL: plaintext */
    bool asks;
    int epoll, timer;
    int listening[RPC_HTTP2_LISTENING];
    int listening_count;
    struct duty *duty;

    pthread_mutex_t lock; /* guards: all below */
    pthread_cond_t changed;
    struct http2_connection **connections; /* by growing ids */
    int connections_count, connections_capacity;
    uint64_t last_id;
    uint64_t timer_ns; /* that it is set to; 0: none */
    int references;    /* the owner's, each connection's */
    int open;          /* streams */
    bool stopping;
    uint64_t told_by_ns; /* of a host that stops: clients are, of the end of their calls */
};

/* --- rpc_http2_host.c: addresses, connections, time --- */

void rpc_http2_hold(struct http2_connection *connection);
void rpc_http2_drop(struct http2_connection *connection);

/* Someone is to look at the deadlines by then. */
void rpc_http2_look_at(struct http2_host *host, uint64_t ns);

/* --- rpc_http2_connection.c: turns --- */

/* False: it cannot be served. */
bool rpc_http2_open(struct http2_connection *connection);

/* After an event; false: it is to be hung up on, by this thread. */
bool rpc_http2_serve(struct http2_connection *connection);

/* Calls that it begins from now on are not looked at. */
void rpc_http2_refuse_more(struct http2_connection *connection);

/* Nobody is told any more; `why` (optional) is told to the client. */
void rpc_http2_hang_up(struct http2_connection *connection, const struct error *why);

/* Writes, if no turn will; unlocks, releases what is over, and asks sources for more. */
void rpc_http2_leave(struct http2_connection *connection);

/* Calls the handlers of calls that have come, and tells those whose client has gone; lets go
 * of the lock meanwhile. */
void rpc_http2_see_to(struct http2_connection *connection);

/* Ends calls whose time is up, pings, hangs up.  When to look again. */
uint64_t rpc_http2_look(struct http2_connection *connection, uint64_t now_ns);

/* --- rpc_http2_call.c --- */

struct http2_call *rpc_http2_call_new(struct http2_connection *connection, int32_t stream);
void rpc_http2_call_unref(struct http2_call *call); /* with the lock held */

/* Its stream is no more; with the lock held. */
void rpc_http2_call_closed(struct http2_call *call);

/* A turn has to see to it; with the lock held. */
void rpc_http2_call_queue(struct http2_call *call);

/* Nobody wants its answer; with the lock held. */
void rpc_http2_call_cancel(struct http2_call *call);

/* With the lock held, but for the while that it takes. */
void rpc_http2_call_free_source(struct http2_call *call);

/* Refuses it, unless an answer has begun; with the lock held. */
void rpc_http2_call_refuse(struct http2_call *call, const struct error *err);

/* Asks the source for a message, without the lock, which is held before and after. */
void rpc_http2_call_pump(struct http2_call *call);
