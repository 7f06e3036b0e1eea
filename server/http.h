/*
 * http.h - HTTP in and out: libmicrohttpd, its limits, and the strictness that it lacks.
 *
 * DESIGN: two daemons, one on a TCP port (or for what comes through tls.c) with a pool of epoll
 * threads, one on a unix socket with one thread.  Each request gets an arena.  One that only
 * reads runs to its end on the thread that read it; one that changes something is called by a
 * worker (workers.h), and its connection sleeps.  A thread of our own closes connections that
 * take too long to say what they want (libmicrohttpd knows idle time only, so a byte now and
 * then would hold a connection for ever); farewell.h has those that are answered in the middle
 * of a body.
 */
#pragma once

#include <sys/socket.h>

#include "base/base.h"

struct error;
struct farewell;
struct http;
struct http_waker; /* a connection that sleeps */
struct live;
struct services;

struct http_options {
    int listener; /* from door_tcp(); closed by http_stop().  -1: http_take() alone */
    const char *socket_path; /* DIR/control.sock, made with mode 0600 */
    int threads;
    struct farewell *farewell; /* borrowed until http_stop() */
};

/* Starts to answer.  `services` and `live` are borrowed until http_stop(). */
struct http *http_start(const struct http_options *options, const struct services *services,
                        struct live *live, struct error *err) CHECKED;

/*
 * Takes a connection that tls.c has decrypted, of the client at `from`; `http` is a struct
 * http. False: there are too many (`fd` is closed).
 */
bool http_take(void *self, int fd, const struct sockaddr *from, socklen_t from_size);

/* Ends it: hub and live must have let all their connections go before. */
void http_stop(struct http *http); /* NULL is fine */

/* Wakes a connection that sleeps because its stream had nothing to say; from any thread. */
void http_wake(struct http_waker *waker);
