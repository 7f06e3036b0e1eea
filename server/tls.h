/*
 * tls.h - the encrypted door: TLS outside, plain bytes inside.
 *
 * DESIGN: one thread (tls_main) accepts, shakes hands and copies both ways.  Each connection's
 * plain half is one end of a socket pair whose other end is given to http.c, which knows
 * nothing of TLS: limits, websockets and all else are as they are without it.  The certificate
 * is read anew when its file changes.
 */
#pragma once

#include <sys/socket.h>

#include "base/base.h"

struct error;
struct farewell;
struct tls;

/* Takes the plain half of a new connection; false: there are too many (it closes `fd`). */
typedef bool tls_give_fn(void *self, int fd, const struct sockaddr *from, socklen_t from_size);

struct tls_options {
    int listener;            /* non-blocking, from door_tcp(); closed by tls_stop() */
    const char *certificate; /* PEM file: the certificate, then those above it */
    const char *key;         /* PEM file with its key */
    tls_give_fn *give;
    void *self;
    struct farewell *farewell; /* for clients that are answered; borrowed until tls_stop() */
};

/* Whether certificate and key can be used: INVALID says why not. */
bool tls_check(const char *certificate, const char *key, struct error *err) CHECKED;

/* Starts to listen.  The texts are copied.  `listener` is closed on failure too. */
struct tls *tls_start(const struct tls_options *options, struct error *err) CHECKED;

/* Ends all connections.  NULL is fine. */
void tls_stop(struct tls *tls);
