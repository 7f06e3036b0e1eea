/*
 * sockets.h - the TCP connections of this machine, and how many bytes went through each.
 *
 * As the kernel tells anybody who asks for them (NETLINK_SOCK_DIAG), those of loopback as well.
 * Only what is connected: sockets that listen, or that nobody has open any more, are left out.
 */
#pragma once

#include "base/base.h"

#define SOCKETS_MAX 100000 /* of a machine; more are left out */

struct socket_bytes {
    uint64_t cookie; /* no two sockets since the machine started have the same */
    uint32_t inode;  /* as in /proc/PID/fd: "socket:[INODE]" */
    int64_t received;
    int64_t sent; /* and acknowledged by the other end */
};

struct sockets {
    struct socket_bytes *list; /* by inode */
    int count;
    int capacity;
    bool known; /* false: this kernel does not tell */
};

void sockets_look(struct sockets *sockets);
void sockets_release(struct sockets *sockets);

const struct socket_bytes *sockets_find(const struct sockets *sockets, uint32_t inode);
