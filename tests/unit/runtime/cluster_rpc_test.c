/* cluster_rpc_test.c - workers that reach each other by TensorFlow's WorkerService. */

#include <inttypes.h>
#include <unistd.h>

#include "runtime/worker/incoming.h"
#include "runtime/worker/lent.h"
#include "runtime/worker/remote.h"
#include "runtime/worker/wire.h"
#include "tests/unit/runtime/cluster.h"

static struct world *world;
static struct cluster *cluster;
static struct cluster_session *session;

static void start(void)
{
    world = world_new();
    cluster = cluster_new(false, true);
    session = open_session(cluster, "s", (struct cluster_options){0});
}

static void stop(void)
{
    cluster_session_free(session);
    cluster_free(cluster);
    world_free(world);
}

static struct edge on(int task, struct edge edge)
{
    edge.from->requested_device = task_names[task];
    return edge;
}

/* Every type, large tensors and empty ones go there and back as they are. */
TEST(every_type_crosses_tasks)
{
    static const enum dtype types[] = {F32, F64, F16, BF16, I8, U8, I16, I32, I64, BOOL, C64};
    start();
    struct tensor in[ARRAY_LEN(types) + 2], out[ARRAY_LEN(types) + 2];
    const char *feeds[ARRAY_LEN(types) + 2], *fetches[ARRAY_LEN(types) + 2];
    static char names[ARRAY_LEN(types) + 2][2][16];
    int count = ARRAY_LEN(types) + 2;
    for (int i = 0; i < count; i++) {
        enum dtype type = i < ARRAY_LEN(types) ? types[i] : i == count - 1 ? STRING : F32;
        struct shape shape = i == count - 2 ? SHAPE(0, 3) : i ? SHAPE(2, 3) : SHAPE(1000, 1000);
        CHECK_OK(tensor_init(&in[i], type, &shape, &err), &err);
        for (int64_t k = 0; k < in[i].count; k++) {
            if (type == STRING)
                tensor_set_string(&in[i], k, "a\0bcdef", (size_t)k);
            else
                memset((char *)in[i].data + (size_t)k * dtype_size(type), (int)(k % 2),
                       dtype_size(type));
        }
        snprintf(names[i][0], sizeof(names[i][0]), "x%d", i);
        snprintf(names[i][1], sizeof(names[i][1]), "y%d", i);
        feeds[i] = names[i][0];
        fetches[i] = names[i][1];
        on(2, node1(world, "Identity", names[i][1], placeholder(world, names[i][0], type)));
    }
    extend(session, world);
    const struct session_run run = {.feeds = feeds,
                                    .feed_values = in,
                                    .feeds_count = count,
                                    .fetches = fetches,
                                    .fetches_count = count,
                                    .timeout_ms = 20000};
    CHECK_OK(cluster_session_run(session, &run, out, &err), &err);
    for (int i = 0; i < count; i++) {
        CHECK(tensor_equal(&in[i], &out[i]));
        tensor_release(&in[i]);
        tensor_release(&out[i]);
    }
    stop();
}

TEST(an_error_on_another_task_ends_the_step)
{
    start();
    struct edge v =
        on(0, builder_add(&world->b, "VariableV2", "empty", NO_INPUTS,
                          ATTRS(attr_type("dtype", F32), attr_shape("shape", &SHAPE_SCALAR))));
    struct edge x = placeholder(world, "x", F32);
    struct edge bad = on(0, node2(world, "AddV2", "bad", x, v));
    on(1, node1(world, "Neg", "here", on(2, node1(world, "Neg", "there", bad))));
    on(2, node1(world, "Neg", "good", x));
    extend(session, world);
    for (int i = 0; i < 10; i++) {
        double out;
        CHECK(!try_fetch(session, "x", 1, "here", &out));
        CHECK_INT(err.code, PRECONDITION);
        CHECK(!strncmp(err.text, "From /job:ps/replica:0/task:0:\n", 31));
        CHECK(strstr(err.text, "uninitialized value empty\n\t [[{{node bad}}]]"));
        CHECK(fetch_number(session, "x", 3, "good") == -3);
    }
    stop();
}

TEST(what_waits_on_another_task_is_ended)
{
    start();
    struct edge x = placeholder(world, "x", F32);
    struct edge wait = on(0, node1(world, "Wait", "wait", x));
    on(2, node1(world, "Neg", "out", wait));
    extend(session, world);
    struct tensor in = number(F32, 1), out;
    const char *feed = "x", *fetch = "out";
    const struct session_run run = {.feeds = &feed,
                                    .feed_values = &in,
                                    .feeds_count = 1,
                                    .fetches = &fetch,
                                    .fetches_count = 1,
                                    .timeout_ms = 50};
    CHECK_FAILS(cluster_session_run(session, &run, &out, &err), &err, DEADLINE);
    tensor_release(&in);
    stop();
}

/* --- tasks that are not there yet --- */

static struct cluster_session *open_waiting(struct cancel *wait)
{
    return cluster_session_new(
        &(struct cluster_options){
            .links = cluster->links, .links_count = TASKS, .home = 1, .wait = wait},
        "w", &err);
}

static void *come_late(void *arg)
{
    usleep(300000);
    const struct rpc_server_options options = {.address = arg,
                                               .message_bytes_max = LIMIT_MESSAGE_BYTES};
    struct error why;
    cluster->servers[0] =
        rpc_server_start(&options, service_methods, cluster->services[0], &why);
    CHECK_OK(cluster->servers[0], &why);
    return NULL;
}

static void *end_soon(void *arg)
{
    usleep(300000);
    cancel_now(arg);
    return NULL;
}

TEST(a_session_waits_for_a_task_that_comes_late)
{
    pthread_t thread;
    char address[64];
    struct cancel *cancel = cancel_new();
    start();
    snprintf(address, sizeof(address), "%s", rpc_server_address(cluster->servers[0]));
    rpc_server_stop(cluster->servers[0]);
    cluster->servers[0] = NULL;
    CHECK_FAILS(open_waiting(NULL), &err, UNAVAILABLE);
    CHECK(!pthread_create(&thread, NULL, end_soon, cancel));
    CHECK_FAILS(open_waiting(cancel), &err, CANCELLED);
    CHECK_TEXT(err.text, "the session was still waiting for /job:ps/replica:0/task:0");
    CHECK(!pthread_join(thread, NULL));
    cancel_clear(cancel);
    CHECK(!pthread_create(&thread, NULL, come_late, address));
    struct cluster_session *late = open_waiting(cancel);
    CHECK_OK(late, &err);
    CHECK(!pthread_join(thread, NULL));
    cluster_session_free(late);
    cancel_free(cancel);
    stop();
}

TEST(a_task_at_anothers_address)
{
    start();
    struct worker_link *wrong = link_rpc_new(
        worker_task(cluster->workers[0]), rpc_server_address(cluster->servers[2]), NULL, &err);
    CHECK_OK(wrong, &err);
    struct worker_link *right = cluster->links[0];
    cluster->links[0] = wrong;
    CHECK_FAILS(open_waiting(NULL), &err, INVALID);
    CHECK_TEXT(err.text, "the address of /job:ps/replica:0/task:0 in the cluster is that of "
                         "another task, which has /job:worker/replica:0/task:1/device:CPU:0");
    cluster->links[0] = right;
    link_free(wrong);
    stop();
}

static void ignore(void *self, struct rpc_call *call)
{
    (void)self;
    rpc_call_reply(call, "", 0);
}

/* TensorFlow's workers let kernels wait on when a step is cleaned up: the call is cancelled. */
TEST(a_worker_that_cleans_up_less)
{
    start();
    const struct rpc_method less[] = {{"/tensorflow.WorkerService/CleanupGraph", ignore}, {0}};
    const struct rpc_service more = {service_methods, cluster->services[0], NULL};
    struct rpc_server *server = rpc_server_start(
        &(struct rpc_server_options){
            .address = "127.0.0.1:0", .message_bytes_max = LIMIT_MESSAGE_BYTES, .more = &more},
        less, NULL, &err);
    CHECK_OK(server, &err);
    struct worker_link *link =
        link_rpc_new(worker_task(cluster->workers[0]), rpc_server_address(server), NULL, &err);
    CHECK_OK(link, &err);
    struct worker_link *usual = cluster->links[0];
    cluster->links[0] = link;
    struct cluster_session *other = open_session(cluster, "o", (struct cluster_options){0});
    on(0, node1(world, "Wait", "wait", placeholder(world, "x", F32)));
    extend(other, world);
    struct tensor in = number(F32, 1), out;
    const char *feed = "x", *fetch = "wait";
    const struct session_run run = {.feeds = &feed,
                                    .feed_values = &in,
                                    .feeds_count = 1,
                                    .fetches = &fetch,
                                    .fetches_count = 1,
                                    .timeout_ms = 50};
    CHECK_FAILS(cluster_session_run(other, &run, &out, &err), &err, DEADLINE);
    tensor_release(&in);
    cluster_session_free(other);
    cluster->links[0] = usual;
    link_free(link);
    rpc_server_stop(server);
    stop();
}

static void note_end(struct worker_run *run, const struct error *error)
{
    CHECK(error);
    *(int *)run->arg = (int)error->code;
}

/* A run that waits does not outlive the master that asked for it. */
TEST(a_master_is_gone)
{
    start();
    node1(world, "Wait", "wait", scalar(world, "one", 1));
    struct str graph = {0};
    char handle[WORKER_HANDLE_BYTES];
    int code = -1;
    graph_export(world->graph, false, 0, &graph);
    struct worker_link *master = link_rpc_new(
        worker_task(cluster->workers[0]), rpc_server_address(cluster->servers[0]), NULL, &err);
    CHECK_OK(master, &err);
    CHECK_OK(master->kind->register_graph(master, "s", graph.data, graph.size, handle, &err),
             &err);
    struct worker_run run = {
        .session = "s", .graph = handle, .step_id = 7, .done = note_end, .arg = &code};
    master->kind->run_graph(master, &run);
    await_waits(1);
    link_free(master);
    CHECK_INT(code, CANCELLED);
    int left = 1;
    for (int i = 0; left && i < 1000; i++) {
        usleep(10000);
        pthread_mutex_lock(&waits.lock);
        left = waits.count;
        pthread_mutex_unlock(&waits.lock);
    }
    CHECK_INT(left, 0);
    str_release(&graph);
    stop();
}

/* Steps that need a task that is gone fail at once; others go on. */
TEST(a_task_is_gone)
{
    start();
    struct edge x = placeholder(world, "x", F32);
    on(1, node1(world, "Neg", "far", on(0, node1(world, "Neg", "ps", x))));
    on(2, node1(world, "Neg", "near", x));
    extend(session, world);
    CHECK(fetch_number(session, "x", 2, "far") == 2);
    rpc_server_stop(cluster->servers[0]);
    cluster->servers[0] = NULL;
    double out;
    CHECK(!try_fetch(session, "x", 2, "far", &out));
    CHECK_INT(err.code, UNAVAILABLE);
    CHECK(fetch_number(session, "x", 2, "near") == -2);
    stop();
}

/* Statistics are those of all tasks; a worker gives its part of the graph when asked. */
TEST(a_traced_step)
{
    start();
    struct edge x = placeholder(world, "x", F32);
    on(2, node1(world, "Neg", "far", on(0, node1(world, "Neg", "ps", x))));
    extend(session, world);
    struct str statistics = {0}, graph_def = {0}, none = {0};
    struct tensor in = number(F32, 1), out;
    const char *feed = "x", *fetch = "far";
    const struct session_run run = {.feeds = &feed,
                                    .feed_values = &in,
                                    .feeds_count = 1,
                                    .fetches = &fetch,
                                    .fetches_count = 1,
                                    .trace = true,
                                    .statistics = &statistics};
    CHECK_OK(cluster_session_run(session, &run, &out, &err), &err);
    for (int i = 0; i < TASKS; i++) {
        const char *name = worker_device(cluster->workers[i])->name;
        CHECK(memmem(statistics.data, statistics.size, name, strlen(name)));
    }
    const struct wire_ran in_ran = {.graph_def = &(struct str){"abc", 3, 0}};
    const struct wire_ran out_ran = {.graph_def = &graph_def};
    wire_write_ran(&in_ran, NULL, &none);
    CHECK_OK(wire_read_ran(none.data, none.size, &out_ran, &err), &err);
    CHECK_TEXT(str_text(&graph_def), "abc");
    str_release(&none);
    str_release(&graph_def);
    str_release(&statistics);
    tensor_release(&in);
    tensor_release(&out);
    stop();
}

/* --- what a worker says to requests that do not fit --- */

static bool ask(const char *method, struct str *request, struct str *response)
{
    const struct rpc_client_options options = {
        .address = rpc_server_address(cluster->servers[0]), .message_bytes_max = 1 << 20};
    struct rpc_client *client = rpc_client_new(&options, &err);
    CHECK_OK(client, &err);
    bool ok = rpc_client_call(client, method, request, response, 5000, &err);
    rpc_client_free(client);
    str_release(request);
    return ok;
}

TEST(unknown_handles_and_keys_are_refused)
{
    start();
    struct str request = {0}, response = {0};
    wire_write_register_graph(&(struct wire_session){.session = "none"}, &request);
    CHECK(!ask("/tensorflow.WorkerService/RegisterGraph", &request, &response));
    CHECK_INT(err.code, ABORTED);
    CHECK(strstr(err.text, "Session handle is not found: none. Possibly this worker"));

    wire_write_run(&(struct wire_run){.session = "s", .graph = "0000000000000009"}, &request);
    CHECK(!ask("/tensorflow.WorkerService/RunGraph", &request, &response));
    CHECK_INT(err.code, ABORTED);
    wire_write_run(&(struct wire_run){.session = "s", .graph = "9", .errors_in_body = true},
                   &request);
    CHECK_OK(ask("/tensorflow.WorkerService/RunGraph", &request, &response), &err);
    CHECK(!wire_read_ran(response.data, response.size, &(struct wire_ran){0}, &err));
    CHECK_TEXT(err.text, "Graph handle is not found: 9");

    wire_write_receive(&(struct wire_receive){.step_id = 1, .key = "a;b"}, &request);
    CHECK(!ask("/tensorflow.WorkerService/RecvTensor", &request, &response));
    CHECK_INT(err.code, INVALID);
    CHECK_TEXT(err.text, "Invalid  rendezvous key: a;b");
    static const char stale[] =
        "/job:ps/replica:0/task:0/device:CPU:0;0000000000000002;/job:w;e;0:0";
    wire_write_receive(&(struct wire_receive){.step_id = 1, .key = stale}, &request);
    CHECK(!ask("/tensorflow.WorkerService/RecvTensor", &request, &response));
    CHECK_INT(err.code, ABORTED);
    CHECK(strstr(err.text, "RecvTensor expects a different device incarnation: 2 vs. "));

    wire_write_create_session(&(struct wire_session){.session = "s"}, &request);
    CHECK(!ask("/tensorflow.WorkerService/CreateWorkerSession", &request, &response));
    CHECK_INT(err.code, EXISTS);
    str_add(&request, "\x0a\xff");
    CHECK(!ask("/tensorflow.WorkerService/RunGraph", &request, &response));
    CHECK_INT(err.code, INVALID);
    CHECK(!ask("/tensorflow.WorkerService/Tracing", &request, &response));
    CHECK_INT(err.code, UNIMPLEMENTED);
    CHECK_TEXT(err.text, "Tracing");
    CHECK_OK(ask("/tensorflow.WorkerService/Logging", &request, &response), &err);
    CHECK_INT(response.size, 0);
    CHECK_OK(ask("/tensorflow.WorkerService/MarkRecvFinished", &request, &response), &err);
    CHECK(!ask("/tensorflow.WorkerService/CompleteGroup", &request, &response));
    CHECK_INT(err.code, UNIMPLEMENTED);
    str_release(&response);
    stop();
}

/* --- tensors that are asked for, as a stock task does and as one of ours --- */

struct got {
    struct rpc_sink base; /* first */
    struct incoming incoming;
    int messages;
    pthread_mutex_t lock; /* guards: is_done, err */
    pthread_cond_t changed;
    bool is_done;
    struct error err;
};

static bool got_take(struct rpc_sink *sink, const struct rpc_span *spans, int count,
                     struct error *error)
{
    struct got *got = (struct got *)sink;
    got->messages++;
    return incoming_take(&got->incoming, spans, count, error);
}

static void got_done(struct rpc_sink *sink, const struct error *error)
{
    struct got *got = (struct got *)sink;
    pthread_mutex_lock(&got->lock);
    got->is_done = true;
    got->err = error ? *error : (struct error){.code = OK};
    pthread_cond_signal(&got->changed);
    pthread_mutex_unlock(&got->lock);
}

/* Asks the ps for a tensor; true when it has come whole. */
static bool receive_by(struct rpc_client *client, const char *method,
                       const struct wire_receive *in, const struct near_process *near,
                       struct got *got)
{
    struct str request = {0};
    *got = (struct got){.base = {got_take, got_done}, .incoming.near = near};
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

static bool receive_from_ps(struct rpc_client *client, const char *method,
                            const struct wire_receive *in, struct got *got)
{
    return receive_by(client, method, in, NULL, got);
}

static bool receive_near(struct rpc_client *client, const struct wire_receive *in,
                         const struct near_process *near, struct got *got)
{
    return receive_by(client, SERVICE_CHUNKS, in, near, got);
}

static void note_done(struct worker_run *run, const struct error *error)
{
    __atomic_store_n((int *)run->arg, error ? (int)error->code : 0, __ATOMIC_RELEASE);
}

/* Puts the tensor where the ps sends it from, in a step of its own. */
static void put(int64_t step_id, const char *key, const struct tensor *value)
{
    struct str graph = {0};
    char handle[WORKER_HANDLE_BYTES];
    int code = -1, seen = -1;
    struct worker_link *ps = cluster->links[0];
    graph_export(world->graph, false, 0, &graph);
    CHECK_OK(ps->kind->register_graph(ps, "s", graph.data, graph.size, handle, &err), &err);
    struct worker_run run = {.session = "s",
                             .graph = handle,
                             .step_id = step_id,
                             .send_keys = &key,
                             .sends = value,
                             .sends_count = 1,
                             .done = note_done,
                             .arg = &code};
    ps->kind->run_graph(ps, &run);
    for (int i = 0; seen < 0 && i < 1000; i++) {
        usleep(1000);
        seen = __atomic_load_n(&code, __ATOMIC_ACQUIRE);
    }
    CHECK_INT(seen, 0);
    str_release(&graph);
}

/* One message from TensorFlow's method, chunks behind the first from ours; never twice. */
TEST(large_tensors_come_in_both_forms)
{
    static const char stock[] = "/tensorflow.WorkerService/RecvTensor";
    static const struct {
        const char *method;
        enum dtype dtype;
        int count, messages;
    } cases[] = {
        {stock, F32, 3000000, 1},
        {stock, BOOL, 200001, 1},
        {stock, F64, 5, 1},
        {SERVICE_CHUNKS, F32, 3000000, 4},
        {SERVICE_CHUNKS, BOOL, 4194305, 3},
        {SERVICE_CHUNKS, F32, 1048576, 1},
        {SERVICE_CHUNKS, F64, 5, 1},
    };
    start();
    scalar(world, "one", 1);
    const struct rpc_client_options options = {.address =
                                                   rpc_server_address(cluster->servers[0]),
                                               .message_bytes_max = LIMIT_MESSAGE_BYTES};
    struct rpc_client *client = rpc_client_new(&options, &err);
    CHECK_OK(client, &err);
    char key[300];
    const struct device *device = worker_device(cluster->workers[0]);
    snprintf(key, sizeof(key),
             "%s;%016" PRIx64 ";/job:worker/replica:0/task:0/device:CPU:0;e;0:0", device->name,
             device->incarnation);
    for (int i = 0; i < ARRAY_LEN(cases); i++) {
        struct tensor value;
        struct got got;
        CHECK_OK(tensor_init(&value, cases[i].dtype, &SHAPE(cases[i].count), &err), &err);
        for (int64_t k = 0; k < value.count; k++)
            tensor_set_number(&value, k, (double)(k % 251 % (value.dtype == BOOL ? 2 : 251)));
        struct wire_receive in = {.step_id = 100 + i, .key = key, .request_id = 7 + i};
        put(in.step_id, key, &value);
        CHECK_OK(receive_from_ps(client, cases[i].method, &in, &got), &err);
        CHECK_INT(got.messages, cases[i].messages);
        CHECK(tensor_equal(&value, &got.incoming.value));
        incoming_release(&got.incoming);
        CHECK(!receive_from_ps(client, cases[i].method, &in, &got));
        CHECK_INT(err.code, ABORTED);
        CHECK(strstr(err.text, "The same RecvTensor request was received twice."));
        incoming_release(&got.incoming);
        tensor_release(&value);
    }
    rpc_client_free(client);
    stop();
}

/* --- tasks that are near --- */

/* Asks whether this process may read the ps's memory, which is this one's. */
static bool meet_ps(struct rpc_client *client, const char *host, struct near_process *near)
{
    struct str request = {0}, response = {0};
    int64_t pid = 0;
    memset(near->nonce, 7, sizeof(near->nonce));
    wire_write_meet(&(struct wire_meet){host, near->nonce}, &request);
    bool ok = rpc_client_call(client, SERVICE_MEET, &request, &response, 5000, &err) &&
              wire_read_met(response.data, response.size, &pid, &near->proof, &err);
    near->pid = (pid_t)pid;
    str_release(&request);
    str_release(&response);
    return ok;
}

static bool finish(struct rpc_client *client, int64_t request_id)
{
    struct str request = {0}, response = {0};
    wire_write_finished(request_id, &request);
    bool ok = rpc_client_call(client, SERVICE_FINISHED, &request, &response, 5000, &err);
    str_release(&request);
    str_release(&response);
    return ok;
}

/* Only who proves to be near reads; what was read is held until its reader is done, no longer.
 */
TEST(near_tasks_read_each_others_memory)
{
    start();
    scalar(world, "one", 1);
    const struct rpc_client_options options = {.address =
                                                   rpc_server_address(cluster->servers[0]),
                                               .message_bytes_max = LIMIT_MESSAGE_BYTES};
    struct rpc_client *client = rpc_client_new(&options, &err);
    CHECK_OK(client, &err);
    char key[300], host[NEAR_HOST_BYTES];
    const struct device *device = worker_device(cluster->workers[0]);
    snprintf(key, sizeof(key),
             "%s;%016" PRIx64 ";/job:worker/replica:0/task:0/device:CPU:0;e;0:0", device->name,
             device->incarnation);
    struct near_process near;
    CHECK(!meet_ps(client, "another", &near));
    CHECK_INT(err.code, PRECONDITION);
    CHECK_OK(near_host(host, &err), &err);
    CHECK_OK(meet_ps(client, host, &near), &err);
    CHECK_INT(near.pid, getpid());

    struct tensor value;
    CHECK_OK(tensor_init(&value, F32, &SHAPE(2000000), &err), &err);
    for (int64_t k = 0; k < value.count; k++)
        ((float *)value.data)[k] = (float)k;
    struct wire_receive in = {.step_id = 200, .key = key, .request_id = 1, .near = true};
    struct got got;
    put(in.step_id, key, &value);
    CHECK_OK(receive_near(client, &in, &near, &got), &err);
    CHECK_INT(got.messages, 1);
    CHECK(got.incoming.was_lent);
    CHECK(tensor_equal(&value, &got.incoming.value));
    incoming_release(&got.incoming);
    CHECK_OK(finish(client, 1), &err);
    CHECK(!finish(client, 1));
    CHECK_INT(err.code, NOT_FOUND);

    /* What another task has for a bool need not be one. */
    struct tensor flags;
    CHECK_OK(tensor_init(&flags, BOOL, &SHAPE(2000000), &err), &err);
    memset(flags.data, 7, 2000000);
    struct str head = {0};
    wire_write_received_head(&flags, false, (uint64_t)(uintptr_t)flags.data, &head);
    const struct rpc_span span = {head.data, head.size};
    struct incoming incoming = {.near = &near};
    CHECK_OK(incoming_take(&incoming, &span, 1, &err) && incoming_end(&incoming, &err), &err);
    CHECK_INT(((uint8_t *)incoming.value.data)[1999999], 1);
    incoming_release(&incoming);
    str_release(&head);
    tensor_release(&flags);

    /* Another process has the number by now; the task did not meet its peer. */
    in = (struct wire_receive){.step_id = 201, .key = key, .request_id = 2, .near = true};
    put(in.step_id, key, &value);
    near.nonce[0]++;
    CHECK(!receive_near(client, &in, &near, &got));
    CHECK_INT(err.code, UNAVAILABLE);
    CHECK(strstr(err.text, "is not the task that it was"));
    incoming_release(&got.incoming);
    in = (struct wire_receive){.step_id = 202, .key = key, .request_id = 3, .near = true};
    put(in.step_id, key, &value);
    CHECK(!receive_near(client, &in, NULL, &got));
    CHECK_INT(err.code, INVALID);
    CHECK(strstr(err.text, "a task that is not near says where its memory is"));
    incoming_release(&got.incoming);
    near.proof = 8;
    CHECK(!near_read(&near, 16, value.data, 4, &err));
    CHECK(strstr(err.text, "cannot read the memory of process"));

    /* When too many are lent, it is sent instead. */
    struct lent *lent = lent_new();
    uint64_t address;
    for (int i = 1; i <= LENT_MAX; i++)
        CHECK(lent_add(lent, i, &value, &address));
    CHECK(address == (uintptr_t)value.data);
    CHECK(!lent_add(lent, LENT_MAX + 1, &value, &address));
    CHECK(lent_end(lent, 5) && !lent_end(lent, 5));
    CHECK(!lent_add(lent, 6, &value, &address) && !lent_add(lent, 0, &value, &address));
    CHECK(lent_add(lent, 5, &value, &address));
    lent_free(lent);
    CHECK(tensor_is_exclusive(&value)); /* all was given back */
    tensor_release(&value);
    rpc_client_free(client);
    stop();
}

/* Steps find out by themselves that their tasks are near. */
TEST(large_tensors_of_steps_are_read_nearby)
{
    start();
    struct edge x = placeholder(world, "x", F32);
    on(2, node1(world, "Neg", "far", on(0, node1(world, "Neg", "ps", x))));
    extend(session, world);
    struct tensor in, out;
    CHECK_OK(tensor_init(&in, F32, &SHAPE(1500, 1000), &err), &err);
    for (int64_t k = 0; k < in.count; k++)
        ((float *)in.data)[k] = (float)k;
    const char *feed = "x", *fetch = "far";
    const struct session_run run = {.feeds = &feed,
                                    .feed_values = &in,
                                    .feeds_count = 1,
                                    .fetches = &fetch,
                                    .fetches_count = 1,
                                    .timeout_ms = 20000};
    for (int i = 0; i < 20; i++) {
        CHECK_OK(cluster_session_run(session, &run, &out, &err), &err);
        CHECK(tensor_equal(&in, &out));
        tensor_release(&out);
        usleep(1000);
    }
    CHECK_INT(((struct remote *)cluster->links[0])->peer, PEER_NEAR);
    tensor_release(&in);
    stop();
}

/* --- what another task may send in place of a tensor --- */

static bool take_text(struct incoming *incoming, const struct str *message)
{
    const struct rpc_span span = {message->data, message->size};
    return incoming_take(incoming, &span, 1, &err);
}

static void add_size(struct str *out, size_t size)
{
    for (; size > 0x7f; size >>= 7)
        str_add_char(out, (char)(size | 0x80));
    str_add_char(out, (char)size);
}

/* Stock tasks send strings as elements too, their sizes in front: no bytes to be copied. */
TEST(large_strings_of_stock_tasks_are_read)
{
    static const size_t size = 200000;
    struct str elements = {0}, tensor = {0}, answer = {0};
    struct incoming incoming = {0};
    add_size(&elements, size);
    memset(str_extend(&elements, size), 's', size);
    str_add_bytes(&tensor, "\x08\x07\x12\x04\x12\x02\x08\x01\x22", 9); /* string [1] */
    add_size(&tensor, elements.size);
    str_add_bytes(&tensor, elements.data, elements.size);
    str_add_char(&answer, 0x0a);
    add_size(&answer, tensor.size);
    str_add_bytes(&answer, tensor.data, tensor.size);
    CHECK_OK(take_text(&incoming, &answer), &err);
    CHECK_OK(incoming_end(&incoming, &err), &err);
    CHECK_INT(tensor_strings(&incoming.value)[0].size, size);
    CHECK(tensor_strings(&incoming.value)[0].data[size - 1] == 's');
    incoming_release(&incoming);
    str_release(&elements);
    str_release(&tensor);
    str_release(&answer);
}

TEST(chunks_that_do_not_fit_are_refused)
{
    struct tensor value;
    struct str head = {0}, chunk = {0}, whole = {0};
    CHECK_OK(tensor_init(&value, F32, &SHAPE(1000), &err), &err);
    memset(value.data, 0, 4000);
    wire_write_received_head(&value, true, 0, &head);
    memset(str_extend(&chunk, 2500), 1, 2500);

    struct incoming incoming = {0};
    CHECK_OK(take_text(&incoming, &head), &err);
    CHECK(!incoming_end(&incoming, &err));
    CHECK_INT(err.code, INTERNAL);
    CHECK_TEXT(err.text, "an answer to RecvTensor ends 4000 bytes before its tensor");
    CHECK_OK(take_text(&incoming, &chunk), &err);
    CHECK(!take_text(&incoming, &chunk));
    CHECK_INT(err.code, INVALID);
    CHECK_TEXT(err.text, "2500 bytes of elements came where 1500 are missing");
    incoming_release(&incoming);

    incoming = (struct incoming){0};
    CHECK(!incoming_end(&incoming, &err));
    /* Elements in the head, and more are said to follow. */
    wire_write_received(&value, false, &whole);
    str_add_bytes(&whole, "\xc0\x3e\xa0\x1f", 4);
    CHECK(!take_text(&incoming, &whole));
    CHECK_INT(err.code, INVALID);
    CHECK(strstr(err.text, "holds elements, and more follow"));
    /* 4,001 bytes, or less than none, for 1,000 floats. */
    head.data[head.size - 2] = (char)0xa1;
    CHECK(!take_text(&incoming, &head));
    CHECK(strstr(err.text, "4001 bytes of elements came for a float tensor of shape [1000]"));
    head.size -= 2;
    str_add_bytes(&head, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10);
    CHECK(!take_text(&incoming, &head));
    CHECK_INT(err.code, INVALID);
    incoming_release(&incoming);
    str_release(&head);
    str_release(&chunk);
    str_release(&whole);
    tensor_release(&value);
}
