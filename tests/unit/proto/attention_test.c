/* attention_test.c - threads that take answers themselves while they wait for them. */

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "proto/attention.h"
#include "proto/rpc.h"
#include "tests/unit/test.h"

static struct error err;

/* --- a server: an echo, late if it is asked for that, and what is never answered --- */

static void late(void *arg)
{
    usleep(3000);
    rpc_call_reply(arg, "late", 4);
}

static void echo(void *self, struct rpc_call *call)
{
    size_t size;
    const char *bytes = rpc_call_bytes(call, &size);
    (void)self;
    if (size != 4 || memcmp(bytes, "late", 4) != 0)
        rpc_call_reply(call, bytes, size);
    else if (!rpc_call_later(call, late, call))
        late(call);
}

static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rpc_call *kept;

static void keep(void *self, struct rpc_call *call)
{
    (void)self;
    pthread_mutex_lock(&kept_lock);
    kept = call;
    pthread_mutex_unlock(&kept_lock);
}

static struct rpc_call *take_kept(void)
{
    struct rpc_call *call = NULL;
    while (!call) {
        pthread_mutex_lock(&kept_lock);
        call = kept;
        kept = NULL;
        pthread_mutex_unlock(&kept_lock);
        if (!call)
            usleep(500);
    }
    return call;
}

static const struct rpc_method methods[] = {{"/t/Echo", echo}, {"/t/Keep", keep}, {0}};

static struct rpc_server *serve(void)
{
    const struct rpc_server_options options = {.address = "socket:",
                                               .message_bytes_max = 1 << 20};
    struct rpc_server *server = rpc_server_start(&options, methods, NULL, &err);
    CHECK_OK(server, &err);
    return server;
}

static struct rpc_client *client_of(const char *address)
{
    const struct rpc_client_options options = {.address = address,
                                               .message_bytes_max = 1 << 20};
    struct rpc_client *client = rpc_client_new(&options, &err);
    CHECK_OK(client, &err);
    return client;
}

/* --- who waits, as the runs of steps do --- */

struct wait {
    pthread_mutex_t lock; /* guards: all below */
    pthread_cond_t changed;
    struct attention *attention;
    bool is_over;
    enum error_code code;
    pthread_t teller;
};

static void wait_init(struct wait *wait)
{
    *wait = (struct wait){.code = OK};
    pthread_mutex_init(&wait->lock, NULL);
    pthread_cond_init(&wait->changed, NULL);
}

static void tell(void *arg, const struct str *answer, const struct error *error)
{
    struct wait *wait = arg;
    (void)answer;
    pthread_mutex_lock(&wait->lock);
    wait->is_over = true;
    wait->code = error ? error->code : OK;
    wait->teller = pthread_self();
    pthread_cond_signal(&wait->changed);
    if (wait->attention)
        attention_call(wait->attention);
    pthread_mutex_unlock(&wait->lock);
}

static bool is_over(void *arg)
{
    struct wait *wait = arg;
    pthread_mutex_lock(&wait->lock);
    bool over = wait->is_over;
    pthread_mutex_unlock(&wait->lock);
    return over;
}

/* How long it was attended to, until it was over. */
static uint64_t attend(struct wait *wait, uint64_t until_ns)
{
    uint64_t start_us = clock_monotonic_us();
    pthread_mutex_lock(&wait->lock);
    wait->attention = attention_mine();
    pthread_mutex_unlock(&wait->lock);
    if (wait->attention)
        attention_give(is_over, wait, until_ns);
    uint64_t took_us = clock_monotonic_us() - start_us;
    pthread_mutex_lock(&wait->lock);
    wait->attention = NULL;
    while (!until_ns && !wait->is_over)
        pthread_cond_wait(&wait->changed, &wait->lock);
    pthread_mutex_unlock(&wait->lock);
    return took_us;
}

static void start(struct rpc_client *client, const char *path, const char *text,
                  struct wait *wait)
{
    struct str request = {0};
    wait_init(wait);
    str_add(&request, text);
    rpc_client_start(client, path, &request, tell, wait);
    str_release(&request);
}

/* --- tests --- */

/* The answer is taken by who waits for it: by no other thread, if it is late enough. */
TEST(attention_takes_what_it_waits_for)
{
    struct rpc_server *server = serve();
    struct rpc_client *client = client_of(rpc_server_address(server));
    int own = 0;
    CHECK(!attention_mine());
    for (int i = 0; i < 50; i++) {
        struct wait wait;
        attention_begin();
        CHECK(!attention_mine());
        start(client, "/t/Echo", "late", &wait);
        CHECK(attention_mine());
        attend(&wait, 0);
        own += pthread_equal(wait.teller, pthread_self()) != 0;
        CHECK_INT(wait.code, OK);
        attention_end();
        CHECK(!attention_mine());
    }
    CHECK(own > 25);
    rpc_client_free(client);
    rpc_server_stop(server);
}

/* What calls bring whose thread has not said that it attends is told by the client's. */
TEST(attention_is_asked_for)
{
    struct rpc_server *server = serve();
    struct rpc_client *client = client_of(rpc_server_address(server));
    struct wait wait;
    start(client, "/t/Echo", "late", &wait);
    CHECK(!attention_mine());
    attend(&wait, 0);
    CHECK(!pthread_equal(wait.teller, pthread_self()));
    rpc_client_free(client);
    rpc_server_stop(server);
}

/* One that takes long is left to the client's thread; a moment that is given comes first. */
TEST(attention_ends_by_itself)
{
    struct rpc_server *server = serve();
    struct rpc_client *client = client_of(rpc_server_address(server));
    struct wait wait;
    attention_begin();
    start(client, "/t/Keep", "", &wait);
    struct rpc_call *call = take_kept();
    CHECK(attend(&wait, UINT64_MAX) < 5000000);
    CHECK(!wait.is_over);
    uint64_t now_ns = clock_monotonic_ns();
    attend(&wait, now_ns + 2000000);
    CHECK(clock_monotonic_ns() - now_ns >= 1000000);
    rpc_call_reply(call, "", 0);
    attend(&wait, 0);
    attention_end();
    rpc_client_free(client);
    rpc_server_stop(server);
}

struct caller {
    struct rpc_client *client;
    struct wait *wait;
};

static void *cancel_soon(void *arg)
{
    const struct caller *caller = arg;
    usleep(5000);
    rpc_client_cancel_started(caller->client, caller->wait);
    return NULL;
}

/* Calls are cancelled while another thread reads than the client's. */
TEST(attention_notices_a_cancel)
{
    struct rpc_server *server = serve();
    struct rpc_client *client = client_of(rpc_server_address(server));
    for (int i = 0; i < 20; i++) {
        struct wait wait;
        pthread_t thread;
        attention_begin();
        start(client, "/t/Keep", "", &wait);
        struct rpc_call *call = take_kept();
        struct caller caller = {client, &wait};
        CHECK(!pthread_create(&thread, NULL, cancel_soon, &caller));
        attend(&wait, 0);
        CHECK_INT(wait.code, CANCELLED);
        pthread_join(thread, NULL);
        rpc_call_reply(call, "", 0);
        attention_end();
    }
    rpc_client_free(client);
    rpc_server_stop(server);
}

static void *call_soon(void *arg)
{
    usleep(2000);
    tell(arg, NULL, NULL);
    return NULL;
}

/* What it waits for may come from elsewhere: it does not read on until its time is up. */
TEST(attention_is_called)
{
    struct rpc_server *server = serve();
    struct rpc_client *client = client_of(rpc_server_address(server));
    struct wait never;
    int soon = 0;
    attention_begin();
    start(client, "/t/Keep", "", &never);
    struct rpc_call *call = take_kept();
    for (int i = 0; i < 20; i++) {
        struct wait wait;
        pthread_t thread;
        wait_init(&wait);
        CHECK(!pthread_create(&thread, NULL, call_soon, &wait));
        soon += attend(&wait, 0) < 30000;
        pthread_join(thread, NULL);
    }
    CHECK(soon > 10);
    rpc_call_reply(call, "", 0);
    attend(&never, 0);
    attention_end();
    rpc_client_free(client);
    rpc_server_stop(server);
}

static void *stop_soon(void *arg)
{
    usleep(5000);
    rpc_server_stop(arg);
    return NULL;
}

/* A server that goes is noticed, as the client's thread would. */
TEST(attention_notices_who_goes)
{
    struct rpc_server *server = serve();
    struct rpc_client *client = client_of(rpc_server_address(server));
    struct wait wait, next;
    pthread_t thread;
    attention_begin();
    start(client, "/t/Keep", "", &wait);
    struct rpc_call *call = take_kept();
    CHECK(!pthread_create(&thread, NULL, stop_soon, server));
    while (!is_over(&wait))
        attend(&wait, UINT64_MAX);
    CHECK_INT(wait.code, UNAVAILABLE);
    pthread_join(thread, NULL);
    rpc_call_reply(call, "", 0);
    start(client, "/t/Echo", "", &next);
    attend(&next, 0);
    CHECK_INT(next.code, UNAVAILABLE);
    attention_end();
    rpc_client_free(client);
}

/* The client may be freed by then: there is nothing to attend to any more. */
TEST(attention_outlives_its_client)
{
    struct rpc_server *server = serve();
    struct rpc_client *client = client_of(rpc_server_address(server));
    struct wait wait;
    attention_begin();
    start(client, "/t/Echo", "now", &wait);
    attend(&wait, 0);
    rpc_client_free(client);
    wait_init(&wait);
    attend(&wait, UINT64_MAX);
    attention_end();
    rpc_server_stop(server);
}

static void *call_often(void *arg)
{
    struct rpc_client *client = arg;
    for (int i = 0; i < 300; i++) {
        struct wait wait;
        attention_begin();
        start(client, "/t/Echo", i % 16 ? "now" : "late", &wait);
        attend(&wait, 0);
        CHECK_INT(wait.code, OK);
        attention_end();
    }
    return NULL;
}

/* Many threads share a client: one of them reads for all, or the client's thread does. */
TEST(attention_is_passed_on)
{
    enum { THREADS = 6 };
    struct rpc_server *server = serve();
    struct rpc_client *client = client_of(rpc_server_address(server));
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_create(&threads[i], NULL, call_often, client));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    rpc_client_free(client);
    rpc_server_stop(server);
}
