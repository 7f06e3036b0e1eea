/*
 * connection.h - the system's tables of TCP connections (/proc/net/tcp and tcp6), and who has
 * their sockets.
 *
 * They tell of this network namespace alone: a connection that leads out of it has one end
 * there.
 */
#pragma once

#include <sys/types.h>

#include "base/base.h"

struct sockaddr;

/* IPv4 as ::ffff:A.B.C.D, which is how a socket for both families has it. */
struct endpoint {
    unsigned char address[16];
    uint16_t port;
};

struct connection {
    struct endpoint local, remote;
    int64_t user;
    uint64_t inode; /* of the socket */
};

/* False when it is neither IPv4 nor IPv6. */
bool connection_endpoint(const struct sockaddr *from, struct endpoint *out);

bool connection_same(const struct endpoint *a, const struct endpoint *b);

/*
 * Calls `each` for all that are established and have a socket, until it says false.  Without
 * the tables there are none.
 */
void connection_each(bool (*each)(void *arg, const struct connection *connection), void *arg);

/* Whether the process has that socket; false, too, when it may not be asked. */
bool connection_is_held_by(pid_t pid, uint64_t inode);

/* Whether a connection of this process to `peer` ends at a socket of process `pid`. */
bool connection_leads_to(const struct endpoint *peer, pid_t pid);
