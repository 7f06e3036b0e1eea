/*
 * http2_wire.h - one end of an HTTP/2 connection: bytes of a socket, encrypted or not, and a
 * session (libnghttp2) that makes frames of them; for rpc_http2*.c, both ends of gRPC.
 *
 * DESIGN: a thread that is told of an event has the wire's turn: it reads, and writes what is
 * said meanwhile (corked).  Else who has something to say writes it.  What the system does not
 * take waits in `out`, messages as they lie in memory; it is never waited for.
 *
 * All functions but http2_messages_release() are called with the wire's lock held.
 */
#pragma once

#include <nghttp2/nghttp2.h>
#include <pthread.h>

#include "base/str.h"
#include "proto/rpc.h"

struct ssl_st;     /* OpenSSL's SSL */
struct ssl_ctx_st; /* SSL_CTX */

enum {
    HTTP2_PREFIX = 5, /* in front of a message of gRPC: whether it is packed, its size */
    HTTP2_SPANS = 64, /* that wait to be written */
};

/* A message to be sent, prefix and all. */
struct http2_message {
    struct http2_message *next; /* of those that are over */
    int references;             /* its call's, each span's */
    int count;
    struct rpc_piece pieces[RPC_PIECES_MAX + 1];
    size_t size;
    unsigned char prefix[HTTP2_PREFIX];
    char copied[];
};

/* How far it is; what the session's data sources point to. */
struct http2_sending {
    struct http2_message *message; /* NULL: there is none now */
    size_t sent;
};

/* A stretch of what waits to be written: of a message, or (none) of `text`. */
struct http2_span {
    struct http2_message *message;
    const char *data; /* of a message */
    size_t at;        /* in the text */
    size_t size;
};

struct http2_out {
    struct http2_span spans[HTTP2_SPANS];
    int first, count;
    size_t size; /* of all */
    struct str text;
    struct http2_message *over; /* to be released without the lock */
};

struct http2_wire {
    const char *peer; /* for logs; borrowed */
    int epoll;        /* that watches the socket, ... */
    void *watched;    /* ... with this */
    char *why;        /* (optional) 200 bytes: what TLS has against going on is put there */

    pthread_mutex_t lock; /* guards: all below */
    int socket;
    nghttp2_session *session; /* NULL: it is closed */
    struct ssl_st *tls;       /* NULL: plaintext */
    struct http2_out out;
    uint64_t heard_ns;  /* when the other end last said something */
    uint64_t pinged_ns; /* 0: no answer is awaited */
    bool is_shaken;     /* hands, by TLS */
    bool busy;          /* a thread has its turn */
    bool corked;        /* ... and will write what is said meanwhile */
    bool wants_room;
};

/* --- messages --- */

/* A message of these pieces, for one who holds it; those without a `release` are copied. */
struct http2_message *http2_message_new(const struct rpc_piece *pieces, int count);
void http2_message_drop(struct http2_wire *wire, struct http2_message *message);

/* Those that are over: to be released when the lock is let go of. */
struct http2_message *http2_wire_over(struct http2_wire *wire);
void http2_messages_release(struct http2_message *messages);

/* --- the session --- */

/* Adds what this end needs of the session to `callbacks`, takes them, and makes the session;
 * false: no memory. */
bool http2_wire_open(struct http2_wire *wire, bool serves,
                     nghttp2_session_callbacks *callbacks);

/* A message is read into the session's frame: for the `read` of a data source. */
ssize_t http2_wire_part(const struct http2_sending *sending, size_t size, uint32_t *flags);

/* Room in a message's `bytes` for as many as its prefix says, if that is no more than some MB.
 */
void http2_wire_reserve(struct str *bytes, uint32_t size);

/* Nothing is read or written any more. */
void http2_wire_close(struct http2_wire *wire);

/* --- turns --- */

/* An event may come, unless a thread has its turn. */
void http2_wire_arm(struct http2_wire *wire);

/* Reads what has come, and gives it to the session.  False: the other end has gone, or does not
 * speak this language. */
bool http2_wire_take(struct http2_wire *wire);

/* Writes what the session has to say, as far as the system takes it. */
void http2_wire_flush(struct http2_wire *wire);

/* The same, the last that is said: waits till then for the other end's system to take it, which
 * would be taken back from there where it is closed with something left to read. */
void http2_wire_finish(struct http2_wire *wire, uint64_t until_ns);

/* Pings an end that has been silent for long; false: it does not answer. */
bool http2_wire_is_there(struct http2_wire *wire, uint64_t now_ns);

/* --- http2_tls.c --- */

/* NULL on failure.  A client's shows its certificate if it has one. */
struct ssl_ctx_st *http2_tls_new(const struct rpc_tls *tls, bool serves, struct error *err);
void http2_tls_free(struct ssl_ctx_st *context); /* NULL is fine */

/* Encrypts what goes over the wire from now on.  `name` (of a client): what the certificate of
 * the server must be for; an address, or a name.  False: no memory. */
bool http2_tls_open(struct http2_wire *wire, struct ssl_ctx_st *context, const char *name);
void http2_tls_close(struct http2_wire *wire);

/* Goes on with the handshake; false: there will be none, and `why` (of 200 bytes) says so. */
bool http2_tls_shake(struct http2_wire *wire, char why[200]);

/* PEM, owned: what the other end has shown; NULL: nothing. */
char *http2_tls_shown(const struct http2_wire *wire);

/* Whether bytes have been taken from the socket that nobody has read. */
bool http2_tls_has_more(const struct http2_wire *wire);

/* Bytes; 0: not now, -1: the other end has gone. */
ssize_t http2_tls_read(struct http2_wire *wire, void *out, size_t size);
ssize_t http2_tls_write(struct http2_wire *wire, const void *bytes, size_t size);
