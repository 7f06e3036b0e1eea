/* rpc_http2_client_ends_test.c - servers that go, come back, allow little, or say nothing that
 * is understood; and callers who do not wait for them. */

#include <errno.h>

#include "tests/unit/proto/http2_host.h"
#include "tests/unit/proto/made.h"

static struct http2_host host;
static struct rpc_client *client;
static struct made made, other;
static struct error err;

static void begin(void)
{
    host_open(&host);
    client = made_client(host.address, NULL);
}

static void begin_connected(void)
{
    begin();
    make(&made, client, "hello");
    host_begin(&host);
    host_await(&host, 1);
    host_reply(&host, 1, "hello, too");
    made_answered(&made, "hello, too");
}

static void end(void)
{
    rpc_client_free(client);
    host_close(&host);
}

/* How long a call waited, which must fail so. */
static int call_fails(int code, int timeout_ms)
{
    struct str request = {0}, answer = {0};
    uint64_t start_us = clock_monotonic_us();
    str_add(&request, "hello");
    CHECK_FAILS(rpc_client_call(client, "/t/Call", &request, &answer, timeout_ms, &err), &err,
                (enum error_code)code);
    str_release(&request);
    str_release(&answer);
    return (int)((clock_monotonic_us() - start_us) / 1000);
}

static void check_text(const char *text)
{
    char wanted[200];
    snprintf(wanted, sizeof(wanted), text, host.address);
    CHECK_TEXT(err.text, wanted);
}

/* --- servers that let callers wait --- */

TEST(http2_client_sends_what_waited_in_order)
{
    begin();
    make(&made, client, "first");
    make(&other, client, "second");
    host_begin(&host);
    host_await(&host, 2);
    CHECK_TEXT(str_text(&host_call_of(&host, 1)->request) + 5, "first");
    CHECK_TEXT(str_text(&host_call_of(&host, 3)->request) + 5, "second");
    host_reply(&host, 1, "one");
    made_answered(&made, "one");
    host_reply(&host, 3, "two");
    made_answered(&other, "two");
    end();
}

/* --- servers that stop --- */

static void go_away(int32_t last)
{
    CHECK_INT(nghttp2_submit_goaway(host.session, 0, last, NGHTTP2_NO_ERROR, NULL, 0), 0);
    host_send(&host);
}

/* Open calls go on, none comes to it any more, and then another is looked for. */
TEST(http2_client_lets_servers_go_away)
{
    begin_connected();
    make(&made, client, "hello");
    host_await(&host, 2);
    go_away(3);
    for (int ms = 0;; ms++) {
        make(&other, client, "hello"); /* before it was heard, or behind it */
        wait_for(&other.over, 1);
        if (strstr(other.err.text, "shutting down"))
            break;
        CHECK(ms < PATIENCE_MS);
    }
    CHECK_FAILS(other.ok, &other.err, UNAVAILABLE);
    host_reply(&host, 3, "goodbye");
    made_answered(&made, "goodbye");
    while (host_go(&host)) {
    }
    host_leave(&host);
    make(&made, client, "hello");
    host_begin(&host);
    host_await(&host, 1);
    host_reply(&host, 1, "anew");
    made_answered(&made, "anew");
    end();
}

/* Also where it is the caller that ends the last call, and where none is open. */
TEST(http2_client_looks_for_another_at_once)
{
    begin_connected();
    for (int i = 0; i < 3; i++) {
        if (i < 2)
            make(&made, client, "hello");
        if (i < 2)
            host_await(&host, 2);
        go_away(i < 2 ? 3 : 1);
        nghttp2_submit_ping(host.session, 0, NULL);
        if (i == 0)
            host_reply(&host, 3, "goodbye");
        usleep(20000);
        if (i == 1)
            rpc_client_cancel_started(client, &made);
        if (i == 0)
            made_answered(&made, "goodbye");
        if (i == 1)
            made_failed(&made, CANCELLED);
        while (host_go(&host)) {
        }
        host_leave(&host);
        make(&made, client, "hello");
        host_begin(&host);
        host_await(&host, 1);
        host_reply(&host, 1, "anew");
        made_answered(&made, "anew");
    }
    end();
}

/* A call that it says it has not seen, and those that waited for room. */
TEST(http2_client_ends_calls_that_nobody_took)
{
    const nghttp2_settings_entry one = {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 1};
    struct made waiting[3];
    begin();
    make(&made, client, "hello");
    host_begin_with(&host, &one, 1);
    host_await(&host, 1);
    for (int i = 0; i < 3; i++)
        make(&waiting[i], client, "hello");
    go_away(1);
    host_reply(&host, 1, "goodbye");
    made_answered(&made, "goodbye");
    for (int i = 0; i < 3; i++)
        made_failed(&waiting[i], UNAVAILABLE);
    host_leave(&host);
    make(&made, client, "hello");
    host_begin(&host);
    host_await(&host, 1);
    go_away(0);
    made_failed(&made, UNAVAILABLE);
    end();
}

TEST(http2_client_finds_who_comes_back)
{
    begin_connected();
    for (int i = 0; i < 5; i++) {
        make(&made, client, "hello");
        host_await(&host, 2);
        host_leave(&host);
        made_failed(&made, UNAVAILABLE);
        make(&made, client, "hello");
        host_begin(&host);
        host_await(&host, 1);
        host_reply(&host, 1, "anew");
        made_answered(&made, "anew");
    }
    end();
}

/* --- servers that are none --- */

TEST(http2_client_keeps_time_with_who_says_nothing)
{
    begin();
    for (int i = 0; i < 2; i++) {
        int waited_ms = call_fails(DEADLINE, 200);
        check_text("no answer from %s within 200 ms");
        CHECK(waited_ms >= 200 && waited_ms < 2000);
    }
    make(&made, client, "hello");
    rpc_client_cancel_started(client, &made);
    made_failed(&made, CANCELLED);
    end();
}

/* It is told at once, and asks the system now and then only. */
TEST(http2_client_tells_that_nobody_is_there)
{
    int fast = 0;
    begin();
    close(host.listener);
    host.listener = -1;
    for (int i = 0; i < 1000; i++)
        fast += call_fails(UNAVAILABLE, PATIENCE_MS) < 100;
    CHECK(fast > 900);
    check_text("cannot reach %s: Connection refused");
    end();
}

static int dropped; /* connections */
static _Atomic bool is_enough;

static void *drop_all(void *arg)
{
    const char *said = arg;
    while (!is_enough) {
        struct pollfd file = {.fd = host.listener, .events = POLLIN};
        if (poll(&file, 1, 10) != 1)
            continue;
        int socket = accept4(host.listener, NULL, NULL, SOCK_CLOEXEC);
        CHECK(socket >= 0);
        CHECK_INT(send(socket, said, strlen(said), MSG_NOSIGNAL), strlen(said));
        shutdown(socket, SHUT_WR);
        char bytes[1000];
        while (recv(socket, bytes, sizeof(bytes), 0) > 0) {
        }
        close(socket);
        count_up(&dropped, 1);
    }
    return NULL;
}

/* Who hangs up before anything was agreed on is not tried again at once. */
TEST(http2_client_leaves_who_hangs_up_alone)
{
    static const char *const said[] = {
        "", "HTTP/1.1 400 Bad Request\r\n\r\n", "\x15\x03\x03\x00\x02\x02\x16", "SSH-2.0-x\r\n",
        "garbage that is longer than the head of a frame, and even than two of them"};
    for (int i = 0; i < ARRAY_LEN(said); i++) {
        pthread_t thread;
        begin();
        dropped = 0;
        is_enough = false;
        CHECK_INT(pthread_create(&thread, NULL, drop_all, (void *)said[i]), 0);
        uint64_t start_us = clock_monotonic_us();
        while (clock_monotonic_us() - start_us < 250000)
            call_fails(UNAVAILABLE, PATIENCE_MS);
        int ms = (int)((clock_monotonic_us() - start_us) / 1000);
        is_enough = true;
        pthread_join(thread, NULL);
        CHECK(dropped >= 1 && dropped <= 2 + ms / 100);
        check_text(strlen(said[i]) > 9 ? "cannot reach %s: what it says is no HTTP/2"
                                       : "cannot reach %s: the connection was closed");
        end();
    }
}

/* Frames that must not be, in the middle of a call. */
TEST(http2_client_hangs_up_on_nonsense)
{
    static const char *const said[] = {"HTTP/1.1 200 OK\r\n\r\nhello",
                                       "\xff\xff\xff\xff\xff\xff\xff\xff\xff",
                                       "the same again, and again, and again, and again"};
    for (int i = 0; i < ARRAY_LEN(said); i++) {
        begin_connected();
        make(&made, client, "hello");
        host_await(&host, 2);
        CHECK_INT(send(host.socket, said[i], strlen(said[i]), MSG_NOSIGNAL), strlen(said[i]));
        made_failed(&made, UNAVAILABLE);
        err = made.err;
        check_text("cannot reach %s: what it says is no HTTP/2");
        host_leave(&host);
        make(&made, client, "hello");
        host_begin(&host);
        host_await(&host, 1);
        host_reply(&host, 1, "anew");
        made_answered(&made, "anew");
        end();
    }
}

/* --- servers that allow little --- */

TEST(http2_client_keeps_to_small_windows)
{
    static const uint32_t windows[] = {1, 5, 6, 100};
    const char *text = "a request that is longer than the window";
    for (int i = 0; i < ARRAY_LEN(windows); i++) {
        const nghttp2_settings_entry narrow = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE,
                                               windows[i]};
        begin();
        make(&made, client, text);
        make(&other, client, text);
        host_begin_with(&host, &narrow, 1);
        host_await(&host, 2);
        for (int n = 0; n < 2; n++) {
            CHECK_INT(host.calls[n].request.size, 5 + strlen(text));
            CHECK_TEXT(host.calls[n].request.data + 5, text);
            host_reply(&host, 2 * n + 1, text);
        }
        made_answered(&made, text);
        made_answered(&other, text);
        end();
    }
}

/* One at a time: the others wait, and time passes for them. */
TEST(http2_client_keeps_to_few_calls)
{
    enum { CALLS = 10 };
    const nghttp2_settings_entry one = {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 1};
    struct made calls[CALLS];
    begin();
    for (int i = 0; i < CALLS; i++)
        make(&calls[i], client, "hello");
    host_begin_with(&host, &one, 1);
    for (int i = 0; i < CALLS; i++) {
        host_await(&host, i + 1);
        CHECK_INT(host.begun, i + 1);
        if (i == 3) {
            CHECK(call_fails(DEADLINE, 50) >= 50);
            make(&made, client, "hello");
            rpc_client_cancel_started(client, &made);
            made_failed(&made, CANCELLED);
        }
        host_reply(&host, 2 * i + 1, "hello");
    }
    for (int i = 0; i < CALLS; i++)
        made_answered(&calls[i], "hello");
    make(&made, client, "hello");
    host_await(&host, CALLS + 1);
    CHECK_INT(host.begun, CALLS + 1); /* those that were given up have not come */
    host_leave(&host);
    made_failed(&made, UNAVAILABLE);
    end();
}

/* A request that nobody reads is over when its time is up, and others are no slower. */
TEST(http2_client_ends_calls_that_nobody_reads)
{
    struct str request = {0}, answer = {0};
    begin_connected();
    memset(str_extend(&request, 30 << 20), 'x', 30 << 20);
    for (int i = 0; i < 4; i++) {
        uint64_t start_us = clock_monotonic_us();
        CHECK_FAILS(rpc_client_call(client, "/t/Call", &request, &answer, 100, &err), &err,
                    DEADLINE);
        CHECK(clock_monotonic_us() - start_us < 3000000);
    }
    CHECK(call_fails(DEADLINE, 100) < 2000);
    make(&made, client, "hello");
    rpc_client_cancel_started(client, &made);
    made_failed(&made, CANCELLED);
    make(&made, client, "hello"); /* it reads on: what was given up is passed over */
    while (!host.calls[6].is_whole && !host.calls[7].is_whole)
        CHECK(host_go(&host));
    host_reply(&host, host.calls[6].is_whole ? 13 : 15, "at last");
    host_serve(&host, &made.over, 1);
    made_answered(&made, "at last");
    str_release(&request);
    end();
}

/* --- who does not wait --- */

/* Before it is connected, and when it waits for its answer. */
TEST(http2_client_cancels)
{
    for (int connected = 0; connected < 2; connected++) {
        for (int all = 0; all < 2; all++) {
            begin();
            make(&made, client, "hello");
            make(&other, client, "hello");
            if (connected) {
                host_begin(&host);
                host_await(&host, 2);
            }
            if (all)
                rpc_client_cancel(client);
            else
                rpc_client_cancel_started(client, &other);
            made_failed(&other, CANCELLED);
            CHECK_INT(count_of(&made.over), all);
            rpc_client_cancel_started(client, NULL); /* nobody */
            CHECK_INT(count_of(&made.over), all);
            rpc_client_cancel_started(client, &made);
            made_failed(&made, CANCELLED);
            end();
        }
    }
}

TEST(http2_client_is_freed_behind_many_calls)
{
    enum { CALLS = 1000 };
    static struct made calls[CALLS];
    for (int cancels = 0; cancels < 2; cancels++) {
        begin();
        for (int i = 0; i < CALLS; i++)
            make(&calls[i], client, "hello");
        host_begin(&host);
        if (cancels) {
            rpc_client_cancel(client);
        } else {
            host_await(&host, CALLS);
            for (int i = 0; i < CALLS; i++)
                host_reply(&host, 2 * i + 1, "hello");
        }
        end();
        for (int i = 0; i < CALLS; i++) {
            CHECK_INT(calls[i].over, 1);
            CHECK(cancels ? calls[i].err.code == CANCELLED : calls[i].ok);
            str_release(&calls[i].answer);
        }
    }
}

/* A server that has no room for another connection. */
TEST(http2_client_is_freed_while_it_connects)
{
    int full[64];
    struct sockaddr_in to;
    socklen_t size = sizeof(to);
    begin();
    CHECK_INT(listen(host.listener, 0), 0);
    CHECK_INT(getsockname(host.listener, (struct sockaddr *)&to, &size), 0);
    for (int i = 0; i < ARRAY_LEN(full); i++) {
        full[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        CHECK(!connect(full[i], (struct sockaddr *)&to, size) || errno == EINPROGRESS);
    }
    usleep(20000);
    CHECK(call_fails(DEADLINE, 100) >= 100);
    uint64_t start_us = clock_monotonic_us();
    make(&made, client, "hello");
    rpc_client_cancel_started(client, &made);
    made_failed(&made, CANCELLED);
    end();
    CHECK(clock_monotonic_us() - start_us < 2000000);
    for (int i = 0; i < ARRAY_LEN(full); i++)
        close(full[i]);
}

/* --- who has answered --- */

TEST(http2_client_knows_who_has_answered)
{
    struct sockaddr_in at;
    struct endpoint wanted;
    socklen_t size = sizeof(at);
    begin_connected();
    CHECK_INT(getsockname(host.listener, (struct sockaddr *)&at, &size), 0);
    CHECK(connection_endpoint((struct sockaddr *)&at, &wanted));
    CHECK(made.has_peer);
    CHECK(connection_same(&made.peer, &wanted));
    make(&made, client, "hello");
    host_await(&host, 2);
    host_leave(&host);
    made_failed(&made, UNAVAILABLE);
    CHECK(!made.has_peer);
    end();
}
