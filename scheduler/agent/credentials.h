/*
 * credentials.h - by what a node is known to its server, and the server to its node.
 *
 * DESIGN: certificate.json in the agent's folder (for the agent's user alone) holds the node's
 * certificate with its key, which is made here and never sent, and the certificate that the
 * server is known by.  It is there after a restart; until it is, a join token gets it.  When
 * half of its time is over it is renewed, by itself: sessions and tasks go on.
 *
 * By the agent's thread alone.
 */
#pragma once

#include "base/base.h"

struct credentials;
struct error;
struct link;

struct credentials_options {
    const char *folder;
    const char *server;
    const char *node_name;
    const char *token; /* NULL, or "TOKEN", or "TOKEN.PIN" (pin.h) */
    const char *ca;    /* PEM: what the server is checked against; NULL: its pin */
};

/* Fails with INVALID when the server could not be known: no certificate of it is kept, and
 * there is neither `ca` nor a pin. */
struct credentials *credentials_open(const struct credentials_options *options,
                                     struct error *err) CHECKED;
void credentials_free(struct credentials *credentials); /* NULL is fine */

/*
 * Makes the link show a certificate to a server that is the right one, getting it by the token
 * if there is none.  Fails as the server does, and as pin_fetch(); UNAUTHENTICATED when there
 * is no token either.
 */
bool credentials_connect(struct credentials *credentials, struct link *link,
                         struct error *err) CHECKED;

/* The certificate was refused: true when there is a token to get another one by. */
bool credentials_refused(struct credentials *credentials);

/* Whether it is time to renew; at most every minute. */
bool credentials_are_due(struct credentials *credentials);
bool credentials_renew(struct credentials *credentials, struct link *link,
                       struct error *err) CHECKED;
