/*
 * nodes_certify.h - which nodes are let in, and by what they are known.
 */
#pragma once

#include "base/base.h"

struct arena;
struct authority;
struct db;
struct db_token;
struct error;
struct rpc_call;
struct str;

/* UNAUTHENTICATED when it is no join token, or one no longer. */
bool nodes_token_check(struct db *db, const char *token, struct arena *arena,
                       struct db_token *found, struct error *err) CHECKED;

/* INVALID: not letters, digits, '.', '_' and '-', or too many of them. */
bool nodes_name_check(const char *name, struct error *err) CHECKED;

/*
 * Answers a Certify (`authority` NULL: PRECONDITION, certificates are the operator's): by a
 * join token, or by a certificate that is good still.  UNAUTHENTICATED; DENIED when the
 * certificate is another node's, or its token was revoked; NOT_FOUND when the node was removed.
 * Writes to the database: not for the thread of the calls.
 */
bool nodes_certify(struct db *db, struct authority *authority, struct rpc_call *call,
                   struct str *answer, struct error *err) CHECKED;

/* Writes down who was refused, and why. */
void nodes_refused(const struct rpc_call *call, const struct error *err);

/* Whether the certificate that the call shows is good for this node now; fails likewise. */
bool nodes_admit(struct db *db, struct authority *authority, const struct rpc_call *call,
                 const char *name, struct error *err) CHECKED;
