/* link_local.c - a worker of the same process. */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/worker/worker.h"

struct local {
    struct worker_link base; /* first */
    struct worker *worker;
};

static struct worker *of(struct worker_link *link)
{
    return ((struct local *)link)->worker;
}

static bool local_status(struct worker_link *link, struct device *devices, int devices_max,
                         int *count, struct error *err)
{
    if (devices_max < 1)
        return fail(err, EXHAUSTED, "there is no room for the device of %s", link->task);
    devices[0] = *worker_device(of(link));
    *count = 1;
    return true;
}

static bool local_create_session(struct worker_link *link, const char *session, bool isolate,
                                 struct error *err)
{
    return worker_create_session(of(link), session, isolate, err);
}

static bool local_delete_session(struct worker_link *link, const char *session,
                                 struct error *err)
{
    return worker_delete_session(of(link), session, err);
}

static bool local_register_graph(struct worker_link *link, const char *session,
                                 const void *graph_def, size_t size,
                                 char handle[WORKER_HANDLE_BYTES], struct error *err)
{
    return worker_register_graph(of(link), session, graph_def, size, handle, err);
}

static bool local_deregister_graph(struct worker_link *link, const char *session,
                                   const char *handle, struct error *err)
{
    return worker_deregister_graph(of(link), session, handle, err);
}

static void local_run_graph(struct worker_link *link, struct worker_run *run)
{
    worker_run_graph(of(link), run);
}

static void local_run_graph_here(struct worker_link *link, struct worker_run *run)
{
    worker_run_graph_here(of(link), run);
}

static void local_cleanup_graph(struct worker_link *link, int64_t step_id)
{
    worker_cleanup_graph(of(link), step_id);
}

static bool local_cleanup_all(struct worker_link *link, const char *const *containers,
                              int count, struct error *err)
{
    (void)err;
    worker_cleanup_all(of(link), containers, count);
    return true;
}

static void local_receive(struct worker_link *link, int64_t step_id, const char *key,
                          rendezvous_receiver *receiver, void *arg)
{
    worker_receive(of(link), step_id, key, receiver, arg);
}

static bool local_send(struct worker_link *link, int64_t step_id, const char *key,
                       const struct tensor *value, struct error *err)
{
    return worker_send(of(link), step_id, key, value, err);
}

static void local_free(struct worker_link *link)
{
    free(link);
}

static const struct worker_link_kind local_kind = {
    .status = local_status,
    .create_session = local_create_session,
    .delete_session = local_delete_session,
    .register_graph = local_register_graph,
    .deregister_graph = local_deregister_graph,
    .run_graph = local_run_graph,
    .run_graph_here = local_run_graph_here,
    .cleanup_graph = local_cleanup_graph,
    .cleanup_all = local_cleanup_all,
    .receive = local_receive,
    .send = local_send,
    .free = local_free,
};

struct worker_link *link_local_new(struct worker *worker)
{
    struct local *link = alloc_bytes(sizeof(*link));
    link->base.kind = &local_kind;
    snprintf(link->base.task, sizeof(link->base.task), "%s", worker_task(worker));
    link->worker = worker;
    return &link->base;
}
