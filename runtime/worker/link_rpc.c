/* link_rpc.c - a worker of another process, by TensorFlow's WorkerService over rpc.h. */

#include <stdlib.h>
#include <sys/random.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "runtime/worker/lender.h"
#include "runtime/worker/remote.h"
#include "runtime/worker/wire.h"

#define METHOD(name) "/tensorflow.WorkerService/" name

/* A call that waits for its answer; the request is given back. */
static bool ask(struct worker_link *link, const char *path, struct str *request,
                struct str *response, struct error *err)
{
    bool ok = rpc_client_call(((struct remote *)link)->client, path, request, response,
                              LIMIT_WORKER_CALL_MS, err);
    str_release(request);
    return ok;
}

/* The same, when the answer says nothing but that it went well. */
static bool tell(struct worker_link *link, const char *path, struct str *request,
                 struct error *err)
{
    struct str response = {0};
    bool ok = ask(link, path, request, &response, err);
    str_release(&response);
    return ok;
}

static bool remote_status(struct worker_link *link, struct device *devices, int devices_max,
                          int *count, struct error *err)
{
    struct str request = {0}, response = {0};
    bool exchanges = false;
    bool ok = ask(link, METHOD("GetStatus"), &request, &response, err) &&
              wire_read_status(response.data, response.size, devices, devices_max, count,
                               &exchanges, err);
    if (ok)
        remote_learn((struct remote *)link, exchanges);
    str_release(&response);
    return ok;
}

static bool remote_create_session(struct worker_link *link, const char *session, bool isolate,
                                  struct error *err)
{
    const struct wire_session in = {.session = session, .isolate = isolate};
    struct str request = {0};
    wire_write_create_session(&in, &request);
    return tell(link, METHOD("CreateWorkerSession"), &request, err);
}

static bool remote_delete_session(struct worker_link *link, const char *session,
                                  struct error *err)
{
    const struct wire_session in = {.session = session};
    struct str request = {0};
    wire_write_delete_session(&in, &request);
    return tell(link, METHOD("DeleteWorkerSession"), &request, err);
}

static bool remote_register_graph(struct worker_link *link, const char *session,
                                  const void *graph_def, size_t size, int64_t collectives,
                                  char handle[WORKER_HANDLE_BYTES], struct error *err)
{
    const struct wire_session in = {.session = session,
                                    .graph_def = graph_def,
                                    .graph_def_size = size,
                                    .collectives = collectives};
    struct str request = {0}, response = {0};
    wire_write_register_graph(&in, &request);
    bool ok = ask(link, METHOD("RegisterGraph"), &request, &response, err) &&
              wire_read_handle(response.data, response.size, handle, WORKER_HANDLE_BYTES, err);
    str_release(&response);
    return ok;
}

static bool remote_deregister_graph(struct worker_link *link, const char *session,
                                    const char *handle, struct error *err)
{
    const struct wire_session in = {.session = session, .graph = handle};
    struct str request = {0};
    wire_write_deregister_graph(&in, &request);
    return tell(link, METHOD("DeregisterGraph"), &request, err);
}

static bool remote_cleanup_all(struct worker_link *link, const char *const *containers,
                               int count, struct error *err)
{
    struct str request = {0};
    wire_write_cleanup_all(containers, count, &request);
    return tell(link, METHOD("CleanupAll"), &request, err);
}

/* --- calls whose answer takes as long as it takes: no thread waits for it --- */

static void ran(void *arg, const struct str *response, const struct error *err)
{
    struct worker_run *run = arg;
    struct error bad;
    const struct wire_ran out = {.keys = run->receive_keys,
                                 .received = run->received,
                                 .received_count = run->receives_count,
                                 .step_stats = run->step_stats,
                                 .waits = run->waits,
                                 .graph_def = run->graph_def,
                                 .ended = &run->ended};
    bool ok = !err && wire_read_ran(response->data, response->size, &out, &bad);
    if (err)
        remote_failed((struct remote *)run->link, err);
    run->done(run, ok ? NULL : err ? err : &bad);
}

static void remote_run_graph(struct worker_link *link, struct worker_run *run)
{
    const struct wire_run in = {
        .session = run->session,
        .graph = run->graph,
        .step_id = run->step_id,
        .send_keys = (const char **)run->send_keys,
        .sends = (struct tensor *)run->sends,
        .sends_count = run->sends_count,
        .receive_keys = (const char **)run->receive_keys,
        .receives_count = run->receives_count,
        .errors_in_body = true,
        .partial = run->partial,
        .last = run->last,
        .may_end = run->may_end,
        .trace = run->step_stats,
        .with_waits = run->waits,
        .with_graph = run->graph_def,
        .request_id = remote_request_id((struct remote *)link),
    };
    struct str request = {0};
    run->link = link;
    wire_write_run(&in, &request);
    remote_start((struct remote *)link, METHOD("RunGraph"), &request, ran, run);
    str_release(&request);
}

static void remote_abandon_run(struct worker_link *link, const struct worker_run *run)
{
    remote_cancel_started((struct remote *)link, run);
}

static void cleaned_up(void *arg, const struct str *response, const struct error *err)
{
    (void)arg;
    (void)response;
    (void)err; /* a task that cannot be reached has nothing to clean up */
}

static void remote_cleanup_graph(struct worker_link *link, int64_t step_id)
{
    struct str request = {0};
    wire_write_cleanup_graph(step_id, &request);
    remote_start((struct remote *)link, METHOD("CleanupGraph"), &request, cleaned_up, NULL);
    str_release(&request);
}

static void remote_free(struct worker_link *link)
{
    struct remote *remote = (struct remote *)link;
    lender_close(remote->lender);
    rpc_client_cancel(remote->client);
    /* Ends of calls over a socket, and on those before, may begin one on the last. */
    remote_lane_free(remote);
    for (int i = 0; i < remote->before_count; i++)
        rpc_client_free(remote->before[i]);
    rpc_client_free(remote->client);
    remote_lane_free(remote); /* one that was met meanwhile */
    free(remote->before);
    fabric_disconnect(remote->fabric);
    lender_unref(remote->lender);
    pthread_mutex_destroy(&remote->lock);
    free(remote);
}

static const struct worker_link_kind remote_kind = {
    .status = remote_status,
    .create_session = remote_create_session,
    .delete_session = remote_delete_session,
    .register_graph = remote_register_graph,
    .deregister_graph = remote_deregister_graph,
    .run_graph = remote_run_graph,
    .abandon_run = remote_abandon_run,
    .cleanup_graph = remote_cleanup_graph,
    .cleanup_all = remote_cleanup_all,
    .receive = remote_receive,
    .collectives = &link_rpc_collective_calls,
    .free = remote_free,
};

static struct rpc_client *connect_to(const char *address, const struct rpc_tls *tls,
                                     struct error *err)
{
    /* In the clear it may be a server of TensorFlow. */
    const struct rpc_client_options options = {.address = address,
                                               .message_bytes_max = LIMIT_MESSAGE_BYTES,
                                               .tls = tls,
                                               .quiet = !tls};
    return rpc_client_new(&options, err);
}

/* What is known of the one before is not so of this one. */
static struct fabric_peer *begin_anew_locked(struct remote *remote, struct rpc_client *client,
                                             int64_t epoch)
{
    struct fabric_peer *fabric = remote->fabric;
    remote->before = alloc_grow(remote->before, remote->before_count, &remote->before_capacity,
                                sizeof(struct rpc_client *));
    remote->before[remote->before_count++] = atomic_exchange(&remote->client, client);
    remote->epoch = epoch;
    remote->peer = PEER_UNKNOWN;
    remote->fabric = NULL;
    return fabric;
}

bool link_rpc_move(struct worker_link *link, const char *address, int64_t epoch,
                   struct error *err)
{
    struct remote *remote = (struct remote *)link;
    struct fabric_peer *fabric = NULL;
    if (link->kind != &remote_kind)
        return fail(err, INVALID, "%s is this very task", link->task);
    if (!remote->tls)
        return fail(err, DENIED, "tasks that talk in the clear stay where they are");
    struct rpc_client *client = connect_to(address, remote->tls, err), *before = client;
    if (!client)
        return false;
    pthread_mutex_lock(&remote->lock);
    int64_t known = remote->epoch;
    if (epoch > known) {
        before = remote->client;
        fabric = begin_anew_locked(remote, client, epoch);
    }
    pthread_mutex_unlock(&remote->lock);
    fabric_disconnect(fabric);
    if (epoch > known)
        remote_lane_leave(remote);
    rpc_client_cancel(before);
    if (before == client)
        rpc_client_free(client);
    return epoch >= known ||
           fail(err, PRECONDITION, "fenced: %s with epoch %lld has come, this is %lld's",
                link->task, (long long)known, (long long)epoch);
}

struct worker_link *link_rpc_new(const char *task, const char *address,
                                 const struct rpc_tls *tls, struct error *err)
{
    struct rpc_client *client = connect_to(address, tls, err);
    if (!client)
        return NULL;
    struct remote *link = alloc_bytes(sizeof(*link));
    link->base.kind = &remote_kind;
    snprintf(link->base.task, sizeof(link->base.task), "%s", task);
    atomic_init(&link->client, client);
    link->tls = tls;
    link->waiting_end = &link->waiting;
    pthread_mutex_init(&link->lock, NULL);
    link->lender = lender_new(remote_give_back, link);
    uint64_t begin = 0;
    ssize_t got = getrandom(&begin, sizeof(begin), 0);
    assert(got == (ssize_t)sizeof(begin));
    atomic_store(&link->request_id, begin);
    return &link->base;
}
