/*
 * near.h - tensors that a task which is near lends, in a cluster of exchange.h: its ps is this
 * very process.
 */
#pragma once

#include "base/arena.h"
#include "runtime/worker/near.h"
#include "runtime/worker/remote.h"
#include "tests/unit/runtime/exchange.h"

/* Asks whether this process may read the ps's memory, which is this one's. */
static inline bool meet_ps(struct rpc_client *client, const char *host,
                           struct near_process *near)
{
    struct str request = {0}, response = {0};
    struct arena *arena = arena_new();
    struct wire_met met = {0};
    memset(near->nonce, 7, sizeof(near->nonce));
    wire_write_meet(&(struct wire_meet){host, near->nonce}, &request);
    bool ok = rpc_client_call(client, SERVICE_MEET, &request, &response, 5000, &err) &&
              wire_read_met(response.data, response.size, arena, &met, &err);
    near->pid = (pid_t)met.pid;
    near->proof = met.proof;
    arena_free(arena);
    str_release(&request);
    str_release(&response);
    return ok;
}

static inline bool finish(struct rpc_client *client, int64_t request_id)
{
    struct str request = {0}, response = {0};
    wire_write_finished(request_id, &request);
    bool ok = rpc_client_call(client, SERVICE_FINISHED, &request, &response, 5000, &err);
    str_release(&request);
    str_release(&response);
    return ok;
}

static inline struct tensor zeros(int count)
{
    struct tensor value;
    CHECK_OK(tensor_init(&value, F32, &SHAPE(count), &err), &err);
    memset(value.data, 0, tensor_bytes(&value));
    return value;
}

static inline bool is_over(int64_t step_id, const char *key)
{
    struct tensor value = zeros(1);
    bool sent = worker_send(cluster->workers[0], step_id, key, &value, &err);
    tensor_release(&value);
    return !sent && err.code == ABORTED;
}

static inline void await_no_loans(void)
{
    for (int i = 0; worker_lent_count(cluster->workers[0]) && i < 5000; i++)
        usleep(1000);
    CHECK_INT(worker_lent_count(cluster->workers[0]), 0);
}

struct arrival {
    int came; /* __atomic */
    struct error err;
    struct tensor value; /* with keeps: the receiver's reference */
    bool keeps;
};

static inline void arrive(void *arg, const struct tensor *value, bool dead,
                          const struct error *error)
{
    struct arrival *arrival = arg;
    (void)dead;
    if (value && arrival->keeps)
        rendezvous_take(value, &arrival->value);
    arrival->err = error ? *error : (struct error){.code = OK};
    __atomic_store_n(&arrival->came, 1, __ATOMIC_RELEASE);
}

static inline void await_arrival(struct arrival *arrival)
{
    int came = 0;
    for (int i = 0; !came && i < 5000; i++) {
        usleep(1000);
        came = __atomic_load_n(&arrival->came, __ATOMIC_ACQUIRE);
    }
    CHECK(came);
}

/* As a step receives it. */
static inline bool receive_by_link(int64_t step_id, const char *key)
{
    struct arrival arrival = {0};
    cluster->links[0]->kind->receive(cluster->links[0], step_id, key, arrive, &arrival);
    await_arrival(&arrival);
    err = arrival.err;
    return err.code == OK;
}

static inline enum peer peer_of_ps(void)
{
    struct remote *remote = (struct remote *)cluster->links[0];
    pthread_mutex_lock(&remote->lock);
    enum peer peer = remote->peer;
    pthread_mutex_unlock(&remote->lock);
    return peer;
}

/* Sends it tensors until it is known whether it is near. */
static inline enum peer settle_peer(int64_t step_id, const char *key,
                                    const struct tensor *value)
{
    enum peer peer = PEER_UNKNOWN;
    for (int i = 0; i < 1000 && peer != PEER_NEAR && peer != PEER_FAR; i++) {
        put(step_id + i, key, value);
        CHECK_OK(receive_by_link(step_id + i, key), &err);
        usleep(1000);
        peer = peer_of_ps();
    }
    return peer;
}
