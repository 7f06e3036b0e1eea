/*
 * serve.h - the server as a whole: what is started in which order, and stopped in which.
 */
#pragma once

#include "base/base.h"

struct error;
struct rpc_tls;

struct serve_options {
    const char *folder;
    const char *host;        /* numeric address; only loopback without `insecure` */
    int port;                /* 0: any free one */
    int agents_port;         /* for agents of other machines; 0: any free one, -1: none */
    const char *agents_host; /* numeric address; NULL: `host`, without TLS 127.0.0.1 */
    const struct rpc_tls *agents_tls; /* NULL: of the server's own authority */
    bool insecure;                    /* allow a host that is not loopback, without TLS */
    bool no_agent;                    /* no tasks on this machine */
    int fake_gpus;                    /* of the embedded agent */
    int64_t cpu_millis, memory_bytes; /* of it; 0: all there is */
    int64_t suspect_ms, lost_ms, grace_ms, unkillable_ms, backoff_ms; /* 0: as in loop.h */
    const char *engine_config; /* file: an engine that brings nodes (docs/engines.md); NULL */
    const char *task_user;     /* of the embedded agent: "FIRST-LAST", or NULL */
    int64_t token_rate;        /* requests a second of one token or session; 0: any number */
    int64_t keep_days;         /* logs and points, after a job has ended; 0: for ever */
    int64_t dataset_bytes;     /* of all datasets, when one is uploaded; 0: what the disk has */
    const char *tls_certificate; /* of the page and the API: PEM files; NULL: plain HTTP */
    const char *tls_key;
    const char *oidc_issuer; /* another provider to sign in by; NULL: none (server/oidc.h) */
    const char *oidc_client;
    const char *oidc_secret;   /* file with the client's secret; NULL: it has none */
    const char *oidc_claim;    /* NULL: "preferred_username" */
    const char *oidc_redirect; /* NULL: /oidc/callback where the server listens */
    const char *oidc_role;     /* of who comes for the first time; NULL: an admin adds users */
    bool webhooks_anywhere;    /* webhooks may call private addresses, and http */
    const char *const *hosts;  /* other names that browsers may use */
    int hosts_count;
};

/*
 * Runs the server until SIGTERM or SIGINT.  When it is ready it prints one line on stdout, with
 * its address and a login link, and calls `ready` (may be NULL).  Tasks run on when it ends.
 */
typedef void serve_ready_fn(void *self, const char *origin, const char *link);
bool serve_run(const struct serve_options *options, serve_ready_fn *ready, void *self,
               struct error *err) CHECKED;
