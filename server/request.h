/*
 * request.h - one HTTP request on its way through a handler, and the reply it gets.
 *
 * http.c fills in what came, routes.c finds and calls the handler, reply.c fills in the reply,
 * http.c sends it.  Everything lives in the request's arena.
 */
#pragma once

#include "server/auth.h"
#include "server/url.h"

struct arena;
struct clean;
struct db;
struct authority;
struct engine;
struct error;
struct feed;
struct http_waker;
struct job_replies;
struct loop;
struct oidc;
struct route;
struct summaries;
struct tickets;
struct webhooks;

/* What handlers work on: one for the whole server, filled by serve.c. */
struct services {
    struct auth *auth;
    struct db *db;
    struct feed *feed;
    struct loop *loop;
    struct engine *engine;             /* NULL: none */
    const struct authority *authority; /* NULL: nodes are certified by another one */
    struct webhooks *webhooks;
    struct job_replies *job_replies; /* NULL: none are kept */
    struct tickets *tickets;
    struct summaries *summaries;
    struct clean *clean; /* NULL: nothing is cleaned */
    struct oidc *oidc;   /* NULL: people sign in here alone */
    int oidc_role;      /* of who comes by it for the first time; below ROLE_NONE: nobody may */
    const char *folder; /* DIR */
    const char *origin; /* "http://127.0.0.1:7070" */
    bool encrypted;     /* the origin is https:// */
    uint64_t started_us;   /* monotonic */
    int64_t dataset_bytes; /* that all datasets may have together; 0: what the disk holds */
};

/* A reply that is written as it comes: server-sent events. */
struct reply_stream {
    void *self;
    /*
     * Writes up to `size` bytes and returns how many.  0: nothing now; the connection sleeps
     * and the stream calls http_wake(waker) when there is more.  -1: the end.
     */
    int64_t (*read)(void *self, char *bytes, size_t size);
    /* Tells the stream whom to wake, before the first read. */
    void (*start)(void *self, struct http_waker *waker);
    void (*free)(void *self);
};

#define REPLY_HEADERS_MAX 12

struct reply {
    int status; /* 0: none yet */
    const char *type;
    const void *bytes; /* borrowed until the reply is sent, unless owned */
    size_t size;
    bool owned;   /* bytes are free()d */
    bool is_file; /* `size` bytes of the descriptor `file`, which is closed, in their place */
    int file;
    int64_t file_first; /* where they begin */
    struct url_pair headers[REPLY_HEADERS_MAX];
    int headers_count;
    struct reply_stream *stream; /* in place of bytes */
    bool websocket;              /* the connection goes to live.c, which answers */
};

#define ROUTE_PARAMS_MAX 2

struct request {
    struct arena *arena;
    const struct services *services;
    const char *id;     /* in logs, replies and headers */
    const char *method; /* "GET" */
    struct url url;
    const struct url_pair *headers;
    int headers_count;
    const char *params[ROUTE_PARAMS_MAX]; /* what matched {…} in the route, in order */
    const void *body;                     /* NUL follows, not counted */
    size_t body_size;
    bool has_body;             /* by its head; known before the body is there */
    const struct route *route; /* once it may go to its handler */
    bool local; /* came through DIR/control.sock: the user of the server himself */
    struct auth_identity user;
    const char *claimed; /* who he says he is, while that is being found out; NULL */
    struct reply reply;
};

/* The value of a header or of a query parameter; NULL if absent. */
static inline const char *request_header(const struct request *req, const char *name)
{
    return url_find(req->headers, req->headers_count, name, true);
}

static inline const char *request_query(const struct request *req, const char *name)
{
    return url_find(req->url.query, req->url.query_count, name, false);
}

/*
 * A whole number from the query: `fallback` when absent.  Fails with INVALID, naming the
 * parameter, when it is no number or not in [min, max].
 */
bool request_query_int(const struct request *req, const char *name, int64_t min, int64_t max,
                       int64_t fallback, int64_t *value, struct error *err) CHECKED;
