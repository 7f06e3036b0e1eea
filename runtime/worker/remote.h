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

/*
 * A near task's socket (proto/rpc.h): where it is called while its process lives.  What is
 * asked to learn what a task is goes by gRPC.
 */
struct lane {
    struct rpc_client *client;
    char *socket; /* of one process */
    int users;    /* calls that are being begun; guarded by the remote's lock */
    struct lane *next;
};

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
    struct lane *lane;          /* of PEER_NEAR; NULL: it has none */
    struct lane *left;          /* of processes that are gone */
    struct lender *lender;      /* whom what it lends is given back to */
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

/* Asks what it is, or whether it is near, if that is not known yet. */
void remote_ask(struct remote *remote);

/* A call has failed; if that says that the process may be another by now, it is asked again. */
void remote_failed(struct remote *remote, const struct error *err);

/* `arg`, a remote, is told that what it lent by that request is not needed any more. */
void remote_give_back(void *arg, int64_t request_id);

/* --- remote_lane.c --- */

struct wire_met;

/* Calls go to the socket that the task has told; NULL: to none any more.  Not by the thread of
 * a lane, which could not free its own. */
void remote_lane_set(struct remote *remote, const struct wire_met *met);

/* The task's socket, for one call, or NULL; given back when that has begun. */
struct lane *remote_lane_hold_locked(struct remote *remote);
void remote_lane_drop(struct remote *remote, struct lane *lane); /* NULL is fine */

/* Calls over it fail; it is freed later. */
void remote_lane_leave(struct remote *remote);

/* Frees all, once their calls have failed. */
void remote_lane_free(struct remote *remote);

/* Begins a call by the best way to the task; as rpc_client_start(). */
void remote_start(struct remote *remote, const char *path, const struct str *request,
                  rpc_done *done, void *arg);

/* As rpc_client_cancel_started(). */
void remote_cancel_started(struct remote *remote, const void *arg);

/* --- remote.c --- */

void remote_receive(struct worker_link *link, int64_t step_id, const char *key,
                    rendezvous_receiver *receiver, void *arg);

/* --- link_rpc_collective.c --- */

extern const struct worker_link_collectives link_rpc_collective_calls;
