/* remote.h - what link_rpc.c and remote.c know of a worker of another process. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "proto/rpc.h"
#include "runtime/worker/fabric.h"
#include "runtime/worker/link.h"
#include "runtime/worker/near.h"

/*
 * What a task is.  Only one that says so in GetStatus is asked in our form, and only one whose
 * memory was read to prove it is asked to lend it.  A state with a question in it becomes one
 * without when the answer comes.  Tensors are asked for then, as a large one that comes by
 * messages takes its size once more in the transport's memory, which keeps some of it.
 */
enum peer {
    PEER_UNKNOWN,
    PEER_ASKED, /* what it is */
    PEER_STOCK,
    PEER_OURS,
    PEER_MEETS, /* one of ours, asked whether it is near */
    PEER_FAR,
    PEER_ASKED_FABRIC, /* far, and asked where it is on the fabric */
    PEER_NEAR,
    PEER_FABRIC,
};

struct asked;

struct remote {
    struct worker_link base; /* first */
    struct rpc_client *_Atomic client;
    _Atomic uint64_t request_id;
    const struct rpc_tls *tls;  /* borrowed; NULL: in the clear */
    pthread_mutex_t lock;       /* guards: all below; writes of `client` */
    int64_t epoch;              /* of a task that was placed anew; 0 */
    struct rpc_client **before; /* of those before it: calls may still hold them */
    int before_count;
    int before_capacity;
    enum peer peer;
    struct near_process near;
    struct fabric_peer *fabric; /* of PEER_FABRIC */
    struct asked *waiting;      /* for an answer, as `peer` is a question */
    struct asked **waiting_end;
};

/* Of a request that must not be done twice: begun at random, so no two links' are the same. */
static inline int64_t remote_request_id(struct remote *remote)
{
    return (int64_t)(atomic_fetch_add(&remote->request_id, 1) & INT64_MAX);
}

/* GetStatus has said what it is. */
void remote_learn(struct remote *remote, bool exchanges);

void remote_receive(struct worker_link *link, int64_t step_id, const char *key,
                    rendezvous_receiver *receiver, void *arg);

/* --- link_rpc_collective.c --- */

extern const struct worker_link_collectives link_rpc_collective_calls;
