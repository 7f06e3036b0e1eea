/* master_pb_test.c - a task that serves MasterService, and a client that speaks to it over
 * gRPC. */

#include <math.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/limits.h"
#include "proto/message.h"
#include "proto/rpc.h"
#include "runtime/device.h"
#include "runtime/master/internal.h"
#include "runtime/master/master_service.h"
#include "runtime/master/node_error.h"
#include "runtime/resource.h"
#include "runtime/tensor_pb.h"
#include "runtime/worker/worker.h"
#include "tensorflow/master.pb-c.h"
#include "tests/unit/runtime/flow.h"

#define PATH(name) "/tensorflow.MasterService/" name

struct task {
    struct resources *resources;
    struct worker *worker;
    struct worker_link *link;
    struct master *master;
    struct master_service *service;
    struct rpc_server *server;
    struct rpc_client *client;
    struct arena *arena; /* of answers */
    struct str answer;
};

static struct task *task_start(void)
{
    struct task *task = alloc_bytes(sizeof(*task));
    task->resources = resources_new("worker");
    task->worker = worker_new(
        &(struct worker_options){.job = "worker", .threads = 1, .resources = task->resources},
        &err);
    CHECK_OK(task->worker, &err);
    task->link = link_local_new(task->worker);
    task->master = master_new(&(struct master_options){.links = &task->link,
                                                       .links_count = 1,
                                                       .device = worker_device(task->worker),
                                                       .threads = 1,
                                                       .resources = task->resources});
    task->service = master_service_new(task->master);
    const struct rpc_server_options options = {.address = "127.0.0.1:0",
                                               .message_bytes_max = LIMIT_MESSAGE_BYTES - 1};
    task->server = rpc_server_start(&options, master_service_methods, task->service, &err);
    CHECK_OK(task->server, &err);
    task->client =
        rpc_client_new(&(struct rpc_client_options){.address = rpc_server_address(task->server),
                                                    .message_bytes_max = 1 << 20},
                       &err);
    CHECK_OK(task->client, &err);
    task->arena = arena_new();
    return task;
}

static void task_stop(struct task *task)
{
    rpc_client_free(task->client);
    rpc_server_stop(task->server);
    master_stop(task->master);
    master_service_free(task->service);
    master_free(task->master);
    link_free(task->link);
    worker_free(task->worker);
    resources_free(task->resources);
    arena_free(task->arena);
    str_release(&task->answer);
    free(task);
}

/* Sends a message; its answer as `type`, or NULL. */
static void *call(struct task *task, const char *path, const ProtobufCMessage *request,
                  const ProtobufCMessageDescriptor *type, int timeout_ms)
{
    struct str bytes = {0};
    message_pack(request, &bytes);
    bool ok = rpc_client_call(task->client, path, &bytes, &task->answer, timeout_ms, &err);
    str_release(&bytes);
    if (!ok)
        return NULL;
    void *message =
        message_unpack(type, task->answer.data, task->answer.size, task->arena, &err);
    CHECK(message);
    return message;
}

static char *create(struct task *task, struct world *world)
{
    struct str bytes = {0};
    Tensorflow__CreateSessionRequest request = TENSORFLOW__CREATE_SESSION_REQUEST__INIT;
    CHECK_OK(builder_ok(&world->b), &err);
    graph_export(world->graph, false, 0, &bytes);
    request.graph_def.data = (uint8_t *)bytes.data;
    request.graph_def.len = bytes.size;
    const Tensorflow__CreateSessionResponse *response =
        call(task, PATH("CreateSession"), &request.base,
             &tensorflow__create_session_response__descriptor, 20000);
    str_release(&bytes);
    CHECK_OK(response, &err);
    CHECK_INT(response->graph_version, 0);
    CHECK_INT(strlen(response->session_handle), 16);
    return response->session_handle;
}

/* One step: feeds "x:0" with `value` unless it is NaN, and fetches; NULL: a gRPC error. */
static Tensorflow__RunStepResponse *step(struct task *task, const char *session, double value,
                                         const char *fetch, int64_t request_id,
                                         const char *partial, int timeout_ms)
{
    struct tensor in = number(F32, isnan(value) ? 0 : value);
    Tensorflow__RunStepRequest request = TENSORFLOW__RUN_STEP_REQUEST__INIT;
    Tensorflow__NamedTensorProto feed = TENSORFLOW__NAMED_TENSOR_PROTO__INIT, *feeds = &feed;
    Tensorflow__RunOptions options = TENSORFLOW__RUN_OPTIONS__INIT;
    feed.name = (char *)"x:0";
    feed.tensor = tensor_pack(&in, true, task->arena);
    request.session_handle = (char *)session;
    request.n_feed = isnan(value) ? 0 : 1;
    request.feed = &feeds;
    request.n_fetch = fetch ? 1 : 0;
    request.fetch = (char **)&fetch;
    request.options = &options;
    request.request_id = request_id;
    request.partial_run_handle = (char *)(partial ? partial : "");
    request.store_errors_in_response_body = true;
    Tensorflow__RunStepResponse *response =
        call(task, PATH("RunStep"), &request.base, &tensorflow__run_step_response__descriptor,
             timeout_ms);
    tensor_release(&in);
    return response;
}

static double fetched_number(const Tensorflow__RunStepResponse *response, const char *name)
{
    struct tensor got;
    CHECK(response);
    if (response->status_code)
        CHECK_STOP("%s", response->status_error_message);
    CHECK_INT(response->n_tensor, 1);
    CHECK_TEXT(response->tensor[0]->name, name);
    CHECK_OK(tensor_unpack(&got, response->tensor[0]->tensor, &err), &err);
    double value = tensor_number(&got, 0);
    tensor_release(&got);
    return value;
}

/* x, y = -x, z = -y */
static struct world *two_negs(void)
{
    struct world *world = world_new();
    struct edge x = placeholder(world, "x", F32);
    node1(world, "Neg", "z", node1(world, "Neg", "y", x));
    return world;
}

TEST(master_runs_the_steps_of_a_session)
{
    struct task *task = task_start();
    struct world *world = two_negs();
    const char *session = create(task, world);
    CHECK(fetched_number(step(task, session, 3, "y:0", 1, NULL, 20000), "y:0") == -3);
    CHECK(fetched_number(step(task, session, 3, "z", 2, NULL, 20000), "z") == 3);

    Tensorflow__ListDevicesRequest list = TENSORFLOW__LIST_DEVICES_REQUEST__INIT;
    list.session_handle = (char *)session;
    const Tensorflow__ListDevicesResponse *devices =
        call(task, PATH("ListDevices"), &list.base,
             &tensorflow__list_devices_response__descriptor, 20000);
    CHECK_INT(devices->n_local_device, 1);
    CHECK_TEXT(devices->local_device[0]->name, "/job:worker/replica:0/task:0/device:CPU:0");
    CHECK(devices->local_device[0]->incarnation);

    /* What is wrong is in the body, with its code and its node. */
    const Tensorflow__RunStepResponse *bad = step(task, session, NAN, "y:0", 3, NULL, 20000);
    CHECK_INT(bad->status_code, INVALID);
    CHECK(
        strstr(bad->status_error_message, "You must feed a value for placeholder tensor 'x'"));
    CHECK(strstr(bad->status_error_message, "[[{{node x}}]]"));
    CHECK(strstr(bad->status_error_message, "From /job:worker/replica:0/task:0:\nYou must") ==
          bad->status_error_message);
    bad = step(task, session, 3, "nonesuch:0", 4, NULL, 20000);
    CHECK_INT(bad->status_code, NOT_FOUND);
    bad = step(task, session, 3, "y:0", 1, NULL, 20000); /* sent once more */
    CHECK_INT(bad->status_code, ABORTED);

    Tensorflow__CloseSessionRequest end = TENSORFLOW__CLOSE_SESSION_REQUEST__INIT;
    end.session_handle = (char *)session;
    CHECK(call(task, PATH("CloseSession"), &end.base,
               &tensorflow__close_session_response__descriptor, 20000));
    bad = step(task, session, 3, "y:0", 5, NULL, 20000);
    CHECK_INT(bad->status_code, ABORTED);
    CHECK(strstr(bad->status_error_message, "is not found"));
    CHECK(!call(task, PATH("CloseSession"), &end.base,
                &tensorflow__close_session_response__descriptor, 20000));
    CHECK_INT(err.code, ABORTED);
    world_free(world);
    task_stop(task);
}

TEST(master_extends_what_the_client_knows)
{
    struct task *task = task_start();
    struct world *world = two_negs(), *more = world_new();
    const char *session = create(task, world);
    struct str bytes = {0};
    builder_add(&more->b, "NoOp", "nothing", NO_INPUTS, NO_ATTRS);
    CHECK_OK(builder_ok(&more->b), &err);
    graph_export(more->graph, false, 0, &bytes);
    Tensorflow__ExtendSessionRequest extend = TENSORFLOW__EXTEND_SESSION_REQUEST__INIT;
    extend.session_handle = (char *)session;
    extend.graph_def.data = (uint8_t *)bytes.data;
    extend.graph_def.len = bytes.size;
    extend.current_graph_version = 7;
    CHECK(!call(task, PATH("ExtendSession"), &extend.base,
                &tensorflow__extend_session_response__descriptor, 20000));
    CHECK_INT(err.code, ABORTED);
    CHECK(strstr(err.text, "Current version is 0 but caller expected 7."));
    extend.current_graph_version = 0;
    const Tensorflow__ExtendSessionResponse *extended =
        call(task, PATH("ExtendSession"), &extend.base,
             &tensorflow__extend_session_response__descriptor, 20000);
    CHECK_INT(extended->new_graph_version, 1);
    extend.current_graph_version = 1; /* the same node again */
    CHECK(!call(task, PATH("ExtendSession"), &extend.base,
                &tensorflow__extend_session_response__descriptor, 20000));
    CHECK_INT(err.code, INVALID);
    CHECK(fetched_number(step(task, session, 2, "y:0", 0, NULL, 20000), "y:0") == -2);
    str_release(&bytes);
    world_free(more);
    world_free(world);
    task_stop(task);
}

TEST(master_runs_in_parts_and_by_callables)
{
    struct task *task = task_start();
    struct world *world = two_negs();
    const char *session = create(task, world);
    const char *feeds[] = {"x:0"}, *fetches[] = {"y:0", "z:0"};

    Tensorflow__PartialRunSetupRequest setup = TENSORFLOW__PARTIAL_RUN_SETUP_REQUEST__INIT;
    setup.session_handle = (char *)session;
    setup.n_feed = 1;
    setup.feed = (char **)feeds;
    setup.n_fetch = 2;
    setup.fetch = (char **)fetches;
    const Tensorflow__PartialRunSetupResponse *made =
        call(task, PATH("PartialRunSetup"), &setup.base,
             &tensorflow__partial_run_setup_response__descriptor, 20000);
    CHECK_OK(made, &err);
    CHECK(fetched_number(step(task, session, 4, "y:0", 0, made->partial_run_handle, 20000),
                         "y:0") == -4);
    CHECK(fetched_number(step(task, session, NAN, "z:0", 0, made->partial_run_handle, 20000),
                         "z:0") == 4);
    CHECK_INT(step(task, session, NAN, "z:0", 0, made->partial_run_handle, 20000)->status_code,
              INVALID); /* it is over */

    Tensorflow__CallableOptions options = TENSORFLOW__CALLABLE_OPTIONS__INIT;
    Tensorflow__MakeCallableRequest make = TENSORFLOW__MAKE_CALLABLE_REQUEST__INIT;
    options.n_feed = 1;
    options.feed = (char **)feeds;
    options.n_fetch = 2;
    options.fetch = (char **)fetches;
    make.session_handle = (char *)session;
    make.options = &options;
    const Tensorflow__MakeCallableResponse *callable =
        call(task, PATH("MakeCallable"), &make.base,
             &tensorflow__make_callable_response__descriptor, 20000);
    CHECK_OK(callable, &err);
    struct tensor in = number(F32, 5);
    Tensorflow__TensorProto *feed = tensor_pack(&in, true, task->arena);
    Tensorflow__RunCallableRequest run = TENSORFLOW__RUN_CALLABLE_REQUEST__INIT;
    run.session_handle = (char *)session;
    run.handle = callable->handle;
    run.n_feed = 1;
    run.feed = &feed;
    const Tensorflow__RunCallableResponse *ran =
        call(task, PATH("RunCallable"), &run.base,
             &tensorflow__run_callable_response__descriptor, 20000);
    CHECK_OK(ran, &err);
    CHECK_INT(ran->n_fetch, 2);
    run.n_feed = 0;
    CHECK(!call(task, PATH("RunCallable"), &run.base,
                &tensorflow__run_callable_response__descriptor, 20000));
    CHECK_INT(err.code, INVALID);
    run.handle = 99;
    CHECK(!call(task, PATH("RunCallable"), &run.base,
                &tensorflow__run_callable_response__descriptor, 20000));
    CHECK(strstr(err.text, "No such callable handle: 99"));
    Tensorflow__ReleaseCallableRequest release = TENSORFLOW__RELEASE_CALLABLE_REQUEST__INIT;
    release.session_handle = (char *)session;
    release.handle = callable->handle;
    CHECK(call(task, PATH("ReleaseCallable"), &release.base,
               &tensorflow__release_callable_response__descriptor, 20000));
    tensor_release(&in);
    world_free(world);
    task_stop(task);
}

/* A step that waits ends when its client goes; so does one whose session is reset. */
/* A feed that was not told is missed by the first call, as a step misses it. */
TEST(master_tells_of_a_missing_feed_when_it_is_missed)
{
    struct task *task = task_start();
    struct world *world = two_negs();
    const char *session = create(task, world), *fetches[] = {"y:0"};
    Tensorflow__PartialRunSetupRequest setup = TENSORFLOW__PARTIAL_RUN_SETUP_REQUEST__INIT;
    setup.session_handle = (char *)session;
    setup.n_fetch = 1;
    setup.fetch = (char **)fetches;
    const Tensorflow__PartialRunSetupResponse *made =
        call(task, PATH("PartialRunSetup"), &setup.base,
             &tensorflow__partial_run_setup_response__descriptor, 20000);
    CHECK_OK(made, &err);
    const Tensorflow__RunStepResponse *ran =
        step(task, session, NAN, "y:0", 0, made->partial_run_handle, 20000);
    CHECK_INT(ran->status_code, INVALID);
    CHECK(strstr(ran->status_error_message, "You must feed a value for placeholder"));
    ran = step(task, session, NAN, "y:0", 0, made->partial_run_handle, 20000);
    CHECK_TEXT(ran->status_error_message,
               "Must run PartialRunSetup before performing partial runs");
    fetches[0] = "nowhere:0";
    CHECK(!call(task, PATH("PartialRunSetup"), &setup.base,
                &tensorflow__partial_run_setup_response__descriptor, 20000));
    CHECK_INT(err.code, NOT_FOUND);
    world_free(world);
    task_stop(task);
}

/* A cluster of the session's own is refused in TensorFlow's words. */
TEST(master_refuses_a_cluster_def)
{
    static const struct {
        const char *job, *address;
        enum error_code code;
        const char *text;
    } cases[] = {
        {"worker", "host:1", INVALID,
         "This is currently not allowed. Job: worker, task index: 0"},
        {"other", "host:1", UNIMPLEMENTED, "calls this task /job:other/task:0"},
        {"other", "host:2", INVALID,
         "The master (current machine) is not included in the provided cluster_def: "
         "/job:other/task:0 at host:2"},
    };
    struct task *task = task_start();
    for (int i = 0; i < ARRAY_LEN(cases); i++) {
        Tensorflow__JobDef__TasksEntry where = TENSORFLOW__JOB_DEF__TASKS_ENTRY__INIT;
        Tensorflow__JobDef job = TENSORFLOW__JOB_DEF__INIT;
        Tensorflow__ClusterDef cluster = TENSORFLOW__CLUSTER_DEF__INIT;
        Tensorflow__ConfigProto config = TENSORFLOW__CONFIG_PROTO__INIT;
        Tensorflow__CreateSessionRequest request = TENSORFLOW__CREATE_SESSION_REQUEST__INIT;
        where.value = (char *)cases[i].address;
        job.name = (char *)cases[i].job;
        job.n_tasks = 1;
        job.tasks = &(Tensorflow__JobDef__TasksEntry *){&where};
        cluster.n_job = 1;
        cluster.job = &(Tensorflow__JobDef *){&job};
        config.cluster_def = &cluster;
        request.config = &config;
        request.target = "grpc://host:1";
        CHECK(!call(task, PATH("CreateSession"), &request.base,
                    &tensorflow__create_session_response__descriptor, 20000));
        CHECK_INT(err.code, cases[i].code);
        CHECK(strstr(err.text, cases[i].text));
    }
    task_stop(task);
}

TEST(master_ends_steps_that_nobody_waits_for)
{
    struct task *task = task_start();
    struct world *world = world_new();
    node1(world, "Wait", "get", placeholder(world, "x", F32));
    const char *session = create(task, world);
    CHECK(!step(task, session, 1, "get:0", 0, NULL, 300));
    CHECK_INT(err.code, DEADLINE);
    uint64_t began = clock_monotonic_us();
    Tensorflow__ResetRequest reset = TENSORFLOW__RESET_REQUEST__INIT;
    CHECK(
        call(task, PATH("Reset"), &reset.base, &tensorflow__reset_response__descriptor, 20000));
    CHECK_INT(step(task, session, 1, "get:0", 0, NULL, 20000)->status_code, ABORTED);
    world_free(world);
    task_stop(task);
    CHECK(clock_monotonic_us() - began < 10000000);
}

TEST(master_refuses_what_is_no_message)
{
    struct task *task = task_start();
    struct str bytes = {0};
    str_add_bytes(&bytes, "\xff\xff\xff\xff\xff", 5);
    for (const struct rpc_method *method = master_service_methods; method->path; method++) {
        CHECK(!rpc_client_call(task->client, method->path, &bytes, &task->answer, 20000, &err));
        CHECK_INT(err.code, INVALID);
    }
    str_release(&bytes);
    task_stop(task);
}

TEST(node_errors_take_the_form_of_tensorflow)
{
    struct error e;
    fail(&e, INVALID, "node 'a' (Assert): node 'b/c' (MatMul): too wide");
    CHECK(node_error(&e));
    CHECK_TEXT(e.text, "too wide\n\t [[{{node a}}]]\n\t [[{{node b/c}}]]");
    fail(&e, INVALID, "no node: it stays");
    CHECK(!node_error(&e));
    CHECK_TEXT(e.text, "no node: it stays");
    char much[990];
    memset(much, 'x', sizeof(much) - 1);
    much[sizeof(much) - 1] = 0;
    fail(&e, INVALID, "node 'a' (Assert): %s", much);
    node_error(&e);
    CHECK(strlen(e.text) < sizeof(e.text));
    CHECK(strstr(e.text, "xxx\n\t [[{{node a}}]]"));
}

TEST(request_numbers_are_kept_for_a_while)
{
    struct seen *seen = seen_new(1000);
    for (uint64_t i = 1; i <= 5000; i++) {
        CHECK(seen_first(seen, i * 0x10001));
        CHECK(!seen_first(seen, i * 0x10001));
    }
    for (uint64_t i = 4001; i <= 5000; i++)
        CHECK(!seen_first(seen, i * 0x10001));
    CHECK(seen_first(seen, 3999 * 0x10001)); /* forgotten */
    CHECK(seen_first(seen, 0) && seen_first(seen, 0));
    seen_free(seen);
}
