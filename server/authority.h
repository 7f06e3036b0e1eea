/*
 * authority.h - the server's own certificate authority: which node somebody is who calls.
 *
 * DESIGN: the authority is one certificate, made of DIR/secret.key (db/seal.h), so a folder
 * that is put back with its key has the authority of before.  The server shows that very
 * certificate to agents, and a join token names it by its SHA-256: "ty_….PIN".  An agent that
 * trusts who shows it sends a request made on its node and its token, and gets a certificate
 * for its name; from then on it is known by that, until the certificate is renewed or runs out,
 * or the node is removed.  A certificate says by which token its node came: one that was made
 * after the removal lets the node in again, those of before and what came of them do not.
 *
 * TLS itself only proves that a client has the key of what it shows; whose it is is looked at
 * for each call (authority_check()), so that who is refused is told why.
 *
 * From any thread.
 */
#pragma once

#include "base/base.h"

struct arena;
struct authority;
struct db;
struct db_conn;
struct error;
struct rpc_call;
struct rpc_tls;

/* How long a certificate is good; agents renew it when half of that is over. */
#define AUTHORITY_NODE_S INT64_C(2592000)

/* With the database of the folder; fails as db_seal_derive() does. */
struct authority *authority_new(struct db *db, const char *folder, struct error *err) CHECKED;
void authority_free(struct authority *authority); /* NULL is fine */

/* What a server shows to agents; borrowed. */
const struct rpc_tls *authority_tls(const struct authority *authority);

/* By which an agent knows the server: a join token is given to people as "TOKEN.PIN". */
const char *authority_pin(const struct authority *authority);

struct authority_node {
    char name[256];
    int64_t token; /* by which it came */
};

/*
 * Who makes the call, by what it shows.  UNAUTHENTICATED when it shows nothing, or what is not
 * of this authority or has run out.
 */
bool authority_check(struct authority *authority, const struct rpc_call *call,
                     struct authority_node *node, struct error *err) CHECKED;

/* A certificate for the key of `request`: INVALID when it is none.  PEM, in the arena. */
bool authority_issue(struct authority *authority, const char *request,
                     const struct authority_node *node, struct arena *arena,
                     const char **certificate, struct error *err) CHECKED;
