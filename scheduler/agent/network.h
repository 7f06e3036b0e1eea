/*
 * network.h - how many bytes the TCP connections of a task have carried.
 *
 * Linux counts none for a process, but for each connection: so connections are looked at again
 * and again, and what each has carried since the last look is added up.  What one carries after
 * the last look at it, before it is closed, is not known; nor what goes by UDP or RDMA.
 */
#pragma once

#include <sys/types.h>

#include "scheduler/agent/sockets.h"

#define NETWORK_SOCKETS_MAX 10000 /* that one task is followed by; those above are left out */

struct network {            /* of one task; zeroed: nothing was seen */
    int64_t received_bytes; /* both only rise */
    int64_t sent_bytes;
    struct socket_bytes *seen; /* that were open at the last look; by cookie */
    int seen_count;
};

/*
 * Looks at what the processes `pids` have open among `sockets`.  One that several of them share
 * counts once.  False, and nothing is counted, when that is not to be known: this agent may not
 * look at what they have open, or the kernel does not tell.
 */
bool network_look(struct network *network, const struct sockets *sockets, const pid_t *pids,
                  int pids_count) CHECKED;
void network_release(struct network *network);
