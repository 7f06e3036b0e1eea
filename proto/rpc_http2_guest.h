/*
 * rpc_http2_guest.h - what the files of the calling end of gRPC share.
 *
 * DESIGN: a client connects when it is first needed, and again when that has broken.  Requests
 * are sent when the server has said how many it takes, written by who makes them.  The client's
 * thread (http2_guest_main) connects, reads, tells the calls that were started what came, and
 * pings; who waits for a call is woken by it.
 *
 * A call is in its client's list until it is over, that has been told, and its stream is
 * closed: until then the session may have parts of its request left to write.
 *
 * The wire's lock guards all that is not constant.  No `done` or sink is called under it.
 */
#pragma once

#include "base/connection.h"
#include "proto/http2_wire.h"
#include "proto/internal.h"
#include "proto/rpc_http2_words.h"

struct http2_arrived { /* a message, for a sink */
    struct http2_arrived *next;
    struct str bytes;
};

struct made_call {
    struct http2_guest *guest;
    const char *path;      /* of one that waits to be sent; owned */
    int timeout_ms;        /* 0: none */
    rpc_done *done;        /* of a call that was started, or: */
    struct rpc_sink *sink; /* ... or: */
    void *arg;
    pthread_cond_t finished; /* somebody waits */

    struct made_call *next, **at; /* of its client */
    struct made_call *queued_next;
    int references; /* the list's, that of who waits or sees to it */
    bool is_queued;
    bool is_over;
    bool is_told;
    int32_t stream; /* 0: none yet, or no more */
    struct http2_sending sending;

    /* the answer */
    int http_status, status; /* -1: not said */
    bool is_other;           /* than gRPC */
    struct str text, pointer;
    enum rpc_http2_packing packing;
    unsigned char prefix[HTTP2_PREFIX];
    size_t prefix_have;
    uint32_t size;      /* of the message that comes */
    struct str message; /* the same, or the answer */
    struct str spare;   /* memory of one that a sink has taken */
    struct http2_arrived *arrived, **arrived_end;
    int messages;
    bool has_failed; /* as `err` says */
    struct error err;
};

struct http2_guest {
    struct rpc_client base;
    char *host, *port, *name; /* `name`: that a server must show */
    struct ssl_ctx_st *tls;   /* NULL: plaintext */
    int64_t message_bytes_max;
    bool quiet;
    int epoll, wake;
    pthread_t thread;
    bool is_answering; /* of the thread alone: a `done` runs, of a call that has its answer */
    struct endpoint peer;
    bool has_peer;

    struct http2_wire wire; /* its lock guards: all below, and calls */
    pthread_cond_t drained; /* the last call has gone */
    struct made_call *calls, **calls_end;
    int open;                               /* those that have not been told */
    struct made_call *queued, **queued_end; /* for the thread */
    bool is_connected;
    bool is_greeted; /* the server has said what it allows: calls are sent */
    bool is_leaving; /* the server has said that it takes no more calls */
    bool wants_server;
    uint64_t away_until_ns; /* calls fail with `away` till then */
    int away_ms;
    struct error away;
    bool is_cancelled, closing;
};

/* --- rpc_http2_guest.c: the thread --- */

/* True: it runs. */
bool rpc_http2_guest_start(struct http2_guest *guest);

/* The thread has something to do. */
void rpc_http2_guest_wake(struct http2_guest *guest);

/* With the lock held.  The server speaks HTTP/2: what waits for that is sent. */
void rpc_http2_guest_greeted(struct http2_guest *guest);

/* With the lock held.  Lets go of a server that takes no more calls and has none. */
void rpc_http2_guest_part(struct http2_guest *guest);

/* --- rpc_http2_client.c: calls; with the lock held --- */

/* Sends a call's request. */
void rpc_http2_client_submit(struct made_call *call);

/* It is over: with `err`, or (NULL) as its answer says. */
void rpc_http2_client_end(struct made_call *call, const struct error *err);

/* Tells what has come and what is over; lets go of the lock meanwhile. */
void rpc_http2_client_tell(struct http2_guest *guest);

/* The thread has something to tell of it. */
void rpc_http2_client_queue(struct made_call *call);

/* Out of the list, if it has been told and its stream is no more. */
void rpc_http2_client_settle(struct made_call *call);

/* There is no session any more: all calls are over. */
void rpc_http2_client_abandon(struct http2_guest *guest, const struct error *err);

/* --- rpc_http2_answer.c --- */

/* What the session calls; NULL: no memory. */
nghttp2_session_callbacks *rpc_http2_answer_callbacks(void);
