/*
 * cluster.h - a ps and two workers in this process, which reach each other directly or as
 * other processes would.  The graph is that of flow.h's world.
 */
#pragma once

#include "base/limits.h"
#include "runtime/cluster/cluster.h"
#include "runtime/device.h"
#include "runtime/worker/service.h"
#include "runtime/worker/worker.h"
#include "tests/unit/runtime/flow.h"

enum { TASKS = 3 };
static const char *const task_names[TASKS] = {"/job:ps/task:0", "/job:worker/task:0",
                                              "/job:worker/task:1"};

struct cluster {
    struct worker *workers[TASKS];
    struct service *services[TASKS]; /* NULL: no servers */
    struct rpc_server *servers[TASKS];
    struct worker_link *links[TASKS];
};

static void serve(struct cluster *cluster, int task)
{
    const struct rpc_server_options options = {.address = "127.0.0.1:0",
                                               .message_bytes_max = LIMIT_MESSAGE_BYTES};
    cluster->services[task] = service_new(cluster->workers[task]);
    cluster->servers[task] =
        rpc_server_start(&options, service_methods, cluster->services[task], &err);
    CHECK_OK(cluster->servers[task], &err);
    cluster->links[task] = link_rpc_new(worker_task(cluster->workers[task]),
                                        rpc_server_address(cluster->servers[task]), NULL, &err);
    CHECK_OK(cluster->links[task], &err);
}

/* Of tasks that have so much memory; 0: the machine's. */
static struct cluster *cluster_new_with(bool no_optimise, bool over_rpc,
                                        int64_t memory_bytes_max)
{
    struct cluster *cluster = alloc_bytes(sizeof(*cluster));
    for (int i = 0; i < TASKS; i++) {
        const struct worker_options options = {.job = i ? "worker" : "ps",
                                               .task = i ? i - 1 : 0,
                                               .threads = 1,
                                               .memory_bytes_max = memory_bytes_max,
                                               .no_optimise = no_optimise};
        cluster->workers[i] = worker_new(&options, &err);
        CHECK(cluster->workers[i]);
        if (over_rpc)
            serve(cluster, i);
        else
            cluster->links[i] = link_local_new(cluster->workers[i]);
    }
    for (int i = 0; i < TASKS; i++)
        worker_set_peers(cluster->workers[i], cluster->links, TASKS);
    return cluster;
}

static inline struct cluster *cluster_new(bool no_optimise, bool over_rpc)
{
    return cluster_new_with(no_optimise, over_rpc, 0);
}

static void cluster_free(struct cluster *cluster)
{
    for (int i = 0; i < TASKS; i++)
        link_free(cluster->links[i]);
    for (int i = 0; i < TASKS; i++)
        rpc_server_stop(cluster->servers[i]);
    for (int i = 0; i < TASKS; i++) {
        service_free(cluster->services[i]);
        worker_free(cluster->workers[i]);
    }
    free(cluster);
}

/* A session whose client is worker 0. */
static inline struct cluster_session *open_session(struct cluster *cluster, const char *handle,
                                                   struct cluster_options options)
{
    options.links = cluster->links;
    options.links_count = TASKS;
    options.home = 1;
    struct cluster_session *session = cluster_session_new(&options, handle, &err);
    CHECK_OK(session, &err);
    return session;
}

/* The world's graph with its wishes; fails as the cluster session does. */
static bool try_extend(struct cluster_session *session, struct world *world)
{
    struct str bytes = {0};
    CHECK_OK(builder_ok(&world->b), &err);
    graph_export(world->graph, false, 0, &bytes);
    bool ok = cluster_session_extend(session, bytes.data, bytes.size, &err);
    str_release(&bytes);
    return ok;
}

static inline void extend(struct cluster_session *session, struct world *world)
{
    CHECK_OK(try_extend(session, world), &err);
}

static inline bool try_fetch(struct cluster_session *session, const char *feed, double value,
                             const char *fetch, double *out)
{
    struct tensor in = number(F32, value), got;
    const struct session_run run = {.feeds = &feed,
                                    .feed_values = &in,
                                    .feeds_count = feed ? 1 : 0,
                                    .fetches = &fetch,
                                    .fetches_count = 1,
                                    .timeout_ms = 20000};
    bool ok = cluster_session_run(session, &run, &got, &err);
    if (ok) {
        *out = tensor_number(&got, 0);
        tensor_release(&got);
    }
    tensor_release(&in);
    return ok;
}

static inline double fetch_number(struct cluster_session *session, const char *feed,
                                  double value, const char *fetch)
{
    double out = 0;
    CHECK_OK(try_fetch(session, feed, value, fetch, &out), &err);
    return out;
}
