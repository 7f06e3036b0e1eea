/* near_test.c - tensors that are read from the memory of a task that is near, and their loans.
 */
/* Faults of docs/reliability.md: F47. */

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "runtime/worker/lent.h"
#include "tests/unit/runtime/near.h"

/* --- tasks that are near --- */

/* Only who proves to be near reads; what was read is held until its reader is done, no longer.
 */
TEST(near_tasks_read_each_others_memory)
{
    start();
    scalar(world, "one", 1);
    struct rpc_client *client = ps_client();
    char key[300], host[NEAR_HOST_BYTES];
    send_key(key);
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
    int64_t mark = 9;
    const struct near_place place = {.address = (uint64_t)(uintptr_t)flags.data,
                                     .mark = (uint64_t)(uintptr_t)&mark};
    wire_write_received_head(&flags, false, &place, NULL, &head);
    struct incoming incoming = {.near = &near, .request_id = 9};
    CHECK_OK(incoming_take(&incoming, head.data, head.size, &err) &&
                 incoming_end(&incoming, &err),
             &err);
    CHECK_INT(((uint8_t *)incoming.value.data)[1999999], 1);
    incoming_release(&incoming);
    /* It was taken back, and perhaps changed, before all was read. */
    mark = 0;
    incoming = (struct incoming){.near = &near, .request_id = 9};
    CHECK(!incoming_take(&incoming, head.data, head.size, &err));
    CHECK_INT(err.code, UNAVAILABLE);
    CHECK(strstr(err.text, "a tensor was read after it had been given up"));
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
    CHECK(!near_prove(&near, &err));
    CHECK(strstr(err.text, "cannot read the memory of process"));

    tensor_release(&value);
    rpc_client_free(client);
    stop();
}

/* --- loans --- */

/* A step ends by itself where nothing is left of it, and only if its master knows of that. */
TEST(steps_end_with_their_parts)
{
    start();
    scalar(world, "one", 1);
    struct rpc_client *client = ps_client();
    struct tensor value = zeros(5);
    struct got got;
    char key[300];
    send_key(key);
    CHECK(!put_in_step(700, key, NULL, false));
    CHECK(!is_over(700, key));
    CHECK(put_in_step(701, key, NULL, true));
    CHECK(is_over(701, key));
    /* What was sent is still to be fetched. */
    CHECK(!put_in_step(702, key, &value, true));
    const struct wire_receive in = {.step_id = 702, .key = key, .request_id = 1};
    CHECK_OK(receive_from_ps(client, SERVICE_CHUNKS, &in, &got), &err);
    incoming_release(&got.incoming);
    tensor_release(&value);
    rpc_client_free(client);
    stop();
}

/* When too many are lent, a tensor is sent instead. */
TEST(loans_are_counted)
{
    struct lent *lent = lent_new(LENT_MS);
    struct tensor value = zeros(10);
    struct near_place place;
    for (int i = 1; i <= LENT_MAX; i++)
        CHECK(lent_add(lent, &(struct loan){1, i}, &value, &place, NULL));
    CHECK(place.address == (uintptr_t)value.data);
    CHECK_INT(*(const int64_t *)(uintptr_t)place.mark, LENT_MAX);
    CHECK(!lent_add(lent, &(struct loan){1, LENT_MAX + 1}, &value, &place, NULL));
    CHECK(lent_end(lent, 5) && !lent_end(lent, 5) && !lent_end(lent, 0));
    CHECK(!lent_add(lent, &(struct loan){1, 6}, &value, &place, NULL));
    CHECK(!lent_add(lent, &(struct loan){1, 0}, &value, &place, NULL));
    CHECK(lent_add(lent, &(struct loan){2, 5}, &value, &place, NULL));
    lent_end_step(lent, 1);
    CHECK_INT(lent_count(lent), 1);
    lent_free(lent);
    CHECK(tensor_is_exclusive(&value)); /* all was given back */
    tensor_release(&value);
}

static void await_exclusive(const struct tensor *value)
{
    for (int i = 0; !tensor_is_exclusive(value) && i < 5000; i++)
        usleep(1000);
    CHECK(tensor_is_exclusive(value));
}

/* A reader that is never heard of again holds nothing for ever, though nobody asks. */
TEST(loans_end_with_their_time)
{
    struct lent *lent = lent_new(30);
    struct tensor value = zeros(10);
    struct near_place place;
    for (int round = 0; round < 3; round++) {
        CHECK(lent_add(lent, &(struct loan){1, 7}, &value, &place, NULL));
        usleep(10000);
        CHECK(lent_add(lent, &(struct loan){1, 8}, &value, &place, NULL));
        CHECK(!tensor_is_exclusive(&value));
        await_exclusive(&value);
        CHECK_INT(lent_count(lent), 0);
    }
    CHECK(lent_add(lent, &(struct loan){1, 7}, &value, &place, NULL));
    lent_free(lent);
    CHECK(tensor_is_exclusive(&value));
    tensor_release(&value);
}

/* The reader is lost after it was told where to read; the step ends all the same. */
TEST(loans_end_with_their_step)
{
    start();
    scalar(world, "one", 1);
    struct rpc_client *client = ps_client();
    struct tensor value = zeros(1000000);
    struct near_process near;
    struct got got;
    char key[300], host[NEAR_HOST_BYTES];
    struct near_place place;
    send_key(key);
    CHECK_OK(near_host(host, &err), &err);
    CHECK_OK(meet_ps(client, host, &near), &err);
    const struct wire_receive in = {.step_id = 300, .key = key, .request_id = 1, .near = true};
    put(in.step_id, key, &value);
    CHECK_OK(receive_near(client, &in, &near, &got), &err);
    incoming_release(&got.incoming);
    CHECK_INT(worker_lent_count(cluster->workers[0]), 1);
    cluster->links[0]->kind->cleanup_graph(cluster->links[0], 300);
    await_no_loans();
    CHECK(!finish(client, 1));
    CHECK_INT(err.code, NOT_FOUND);
    /* Nor is anything lent in it any more. */
    CHECK(!worker_lend(cluster->workers[0], &(struct loan){300, 2}, &value, &place, NULL));
    CHECK(worker_lend(cluster->workers[0], &(struct loan){301, 2}, &value, &place, NULL));
    CHECK_INT(worker_lent_count(cluster->workers[0]), 1);
    CHECK(worker_lend_end(cluster->workers[0], 2));
    tensor_release(&value);
    rpc_client_free(client);
    stop();
}

/* Those that are asked for while it is not known yet whom they come from wait for that. */
TEST(the_first_tensors_are_read_nearby)
{
    struct arrival arrivals[3] = {0};
    start();
    scalar(world, "one", 1);
    struct tensor value = zeros(1000000);
    char key[300];
    send_key(key);
    for (int i = 0; i < ARRAY_LEN(arrivals); i++) {
        put(400 + i, key, &value);
        cluster->links[0]->kind->receive(cluster->links[0], 400 + i, key, arrive, &arrivals[i]);
    }
    for (int i = 0; i < ARRAY_LEN(arrivals); i++) {
        await_arrival(&arrivals[i]);
        CHECK_OK(arrivals[i].err.code == OK, &arrivals[i].err);
        CHECK_INT(peer_of_ps(), PEER_NEAR);
    }
    await_no_loans();
    tensor_release(&value);
    stop();
}

/* What is known of it may change before the answer comes: nothing waits for ever. */
TEST(tensors_come_though_a_meeting_came_to_nothing)
{
    start();
    scalar(world, "one", 1);
    struct tensor value = zeros(1000000);
    struct remote *remote = (struct remote *)cluster->links[0];
    char key[300];
    send_key(key);
    for (int i = 0; i < 20; i++) {
        struct arrival arrival = {0};
        pthread_mutex_lock(&remote->lock);
        remote->peer = i % 2 ? PEER_OURS : PEER_UNKNOWN;
        pthread_mutex_unlock(&remote->lock);
        put(500 + i, key, &value);
        remote->base.kind->receive(&remote->base, 500 + i, key, arrive, &arrival);
        usleep((useconds_t)i * 20);
        pthread_mutex_lock(&remote->lock);
        remote->peer = PEER_UNKNOWN;
        pthread_mutex_unlock(&remote->lock);
        await_arrival(&arrival);
        CHECK_OK(arrival.err.code == OK, &arrival.err);
    }
    await_no_loans();
    tensor_release(&value);
    stop();
}

/* A task that is not there is not waited for. */
TEST(tensors_of_nobody_fail)
{
    struct arrival arrival = {0};
    start();
    struct worker_link *link =
        link_rpc_new("/job:ps/replica:0/task:0", "127.0.0.1:1", NULL, &err);
    CHECK(link);
    link->kind->receive(link, 1, "a;1;b;c;0:0", arrive, &arrival);
    await_arrival(&arrival);
    CHECK_INT(arrival.err.code, UNAVAILABLE);
    CHECK(strstr(arrival.err.text, "RecvTensor"));
    link->kind->free(link);
    stop();
}

/* What cannot be read is given back at once; the next tensor finds out anew how to come. */
TEST(loans_end_when_reading_fails)
{
    start();
    scalar(world, "one", 1);
    struct tensor value = zeros(1000000);
    char key[300];
    send_key(key);
    CHECK_INT(settle_peer(1000, key, &value), PEER_NEAR);
    ((struct remote *)cluster->links[0])->near.nonce[0]++;
    put(300, key, &value);
    CHECK(!receive_by_link(300, key));
    CHECK_INT(err.code, UNAVAILABLE);
    CHECK(strstr(err.text, "is not the task that it was"));
    await_no_loans();
    CHECK_INT(settle_peer(3000, key, &value), PEER_NEAR);
    tensor_release(&value);
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

/* --- who is believed to be near --- */

struct liar {
    unsigned char nonce[NEAR_NONCE_BYTES];
    bool names_other; /* a process that has the nonce, too, at the same place */
    pid_t other;      /* 0: none was made */
};

static void answer_status(void *self, struct rpc_call *call)
{
    const struct device device = {.name = "/job:ps/replica:0/task:0/device:CPU:0",
                                  .incarnation = 7};
    struct str out = {0};
    (void)self;
    wire_write_status(&device, 1, &out);
    rpc_call_reply(call, out.data, out.size);
    str_release(&out);
}

static void answer_meet(void *self, struct rpc_call *call)
{
    struct liar *liar = self;
    size_t size;
    const void *bytes = rpc_call_bytes(call, &size);
    struct arena *arena = arena_new();
    struct wire_meet in;
    struct str out = {0};
    struct error bad;
    assert(wire_read_meet(bytes, size, arena, &in, &bad));
    memcpy(liar->nonce, in.nonce, sizeof(liar->nonce));
    /* As fork() does, but for what libraries would do then. */
    pid_t pid = liar->names_other ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : getpid();
    if (liar->names_other && !pid) {
        syscall(SYS_close_range, 0, ~0U, 0);
        for (;;)
            pause();
    }
    liar->other = liar->names_other ? pid : 0;
    wire_write_met(&(struct wire_met){pid, (uint64_t)(uintptr_t)liar->nonce, "", ""}, &out);
    rpc_call_reply(call, out.data, out.size);
    str_release(&out);
    arena_free(arena);
}

static void answer_no_tensor(void *self, struct rpc_call *call)
{
    struct error none;
    (void)self;
    (void)fail(&none, INVALID, "there is no tensor");
    rpc_call_fail(call, &none);
}

static enum peer believed(bool names_other)
{
    static const struct rpc_method methods[] = {
        {"/tensorflow.WorkerService/GetStatus", answer_status},
        {SERVICE_MEET, answer_meet},
        {SERVICE_CHUNKS, answer_no_tensor},
        {0},
    };
    static const char key[] = "/job:ps/replica:0/task:0/device:CPU:0;0000000000000007;"
                              "/job:worker/replica:0/task:0/device:CPU:0;e;0:0";
    struct liar liar = {.names_other = names_other};
    const struct rpc_server_options options = {.address = "127.0.0.1:0",
                                               .message_bytes_max = 1 << 20};
    struct rpc_server *server = rpc_server_start(&options, methods, &liar, &err);
    CHECK_OK(server, &err);
    struct worker_link *link =
        link_rpc_new("/job:ps/replica:0/task:0", rpc_server_address(server), NULL, &err);
    CHECK_OK(link, &err);
    struct remote *remote = (struct remote *)link;
    struct arrival arrival = {0};
    struct device device;
    int count;
    CHECK_OK(link->kind->status(link, &device, 1, &count, &err), &err);
    link->kind->receive(link, 1, key, arrive, &arrival);
    enum peer peer = PEER_MEETS;
    for (int i = 0; peer == PEER_MEETS && i < 5000; i++) {
        usleep(1000);
        pthread_mutex_lock(&remote->lock);
        peer = remote->peer;
        pthread_mutex_unlock(&remote->lock);
    }
    link_free(link);
    rpc_server_stop(server);
    if (liar.other > 0) {
        kill(liar.other, SIGKILL);
        waitpid(liar.other, NULL, 0);
    }
    CHECK(!names_other || liar.other > 0);
    return peer;
}

/* A task has its own memory read, nobody else's. */
TEST(only_the_process_at_the_other_end_is_near)
{
    CHECK_INT(believed(false), PEER_NEAR);
    CHECK_INT(believed(true), PEER_FAR);
}

/* The last of this program, as nothing lets a process read others' memory again. */
TEST(memory_that_may_not_be_read_is_sent)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {ARRAY_LEN(filter), filter};
    start();
    scalar(world, "one", 1);
    struct tensor value = zeros(1000000);
    char key[300];
    send_key(key);
    CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    CHECK(!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program));
    CHECK_INT(settle_peer(1000, key, &value), PEER_FAR);
    put(300, key, &value);
    CHECK_OK(receive_by_link(300, key), &err);
    CHECK_INT(worker_lent_count(cluster->workers[0]), 0);
    tensor_release(&value);
    stop();
}
