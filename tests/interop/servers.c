/* servers.c - see servers.h. */

#include "tests/interop/servers.h"

#include "base/error.h"
#include "base/limits.h"
#include "runtime/device.h"
#include "runtime/master/master.h"
#include "runtime/master/master_service.h"
#include "runtime/resource.h"
#include "runtime/session.h"
#include "runtime/worker/link.h"
#include "runtime/worker/service.h"
#include "runtime/worker/worker.h"

static const char *job_of(int task)
{
    return task == 1 ? "ps" : "worker";
}

static int index_of(int task)
{
    return task < 2 ? 0 : task - 1;
}

/* A port that is free now: tasks know each other before they serve. */
static bool choose_port(struct server_task *task, struct error *err)
{
    static const struct rpc_method none[] = {{0}};
    const struct rpc_server_options options = {.address = "127.0.0.1:0",
                                               .message_bytes_max = 1000};
    struct rpc_server *server = rpc_server_start(&options, none, NULL, err);
    if (!server)
        return false;
    snprintf(task->address, sizeof(task->address), "%s", rpc_server_address(server));
    rpc_server_stop(server);
    return true;
}

static bool make_worker(struct servers *servers, int t, const struct session_options *how,
                        struct error *err)
{
    struct server_task *task = &servers->tasks[t];
    task->resources = resources_new(job_of(t));
    task->worker = worker_new(&(struct worker_options){.job = job_of(t),
                                                       .task = index_of(t),
                                                       .threads = how->threads,
                                                       .no_optimise = how->no_optimise,
                                                       .passes_off = how->passes_off,
                                                       .resources = task->resources},
                              err);
    if (!task->worker)
        return false;
    task->service = service_new(task->worker);
    servers->names[t] = worker_task(task->worker);
    return choose_port(task, err);
}

static bool link_task(struct servers *servers, int t, struct error *err)
{
    struct server_task *task = &servers->tasks[t];
    for (int to = 0; to < servers->count; to++) {
        struct worker_link *link =
            t == to ? link_local_new(task->worker)
                    : link_rpc_new(servers->names[to], servers->tasks[to].address, NULL, err);
        if (!link)
            return false;
        task->links[task->links_count++] = link;
    }
    worker_set_peers(task->worker, task->links, task->links_count);
    return true;
}

static bool serve(struct servers *servers, int t, int threads, struct error *err)
{
    struct server_task *task = &servers->tasks[t];
    task->master = master_new(&(struct master_options){.links = task->links,
                                                       .links_count = task->links_count,
                                                       .home = t,
                                                       .device = worker_device(task->worker),
                                                       .threads = threads,
                                                       .resources = task->resources});
    task->master_service = master_service_new(task->master);
    task->workers = (struct rpc_service){service_methods, task->service, NULL};
    const struct rpc_server_options options = {.address = task->address,
                                               .message_bytes_max = LIMIT_MESSAGE_BYTES - 1,
                                               .more = &task->workers};
    task->server =
        rpc_server_start(&options, master_service_methods, task->master_service, err);
    return task->server;
}

bool servers_start(struct servers *servers, int count, const struct session_options *how,
                   struct error *err)
{
    bool ok = true;
    *servers = (struct servers){.count = count};
    for (int t = 0; ok && t < count; t++)
        ok = make_worker(servers, t, how, err);
    for (int t = 0; ok && t < count; t++)
        ok = link_task(servers, t, err);
    for (int t = 0; ok && t < count; t++)
        ok = serve(servers, t, how->threads, err);
    return ok;
}

void servers_stop(struct servers *servers)
{
    for (int t = 0; t < servers->count; t++)
        if (servers->tasks[t].master)
            master_stop(servers->tasks[t].master);
    for (int t = 0; t < servers->count; t++)
        rpc_server_stop(servers->tasks[t].server);
    for (int t = 0; t < servers->count; t++) {
        struct server_task *task = &servers->tasks[t];
        master_service_free(task->master_service);
        master_free(task->master);
        service_free(task->service);
    }
    for (int t = 0; t < servers->count; t++)
        for (int i = 0; i < servers->tasks[t].links_count; i++)
            link_free(servers->tasks[t].links[i]);
    for (int t = 0; t < servers->count; t++) {
        worker_free(servers->tasks[t].worker);
        resources_free(servers->tasks[t].resources);
    }
}
