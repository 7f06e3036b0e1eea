/* rpc_http2_ends_test.c - clients that go, that do not take what they are answered, or do not
 * speak the language; and servers that stop. */

#include "tests/unit/proto/http2_client.h"

enum { MESSAGE_MAX = 1 << 20, WIDE = 1 << 30 };

static struct error err;
static struct rpc_server *server;
static int kept_count, gone_count, made, lent, given_back, sources;

static void echo(void *self, struct rpc_call *call)
{
    size_t size;
    const void *bytes = rpc_call_bytes(call, &size);
    (void)self;
    rpc_call_reply(call, bytes, size);
}

/* --- calls that are not answered until later --- */

static struct rpc_call *kept[CALLS_MAX];

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

static void answer_kept(bool cancelled)
{
    for (int i = 0; i < kept_count; i++) {
        CHECK_INT(rpc_call_cancelled(kept[i]), cancelled);
        rpc_call_unwatch(kept[i]);
        if (i % 3) {
            rpc_call_reply(kept[i], "late", 4);
        } else {
            (void)fail(&err, NOT_FOUND, "late");
            rpc_call_fail(kept[i], &err);
        }
    }
    kept_count = 0;
}

/* --- answers of many messages --- */

struct counted {
    struct rpc_source base;
    int left;
};

static char memory[MESSAGE_MAX];

static void give_back(void *arg)
{
    CHECK(arg == memory);
    count_up(&given_back, 1);
}

static int next(struct rpc_source *source, struct rpc_piece pieces[RPC_PIECES_MAX], bool *last)
{
    struct counted *counted = (struct counted *)source;
    counted->left--;
    pieces[0] = (struct rpc_piece){.data = &counted->left, .size = sizeof(int)};
    pieces[1] = (struct rpc_piece){memory, sizeof(memory), give_back, memory};
    count_up(&lent, 1);
    count_up(&made, 1);
    *last = !counted->left;
    return 2;
}

static void free_counted(struct rpc_source *source)
{
    count_up(&sources, -1);
    free(source);
}

static void many(void *self, struct rpc_call *call)
{
    struct counted *counted = alloc_bytes(sizeof(*counted));
    size_t size;
    const char *digit = rpc_call_bytes(call, &size);
    (void)self;
    CHECK_INT(size, 1);
    counted->base = (struct rpc_source){next, free_counted};
    counted->left = 10 * (*digit - '0');
    count_up(&sources, 1);
    rpc_call_reply_from(call, &counted->base);
}

static const struct rpc_method methods[] = {
    {"/t/Echo", echo}, {"/t/Keep", keep}, {"/t/Many", many}, {0}};

/* --- both ends --- */

static void begin(void)
{
    const struct rpc_server_options options = {.address = "127.0.0.1:0",
                                               .message_bytes_max = MESSAGE_MAX};
    server = rpc_server_start(&options, methods, NULL, &err);
    CHECK_OK(server, &err);
    kept_count = gone_count = made = lent = given_back = sources = 0;
}

static struct http2_client *join(uint32_t window)
{
    return client_open(rpc_server_address(server), window);
}

static void check_serves(void)
{
    struct http2_client *client = join(0);
    check_answer(client, call(client, "/t/Echo", "still here"), "still here");
    client_close(client);
}

static void end(void)
{
    check_serves();
    rpc_server_stop(server);
    CHECK_INT(given_back, lent);
    CHECK_INT(sources, 0);
}

/* --- clients that go --- */

TEST(http2_tells_who_is_given_up)
{
    begin();
    struct http2_client *client = join(0);
    int32_t first = call(client, "/t/Keep", "a"), second = call(client, "/t/Keep", "b");
    client_send(client);
    wait_for(&kept_count, 2);
    nghttp2_submit_rst_stream(client->session, 0, first, NGHTTP2_CANCEL);
    client_send(client);
    wait_for(&gone_count, 1);
    CHECK(rpc_call_cancelled(kept[0]));
    CHECK(!rpc_call_cancelled(kept[1]));
    rpc_call_reply(kept[0], "nobody", 6);
    rpc_call_reply(kept[1], "hello", 5);
    check_answer(client, second, "hello");
    client_close(client);
    end();
    CHECK_INT(gone_count, 1);
}

/* Also of a call whose message has not come whole: there is nobody to tell. */
TEST(http2_tells_who_is_left)
{
    enum { CALLS = 20 };
    begin();
    for (int resets = 0; resets < 2; resets++) {
        const struct linger linger = {.l_onoff = 1};
        struct http2_client *client = join(0);
        struct str half = {0};
        add_message(&half, 0, 100, "half", 4);
        for (int i = 0; i < CALLS; i++)
            call(client, "/t/Keep", "a");
        int32_t stream = nghttp2_session_get_next_stream_id(client->session);
        answer_of(client, stream)->leaves_open = true;
        call_with(client, "/t/Keep", &half, NULL);
        client_send(client);
        wait_for(&kept_count, CALLS);
        if (resets)
            CHECK_INT(
                setsockopt(client->socket, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
        client_close(client);
        wait_for(&gone_count, (1 + resets) * CALLS);
        answer_kept(true);
        str_release(&half);
    }
    end();
}

/* Also when the server gives the stream up: its client said that more would come. */
TEST(http2_tells_who_breaks_its_word)
{
    static const struct http2_words words = {.name = "content-length", .value = "100"};
    begin();
    struct http2_client *client = join(0);
    struct str request = {0};
    check_answer(client, call(client, "/t/Echo", "hello"), "hello"); /* nothing else is said */
    add_message(&request, 0, 5, "hello", 5);
    int32_t stream = nghttp2_session_get_next_stream_id(client->session);
    struct http2_answer *answer = answer_of(client, stream);
    const nghttp2_data_provider nothing = {.source.ptr = answer, .read_callback = client_read};
    answer->leaves_open = true;
    call_with(client, "/t/Keep", &request, &words);
    client_send(client);
    wait_for(&kept_count, 1);
    answer->leaves_open = false;
    uint64_t start_us = clock_monotonic_us();
    CHECK_INT(nghttp2_submit_data(client->session, NGHTTP2_FLAG_END_STREAM, stream, &nothing),
              0);
    CHECK(await(client, stream)->why == NGHTTP2_PROTOCOL_ERROR);
    wait_for(&gone_count, 1);
    CHECK(clock_monotonic_us() - start_us < 2000000);
    answer_kept(true);
    str_release(&request);
    client_close(client);
    end();
}

/* However many at once, in one write with their calls. */
TEST(http2_lets_calls_be_given_up)
{
    enum { CALLS = 1000 };
    begin();
    struct http2_client *client = join(0);
    for (int together = 0; together < 2; together++) {
        struct str said = {0};
        int32_t streams[CALLS / 2];
        for (int i = 0; i < CALLS / 2; i++)
            streams[i] = call(client, "/t/Keep", "a");
        client_say(client, &said);
        if (!together) {
            send_all(client->socket, &said, SIZE_MAX / 2);
            wait_for(&kept_count, CALLS / 2);
            str_clear(&said);
        }
        for (int i = 0; i < CALLS / 2; i++)
            nghttp2_submit_rst_stream(client->session, 0, streams[i], NGHTTP2_CANCEL);
        client_say(client, &said);
        send_all(client->socket, &said, SIZE_MAX / 2);
        check_answer(client, call(client, "/t/Echo", "hello"), "hello");
        wait_for(&gone_count, count_of(&kept_count));
        kept_count = together ? kept_count : (answer_kept(true), 0);
        gone_count = together ? gone_count : 0;
        str_release(&said);
    }
    answer_kept(true);
    client_close(client);
    end();
}

TEST(http2_holds_many_calls_open)
{
    enum { CALLS = 1000 };
    begin();
    struct http2_client *client = join(0);
    int32_t streams[CALLS];
    for (int i = 0; i < CALLS; i++)
        streams[i] = call(client, "/t/Keep", "a");
    client_send(client);
    wait_for(&kept_count, CALLS);
    check_answer(client, call(client, "/t/Echo", "hello"), "hello");
    answer_kept(false);
    for (int i = 0; i < CALLS; i++)
        CHECK(await(client, streams[i])->grpc_status == 0 ||
              await(client, streams[i])->grpc_status == NOT_FOUND);
    client_close(client);
    end();
    CHECK_INT(gone_count, 0);
}

TEST(http2_answers_pings)
{
    begin();
    struct http2_client *client = join(0);
    for (int i = 0; i < 3; i++)
        nghttp2_submit_ping(client->session, 0, NULL);
    while (client->pings < 3)
        CHECK(client_go(client));
    client_close(client);
    end();
}

/* --- clients that take slowly --- */

/* How many have been made when no more are. */
static int made_at_rest(void)
{
    int before = -1;
    for (int i = 0; i < 100 && before != count_of(&made); i++) {
        before = count_of(&made);
        usleep(50000);
    }
    CHECK_INT(before, count_of(&made));
    return before;
}

static void check_many(struct http2_client *client, int32_t stream, int count)
{
    const size_t size = 5 + sizeof(int) + MESSAGE_MAX;
    const struct http2_answer *answer = await(client, stream);
    CHECK_INT(answer->grpc_status, 0);
    CHECK_INT(answer->body.size, (size_t)count * size);
    for (int i = 0; i < count; i++) {
        int left;
        memcpy(&left, answer->body.data + (size_t)i * size + 5, sizeof(left));
        CHECK_INT(left, count - 1 - i);
    }
}

/* The source is held up, by the client's window or by the system, and goes on. */
TEST(http2_waits_for_who_takes_slowly)
{
    static const uint32_t windows[] = {0, WIDE};
    for (int i = 0; i < ARRAY_LEN(windows); i++) {
        begin();
        struct http2_client *client = join(windows[i]);
        int32_t stream = call(client, "/t/Many", "4");
        client_send(client);
        CHECK(made_at_rest() < (windows[i] ? 16 : 3));
        check_serves();
        check_many(client, stream, 40);
        client_close(client);
        end();
        CHECK_INT(made, 40);
    }
}

/* Who has said that it goes still has its answers whole, however slowly it takes them: whatever
 * of them is left when the system has no room. */
TEST(http2_answers_who_is_about_to_go)
{
    enum { BYTES = 150000, TIMES = 8 };
    char *text = alloc_bytes(BYTES + 1);
    memset(text, 'x', BYTES);
    begin();
    for (int i = 0; i < TIMES; i++) {
        struct http2_client *client = join(WIDE);
        int32_t stream = call(client, "/t/Many", "1"), echoes[TIMES];
        for (int n = 0; n < i; n++)
            echoes[n] = call(client, "/t/Echo", text);
        client_send(client);
        nghttp2_submit_goaway(client->session, 0, 0, NGHTTP2_NO_ERROR, NULL, 0);
        client_send(client);
        usleep(30000);
        while (!answer_of(client, stream)->is_closed && client_go(client))
            usleep(500);
        check_many(client, stream, 10);
        for (int n = 0; n < i; n++)
            check_answer(client, echoes[n], text);
        client_close(client);
    }
    free(text);
    end();
}

TEST(http2_forgets_who_goes_in_the_middle)
{
    static const uint32_t windows[] = {0, WIDE};
    for (int i = 0; i < ARRAY_LEN(windows); i++) {
        begin();
        for (int n = 0; n < 4; n++) {
            struct http2_client *client = join(windows[i]);
            int32_t stream = call(client, "/t/Many", "9");
            call(client, "/t/Many", "9");
            client_send(client);
            made_at_rest();
            if (n % 2) {
                nghttp2_submit_rst_stream(client->session, 0, stream, NGHTTP2_CANCEL);
                client_send(client);
            }
            client_close(client);
        }
        for (int ms = 0; count_of(&sources) && ms < PATIENCE_MS; ms++)
            usleep(1000);
        CHECK_INT(sources, 0);
        end();
        CHECK(made < 90);
    }
}

/* Time is up for calls that the system has no room for, and whose sources wait for it. */
TEST(http2_ends_answers_whose_time_is_up)
{
    enum { CALLS = 30 };
    static const struct http2_words soon = {.name = "grpc-timeout", .value = "400m"};
    begin();
    struct http2_client *client = join(WIDE);
    struct str request = {0};
    int32_t streams[CALLS], last = call(client, "/t/Many", "9");
    add_message(&request, 0, 1, "9", 1);
    for (int i = 0; i < CALLS; i++)
        streams[i] = call_with(client, "/t/Many", &request, &soon);
    client_send(client);
    for (int ms = 0; count_of(&sources) != 1 && ms < PATIENCE_MS; ms++)
        usleep(1000);
    CHECK_INT(count_of(&sources), 1);
    for (int i = 0; i < CALLS; i++) {
        CHECK(await(client, streams[i])->is_closed);
        CHECK(await(client, streams[i])->why == NGHTTP2_CANCEL);
    }
    check_many(client, last, 90);
    str_release(&request);
    client_close(client);
    end();
}

TEST(http2_keeps_to_small_windows)
{
    static const uint32_t windows[] = {1, 5, 10};
    begin();
    for (int i = 0; i < ARRAY_LEN(windows); i++) {
        struct http2_client *client = join(windows[i]);
        const char *text = "an answer that is longer than the window";
        int32_t first = call(client, "/t/Echo", text), second = call(client, "/t/Echo", text);
        check_answer(client, first, text);
        check_answer(client, second, text);
        client_close(client);
    }
    end();
}

/* --- who does not speak the language --- */

/* Hung up on, without more than it was said before that. */
static void check_hung_up_on(const void *bytes, size_t size, bool ends)
{
    int socket = connect_to(rpc_server_address(server), 0);
    char got[4096];
    ssize_t n;
    CHECK_INT(send(socket, bytes, size, MSG_NOSIGNAL), size);
    if (ends)
        shutdown(socket, SHUT_WR);
    struct pollfd file = {.fd = socket, .events = POLLIN};
    do {
        CHECK_INT(poll(&file, 1, 5000), 1);
        n = recv(socket, got, sizeof(got), 0);
    } while (n > 0);
    close(socket);
}

static void add_frame(struct str *out, size_t said, int type, int flags, int stream,
                      const char *body, size_t size)
{
    const char head[] = {
        (char)(said >> 16),  (char)(said >> 8), (char)said, (char)type, (char)flags, 0, 0,
        (char)(stream >> 8), (char)stream};
    str_add_bytes(out, head, sizeof(head));
    str_add_bytes(out, body, size);
}

TEST(http2_hangs_up_on_nonsense)
{
    static const char *const texts[] = {
        "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSN\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 and so on"};
    uint32_t state = 12345;
    begin();
    for (int i = 0; i < ARRAY_LEN(texts); i++)
        check_hung_up_on(texts[i], strlen(texts[i]), false);
    for (size_t size = 0; size < NGHTTP2_CLIENT_MAGIC_LEN; size++)
        check_hung_up_on(NGHTTP2_CLIENT_MAGIC, size, true);
    for (int i = 0; i < 50; i++) {
        char bytes[200];
        struct str said = {0};
        for (int n = 0; n < (int)sizeof(bytes); n++)
            bytes[n] = (char)((state = state * 1664525 + 1013904223) >> 24);
        check_hung_up_on(bytes, sizeof(bytes), false);
        str_add(&said, NGHTTP2_CLIENT_MAGIC);
        str_add_bytes(&said, bytes, sizeof(bytes));
        check_hung_up_on(said.data, said.size, true);
        str_release(&said);
    }
    end();
}

/* Frames that must not be, behind a beginning that is right. */
TEST(http2_hangs_up_on_wrong_frames)
{
    static const struct {
        size_t said;
        int type, flags, stream;
        const char *body;
        size_t size;
    } frames[] = {
        {0xffffff, NGHTTP2_DATA, 0, 1, "", 0},
        {4, NGHTTP2_DATA, 0, 0, "none", 4},                    /* of no stream */
        {4, NGHTTP2_DATA, 0, 7, "none", 4},                    /* ... that was begun */
        {1, NGHTTP2_HEADERS, 4, 2, "\x82", 1},                 /* ... of the server's */
        {1, NGHTTP2_HEADERS, 4, 1, "\xff", 1},                 /* cut short */
        {5, NGHTTP2_HEADERS, 4, 1, "\xff\xff\xff\xff\x0f", 5}, /* no such word */
        {1, NGHTTP2_HEADERS, 0, 1, "\x82", 1}, /* more of it is said to follow, */
        {9, NGHTTP2_CONTINUATION, 4, 1, "\x82", 1},
        {5, NGHTTP2_SETTINGS, 0, 0, "12345", 5},
        {6, NGHTTP2_SETTINGS, 0, 0, "\0\4\xff\xff\xff\xff", 6}, /* too wide a window */
        {4, NGHTTP2_WINDOW_UPDATE, 0, 0, "\x7f\xff\xff\xff", 4},
        {4, NGHTTP2_WINDOW_UPDATE, 0, 0, "\0\0\0\0", 4},
        {3, NGHTTP2_PING, 0, 0, "one", 3},
        {4, NGHTTP2_PUSH_PROMISE, 4, 1, "\0\0\0\2", 4},
    };
    begin();
    for (int i = 0; i < ARRAY_LEN(frames); i++) {
        struct str said = {0};
        str_add(&said, NGHTTP2_CLIENT_MAGIC);
        add_frame(&said, 0, NGHTTP2_SETTINGS, 0, 0, "", 0);
        add_frame(&said, frames[i].said, frames[i].type, frames[i].flags, frames[i].stream,
                  frames[i].body, frames[i].size);
        add_frame(&said, 8, NGHTTP2_PING, 0, 0, "12345678", 8);
        check_hung_up_on(said.data, said.size, false);
        str_release(&said);
    }
    end();
}
