/*
 * certificate.h - the file with what the tasks of an attempt show and trust.
 */
#pragma once

#include "base/str.h"
#include "proto/rpc.h"

struct error;

struct certificate {
    struct str pem;
    struct rpc_tls tls; /* in `pem` */
};

/* `path` NULL: there is none.  Fails with INVALID when the file has not both, it and its key.
 */
bool certificate_read(const char *path, struct certificate *out, struct error *err) CHECKED;
void certificate_release(struct certificate *certificate);

/* NULL: there is none. */
const struct rpc_tls *certificate_tls(const struct certificate *certificate);
