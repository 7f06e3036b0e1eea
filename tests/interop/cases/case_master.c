/*
 * case_master.c - cases by TensorFlow's MasterService: servers of this process on loopback
 * ports, and a client that sends what is recorded as it is.
 */

#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/limits.h"
#include "base/str.h"
#include "proto/message.h"
#include "proto/rpc.h"
#include "runtime/device.h"
#include "runtime/master/master.h"
#include "runtime/master/master_service.h"
#include "runtime/resource.h"
#include "runtime/tensor_pb.h"
#include "runtime/worker/link.h"
#include "runtime/worker/service.h"
#include "runtime/worker/worker.h"
#include "tensorflow/master.pb-c.h"
#include "tests/interop/cases/cases.h"

#define CALL_MS 60000
#define TASKS_MAX 8

/* --- servers --- */

/* A task: what serves it, and how it reaches the others. */
struct task {
    struct resources *resources;
    struct worker *worker;
    struct service *service;
    struct rpc_server *server;
    struct worker_link *links[TASKS_MAX];
    char address[40];
};

struct case_master {
    struct task tasks[TASKS_MAX];
    const char *names[TASKS_MAX];
    int tasks_count;
    struct master *master;
    struct master_service *service;
    struct rpc_service workers;
    struct rpc_client *client;
    uint64_t seed;
};

/* Task 0 is the client's: a worker.  Of several, 1 is a parameter server. */
static const char *job_of(int task)
{
    return task == 1 ? "ps" : "worker";
}

static int index_of(int task)
{
    return task < 2 ? 0 : task - 1;
}

/* The first tells its port when it runs, so a task's own links come after all servers. */
static bool start_task(struct case_master *m, int t, const struct session_options *how,
                       struct error *err)
{
    struct task *task = &m->tasks[t];
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
    m->names[t] = worker_task(task->worker);
    if (t == 0)
        return true;
    const struct rpc_server_options options = {.address = "127.0.0.1:0",
                                               .message_bytes_max = LIMIT_MESSAGE_BYTES - 1};
    task->server = rpc_server_start(&options, service_methods, task->service, err);
    if (task->server)
        snprintf(task->address, sizeof(task->address), "%s", rpc_server_address(task->server));
    return task->server;
}

static bool start_master(struct case_master *m, int threads, struct error *err)
{
    struct task *task = &m->tasks[0];
    m->master = master_new(&(struct master_options){.links = task->links,
                                                    .links_count = m->tasks_count,
                                                    .home = 0,
                                                    .device = worker_device(task->worker),
                                                    .threads = threads,
                                                    .resources = task->resources});
    m->service = master_service_new(m->master);
    m->workers = (struct rpc_service){service_methods, task->service, NULL};
    const struct rpc_server_options options = {.address = task->address,
                                               .message_bytes_max = LIMIT_MESSAGE_BYTES - 1,
                                               .more = &m->workers};
    task->server = rpc_server_start(&options, master_service_methods, m->service, err);
    if (!task->server)
        return false;
    snprintf(task->address, sizeof(task->address), "%s", rpc_server_address(task->server));
    m->client =
        rpc_client_new(&(struct rpc_client_options){.address = task->address,
                                                    .message_bytes_max = LIMIT_MESSAGE_BYTES},
                       err);
    return m->client;
}

static bool link_tasks(struct case_master *m, struct error *err)
{
    for (int t = 0; t < m->tasks_count; t++) {
        for (int to = 0; to < m->tasks_count; to++) {
            struct worker_link *link =
                t == to ? link_local_new(m->tasks[t].worker)
                        : link_rpc_new(m->names[to], m->tasks[to].address, NULL, err);
            if (!link)
                return false;
            m->tasks[t].links[to] = link;
        }
        worker_set_peers(m->tasks[t].worker, m->tasks[t].links, m->tasks_count);
    }
    return true;
}

/* A port that is free now, for the task that others must know before it serves. */
static bool choose_port(struct task *task, struct error *err)
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

struct case_master *case_master_start(int tasks, const struct session_options *options,
                                      uint64_t seed, struct error *err)
{
    struct case_master *m = alloc_bytes(sizeof(*m));
    m->tasks_count = tasks;
    m->seed = seed;
    bool ok = choose_port(&m->tasks[0], err);
    for (int t = 0; ok && t < tasks; t++)
        ok = start_task(m, t, options, err);
    if (ok && link_tasks(m, err) && start_master(m, options->threads, err))
        return m;
    return NULL; /* the process ends */
}

/* --- the client --- */

static bool call(struct case_master *m, const char *path, const ProtobufCMessage *request,
                 struct str *response, struct error *err)
{
    struct str bytes = {0};
    message_pack(request, &bytes);
    bool ok = rpc_client_call(m->client, path, &bytes, response, CALL_MS, err);
    str_release(&bytes);
    return ok;
}

#define PATH(name) "/tensorflow.MasterService/" name

/* Of several tasks the nodes are scattered; a graph that is refused is sent as it is. */
static const struct str *scattered(const struct case_master *m, const void *graph, size_t size,
                                   struct str *room)
{
    if (m->tasks_count == 1 ||
        !case_scatter(graph, size, m->names, m->tasks_count, m->seed, room)) {
        str_clear(room);
        str_add_bytes(room, graph, size);
    }
    return room;
}

bool case_master_create(struct case_master *m, const void *graph, size_t size,
                        struct case_session *session, struct error *err)
{
    Tensorflow__CreateSessionRequest request = TENSORFLOW__CREATE_SESSION_REQUEST__INIT;
    Tensorflow__ConfigProto config = TENSORFLOW__CONFIG_PROTO__INIT;
    Tensorflow__ConfigProto__Experimental experimental =
        TENSORFLOW__CONFIG_PROTO__EXPERIMENTAL__INIT;
    struct str room = {0}, response = {0};
    scattered(m, graph, size, &room);
    request.graph_def = (ProtobufCBinaryData){room.size, (uint8_t *)room.data};
    request.config = &config;
    config.isolate_session_state = true;
    config.experimental = &experimental;
    struct arena *arena = arena_new();
    bool ok = call(m, PATH("CreateSession"), &request.base, &response, err);
    const Tensorflow__CreateSessionResponse *answer =
        ok ? message_unpack(&tensorflow__create_session_response__descriptor, response.data,
                            response.size, arena, err)
           : NULL;
    if (answer)
        snprintf(session->handle, sizeof(session->handle), "%s", answer->session_handle);
    session->version = answer ? answer->graph_version : 0;
    arena_free(arena);
    str_release(&room);
    str_release(&response);
    return answer;
}

bool case_master_extend(struct case_master *m, struct case_session *session, const void *graph,
                        size_t size, struct error *err)
{
    Tensorflow__ExtendSessionRequest request = TENSORFLOW__EXTEND_SESSION_REQUEST__INIT;
    struct str response = {0};
    request.session_handle = session->handle;
    request.graph_def = (ProtobufCBinaryData){size, (uint8_t *)(uintptr_t)graph};
    request.current_graph_version = session->version;
    struct arena *arena = arena_new();
    bool ok = call(m, PATH("ExtendSession"), &request.base, &response, err);
    const Tensorflow__ExtendSessionResponse *answer =
        ok ? message_unpack(&tensorflow__extend_session_response__descriptor, response.data,
                            response.size, arena, err)
           : NULL;
    if (answer)
        session->version = answer->new_graph_version;
    arena_free(arena);
    str_release(&response);
    return answer;
}

void case_master_close(struct case_master *m, struct case_session *session)
{
    Tensorflow__CloseSessionRequest request = TENSORFLOW__CLOSE_SESSION_REQUEST__INIT;
    struct str response = {0};
    struct error ignored;
    request.session_handle = session->handle;
    (void)!call(m, PATH("CloseSession"), &request.base, &response, &ignored);
    str_release(&response);
}

static bool take_answer(const struct session_run *run, const struct str *response,
                        struct arena *arena, struct tensor *fetched, struct error *err)
{
    const Tensorflow__RunStepResponse *answer = message_unpack(
        &tensorflow__run_step_response__descriptor, response->data, response->size, arena, err);
    if (!answer)
        return false;
    if (answer->status_code)
        return fail(err, (enum error_code)answer->status_code, "%s",
                    answer->status_error_message);
    if (answer->n_tensor != (size_t)run->fetches_count)
        return fail(err, INTERNAL, "%zu tensors came, %d were fetched", answer->n_tensor,
                    run->fetches_count);
    for (int i = 0; i < run->fetches_count; i++)
        if (!tensor_unpack(&fetched[i], answer->tensor[i]->tensor, err))
            return false;
    return true;
}

bool case_master_run(struct case_master *m, struct case_session *session,
                     const struct session_run *run, struct tensor *fetched, struct error *err)
{
    Tensorflow__RunStepRequest request = TENSORFLOW__RUN_STEP_REQUEST__INIT;
    struct arena *arena = arena_new();
    struct str response = {0};
    request.session_handle = session->handle;
    request.n_feed = (size_t)run->feeds_count;
    request.feed = arena_array(arena, request.n_feed, sizeof(*request.feed));
    for (int i = 0; i < run->feeds_count; i++) {
        Tensorflow__NamedTensorProto *feed = arena_alloc(arena, sizeof(*feed));
        tensorflow__named_tensor_proto__init(feed);
        feed->name = (char *)(uintptr_t)run->feeds[i];
        feed->tensor = tensor_pack(&run->feed_values[i], true, arena);
        request.feed[i] = feed;
    }
    request.n_fetch = (size_t)run->fetches_count;
    request.fetch = (char **)(uintptr_t)run->fetches;
    request.n_target = (size_t)run->targets_count;
    request.target = (char **)(uintptr_t)run->targets;
    bool ok = call(m, PATH("RunStep"), &request.base, &response, err) &&
              take_answer(run, &response, arena, fetched, err);
    str_release(&response);
    arena_free(arena);
    return ok;
}
