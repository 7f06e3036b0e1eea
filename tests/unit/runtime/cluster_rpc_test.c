/* cluster_rpc_test.c - workers that reach each other by TensorFlow's WorkerService. */
/* Faults of docs/reliability.md: F6 F19. */

#include "tests/unit/runtime/exchange.h"

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
    CHECK_OK(master->kind->register_graph(master, "s", graph.data, graph.size, 0, handle, &err),
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
    service_free(cluster->services[0]); /* and with it the socket for who is near */
    cluster->services[0] = NULL;
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
    CHECK_INT(err.code, INTERNAL);
    CHECK(!ask("/tensorflow.WorkerService/CompleteInstance", &request, &response));
    CHECK_INT(err.code, PRECONDITION);
    CHECK(!ask("/tensorflow.WorkerService/RecvBuf", &request, &response));
    CHECK_INT(err.code, INVALID);
    CHECK(!ask("/tensorflow.WorkerService/RecvDebug", &request, &response));
    CHECK_INT(err.code, UNIMPLEMENTED);
    str_release(&request);
    str_release(&response);
    stop();
}
