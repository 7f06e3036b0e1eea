/*
 * rpc.h - calls of byte messages between our processes; an answer may have several.
 *
 * Three transports behind one interface, chosen by the address: gRPC ("127.0.0.1:7070";
 * rpc_http2*.c), within the process ("local:NAME"; rpc_local.c), and a socket of this machine
 * ("socket:NAME"; rpc_socket*.c), whose calls cost less than gRPC's.
 *
 * DESIGN: a server has threads that are told what comes (duty.h) and call the handlers, several
 * at once; a handler must not block.  It may answer at once, or keep the call and answer later
 * from any thread, exactly once.  Clients may be used by any thread; a call blocks its caller.
 */
#pragma once

#include "base/base.h"
#include "base/error.h"

struct arena;
struct endpoint;
struct rpc_call;
struct rpc_client;
struct rpc_server;
struct str;

/* --- serving --- */

typedef void rpc_handler(void *self, struct rpc_call *call);

struct rpc_method {
    const char *path;     /* "/pb.Agent/Join" */
    rpc_handler *handler; /* a row with a NULL path ends the table */
};

/* Methods with a `self` of their own. */
struct rpc_service {
    const struct rpc_method *methods;
    void *self;
    const struct rpc_service *next;
};

/* The name in the certificate that the tasks of an attempt share. */
#define RPC_TASKS_NAME "tasks.trainyard"

/* The name in the certificate that a server shows to the agents of its nodes. */
#define RPC_NODES_NAME "nodes.trainyard"

struct rpc_tls { /* PEM texts; NULL for plaintext */
    const char *ca;
    const char *certificate;
    const char *key;
    const char *name; /* that a server must show; NULL: that of its address */
    bool asks; /* serving without `ca`: clients may show any certificate whose key they have;
                  rpc_call_certificate() tells it, to be checked by who is called */
};

struct rpc_server_options {
    const char *address; /* "127.0.0.1:0" takes a free port, "socket:" a name that none has */
    const char *secret;  /* of "socket:": what its clients must say; NULL: they must be of this
                            process's user, that is all */
    int64_t message_bytes_max;
    const struct rpc_tls *tls;      /* NULL: plaintext, loopback only */
    const struct rpc_service *more; /* besides the methods that are given; borrowed */
};

/*
 * Starts serving `methods` (borrowed; other paths answer UNIMPLEMENTED) with `self` given to
 * each handler.  Fails with UNAVAILABLE when the address is taken, naming it.
 */
struct rpc_server *rpc_server_start(const struct rpc_server_options *options,
                                    const struct rpc_method *methods, void *self,
                                    struct error *err) CHECKED;

/* The address with its real port; borrowed from the server. */
const char *rpc_server_address(const struct rpc_server *server);

/* Refuses new calls, waits up to LIMIT_SHUTDOWN_MS for open ones, cancels the rest, frees. */
void rpc_server_stop(struct rpc_server *server);

/*
 * For a handler: the thread that called it does `work(arg)`, which may block and take long,
 * when it has done what else there is at hand; another serves on meanwhile.  It may go on when
 * the server has stopped.  False: it does not, as it has such work already or nobody could
 * serve; nothing was noted.
 */
bool rpc_call_later(struct rpc_call *call, void (*work)(void *arg), void *arg);

/* The request; borrowed from the call until it is answered. */
const void *rpc_call_bytes(const struct rpc_call *call, size_t *size);

/* "ipv4:127.0.0.1:51234", for logs. */
const char *rpc_call_peer(const struct rpc_call *call);

/* PEM: what the client showed to a server that `asks`, and has the key of; NULL: nothing. */
const char *rpc_call_certificate(const struct rpc_call *call);

/* True once the client has gone or its deadline has passed. */
bool rpc_call_cancelled(const struct rpc_call *call);

/*
 * `gone(arg)` is called, at most once and by the server's thread, when the client goes before
 * it has its answer, or its deadline passes; `arg` is freed (free()) with the call.  A handler
 * calls this before anything else may answer.  With "local:" addresses it is never called.
 */
void rpc_call_watch(struct rpc_call *call, void (*gone)(void *arg), void *arg);

/* `gone` will not be called any more, and does not run now.  Before the answer. */
void rpc_call_unwatch(struct rpc_call *call);

/* Answers; the call is gone after this.  Copies `bytes`. */
void rpc_call_reply(struct rpc_call *call, const void *bytes, size_t size);
void rpc_call_fail(struct rpc_call *call, const struct error *err);

/* The same as a reply without a copy, where the transport can: takes what `bytes` holds, which
 * is empty after this. */
void rpc_call_reply_str(struct rpc_call *call, struct str *bytes);

/* A stretch of a message: lent until `release(arg)`, by any thread; `release` NULL: copied. */
struct rpc_piece {
    const void *data;
    size_t size;
    void (*release)(void *arg);
    void *arg;
};

enum { RPC_PIECES_MAX = 4 };

/*
 * Where the messages of an answer come from; the first member of a struct that knows more.  The
 * transport asks for the next one when it has taken the one before, so a client that takes
 * slowly holds its source up.
 */
struct rpc_source {
    /* Fills in the pieces of the next message and says how many; `*last`: the answer is whole.
     * By one thread at a time. */
    int (*next)(struct rpc_source *source, struct rpc_piece pieces[RPC_PIECES_MAX], bool *last);
    void (*free)(struct rpc_source *source); /* once: nothing more will be asked of it */
};

/* Answers with what `source` has; takes it.  Not for "local:" addresses: asserted. */
void rpc_call_reply_from(struct rpc_call *call, struct rpc_source *source);

/* --- calling --- */

struct rpc_client_options {
    const char *address;
    const char *secret; /* as above */
    const char *shown;  /* what errors call a "socket:"; NULL: its address */
    int64_t message_bytes_max;
    const struct rpc_tls *tls;
    bool quiet; /* no pings: servers of others than us hang up on who sends many */
};

/* Connects lazily: an absent server shows at the first call. */
struct rpc_client *rpc_client_new(const struct rpc_client_options *options,
                                  struct error *err) CHECKED;
/* No rpc_client_call() may be open; waits for calls that were started.  NULL is fine. */
void rpc_client_free(struct rpc_client *client);

/*
 * One call: sends `request`, waits at most `timeout_ms`, puts the answer into `response`
 * (replacing what it held).  On failure `err` has the server's code and text; UNAVAILABLE when
 * it cannot be reached, DEADLINE when time is up.
 */
bool rpc_client_call(struct rpc_client *client, const char *path, const struct str *request,
                     struct str *response, int timeout_ms, struct error *err) CHECKED;

/* `err` NULL: `response` is the answer, borrowed. */
typedef void rpc_done(void *arg, const struct str *response, const struct error *err);

/*
 * The same without waiting, and without a time limit: `done` is called once, by the client's
 * thread (which it must not hold up) or before this returns.  Not for "local:" addresses, where
 * it is told UNIMPLEMENTED.
 */
void rpc_client_start(struct rpc_client *client, const char *path, const struct str *request,
                      rpc_done *done, void *arg);

/* In a `done` that was given an answer: who gave it, as base/connection.h has it; false when
 * that has no such address. */
bool rpc_client_peer(const struct rpc_client *client, struct endpoint *peer);

/* Where the messages of an answer go; the first member of a struct that knows more.  Both are
 * called by the client's thread. */
struct rpc_sink {
    /* One message; false ends the call with `err`. */
    bool (*take)(struct rpc_sink *sink, const void *bytes, size_t size, struct error *err);
    void (*done)(struct rpc_sink *sink,
                 const struct error *err); /* once; NULL: all was taken */
};

/* As rpc_client_start(), for answers of one message or several. */
void rpc_client_start_into(struct rpc_client *client, const char *path,
                           const struct str *request, struct rpc_sink *sink);

/* Makes the call that was started with this `arg` (or sink) fail with CANCELLED, if it is still
 * open. */
void rpc_client_cancel_started(struct rpc_client *client, const void *arg);

/* Makes every open and later call on this client fail with CANCELLED; callable from any thread.
 */
void rpc_client_cancel(struct rpc_client *client);
