/*
 * session_workers_pb.c - what one task of a cluster was asked by TensorFlow's masters and by
 * other tasks, asked of a worker of ours.
 *
 * DESIGN: it has the recorded task's name and incarnation, so graphs and keys fit as they are.
 * A server stands for all other tasks: it answers RecvTensor with what they sent then.  Tensors
 * of steps whose part here was run by the task's own master, which is not recorded, are left
 * out.
 */

#include <pthread.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/limits.h"
#include "proto/message.h"
#include "proto/rpc.h"
#include "runtime/tensor_pb.h"
#include "runtime/worker/link.h"
#include "runtime/worker/service.h"
#include "runtime/worker/wire.h"
#include "runtime/worker/worker.h"
#include "tensorflow/worker.pb-c.h"
#include "tests/interop/cases/cases.h"
#include "tests/interop/sessions/sessions.h"

struct workers {
    const struct session_calls *recorded;
    char to[80], from[80]; /* ">ps:0" and "ps:0>" */
    struct session_calls asked;
    struct worker *worker;
    struct service *service;
    struct rpc_server *server, *others;
    struct rpc_client *client;
    struct worker_link *links[3];
    int links_count;
    bool is_master;       /* steps of its own, not recorded, change its state */
    struct graph_handle { /* ours may come in another order */
        char session[64], recorded[WORKER_HANDLE_BYTES], ours[WORKER_HANDLE_BYTES];
    } * handles;
    int handles_count, handles_capacity;
    pthread_mutex_t lock; /* guards: used */
    bool *used;           /* by recorded call: it was answered with it */
};

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), end_size = strlen(end);
    return size >= end_size && !strcmp(text + size - end_size, end);
}

static bool is(const Call *call, const char *method)
{
    return !strcmp(session_calls_method(call), method);
}

static Tensorflow__RecvTensorRequest *read_wish(const void *bytes, size_t size,
                                                struct arena *arena)
{
    struct error err;
    return message_unpack(&tensorflow__recv_tensor_request__descriptor, bytes, size, arena,
                          &err);
}

/* --- the other tasks --- */

static const Call *find_sent(struct workers *workers, const Tensorflow__RecvTensorRequest *wish)
{
    const Call *found = NULL;
    pthread_mutex_lock(&workers->lock);
    for (int i = 0; !found && i < workers->recorded->count; i++) {
        const Call *call = workers->recorded->calls[i];
        if (workers->used[i] || !is(call, "RecvTensor") ||
            strncmp(call->peer, workers->from, strlen(workers->from)) != 0)
            continue;
        struct arena *arena = arena_new();
        const Tensorflow__RecvTensorRequest *was =
            read_wish(call->request.data, call->request.len, arena);
        if (was && was->step_id == wish->step_id &&
            !strcmp(was->rendezvous_key, wish->rendezvous_key)) {
            workers->used[i] = true;
            found = call;
        }
        arena_free(arena);
    }
    pthread_mutex_unlock(&workers->lock);
    return found;
}

static void give_sent(void *self, struct rpc_call *call)
{
    size_t size;
    struct error err;
    const void *bytes = rpc_call_bytes(call, &size);
    struct arena *arena = arena_new();
    const Tensorflow__RecvTensorRequest *wish = read_wish(bytes, size, arena);
    const Call *sent = wish ? find_sent(self, wish) : NULL;
    if (sent && !sent->status) {
        rpc_call_reply(call, sent->response.data, sent->response.len);
    } else {
        if (sent)
            (void)fail(&err, (enum error_code)sent->status, "%s", sent->message);
        else
            (void)fail(&err, INTERNAL, "nobody was asked for %s",
                       wish ? wish->rendezvous_key : "?");
        rpc_call_fail(call, &err);
    }
    arena_free(arena);
}

static const struct rpc_method other_methods[] = {
    {"/tensorflow.WorkerService/RecvTensor", give_sent}, {0}};

/* --- what is asked --- */

static struct rpc_client *client_of(void *self, const Call *call)
{
    (void)call;
    return ((struct workers *)self)->client;
}

static Tensorflow__RunGraphRequest *read_run(const Call *call, struct arena *arena)
{
    struct error err;
    return message_unpack(&tensorflow__run_graph_request__descriptor, call->request.data,
                          call->request.len, arena, &err);
}

static bool request(void *self, const Call *call, struct str *out, struct error *err)
{
    const struct workers *workers = self;
    (void)err;
    if (!is(call, "RunGraph")) {
        str_add_bytes(out, call->request.data, call->request.len);
        return true;
    }
    struct arena *arena = arena_new();
    Tensorflow__RunGraphRequest *run = read_run(call, arena);
    bool found = false;
    for (int i = 0; run && !found && i < workers->handles_count; i++) {
        struct graph_handle *handle = &workers->handles[i];
        found = !strcmp(handle->session, run->session_handle) &&
                !strcmp(handle->recorded, run->graph_handle);
        if (found)
            run->graph_handle = handle->ours;
    }
    if (run)
        message_pack(&run->base, out);
    arena_free(arena);
    return run || fail(err, DATA_LOSS, "it cannot be read");
}

/* Whether another step ran here while this tensor was asked for. */
static bool is_crossed(const struct workers *workers, const Call *call)
{
    struct arena *arena = arena_new();
    const Tensorflow__RecvTensorRequest *wish =
        read_wish(call->request.data, call->request.len, arena);
    bool crossed = !wish;
    for (int i = 0; !crossed && i < workers->asked.count; i++) {
        const Call *other = workers->asked.calls[i];
        if (!is(other, "RunGraph") || other->time > call->time + call->seconds ||
            other->time + other->seconds < call->time)
            continue;
        const Tensorflow__RunGraphRequest *run = read_run(other, arena);
        crossed = !run || run->step_id != wish->step_id;
    }
    arena_free(arena);
    return crossed;
}

static void learn_handle(struct workers *workers, const Call *call, const char *recorded,
                         const char *ours, struct arena *arena)
{
    struct error err;
    const Tensorflow__RegisterGraphRequest *asked =
        message_unpack(&tensorflow__register_graph_request__descriptor, call->request.data,
                       call->request.len, arena, &err);
    workers->handles = alloc_grow(workers->handles, workers->handles_count,
                                  &workers->handles_capacity, sizeof(*workers->handles));
    struct graph_handle *handle = &workers->handles[workers->handles_count++];
    snprintf(handle->session, sizeof(handle->session), "%s",
             asked ? asked->session_handle : "");
    snprintf(handle->recorded, sizeof(handle->recorded), "%s", recorded);
    snprintf(handle->ours, sizeof(handle->ours), "%s", ours);
}

static bool compare_tensors(const Tensorflow__RecvTensorResponse *got,
                            const Tensorflow__RecvTensorResponse *want, bool values,
                            struct error *err)
{
    const Expected how = {.relative = 1e-3, .absolute = 1e-4, .shape_only = !values};
    struct tensor a = {0}, b = {0};
    if (got->is_dead != want->is_dead)
        return fail(err, DATA_LOSS, "is %s", got->is_dead ? "dead" : "not dead");
    bool ok = !want->tensor ||
              (tensor_unpack(&b, want->tensor, err) && tensor_unpack(&a, got->tensor, err) &&
               case_compare(&a, &b, &how, err));
    tensor_release(&a);
    tensor_release(&b);
    return ok;
}

static bool compare_answers(struct workers *workers, const Call *call,
                            const struct str *response, struct arena *arena, struct error *err)
{
    const ProtobufCMessageDescriptor *of =
        is(call, "RecvTensor")      ? &tensorflow__recv_tensor_response__descriptor
        : is(call, "RunGraph")      ? &tensorflow__run_graph_response__descriptor
        : is(call, "RegisterGraph") ? &tensorflow__register_graph_response__descriptor
                                    : NULL;
    if (!of)
        return true;
    const void *want = message_unpack(of, call->response.data, call->response.len, arena, err);
    const void *got =
        want ? message_unpack(of, response->data, response->size, arena, err) : NULL;
    if (!got)
        return false;
    if (is(call, "RecvTensor"))
        return compare_tensors(got, want, !workers->is_master && !is_crossed(workers, call),
                               err);
    if (is(call, "RegisterGraph")) {
        const Tensorflow__RegisterGraphResponse *ours = got, *recorded = want;
        learn_handle(workers, call, recorded->graph_handle, ours->graph_handle, arena);
        return true;
    }
    const Tensorflow__RunGraphResponse *ran = got, *was = want;
    return ran->status_code == was->status_code ||
           fail(err, DATA_LOSS, "status %d (%s), not %d (%s)", ran->status_code,
                ran->status_error_message, was->status_code, was->status_error_message);
}

static bool compare(void *self, const Call *call, const struct str *response,
                    const struct error *status, bool concurrent, struct error *err)
{
    (void)concurrent;
    int code = status ? (int)status->code : 0;
    if (call->status == CALL_CANCELLED)
        return true; /* whenever it was */
    if (code != call->status)
        return fail(err, DATA_LOSS, "%s (%s), not %s (%s)",
                    error_code_name((enum error_code)code), status ? status->text : "",
                    error_code_name((enum error_code)call->status), call->message);
    if (status)
        return true;
    struct arena *arena = arena_new();
    bool ok = compare_answers(self, call, response, arena, err);
    arena_free(arena);
    return ok;
}

/* --- all of it --- */

/* Of steps that a recorded RunGraph begins here. */
static bool is_run_here(const struct workers *workers, int64_t step)
{
    bool found = false;
    for (int i = 0; !found && i < workers->recorded->count; i++) {
        const Call *call = workers->recorded->calls[i];
        if (!is(call, "RunGraph") || !ends_with(call->peer, workers->to))
            continue;
        struct arena *arena = arena_new();
        const Tensorflow__RunGraphRequest *run = read_run(call, arena);
        found = run && run->step_id == step;
        arena_free(arena);
    }
    return found;
}

static bool is_asked(const struct workers *workers, const Call *call)
{
    if (!ends_with(call->peer, workers->to))
        return false;
    if (!is(call, "RecvTensor"))
        return true;
    struct arena *arena = arena_new();
    const Tensorflow__RecvTensorRequest *wish =
        read_wish(call->request.data, call->request.len, arena);
    bool asked = wish && is_run_here(workers, wish->step_id);
    arena_free(arena);
    return asked;
}

/* What the task told then. */
static uint64_t incarnation_of(const struct workers *workers)
{
    struct device device;
    struct error err;
    int count;
    bool ours;
    for (int i = 0; i < workers->asked.count; i++) {
        const Call *call = workers->asked.calls[i];
        if (is(call, "GetStatus") && wire_read_status(call->response.data, call->response.len,
                                                      &device, 1, &count, &ours, &err))
            return device.incarnation;
    }
    return 0;
}

static bool start(struct workers *workers, const char *job, int task, struct error *err)
{
    static const char *const tasks[] = {"ps:0", "worker:0", "worker:1"};
    struct rpc_server_options options = {.address = "127.0.0.1:0",
                                         .message_bytes_max = LIMIT_MESSAGE_BYTES - 1};
    workers->worker = worker_new(
        &(struct worker_options){
            .job = job, .task = task, .threads = 1, .incarnation = incarnation_of(workers)},
        err);
    workers->others = rpc_server_start(&options, other_methods, workers, err);
    if (!workers->worker || !workers->others)
        return false;
    for (int i = 0; i < ARRAY_LEN(tasks); i++) {
        char name[96];
        const char *colon = strchr(tasks[i], ':');
        snprintf(name, sizeof(name), "/job:%.*s/replica:0/task:%s", (int)(colon - tasks[i]),
                 tasks[i], colon + 1);
        if (!strcmp(name, worker_task(workers->worker)))
            continue;
        workers->links[workers->links_count] =
            link_rpc_new(name, rpc_server_address(workers->others), NULL, err);
        if (!workers->links[workers->links_count++])
            return false;
    }
    worker_set_peers(workers->worker, workers->links, workers->links_count);
    workers->service = service_new(workers->worker);
    workers->server = rpc_server_start(&options, service_methods, workers->service, err);
    workers->client =
        workers->server
            ? rpc_client_new(
                  &(struct rpc_client_options){.address = rpc_server_address(workers->server),
                                               .message_bytes_max = LIMIT_MESSAGE_BYTES},
                  err)
            : NULL;
    return workers->client;
}

bool session_worker(const struct session_calls *calls, const char *job, int task,
                    struct session_totals *totals, struct error *err)
{
    struct workers workers = {.recorded = calls, .lock = PTHREAD_MUTEX_INITIALIZER};
    const struct session_player player = {&workers, client_of, request, compare};
    snprintf(workers.to, sizeof(workers.to), ">%s:%d", job, task);
    snprintf(workers.from, sizeof(workers.from), "%s:%d>", job, task);
    workers.used = alloc_array((size_t)calls->count, sizeof(bool));
    workers.asked.calls = alloc_array((size_t)calls->count, sizeof(Call *));
    for (int i = 0; i < calls->count; i++) {
        if (is_asked(&workers, calls->calls[i]))
            workers.asked.calls[workers.asked.count++] = calls->calls[i];
        else if (ends_with(calls->calls[i]->peer, workers.to))
            totals->left_out++;
        workers.is_master |=
            is(calls->calls[i], "CreateWorkerSession") &&
            !strncmp(calls->calls[i]->peer, workers.from, strlen(workers.from));
    }
    bool ok =
        start(&workers, job, task, err) && session_play(&player, &workers.asked, totals, err);
    rpc_client_free(workers.client);
    rpc_server_stop(workers.server);
    service_free(workers.service);
    for (int i = 0; i < workers.links_count; i++)
        link_free(workers.links[i]);
    rpc_server_stop(workers.others);
    worker_free(workers.worker);
    free(workers.used);
    free(workers.handles);
    free(workers.asked.calls);
    return ok;
}
