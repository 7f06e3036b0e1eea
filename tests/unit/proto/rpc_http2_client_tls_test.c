/* rpc_http2_client_tls_test.c - gRPC's client and servers that it may not believe, that do not
 * believe it, or that many call while they come and go. */

#include "base/arena.h"
#include "server/certificate.h"
#include "tests/unit/proto/http2_host.h"
#include "tests/unit/proto/made.h"

static struct error err;
static struct arena *arena;
static struct rpc_server *server;
static struct http2_host host;
static struct made made;

static void echo(void *self, struct rpc_call *call)
{
    size_t size;
    const void *bytes = rpc_call_bytes(call, &size);
    (void)self;
    rpc_call_reply(call, bytes, size);
}

static const struct rpc_method methods[] = {{"/t/Call", echo}, {0}};

static void begin(const char *address, const struct rpc_tls *tls)
{
    const struct rpc_server_options options = {
        .address = address, .message_bytes_max = MADE_BYTES_MAX, .tls = tls};
    server = rpc_server_start(&options, methods, NULL, &err);
    CHECK_OK(server, &err);
}

static struct rpc_tls certified(uint8_t first)
{
    const uint8_t seed[CERTIFICATE_SEED_BYTES] = {first, 2, 3};
    struct rpc_tls tls = {.name = RPC_TASKS_NAME};
    CHECK_OK(certificate_make(seed, RPC_TASKS_NAME, arena, &tls.certificate, &tls.key, &err),
             &err);
    tls.ca = tls.certificate;
    return tls;
}

/* --- who is believed --- */

static void check_call(const char *address, const struct rpc_tls *tls, const char *why)
{
    struct rpc_client *client = made_client(address, tls);
    make(&made, client, "hello");
    if (why)
        made_failed(&made, UNAVAILABLE);
    else
        made_answered(&made, "hello");
    if (why && !strstr(made.err.text, why))
        CHECK_STOP("'%s' says nothing of '%s'", made.err.text, why);
    CHECK(!why || strstr(made.err.text, address));
    rpc_client_free(client);
}

TEST(http2_client_believes_whom_it_may)
{
    arena = arena_new();
    const struct rpc_tls good = certified(1), stranger = certified(9);
    struct rpc_tls wrong = good;
    begin("127.0.0.1:0", &good);
    const char *address = rpc_server_address(server);
    for (int i = 0; i < 2; i++) {
        check_call(address, &good, NULL);
        wrong = good;
        wrong.name = "others.trainyard";
        check_call(address, &wrong, "hostname mismatch");
        wrong.name = NULL; /* that of the address */
        check_call(address, &wrong, "IP address mismatch");
        wrong = good;
        wrong.ca = stranger.ca;
        check_call(address, &wrong, "certificate verify failed: self-signed");
        wrong = stranger; /* whom the server does not believe, either */
        wrong.ca = good.ca;
        check_call(address, &wrong, "unknown ca");
        wrong = good;
        wrong.certificate = wrong.key = NULL;
        check_call(address, &wrong, "certificate required");
        check_call(address, NULL, "the connection was closed");
    }
    rpc_server_stop(server);
    begin("127.0.0.1:0", NULL);
    check_call(rpc_server_address(server), &good, "");
    check_call(rpc_server_address(server), NULL, NULL);
    rpc_server_stop(server);
    arena_free(arena);
}

/* A server that takes the connection and says nothing, or hangs up. */
TEST(http2_client_shakes_no_hands_for_ever)
{
    struct str request = {0}, answer = {0};
    arena = arena_new();
    const struct rpc_tls tls = certified(1);
    host_open(&host);
    struct rpc_client *client = made_client(host.address, &tls);
    uint64_t start_us = clock_monotonic_us();
    CHECK_FAILS(rpc_client_call(client, "/t/Call", &request, &answer, 100, &err), &err,
                DEADLINE);
    make(&made, client, "hello");
    rpc_client_cancel_started(client, &made);
    made_failed(&made, CANCELLED);
    make(&made, client, "hello");
    host_accept(&host);
    host_leave(&host);
    made_failed(&made, UNAVAILABLE);
    make(&made, client, "hello"); /* it is away */
    made_failed(&made, UNAVAILABLE);
    rpc_client_free(client);
    CHECK(clock_monotonic_us() - start_us < 3000000);
    host_close(&host);
    arena_free(arena);
}

TEST(http2_client_encrypts_much)
{
    struct str request = {0}, answer = {0};
    arena = arena_new();
    const struct rpc_tls tls = certified(1);
    begin("127.0.0.1:0", &tls);
    struct rpc_client *client = made_client(rpc_server_address(server), &tls);
    for (int size = 1; size <= MADE_BYTES_MAX; size *= 4) {
        str_clear(&request);
        memset(str_extend(&request, (size_t)size), size % 251, (size_t)size);
        CHECK_OK(rpc_client_call(client, "/t/Call", &request, &answer, PATIENCE_MS, &err),
                 &err);
        CHECK_INT(answer.size, size);
        CHECK(!memcmp(answer.data, request.data, answer.size));
    }
    rpc_client_free(client);
    rpc_server_stop(server);
    str_release(&request);
    str_release(&answer);
    arena_free(arena);
}

/* --- many, of a server that comes and goes --- */

enum { CALLERS = 4 };

static struct rpc_client *shared;
static _Atomic bool is_over;
static int good_count, bad_count, started_count, told_count;

static void ended(void *arg, const struct str *answer, const struct error *why)
{
    CHECK(answer ? answer->size == 5 && !memcmp(answer->data, "hello", 5)
                 : why->code == UNAVAILABLE || why->code == CANCELLED);
    CHECK(arg == &told_count);
    count_up(&told_count, 1);
}

static void *call_often(void *arg)
{
    struct str request = {0}, answer = {0};
    struct error why;
    str_add(&request, "hello");
    for (int i = 0; !is_over; i++) {
        if (i % 3) {
            bool ok =
                rpc_client_call(shared, "/t/Call", &request, &answer, i % 5 ? 2000 : 1, &why);
            CHECK(ok || why.code == UNAVAILABLE || why.code == CANCELLED ||
                  why.code == DEADLINE);
            CHECK(!ok || !strcmp(str_text(&answer), "hello"));
            count_up(ok ? &good_count : &bad_count, 1);
        } else {
            count_up(&started_count, 1);
            rpc_client_start(shared, "/t/Call", &request, ended, &told_count);
        }
        if (i % 100 == 99 && arg)
            rpc_client_cancel_started(shared, &told_count);
    }
    str_release(&request);
    str_release(&answer);
    return NULL;
}

TEST(http2_client_is_shared_while_servers_come_and_go)
{
    arena = arena_new();
    const struct rpc_tls tls = certified(1);
    for (int encrypts = 0; encrypts < 2; encrypts++) {
        pthread_t callers[CALLERS];
        char address[64];
        begin("127.0.0.1:0", encrypts ? &tls : NULL);
        snprintf(address, sizeof(address), "%s", rpc_server_address(server));
        shared = made_client(address, encrypts ? &tls : NULL);
        good_count = bad_count = started_count = told_count = 0;
        is_over = false;
        for (int i = 0; i < CALLERS; i++)
            CHECK_INT(pthread_create(&callers[i], NULL, call_often, i ? NULL : address), 0);
        for (int i = 0; i < 5; i++) {
            usleep(50000);
            rpc_server_stop(server);
            usleep(i * 1000);
            begin(address, encrypts ? &tls : NULL);
        }
        int good = count_of(&good_count);
        for (int ms = 0; count_of(&good_count) < good + 10; ms++) { /* it is found again */
            CHECK(ms < PATIENCE_MS);
            usleep(1000);
        }
        is_over = true;
        for (int i = 0; i < CALLERS; i++)
            pthread_join(callers[i], NULL);
        rpc_client_free(shared);
        rpc_server_stop(server);
        CHECK_INT(told_count, started_count);
    }
    arena_free(arena);
}
