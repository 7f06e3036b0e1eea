/* rpc_later_test.c - work that a handler leaves to the thread of a gRPC server. */

#include <pthread.h>
#include <stdlib.h>

#include "base/str.h"
#include "proto/rpc.h"
#include "tests/unit/test.h"

static struct error err;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards: all below */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int at_gate, refused, ended, left;
static bool is_open;
static pthread_t handler_thread, work_thread;

static void set_gate(bool open)
{
    pthread_mutex_lock(&lock);
    is_open = open;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void count(int *what)
{
    pthread_mutex_lock(&lock);
    ++*what;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void wait_for(const int *what, int number)
{
    pthread_mutex_lock(&lock);
    while (*what < number)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static bool is_done_where_it_was_left(void)
{
    pthread_mutex_lock(&lock);
    bool same = pthread_equal(work_thread, handler_thread);
    pthread_mutex_unlock(&lock);
    return same;
}

static void nothing(void *arg)
{
    (void)arg;
}

static void wait_at_gate(void *arg)
{
    CHECK(!rpc_call_later(arg, nothing, NULL)); /* no handler runs here */
    pthread_mutex_lock(&lock);
    work_thread = pthread_self();
    at_gate++;
    pthread_cond_broadcast(&changed);
    while (!is_open)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    rpc_call_reply(arg, "done", 4);
    count(&left);
}

static void echo(void *self, struct rpc_call *call)
{
    size_t size;
    const void *bytes = rpc_call_bytes(call, &size);
    (void)self;
    rpc_call_reply(call, bytes, size);
}

static void block(void *self, struct rpc_call *call)
{
    (void)self;
    pthread_mutex_lock(&lock);
    handler_thread = pthread_self();
    pthread_mutex_unlock(&lock);
    if (rpc_call_later(call, wait_at_gate, call)) {
        CHECK(!rpc_call_later(call, nothing, NULL));
        return;
    }
    count(&refused);
    rpc_call_reply(call, "busy", 4);
}

static const struct rpc_method methods[] = {{"/t/Echo", echo}, {"/t/Block", block}, {0}};

static struct rpc_server *server;
static struct rpc_client *client;

static void begin(void)
{
    const struct rpc_server_options serving = {.address = "127.0.0.1:0",
                                               .message_bytes_max = 1 << 20};
    server = rpc_server_start(&serving, methods, NULL, &err);
    CHECK_OK(server, &err);
    const struct rpc_client_options calling = {.address = rpc_server_address(server),
                                               .message_bytes_max = 1 << 20};
    client = rpc_client_new(&calling, &err);
    CHECK_OK(client, &err);
    at_gate = refused = ended = left = 0;
    set_gate(false);
}

static void answered(void *arg, const struct str *answer, const struct error *error)
{
    const char *wanted = arg;
    CHECK(error ? !wanted : wanted && answer->size == strlen(wanted));
    CHECK(error || !memcmp(answer->data, wanted, answer->size));
    count(&ended);
}

static void ask(const char *wanted)
{
    const struct str request = {0};
    rpc_client_start(client, "/t/Block", &request, answered, (void *)wanted);
}

static void check_echo(void)
{
    struct str request = {0}, answer = {0};
    str_add(&request, "hello");
    CHECK_OK(rpc_client_call(client, "/t/Echo", &request, &answer, 60000, &err), &err);
    CHECK_TEXT(str_text(&answer), "hello");
    str_release(&request);
    str_release(&answer);
}

/* What blocks holds nobody up, however much of it there is, time and again. */
TEST(later_holds_nobody_up)
{
    enum { AT_ONCE = 5 };
    begin();
    for (int i = 0; i < 10; i++) {
        set_gate(false);
        for (int n = 0; n < AT_ONCE; n++) {
            ask("done");
            wait_for(&at_gate, AT_ONCE * i + n + 1);
            CHECK(is_done_where_it_was_left());
            check_echo();
        }
        set_gate(true);
        wait_for(&ended, AT_ONCE * (i + 1));
        check_echo();
    }
    CHECK_INT(refused, 0);
    rpc_client_free(client);
    rpc_server_stop(server);
}

/* It is done by the thread that served the call, which then serves on. */
TEST(later_needs_no_other_thread)
{
    begin();
    set_gate(true);
    for (int i = 0; i < 200; i++) {
        ask("done");
        wait_for(&ended, i + 1);
    }
    CHECK(is_done_where_it_was_left());
    CHECK_INT(at_gate, 200);
    rpc_client_free(client);
    rpc_server_stop(server);
}

/* A server that stops answers in place of the work, which may go on behind its end. */
TEST(later_outlives_the_server)
{
    begin();
    ask(NULL);
    wait_for(&at_gate, 1);
    rpc_server_stop(server);
    wait_for(&ended, 1);
    CHECK_INT(left, 0);
    set_gate(true);
    wait_for(&left, 1);
    rpc_client_free(client);
}
