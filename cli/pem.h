/*
 * pem.h - certificates and keys out of PEM files, as options name them.
 */
#pragma once

#include "base/base.h"
#include "proto/rpc.h"

/* Of the command line; NULL: not given.  `option` names them in errors: "agents-" or "". */
struct pem_paths {
    const char *option;
    const char *ca;
    const char *certificate;
    const char *key;
};

/* Owned texts; all NULL when no path was given. */
struct pem {
    struct rpc_tls tls;
};

/* Fails when a file cannot be read, is too large or holds something else, and when one of
 * certificate and key was given without the other. */
bool pem_read(const struct pem_paths *paths, struct pem *out, struct error *err) CHECKED;
void pem_release(struct pem *pem);

/* What an endpoint takes: NULL for plaintext, when nothing was given. */
const struct rpc_tls *pem_tls(const struct pem *pem);
