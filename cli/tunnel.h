/*
 * tunnel.h - loopback ports that speak to the tasks of a cluster for programs on this machine.
 *
 * One port for each task: what comes in the clear goes on over TLS, with a certificate that the
 * server gives out for each connection anew.  tunnel.c has the ports, tunnel_relay.c the
 * connections, tunnel_peer.c looks who has opened them.
 */
#pragma once

#include <stdatomic.h>

#include "base/base.h"

struct client;
struct error;

struct tunnel_options {
    const char *folder; /* of the server, as client_open() takes it */
    const char *job;    /* id, number or name */
    int64_t port;       /* of the first task; 0: any that is free */
    bool any_user;      /* serve other users of this machine, too */
    bool json;
};

/* Waits until the job runs, and serves until it ends or a signal comes; an exit code. */
int tunnel_open(struct client *client, const struct tunnel_options *options);

/* --- tunnel_relay.c --- */

#define TUNNEL_RELAYS_MAX 256

struct tunnel_relays {
    const struct tunnel_options *options;
    atomic_bool stopping;
    atomic_int count; /* threads */
};

/* Has a thread bring what comes from `fd` (taken) to the task, and back. */
void tunnel_relay_start(struct tunnel_relays *shared, int fd, const char *role, int index);

/* "/api/v1/jobs/JOB:tunnel", to be freed. */
char *tunnel_relay_path(const struct tunnel_options *options);

/* --- tunnel_peer.c --- */

/*
 * Whether the other end of a TCP connection over loopback is a socket of this process's user,
 * as the kernel's tables have it.  DENIED when it is another's, or cannot be told.
 */
bool tunnel_peer_is_own(int fd, struct error *err) CHECKED;
