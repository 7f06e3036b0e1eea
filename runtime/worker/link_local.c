/* link_local.c - a worker of the same process. */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/worker/groups.h"
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
                                 const void *graph_def, size_t size, int64_t collectives,
                                 char handle[WORKER_HANDLE_BYTES], struct error *err)
{
    (void)collectives;
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

/* --- collectives --- */

static bool local_next_step(struct worker_link *link, int64_t graph_key, int64_t *step_id,
                            struct error *err)
{
    return worker_collective_next_step(of(link), graph_key, step_id, err);
}

static void local_retire_step(struct worker_link *link, int64_t graph_key, int64_t step_id)
{
    worker_collective_retire_step(of(link), graph_key, step_id);
}

static bool local_step_sequence(struct worker_link *link, int64_t graph_key, int64_t *step_id,
                                struct error *err)
{
    return worker_collective_sequence(of(link), graph_key, step_id, err);
}

static void group_told(void *arg, const struct collective_group *group, const struct error *err)
{
    struct link_asked *asked = arg;
    if (err)
        asked->failed(asked, err);
    else
        asked->group(asked, group);
}

static void local_complete_group(struct worker_link *link, const struct collective_wish *wish,
                                 const struct device *device, struct link_asked *asked)
{
    groups_join(worker_collective_groups(of(link)), wish, device, group_told, asked);
}

static void source_told(void *arg, int source, const struct error *err)
{
    struct link_asked *asked = arg;
    if (err)
        asked->failed(asked, err);
    else
        asked->source(asked, source);
}

static void local_complete_instance(struct worker_link *link,
                                    const struct collective_wish *wish,
                                    const struct device *device, struct link_asked *asked)
{
    groups_join_instance(worker_collective_groups(of(link)), wish, device->name, source_told,
                         asked);
}

static void took(void *arg, const struct tensor *value, const struct error *err)
{
    struct link_asked *asked = arg;
    struct error bad;
    if (!err && tensor_bytes(value) != asked->size) {
        (void)fail(&bad, INTERNAL, "a buffer has %zu bytes, not %zu", tensor_bytes(value),
                   asked->size);
        err = &bad;
    }
    if (err) {
        asked->failed(asked, err);
        return;
    }
    if (asked->size)
        memcpy(asked->into, value->data, asked->size);
    asked->bytes(asked);
}

static void local_receive_buffer(struct worker_link *link, const char *key,
                                 const struct device *from, const struct device *to,
                                 struct link_asked *asked)
{
    (void)to;
    worker_collective_take(of(link), asked->step_id, key, from->name, from->incarnation, took,
                           asked);
}

static void local_abandon(struct worker_link *link, struct link_asked *asked)
{
    struct error err;
    if (!groups_withdraw(worker_collective_groups(of(link)), asked) &&
        !worker_collective_withdraw(of(link), asked->step_id, asked))
        return;
    (void)fail(&err, CANCELLED, "it is wanted no more");
    asked->failed(asked, &err);
}

static const struct worker_link_collectives local_collectives = {
    .next_step = local_next_step,
    .retire_step = local_retire_step,
    .step_sequence = local_step_sequence,
    .complete_group = local_complete_group,
    .complete_instance = local_complete_instance,
    .receive_buffer = local_receive_buffer,
    .abandon = local_abandon,
};

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
    .collectives = &local_collectives,
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
