/* rpc_socket_test.c - who may call over a socket, and what it makes of what it does not know.
 */

#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "proto/channel.h"
#include "tests/unit/test.h"

static void echo(void *self, struct rpc_call *call)
{
    size_t size;
    const void *bytes = rpc_call_bytes(call, &size);
    (void)self;
    rpc_call_reply(call, bytes, size);
}

static const struct rpc_method methods[] = {{"/t/Echo", echo}, {0}};

static struct error err;

static struct rpc_server *serve(const char *secret)
{
    const struct rpc_server_options options = {
        .address = "socket:", .secret = secret, .message_bytes_max = 1 << 20};
    struct rpc_server *server = rpc_server_start(&options, methods, NULL, &err);
    CHECK_OK(server, &err);
    return server;
}

static bool ask(const char *address, const char *secret, const char *text)
{
    const struct rpc_client_options options = {
        .address = address, .secret = secret, .shown = "the ps", .message_bytes_max = 1 << 20};
    struct rpc_client *client = rpc_client_new(&options, &err);
    struct str request = {0}, answer = {0};
    CHECK_OK(client, &err);
    str_add(&request, text);
    bool ok = rpc_client_call(client, "/t/Echo", &request, &answer, 60000, &err);
    if (ok)
        CHECK_TEXT(str_text(&answer), text);
    rpc_client_free(client);
    str_release(&request);
    str_release(&answer);
    return ok;
}

TEST(socket_asks_for_its_secret)
{
    static const char *const wrong[] = {"", "open sesam", "open sesame!", "Open sesame", NULL};
    struct rpc_server *server = serve("open sesame");
    const char *address = rpc_server_address(server);
    CHECK_OK(ask(address, "open sesame", "hello"), &err);
    for (int i = 0; i < ARRAY_LEN(wrong); i++) {
        CHECK_FAILS(ask(address, wrong[i], "hello"), &err, UNAVAILABLE);
        CHECK(strstr(err.text, "the ps"));
        CHECK(!strstr(err.text, "sesame"));
    }
    CHECK_OK(ask(address, "open sesame", "hello"), &err);
    rpc_server_stop(server);
}

static int connect_raw(const char *text)
{
    struct sockaddr_un address;
    uint32_t size;
    CHECK_OK(channel_address(text, &address, &size, &err), &err);
    int to = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(to >= 0);
    CHECK_INT(connect(to, (const struct sockaddr *)&address, size), 0);
    return to;
}

static void add_frame(struct str *out, enum frame_kind kind, uint64_t call, const char *path,
                      const char *body)
{
    const struct frame_head head = {.size = (uint32_t)(strlen(path) + strlen(body)),
                                    .kind = (uint16_t)kind,
                                    .path_size = (uint16_t)strlen(path),
                                    .call = call};
    str_add_bytes(out, &head, sizeof(head));
    str_add(out, path);
    str_add(out, body);
}

/* What comes in pieces of any size is the same. */
TEST(socket_reads_frames_in_pieces)
{
    static const size_t pieces[] = {1, 7, 16, 1000};
    struct rpc_server *server = serve(NULL);
    struct str said = {0};
    add_frame(&said, FRAME_HELLO, 0, "", "");
    add_frame(&said, FRAME_REQUEST, 7, "/t/Echo", "one");
    add_frame(&said, FRAME_CANCEL, 99, "", "");
    add_frame(&said, FRAME_REQUEST, 8, "/t/Echo", "three");
    for (int i = 0; i < ARRAY_LEN(pieces); i++) {
        int to = connect_raw(rpc_server_address(server));
        char got[2 * sizeof(struct frame_head) + 8];
        for (size_t at = 0; at < said.size; at += pieces[i]) {
            size_t size = said.size - at < pieces[i] ? said.size - at : pieces[i];
            CHECK_INT(send(to, said.data + at, size, 0), size);
            if (pieces[i] < 16)
                usleep(200);
        }
        CHECK_INT(recv(to, got, sizeof(got), MSG_WAITALL), sizeof(got));
        struct frame_head heads[2];
        memcpy(&heads[0], got, sizeof(heads[0]));
        memcpy(&heads[1], got + sizeof(heads[0]) + 3, sizeof(heads[1]));
        CHECK_INT(heads[0].call, 7);
        CHECK_INT(heads[0].kind, FRAME_REPLY);
        CHECK(!memcmp(got + sizeof(heads[0]), "one", 3));
        CHECK_INT(heads[1].call, 8);
        CHECK(!memcmp(got + sizeof(got) - 5, "three", 5));
        close(to);
    }
    str_release(&said);
    rpc_server_stop(server);
}

/* Who does not speak the language is hung up on; others do not notice. */
TEST(socket_hangs_up_on_nonsense)
{
    static const char *const nonsense[] = {"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
                                           "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
                                           "\xff\xff\xff\xff"};
    struct rpc_server *server = serve(NULL);
    for (int i = 0; i < ARRAY_LEN(nonsense); i++) {
        for (int greets = 0; greets < 2; greets++) {
            int to = connect_raw(rpc_server_address(server));
            struct str said = {0};
            char got;
            if (greets)
                add_frame(&said, FRAME_HELLO, 0, "", "");
            str_add(&said, nonsense[i]);
            CHECK_INT(send(to, said.data, said.size, MSG_NOSIGNAL), said.size);
            CHECK(recv(to, &got, 1, 0) <= 0);
            close(to);
            str_release(&said);
        }
    }
    CHECK_OK(ask(rpc_server_address(server), NULL, "still here"), &err);
    rpc_server_stop(server);
}

/* A server that is there but stands still is given up, after a ping. */
TEST(socket_gives_up_who_stands_still)
{
    struct sockaddr_un address;
    uint32_t size;
    char name[64];
    snprintf(name, sizeof(name), "socket:trainyard-test-still-%d", (int)getpid());
    CHECK_OK(channel_address(name, &address, &size, &err), &err);
    int still = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_INT(bind(still, (const struct sockaddr *)&address, size), 0);
    CHECK_INT(listen(still, 1), 0);
    uint64_t start_us = clock_monotonic_us();
    CHECK_FAILS(ask(name, NULL, "hello"), &err, UNAVAILABLE);
    CHECK(strstr(err.text, "ping"));
    CHECK(clock_monotonic_us() - start_us < 30000000);
    close(still);
}

static void answer_late(void *arg)
{
    sleep(7); /* the client looks at its silent calls every 5 s */
    rpc_call_reply(arg, "late", 4);
}

static void late(void *self, struct rpc_call *call)
{
    (void)self;
    CHECK(rpc_call_later(call, answer_late, call));
}

/* The ping that was not answered was another connection's. */
TEST(socket_begins_anew_after_a_ping)
{
    static const struct rpc_method late_methods[] = {{"/t/Late", late}, {0}};
    char name[64];
    snprintf(name, sizeof(name), "socket:trainyard-test-anew-%d", (int)getpid());
    const struct rpc_client_options calling = {.address = name, .message_bytes_max = 1 << 20};
    const struct rpc_server_options serving = {.address = name, .message_bytes_max = 1 << 20};
    struct sockaddr_un address;
    uint32_t size;
    struct str request = {0}, answer = {0};
    CHECK_OK(channel_address(name, &address, &size, &err), &err);
    int still = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_INT(bind(still, (const struct sockaddr *)&address, size), 0);
    CHECK_INT(listen(still, 1), 0);
    struct rpc_client *client = rpc_client_new(&calling, &err);
    CHECK_OK(client, &err);
    CHECK_FAILS(rpc_client_call(client, "/t/Late", &request, &answer, 60000, &err), &err,
                UNAVAILABLE);
    close(still);
    struct rpc_server *server = rpc_server_start(&serving, late_methods, NULL, &err);
    CHECK_OK(server, &err);
    CHECK_OK(rpc_client_call(client, "/t/Late", &request, &answer, 60000, &err), &err);
    rpc_client_free(client);
    rpc_server_stop(server);
    str_release(&answer);
}

TEST(socket_addresses_that_are_none)
{
    char longer[200] = "socket:";
    memset(longer + 7, 'x', sizeof(longer) - 8);
    CHECK_FAILS(ask("socket:", NULL, "hello"), &err, INVALID);
    CHECK_FAILS(ask(longer, NULL, "hello"), &err, INVALID);
}

/* --- work that a handler leaves its thread --- */

static pthread_mutex_t gate_lock = PTHREAD_MUTEX_INITIALIZER; /* guards: all below */
static pthread_cond_t gate_changed = PTHREAD_COND_INITIALIZER;
static int at_gate, refused, ended;
static bool gate_is_open;

static void set_gate(bool open)
{
    pthread_mutex_lock(&gate_lock);
    gate_is_open = open;
    pthread_cond_broadcast(&gate_changed);
    pthread_mutex_unlock(&gate_lock);
}

static void count(int *what)
{
    pthread_mutex_lock(&gate_lock);
    ++*what;
    pthread_cond_broadcast(&gate_changed);
    pthread_mutex_unlock(&gate_lock);
}

static void wait_for(const int *what, int number)
{
    pthread_mutex_lock(&gate_lock);
    while (*what < number)
        pthread_cond_wait(&gate_changed, &gate_lock);
    pthread_mutex_unlock(&gate_lock);
}

static void work_nothing(void *arg)
{
    (void)arg;
}

static void wait_at_gate(void *arg)
{
    CHECK(!rpc_call_later(arg, work_nothing, NULL)); /* no handler runs here */
    count(&at_gate);
    pthread_mutex_lock(&gate_lock);
    while (!gate_is_open)
        pthread_cond_wait(&gate_changed, &gate_lock);
    pthread_mutex_unlock(&gate_lock);
    rpc_call_reply(arg, "done", 4);
}

static void open_gate(void *arg)
{
    (void)arg;
    set_gate(true);
}

/* Ends when the gate is opened, or its client goes. */
static void block(void *self, struct rpc_call *call)
{
    (void)self;
    rpc_call_watch(call, open_gate, malloc(1));
    if (rpc_call_later(call, wait_at_gate, call))
        return;
    count(&refused);
    rpc_call_reply(call, "busy", 4);
}

static const struct rpc_method slow_methods[] = {{"/t/Echo", echo}, {"/t/Block", block}, {0}};

static struct rpc_server *serve_slowly(void)
{
    const struct rpc_server_options options = {.address = "socket:",
                                               .message_bytes_max = 1 << 20};
    struct rpc_server *server = rpc_server_start(&options, slow_methods, NULL, &err);
    CHECK_OK(server, &err);
    at_gate = refused = ended = 0;
    set_gate(false);
    return server;
}

static void answered(void *arg, const struct str *answer, const struct error *error)
{
    const char *wanted = arg;
    CHECK(error ? !wanted : wanted && answer->size == strlen(wanted));
    CHECK(error || !memcmp(answer->data, wanted, answer->size));
    count(&ended);
}

/* However many block, others are served, also on the same connection. */
TEST(socket_serves_on_while_work_blocks)
{
    enum { CALLS = 40 };
    struct rpc_server *server = serve_slowly();
    const char *address = rpc_server_address(server);
    const struct rpc_client_options options = {.address = address,
                                               .message_bytes_max = 1 << 20};
    struct rpc_client *client = rpc_client_new(&options, &err);
    struct str request = {0}, answer = {0};
    CHECK_OK(client, &err);
    str_add(&request, "hello");
    for (int i = 0; i < CALLS; i++) {
        rpc_client_start(client, "/t/Block", &request, answered, "done");
        wait_for(&at_gate, i + 1);
        CHECK_OK(rpc_client_call(client, "/t/Echo", &request, &answer, 60000, &err), &err);
        CHECK_OK(ask(address, NULL, "hello"), &err);
    }
    CHECK_INT(refused, 0);
    CHECK_INT(ended, 0);
    set_gate(true);
    wait_for(&ended, CALLS);
    CHECK_OK(rpc_client_call(client, "/t/Echo", &request, &answer, 60000, &err), &err);
    rpc_client_free(client);
    rpc_server_stop(server);
    str_release(&request);
    str_release(&answer);
}

/* A thread takes one piece of work of what it reads at a time: two may wait for each other. */
TEST(socket_threads_take_one_work_each)
{
    struct rpc_server *server = serve_slowly();
    struct str said = {0};
    struct frame_head head;
    char body[4];
    int busy = 0;
    add_frame(&said, FRAME_HELLO, 0, "", "");
    for (uint64_t call = 1; call <= 3; call++)
        add_frame(&said, FRAME_REQUEST, call, "/t/Block", "");
    int to = connect_raw(rpc_server_address(server));
    CHECK_INT(send(to, said.data, said.size, 0), said.size);
    for (int i = 0; i < 3; i++) {
        if (i == 2)
            set_gate(true);
        CHECK_INT(recv(to, &head, sizeof(head), MSG_WAITALL), sizeof(head));
        CHECK_INT(recv(to, body, sizeof(body), MSG_WAITALL), sizeof(body));
        CHECK_INT(head.call, i == 2 ? 1 : i + 2);
        busy += !memcmp(body, "busy", 4);
    }
    CHECK_INT(busy, 2);
    close(to);
    str_release(&said);
    rpc_server_stop(server);
}

/* Who works is told that nobody wants it any more, so a server can stop; its client is told,
 * too. */
TEST(socket_stops_while_work_blocks)
{
    struct rpc_server *server = serve_slowly();
    const struct rpc_client_options options = {.address = rpc_server_address(server),
                                               .message_bytes_max = 1 << 20};
    struct rpc_client *client = rpc_client_new(&options, &err);
    struct str request = {0};
    CHECK_OK(client, &err);
    rpc_client_start(client, "/t/Block", &request, answered, NULL);
    wait_for(&at_gate, 1);
    rpc_server_stop(server);
    wait_for(&ended, 1);
    CHECK(gate_is_open);
    rpc_client_free(client);
}
