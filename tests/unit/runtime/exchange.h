/*
 * exchange.h - a cluster whose tasks reach each other by RPC, and tensors that are asked for as
 * a stock task does and as one of ours.
 */
#pragma once

#include <inttypes.h>
#include <unistd.h>

#include "runtime/worker/incoming.h"
#include "runtime/worker/wire.h"
#include "tests/unit/runtime/one_session.h"

static void start(void)
{
    world = world_new();
    cluster = cluster_new(false, true);
    session = open_session(cluster, "s", (struct cluster_options){0});
}

struct got {
    struct rpc_sink base; /* first */
    struct incoming incoming;
    int messages;
    pthread_mutex_t lock; /* guards: is_done, err */
    pthread_cond_t changed;
    bool is_done;
    struct error err;
};

static inline bool got_take(struct rpc_sink *sink, const void *bytes, size_t size,
                            struct error *error)
{
    struct got *got = (struct got *)sink;
    got->messages++;
    return incoming_take(&got->incoming, bytes, size, error);
}

static inline void got_done(struct rpc_sink *sink, const struct error *error)
{
    struct got *got = (struct got *)sink;
    pthread_mutex_lock(&got->lock);
    got->is_done = true;
    got->err = error ? *error : (struct error){.code = OK};
    pthread_cond_signal(&got->changed);
    pthread_mutex_unlock(&got->lock);
}

/* Asks the ps for a tensor; true when it has come whole. */
static inline bool receive_by(struct rpc_client *client, const char *method,
                              const struct wire_receive *in, const struct near_process *near,
                              struct got *got)
{
    struct str request = {0};
    *got = (struct got){.base = {got_take, got_done},
                        .incoming = {.near = near, .request_id = in->request_id}};
    pthread_mutex_init(&got->lock, NULL);
    pthread_cond_init(&got->changed, NULL);
    wire_write_receive(in, &request);
    rpc_client_start_into(client, method, &request, &got->base);
    str_release(&request);
    pthread_mutex_lock(&got->lock);
    while (!got->is_done)
        pthread_cond_wait(&got->changed, &got->lock);
    pthread_mutex_unlock(&got->lock);
    pthread_cond_destroy(&got->changed);
    pthread_mutex_destroy(&got->lock);
    err = got->err;
    return err.code == OK && incoming_end(&got->incoming, &err);
}

static inline bool receive_from_ps(struct rpc_client *client, const char *method,
                                   const struct wire_receive *in, struct got *got)
{
    return receive_by(client, method, in, NULL, got);
}

static inline bool receive_near(struct rpc_client *client, const struct wire_receive *in,
                                const struct near_process *near, struct got *got)
{
    return receive_by(client, SERVICE_CHUNKS, in, near, got);
}

static inline void note_done(struct worker_run *run, const struct error *error)
{
    __atomic_store_n((int *)run->arg, error ? (int)error->code : 0, __ATOMIC_RELEASE);
}

/* Puts the tensor where the ps sends it from, in a step of its own, which `may_end`; whether it
 * has. */
static inline bool put_in_step(int64_t step_id, const char *key, const struct tensor *value,
                               bool may_end)
{
    struct str graph = {0};
    char handle[WORKER_HANDLE_BYTES];
    int code = -1, seen = -1;
    struct worker_link *ps = cluster->links[0];
    graph_export(world->graph, false, 0, &graph);
    CHECK_OK(ps->kind->register_graph(ps, "s", graph.data, graph.size, 0, handle, &err), &err);
    struct worker_run run = {.session = "s",
                             .graph = handle,
                             .step_id = step_id,
                             .send_keys = &key,
                             .sends = value,
                             .sends_count = value ? 1 : 0,
                             .may_end = may_end,
                             .done = note_done,
                             .arg = &code};
    ps->kind->run_graph(ps, &run);
    for (int i = 0; seen < 0 && i < 1000; i++) {
        usleep(1000);
        seen = __atomic_load_n(&code, __ATOMIC_ACQUIRE);
    }
    CHECK_INT(seen, 0);
    str_release(&graph);
    return run.ended;
}

static inline void put(int64_t step_id, const char *key, const struct tensor *value)
{
    CHECK(!put_in_step(step_id, key, value, false));
}

/* Where the ps sends the tensor that `put()` puts there. */
static inline void send_key(char out[300])
{
    const struct device *device = worker_device(cluster->workers[0]);
    snprintf(out, 300, "%s;%016" PRIx64 ";/job:worker/replica:0/task:0/device:CPU:0;e;0:0",
             device->name, device->incarnation);
}

static inline struct rpc_client *ps_client(void)
{
    const struct rpc_client_options options = {.address =
                                                   rpc_server_address(cluster->servers[0]),
                                               .message_bytes_max = LIMIT_MESSAGE_BYTES};
    struct rpc_client *client = rpc_client_new(&options, &err);
    CHECK_OK(client, &err);
    return client;
}
