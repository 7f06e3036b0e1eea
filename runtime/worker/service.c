/* service.c - requests to a worker: read, done, answered. */

#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "runtime/waits.h"
#include "runtime/worker/crew.h"
#include "runtime/worker/fabric.h"
#include "runtime/worker/lent.h"
#include "runtime/worker/outgoing.h"
#include "runtime/worker/seen.h"
#include "runtime/worker/service.h"
#include "runtime/worker/service_internal.h"
#include "runtime/worker/wire.h"
#include "runtime/worker/worker.h"

enum { REQUESTS_KEPT = 100000 }; /* TensorFlow's number */

/*
 * A transport takes memory by megabytes for what it reads and gives it back at once; the system
 * is to get it only when there is much of it, as it takes longer to clear it again than to
 * read. Setting one of the two ends malloc's own guessing at the other.
 */
static void keep_freed_memory(void)
{
    enum { LARGE_BYTES = 4 << 20, KEPT_BYTES = 32 << 20 };
    mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
    mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
}

struct service *service_new(struct worker *worker)
{
    keep_freed_memory();
    struct service *service = alloc_bytes(sizeof(*service));
    service->worker = worker;
    service->crew = crew_new(LIMIT_WORKER_THREADS);
    service->seen = seen_new(REQUESTS_KEPT);
    pthread_mutex_init(&service->lock, NULL);
    return service;
}

void service_free(struct service *service)
{
    if (!service)
        return;
    rpc_server_stop(service->socket);
    crew_free(service->crew);
    seen_free(service->seen);
    pthread_mutex_destroy(&service->lock);
    free(service);
}

struct worker *service_worker(const struct service *service)
{
    return service->worker;
}

struct arena *service_arena(const struct rpc_call *call)
{
    size_t size;
    (void)rpc_call_bytes(call, &size);
    return arena_new_limited(size * LIMIT_MESSAGE_EXPANSION + LIMIT_MESSAGE_EXPANSION_BASE);
}

void service_answer(struct rpc_call *call, bool ok, const struct error *err)
{
    if (ok)
        rpc_call_reply(call, "", 0);
    else
        rpc_call_fail(call, err);
}

bool service_check_first(struct service *service, const char *method, int64_t request_id,
                         struct error *err)
{
    pthread_mutex_lock(&service->lock);
    bool first = seen_first(service->seen, (uint64_t)request_id);
    pthread_mutex_unlock(&service->lock);
    return first ||
           fail(err, ABORTED, "The same %s request was received twice. request_id: %" PRId64,
                method, request_id);
}

/* --- sessions and graphs --- */

static void get_status(void *self, struct rpc_call *call)
{
    const struct service *service = self;
    struct str out = {0};
    wire_write_status(worker_device(service->worker), 1, &out);
    rpc_call_reply(call, out.data, out.size);
    str_release(&out);
}

static void create_session(void *self, struct rpc_call *call)
{
    const struct service *service = self;
    size_t size;
    const void *bytes = rpc_call_bytes(call, &size);
    struct arena *arena = service_arena(call);
    struct wire_session in;
    struct error err;
    bool ok = wire_read_create_session(bytes, size, arena, &in, &err) &&
              worker_create_session(service->worker, in.session, in.isolate, &err);
    service_answer(call, ok, &err);
    arena_free(arena);
}

static void deregister_graph(void *self, struct rpc_call *call)
{
    const struct service *service = self;
    size_t size;
    const void *bytes = rpc_call_bytes(call, &size);
    struct arena *arena = service_arena(call);
    struct wire_session in;
    struct error err;
    bool ok = wire_read_deregister_graph(bytes, size, arena, &in, &err) &&
              worker_deregister_graph(service->worker, in.session, in.graph, &err);
    service_answer(call, ok, &err);
    arena_free(arena);
}

/* --- on a thread of the crew --- */

struct work {
    struct service *service;
    struct rpc_call *call;
    void (*does)(struct service *service, struct rpc_call *call);
};

static void work(void *arg)
{
    struct work *todo = arg;
    todo->does(todo->service, todo->call);
    free(todo);
}

/* By the transport's thread, which has joined the crew. */
static void work_here(void *arg)
{
    struct crew *crew = ((struct work *)arg)->service->crew;
    work(arg);
    crew_leave(crew);
}

static struct work *new_work(struct service *service, struct rpc_call *call,
                             void (*does)(struct service *service, struct rpc_call *call))
{
    struct work *todo = alloc_bytes(sizeof(*todo));
    *todo = (struct work){service, call, does};
    return todo;
}

static void hand_over(struct service *service, struct rpc_call *call,
                      void (*does)(struct service *service, struct rpc_call *call))
{
    struct work *todo = new_work(service, call, does);
    struct error err;
    if (crew_do(service->crew, work, todo, &err))
        return;
    free(todo);
    rpc_call_fail(call, &err);
}

static void do_register_graph(struct service *service, struct rpc_call *call)
{
    size_t size;
    const void *bytes = rpc_call_bytes(call, &size);
    struct arena *arena = service_arena(call);
    char handle[WORKER_HANDLE_BYTES];
    struct wire_session in;
    struct str out = {0};
    struct error err;
    if (wire_read_register_graph(bytes, size, arena, &in, &err) &&
        worker_register_graph(service->worker, in.session, in.graph_def, in.graph_def_size,
                              handle, &err)) {
        wire_write_handle(handle, &out);
        rpc_call_reply(call, out.data, out.size);
    } else {
        rpc_call_fail(call, &err);
    }
    str_release(&out);
    arena_free(arena);
}

static void register_graph(void *self, struct rpc_call *call)
{
    hand_over(self, call, do_register_graph);
}

static void do_delete_session(struct service *service, struct rpc_call *call)
{
    size_t size;
    const void *bytes = rpc_call_bytes(call, &size);
    struct arena *arena = service_arena(call);
    struct wire_session in;
    struct error err;
    bool ok = wire_read_delete_session(bytes, size, arena, &in, &err) &&
              worker_delete_session(service->worker, in.session, &err);
    service_answer(call, ok, &err);
    arena_free(arena);
}

static void delete_session(void *self, struct rpc_call *call)
{
    hand_over(self, call, do_delete_session);
}

static void do_cleanup_all(struct service *service, struct rpc_call *call)
{
    size_t size;
    const void *bytes = rpc_call_bytes(call, &size);
    struct arena *arena = service_arena(call);
    const char *const *containers;
    int count;
    struct error err;
    bool ok = wire_read_cleanup_all(bytes, size, arena, &containers, &count, &err);
    if (ok)
        worker_cleanup_all(service->worker, containers, count);
    service_answer(call, ok, &err);
    arena_free(arena);
}

static void cleanup_all(void *self, struct rpc_call *call)
{
    hand_over(self, call, do_cleanup_all);
}

/* --- runs --- */

struct served_run {
    struct worker_run run;
    struct wire_run in;
    struct arena *arena;
    struct rpc_call *call;
    struct str step_stats, graph_def;
    struct waits waits;
};

static void ran(struct worker_run *run, const struct error *err)
{
    struct served_run *served = run->arg;
    struct str out = {0};
    if (err && !served->in.errors_in_body) {
        rpc_call_fail(served->call, err);
    } else {
        const struct wire_ran in = {.keys = run->receive_keys,
                                    .received = run->received,
                                    .received_count = run->receives_count,
                                    .step_stats = run->step_stats,
                                    .waits = run->waits,
                                    .graph_def = run->graph_def,
                                    .ended = &run->ended};
        wire_write_ran(&in, err, &out);
        rpc_call_reply(served->call, out.data, out.size);
    }
    for (int i = 0; !err && i < run->receives_count; i++)
        tensor_release(&run->received[i]);
    str_release(&out);
    str_release(&served->step_stats);
    str_release(&served->graph_def);
    waits_release(&served->waits);
    wire_release_run(&served->in);
    free(run->received);
    arena_free(served->arena);
    free(served);
}

/* Whose master has gone: nobody will end the step any more, so it must not go on for ever. */
struct left_step {
    struct worker *worker;
    int64_t id;
};

static void end_left_step(void *arg)
{
    const struct left_step *left = arg;
    worker_cleanup_graph(left->worker, left->id);
}

static void watch_master(struct service *service, struct rpc_call *call, int64_t step_id)
{
    struct left_step *left = alloc_bytes(sizeof(*left));
    *left = (struct left_step){service->worker, step_id};
    rpc_call_watch(call, end_left_step, left);
}

/* `here`: the part is run by this thread, which may take as long as it takes. */
static void begin_run(struct service *service, struct rpc_call *call, bool here)
{
    size_t size;
    const void *bytes = rpc_call_bytes(call, &size);
    struct served_run *served = alloc_bytes(sizeof(*served));
    struct error err;
    served->arena = service_arena(call);
    served->call = call;
    bool reads = wire_read_run(bytes, size, served->arena, &served->in, &err);
    if (!reads || !service_check_first(service, "RunGraph", served->in.request_id, &err)) {
        if (reads)
            wire_release_run(&served->in);
        arena_free(served->arena);
        free(served);
        rpc_call_fail(call, &err);
        return;
    }
    watch_master(service, call, served->in.step_id);
    served->run = (struct worker_run){
        .session = served->in.session,
        .graph = served->in.graph,
        .step_id = served->in.step_id,
        .send_keys = served->in.send_keys,
        .sends = served->in.sends,
        .sends_count = served->in.sends_count,
        .receive_keys = served->in.receive_keys,
        .received = alloc_array((size_t)served->in.receives_count, sizeof(struct tensor)),
        .receives_count = served->in.receives_count,
        .step_stats = served->in.trace ? &served->step_stats : NULL,
        .waits = served->in.with_waits ? &served->waits : NULL,
        .graph_def = served->in.with_graph ? &served->graph_def : NULL,
        .partial = served->in.partial,
        .last = served->in.last,
        .may_end = served->in.may_end,
        .done = ran,
        .arg = served,
    };
    if (here && !served->run.partial)
        worker_run_graph_here(service->worker, &served->run);
    else
        worker_run_graph(service->worker, &served->run);
}

static void do_run_graph(struct service *service, struct rpc_call *call)
{
    begin_run(service, call, false);
}

static void do_run_graph_here(struct service *service, struct rpc_call *call)
{
    begin_run(service, call, true);
}

/* If the transport's thread cannot run it itself a small one is begun at once: that takes less
 * time than to wake a thread for it. */
static void run_graph(void *self, struct rpc_call *call)
{
    struct service *service = self;
    struct work *todo = new_work(service, call, do_run_graph_here);
    size_t size;
    (void)rpc_call_bytes(call, &size);
    crew_join(service->crew);
    if (rpc_call_later(call, work_here, todo))
        return;
    crew_leave(service->crew);
    free(todo);
    if (size < WIRE_SMALL_BYTES)
        do_run_graph(service, call);
    else
        hand_over(service, call, do_run_graph);
}

static void cleanup_graph(void *self, struct rpc_call *call)
{
    const struct service *service = self;
    size_t size;
    const void *bytes = rpc_call_bytes(call, &size);
    int64_t step_id;
    struct error err;
    bool ok = wire_read_cleanup_graph(bytes, size, &step_id, &err);
    if (ok)
        worker_cleanup_graph(service->worker, step_id);
    service_answer(call, ok, &err);
}

/* --- tensors --- */

static void received(void *arg, const struct tensor *value, bool dead, const struct error *err)
{
    if (err)
        rpc_call_fail(arg, err);
    else
        outgoing_reply(arg, value, dead, false);
}

/* The same for a task of ours, which waits for it. */
struct awaited {
    struct service *service;
    struct rpc_call *call;
    struct loan loan;
    bool near, fabric;
};

static void received_in_chunks(void *arg, const struct tensor *value, bool dead,
                               const struct error *err)
{
    struct awaited *awaited = arg;
    if (err)
        rpc_call_fail(awaited->call, err);
    else if (awaited->near || (awaited->fabric && fabric_is_open()))
        outgoing_lend(awaited->call, value, dead, awaited->service->worker, &awaited->loan,
                      !awaited->near);
    else
        outgoing_reply(awaited->call, value, dead, true);
    free(awaited);
}

static void answer_receive(struct service *service, struct rpc_call *call, bool ours)
{
    size_t size;
    const void *bytes = rpc_call_bytes(call, &size);
    struct arena *arena = service_arena(call);
    struct wire_receive in;
    struct error err;
    if (!wire_read_receive(bytes, size, arena, &in, &err) ||
        !service_check_first(service, "RecvTensor", in.request_id, &err)) {
        rpc_call_fail(call, &err);
    } else if (ours) {
        struct awaited *awaited = alloc_bytes(sizeof(*awaited));
        *awaited =
            (struct awaited){service, call, {in.step_id, in.request_id}, in.near, in.fabric};
        worker_receive(service->worker, in.step_id, in.key, received_in_chunks, awaited);
    } else {
        worker_receive(service->worker, in.step_id, in.key, received, call);
    }
    arena_free(arena);
}

static void receive_tensor(void *self, struct rpc_call *call)
{
    answer_receive(self, call, false);
}

static void receive_chunks(void *self, struct rpc_call *call)
{
    answer_receive(self, call, true);
}

/* --- what needs nothing done: there is no log to switch on, and no receipt is waited for ---
 */

static void accept(void *self, struct rpc_call *call)
{
    (void)self;
    rpc_call_reply(call, "", 0);
}

/* As TensorFlow's workers answer it. */
static void trace(void *self, struct rpc_call *call)
{
    struct error err;
    (void)self;
    (void)fail(&err, UNIMPLEMENTED, "Tracing");
    rpc_call_fail(call, &err);
}

#define METHOD(name) "/tensorflow.WorkerService/" name

const struct rpc_method service_methods[] = {
    {METHOD("GetStatus"), get_status},
    {METHOD("CreateWorkerSession"), create_session},
    {METHOD("DeleteWorkerSession"), delete_session},
    {METHOD("RegisterGraph"), register_graph},
    {METHOD("DeregisterGraph"), deregister_graph},
    {METHOD("RunGraph"), run_graph},
    {METHOD("CleanupGraph"), cleanup_graph},
    {METHOD("CleanupAll"), cleanup_all},
    {METHOD("RecvTensor"), receive_tensor},
    {METHOD("CompleteGroup"), service_complete_group},
    {METHOD("CompleteInstance"), service_complete_instance},
    {METHOD("GetStepSequence"), service_get_step_sequence},
    {METHOD("RecvBuf"), service_receive_buffer},
    {METHOD("Logging"), accept},
    {METHOD("MarkRecvFinished"), accept},
    {METHOD("Tracing"), trace},
    {SERVICE_CHUNKS, receive_chunks},
    {SERVICE_MEET, service_meet},
    {SERVICE_FABRIC, service_tell_fabric},
    {SERVICE_FINISHED, service_finished},
    {SERVICE_MOVED, service_moved},
    {0},
};
