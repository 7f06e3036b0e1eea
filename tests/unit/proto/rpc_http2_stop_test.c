/* rpc_http2_stop_test.c - servers of gRPC that stop, are called by many, or speak TLS. */

#include "base/arena.h"
#include "server/certificate.h"
#include "tests/unit/proto/http2_client.h"

static struct error err;
static struct rpc_server *server;
static int kept_count, gone_count, begun, answered, sources;
static struct rpc_call *kept[CALLS_MAX];

static void echo(void *self, struct rpc_call *call)
{
    size_t size;
    const void *bytes = rpc_call_bytes(call, &size);
    (void)self;
    rpc_call_reply(call, bytes, size);
}

static void gone(void *arg)
{
    (void)arg;
    count_up(&gone_count, 1);
}

static void keep(void *self, struct rpc_call *call)
{
    (void)self;
    rpc_call_watch(call, gone, alloc_bytes(1));
    pthread_mutex_lock(&count_lock);
    kept[kept_count++] = call;
    pthread_mutex_unlock(&count_lock);
}

static int next(struct rpc_source *source, struct rpc_piece pieces[RPC_PIECES_MAX], bool *last)
{
    (void)source;
    pieces[0] = (struct rpc_piece){.data = "more", .size = 4};
    *last = false;
    return 1;
}

static void free_source(struct rpc_source *source)
{
    count_up(&sources, -1);
    free(source);
}

static void reply_for_ever(struct rpc_call *call)
{
    struct rpc_source *source = alloc_bytes(sizeof(*source));
    *source = (struct rpc_source){next, free_source};
    count_up(&sources, 1);
    rpc_call_reply_from(call, source);
}

static void for_ever(void *self, struct rpc_call *call)
{
    (void)self;
    reply_for_ever(call);
}

/* Answers once it has returned, or so. */
static void *answer_soon(void *arg)
{
    usleep(100);
    rpc_call_reply(arg, "soon", 4);
    count_up(&answered, 1);
    return NULL;
}

static void soon(void *self, struct rpc_call *call)
{
    pthread_t thread;
    (void)self;
    count_up(&begun, 1);
    CHECK_INT(pthread_create(&thread, NULL, answer_soon, call), 0);
    pthread_detach(thread);
}

static const struct rpc_method methods[] = {
    {"/t/Echo", echo}, {"/t/Keep", keep}, {"/t/ForEver", for_ever}, {"/t/Soon", soon}, {0}};

static void begin(const struct rpc_tls *tls)
{
    const struct rpc_server_options options = {
        .address = "127.0.0.1:0", .message_bytes_max = 1 << 20, .tls = tls};
    server = rpc_server_start(&options, methods, NULL, &err);
    CHECK_OK(server, &err);
    kept_count = gone_count = begun = answered = sources = 0;
}

/* --- stopping --- */

static void *stop(void *arg)
{
    (void)arg;
    rpc_server_stop(server);
    return NULL;
}

/* New calls are refused, open ones may end, and those that do not are told why. */
TEST(http2_stops_with_open_calls)
{
    pthread_t stopping;
    begin(NULL);
    struct http2_client *client = client_open(rpc_server_address(server), 0);
    int32_t first = call(client, "/t/Keep", "a"), second = call(client, "/t/Keep", "b"),
            endless = call(client, "/t/ForEver", "c");
    client_send(client);
    wait_for(&kept_count, 2);
    CHECK_INT(pthread_create(&stopping, NULL, stop, NULL), 0);
    while (!client->goes_away)
        CHECK(client_go(client));
    rpc_call_reply(kept[0], "hello", 5);
    check_answer(client, first, "hello");
    CHECK_INT(count_of(&gone_count), 0);
    check_refused(client, second, UNAVAILABLE);
    CHECK_TEXT(str_text(&answer_of(client, second)->text), "the server is shutting down");
    CHECK(await(client, endless)->is_closed);
    CHECK_INT(await(client, endless)->grpc_status, -1);
    while (client_go(client)) {
    }
    pthread_join(stopping, NULL);
    CHECK_INT(gone_count, 1);
    CHECK_INT(sources, 0);
    CHECK(rpc_call_cancelled(kept[1]));
    client_close(client);
    rpc_call_reply(kept[1], "nobody", 6); /* the server has gone */
}

/* Answers of any kind, when both the client and the server have gone. */
TEST(http2_takes_answers_after_its_end)
{
    enum { CALLS = 4 };
    begin(NULL);
    struct http2_client *client = client_open(rpc_server_address(server), 0);
    for (int i = 0; i < CALLS; i++)
        call(client, "/t/Keep", "a");
    client_send(client);
    wait_for(&kept_count, CALLS);
    client_close(client);
    wait_for(&gone_count, CALLS);
    rpc_server_stop(server);
    (void)fail(&err, INTERNAL, "nobody hears it");
    rpc_call_unwatch(kept[0]);
    rpc_call_reply(kept[0], "nobody", 6);
    rpc_call_fail(kept[1], &err);
    reply_for_ever(kept[2]);
    CHECK_INT(sources, 0);
    CHECK(rpc_call_cancelled(kept[3]));
    rpc_call_watch(kept[3], gone, alloc_bytes(1)); /* told at once */
    CHECK_INT(gone_count, CALLS + 1);
    rpc_call_reply(kept[3], "nobody", 6);
}

/* Who takes slowly has all of the answers that were given before. */
static void check_stop_behind(size_t size)
{
    enum { CALLS = 12 };
    pthread_t stopping;
    begin(NULL);
    struct http2_client *client = client_open(rpc_server_address(server), 16 << 20);
    int32_t streams[CALLS];
    char *text = alloc_bytes(size + 1);
    memset(text, 'x', size);
    for (int i = 0; i < CALLS; i++)
        streams[i] = call(client, "/t/Keep", "a");
    client_send(client);
    wait_for(&kept_count, CALLS);
    for (int i = 0; i < CALLS; i++)
        rpc_call_reply(kept[i], text, size);
    CHECK_INT(pthread_create(&stopping, NULL, stop, NULL), 0);
    usleep(30000);
    for (int i = 0; i < CALLS; i++) {
        while (!answer_of(client, streams[i])->is_closed && client_go(client))
            usleep(500);
        check_answer(client, streams[i], text);
    }
    client_close(client);
    pthread_join(stopping, NULL);
    free(text);
}

TEST(http2_stops_behind_its_answers)
{
    for (size_t size = 0; size < 8; size++)
        check_stop_behind((1 << 20) + size * 30000);
}

/* Who is connected and says nothing does not hold it up. */
TEST(http2_stops_with_idle_clients)
{
    begin(NULL);
    uint64_t start_us = clock_monotonic_us();
    struct http2_client *client = client_open(rpc_server_address(server), 0);
    check_answer(client, call(client, "/t/Echo", "hello"), "hello");
    int silent = connect_to(rpc_server_address(server), 0);
    rpc_server_stop(server);
    CHECK(clock_monotonic_us() - start_us < 2000000);
    while (client_go(client)) {
    }
    CHECK(client->goes_away);
    close(silent);
    client_close(client);
}

/* --- many at once --- */

enum { CALLERS = 4, CALLS_EACH = 100 };

static bool is_over; /* guarded by count_lock */
static int calls_done;

static bool over(void)
{
    pthread_mutex_lock(&count_lock);
    bool is = is_over;
    pthread_mutex_unlock(&count_lock);
    return is;
}

static void *call_often(void *arg)
{
    const struct rpc_client_options options = {.address = rpc_server_address(server),
                                               .message_bytes_max = 1 << 20};
    struct error why;
    struct rpc_client *client = rpc_client_new(&options, &why);
    struct str request = {0}, answer = {0};
    (void)arg;
    CHECK_OK(client, &why);
    for (int i = 0; i < CALLS_EACH; i++) {
        str_clear(&request);
        str_printf(&request, "%*d", i % 7 ? i : 1 << 16, i);
        const char *path = i % 5 ? "/t/Echo" : "/t/Soon";
        CHECK_OK(rpc_client_call(client, path, &request, &answer, PATIENCE_MS, &why), &why);
        CHECK_TEXT(str_text(&answer), i % 5 ? str_text(&request) : "soon");
    }
    rpc_client_free(client);
    str_release(&request);
    str_release(&answer);
    count_up(&calls_done, 1);
    return NULL;
}

/* Hangs up in the middle of a call, or of a word. */
static void *come_and_go(void *arg)
{
    unsigned state = (unsigned)(uintptr_t)arg;
    while (!over()) {
        struct http2_client *client = client_open(rpc_server_address(server), 1 << 20);
        struct str said = {0};
        state = state * 1664525 + 1013904223;
        call(client, "/t/Echo", "hello");
        call(client, "/t/Soon", "hello");
        call(client, "/t/ForEver", "");
        client_say(client, &said);
        size_t size = state >> 16 & 1 ? said.size : (state >> 17) % said.size;
        CHECK_INT(send(client->socket, said.data, size, MSG_NOSIGNAL), size);
        usleep(state >> 20 & 1023);
        str_release(&said);
        client_close(client);
    }
    return NULL;
}

TEST(http2_serves_while_others_come_and_go)
{
    pthread_t callers[CALLERS], others[2];
    begin(NULL);
    is_over = false;
    calls_done = 0;
    for (int i = 0; i < CALLERS; i++)
        CHECK_INT(pthread_create(&callers[i], NULL, call_often, NULL), 0);
    for (int i = 0; i < 2; i++)
        CHECK_INT(pthread_create(&others[i], NULL, come_and_go, (void *)(uintptr_t)i), 0);
    for (int i = 0; i < CALLERS; i++)
        pthread_join(callers[i], NULL);
    CHECK_INT(calls_done, CALLERS);
    pthread_mutex_lock(&count_lock);
    is_over = true;
    pthread_mutex_unlock(&count_lock);
    for (int i = 0; i < 2; i++)
        pthread_join(others[i], NULL);
    rpc_server_stop(server);
    wait_for(&answered, begun); /* who answers may be asking the source of another call still */
    CHECK_INT(sources, 0);
}

/* --- TLS --- */

static bool ask(const struct rpc_tls *tls, const char *text)
{
    const struct rpc_client_options options = {
        .address = rpc_server_address(server), .message_bytes_max = 1 << 20, .tls = tls};
    struct rpc_client *client = rpc_client_new(&options, &err);
    struct str request = {0}, answer = {0};
    CHECK_OK(client, &err);
    str_add(&request, text);
    bool ok = rpc_client_call(client, "/t/Echo", &request, &answer, PATIENCE_MS, &err);
    CHECK(!ok || !strcmp(str_text(&answer), text));
    rpc_client_free(client);
    str_release(&request);
    str_release(&answer);
    return ok;
}

/* Plaintext, nonsense, or a beginning that breaks off: others are served as before. */
TEST(http2_hangs_up_on_who_does_not_encrypt)
{
    static const char *const said[] = {"GET / HTTP/1.1\r\n\r\n", NGHTTP2_CLIENT_MAGIC,
                                       "\x16\x03\x01\x02", "\x15\x03\x03", ""};
    static const uint8_t seed[CERTIFICATE_SEED_BYTES] = {1, 2, 3};
    struct arena *arena = arena_new();
    struct rpc_tls tls = {.name = RPC_TASKS_NAME};
    CHECK_OK(certificate_make(seed, RPC_TASKS_NAME, arena, &tls.certificate, &tls.key, &err),
             &err);
    tls.ca = tls.certificate;
    begin(&tls);
    CHECK_OK(ask(&tls, "hello"), &err);
    for (int i = 0; i < ARRAY_LEN(said); i++) {
        char got[1000];
        int socket = connect_to(rpc_server_address(server), 0);
        struct pollfd file = {.fd = socket, .events = POLLIN};
        ssize_t n;
        CHECK_INT(send(socket, said[i], strlen(said[i]), MSG_NOSIGNAL), strlen(said[i]));
        if (i > 1)
            shutdown(socket, SHUT_WR);
        do {
            CHECK_INT(poll(&file, 1, 5000), 1);
            n = recv(socket, got, sizeof(got), 0);
            CHECK(n < 9 || got[3] != NGHTTP2_SETTINGS); /* nothing in plaintext */
        } while (n > 0);
        close(socket);
        CHECK_OK(ask(&tls, "hello"), &err);
    }
    CHECK_FAILS(ask(NULL, "hello"), &err, UNAVAILABLE);
    rpc_server_stop(server);
    arena_free(arena);
}
