/* rpc_http2_test.c - requests that come over HTTP/2 in any shape, and what they are answered.
 */

#include <zlib.h>

#include "tests/unit/proto/http2_client.h"

enum { MESSAGE_MAX = 1 << 20 };

static struct error err;
static struct rpc_server *server;

static void echo(void *self, struct rpc_call *call)
{
    size_t size;
    const void *bytes = rpc_call_bytes(call, &size);
    (void)self;
    rpc_call_reply(call, bytes, size);
}

static void refuse(void *self, struct rpc_call *call)
{
    struct error why;
    (void)self;
    (void)error_at(&why, "/a", NOT_FOUND, "100%% of \"\xc3\xa4\"\nis gone");
    rpc_call_fail(call, &why);
}

static _Atomic(struct rpc_call *) kept; /* its handler has not answered */
static int gone_count;

static void gone(void *arg)
{
    (void)arg;
    count_up(&gone_count, 1);
}

static void keep(void *self, struct rpc_call *call)
{
    (void)self;
    rpc_call_watch(call, gone, alloc_bytes(1));
    kept = call;
}

static const struct rpc_method methods[] = {
    {"/t/Echo", echo}, {"/t/Refuse", refuse}, {"/t/Keep", keep}, {0}};

static struct http2_client *begin(void)
{
    const struct rpc_server_options options = {.address = "127.0.0.1:0",
                                               .message_bytes_max = MESSAGE_MAX};
    server = rpc_server_start(&options, methods, NULL, &err);
    CHECK_OK(server, &err);
    return client_open(rpc_server_address(server), 0);
}

/* The connection is as good as before. */
static void end(struct http2_client *client)
{
    client->frame_bytes = 0;
    check_answer(client, call(client, "/t/Echo", "still here"), "still here");
    CHECK(!client->goes_away);
    client_close(client);
    rpc_server_stop(server);
}

/* --- pieces --- */

TEST(http2_takes_calls_in_pieces)
{
    static const size_t pieces[] = {1, 2, 7, 24, 1000};
    for (int i = 0; i < ARRAY_LEN(pieces); i++) {
        struct http2_client *client = begin();
        struct str said = {0};
        int32_t first = call(client, "/t/Echo", "hello"), second = call(client, "/t/Echo", "");
        client_say(client, &said);
        send_all(client->socket, &said, pieces[i]);
        check_answer(client, first, "hello");
        check_answer(client, second, "");
        str_release(&said);
        end(client);
    }
}

TEST(http2_takes_many_calls_at_once)
{
    enum { CALLS = 500 };
    struct http2_client *client = begin();
    int32_t streams[CALLS];
    char text[32];
    for (int i = 0; i < CALLS; i++) {
        snprintf(text, sizeof(text), "call %d", i);
        streams[i] = call(client, "/t/Echo", text);
    }
    for (int i = 0; i < CALLS; i++) {
        snprintf(text, sizeof(text), "call %d", i);
        check_answer(client, streams[i], text);
    }
    end(client);
}

/* A message, and what is in front of it, in frames of any size. */
TEST(http2_takes_messages_in_frames)
{
    static const size_t frames[] = {1, 2, 3, 4, 5, 6, 7, 26};
    struct http2_client *client = begin();
    for (int i = 0; i < ARRAY_LEN(frames); i++) {
        client->frame_bytes = frames[i];
        check_answer(client, call(client, "/t/Echo", "a message in many frames"),
                     "a message in many frames");
        check_answer(client, call(client, "/t/Echo", ""), "");
    }
    end(client);
}

TEST(http2_takes_the_largest_message)
{
    struct http2_client *client = begin();
    char *text = alloc_bytes(MESSAGE_MAX + 1);
    memset(text, 'x', MESSAGE_MAX);
    for (int i = 0; i < 3; i++)
        check_answer(client, call(client, "/t/Echo", text), text);
    free(text);
    end(client);
}

/* --- requests that are wrong --- */

static int32_t ask(struct http2_client *client, int packed, size_t said, const char *text,
                   const struct http2_words *words)
{
    struct str request = {0};
    add_message(&request, packed, said, text, strlen(text));
    int32_t stream = call_with(client, "/t/Echo", &request, words);
    str_release(&request);
    return stream;
}

TEST(http2_refuses_calls_without_a_message)
{
    struct http2_client *client = begin();
    struct str request = {0};
    check_refused(client, call_with(client, "/t/Echo", NULL, NULL), INVALID);
    check_refused(client, call_with(client, "/t/Echo", &request, NULL), INVALID);
    for (int i = 0; i < 4; i++) {
        str_add_char(&request, 0);
        check_refused(client, call_with(client, "/t/Echo", &request, NULL), INVALID);
    }
    str_release(&request);
    check_refused(client, ask(client, 0, 6, "short", NULL), INVALID);
    check_refused(client, ask(client, 0, MESSAGE_MAX, "short", NULL), INVALID);
    check_refused(client, ask(client, 2, 5, "hello", NULL), INTERNAL);
    check_refused(client, ask(client, 255, 5, "hello", NULL), INTERNAL);
    end(client);
}

/* Only the first message counts. */
TEST(http2_looks_at_one_message)
{
    struct http2_client *client = begin();
    check_answer(client, ask(client, 0, 5, "hello, world", NULL), "hello");
    client->frame_bytes = 1;
    check_answer(client, ask(client, 0, 5, "hello, world", NULL), "hello");
    end(client);
}

TEST(http2_refuses_what_is_no_grpc)
{
    static const struct http2_words none[] = {
        {.method = "GET"}, {.method = "PUT"},           {.type = "text/html"},
        {.type = ""},      {.type = "application/grp"}, {.type = "application/grpc-web"}};
    static const char *const types[] = {"application/grpc", "application/grpc+proto",
                                        "application/grpc;charset=utf-8"};
    struct http2_client *client = begin();
    for (int i = 0; i < ARRAY_LEN(none); i++) {
        for (int has_body = 0; has_body < 2; has_body++) {
            int32_t stream = has_body ? ask(client, 0, 5, "hello", &none[i])
                                      : call_with(client, "/t/Echo", NULL, &none[i]);
            const struct http2_answer *answer = await(client, stream);
            CHECK(answer->is_closed);
            CHECK_INT(answer->status, 415);
            CHECK_INT(answer->body.size, 0);
        }
    }
    for (int i = 0; i < ARRAY_LEN(types); i++) {
        const struct http2_words words = {.type = types[i]};
        check_answer(client, ask(client, 0, 5, "hello", &words), "hello");
    }
    end(client);
}

TEST(http2_has_no_other_methods)
{
    static const char *const paths[] = {"/t/None", "/", "/t/Ech", "/t/Echoo", "/t/echo"};
    struct http2_client *client = begin();
    for (int i = 0; i < ARRAY_LEN(paths); i++)
        check_refused(client, call(client, paths[i], "hello"), UNIMPLEMENTED);
    end(client);
}

TEST(http2_tells_why_a_call_failed)
{
    struct http2_client *client = begin();
    int32_t stream = call(client, "/t/Refuse", "");
    check_refused(client, stream, NOT_FOUND);
    CHECK_TEXT(str_text(&answer_of(client, stream)->text), "100%25 of \"%C3%A4\"%0Ais gone");
    end(client);
}

/* What is too large is refused at its first bytes; all that follows them takes no room from the
 * calls behind it: together it is more than the connection may say unasked. */
TEST(http2_refuses_large_messages)
{
    enum { CALLS = 24 };
    struct http2_client *client = begin();
    struct str request = {0};
    add_message(&request, 0, MESSAGE_MAX + 1, "", 0);
    memset(str_extend(&request, MESSAGE_MAX + 1), 'x', MESSAGE_MAX + 1);
    for (int i = 0; i < CALLS; i++) {
        int32_t stream = call_with(client, "/t/Echo", &request, NULL);
        check_refused(client, stream, EXHAUSTED);
        CHECK_TEXT(str_text(&answer_of(client, stream)->text),
                   "Received message larger than max (1048577 vs. 1048576)");
    }
    str_clear(&request);
    add_message(&request, 0, UINT32_MAX, "", 0);
    check_refused(client, call_with(client, "/t/Echo", &request, NULL), EXHAUSTED);
    str_release(&request);
    end(client);
}

/* --- packed messages --- */

static void pack(struct str *out, const char *bytes, size_t size, int window_bits)
{
    static unsigned char packed[1 << 16];
    z_stream stream = {0};
    CHECK_INT(deflateInit2(&stream, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = (unsigned char *)bytes;
    stream.avail_in = (unsigned)size;
    stream.next_out = packed;
    stream.avail_out = sizeof(packed);
    CHECK_INT(deflate(&stream, Z_FINISH), Z_STREAM_END);
    str_clear(out);
    add_message(out, 1, stream.total_out, packed, stream.total_out);
    deflateEnd(&stream);
}

TEST(http2_takes_packed_messages)
{
    static const struct http2_words gzip = {.name = "grpc-encoding", .value = "gzip"},
                                    deflate_ = {.name = "grpc-encoding", .value = "deflate"},
                                    identity = {.name = "grpc-encoding", .value = "identity"},
                                    snappy = {.name = "grpc-encoding", .value = "snappy"};
    struct http2_client *client = begin();
    struct str request = {0};
    pack(&request, "hello, hello, hello", 19, 15 + 16);
    check_answer(client, call_with(client, "/t/Echo", &request, &gzip), "hello, hello, hello");
    check_refused(client, call_with(client, "/t/Echo", &request, &deflate_), INVALID);
    check_refused(client, call_with(client, "/t/Echo", &request, &identity), INVALID);
    check_refused(client, call_with(client, "/t/Echo", &request, NULL), INVALID);
    check_refused(client, call_with(client, "/t/Echo", &request, &snappy), UNIMPLEMENTED);
    pack(&request, "hello", 5, 15);
    check_answer(client, call_with(client, "/t/Echo", &request, &deflate_), "hello");
    check_answer(client, ask(client, 0, 5, "hello", &gzip), "hello"); /* it need not be */
    char *large = alloc_bytes(MESSAGE_MAX + 1);
    pack(&request, large, MESSAGE_MAX + 1, 15 + 16);
    check_refused(client, call_with(client, "/t/Echo", &request, &gzip), EXHAUSTED);
    free(large);
    str_release(&request);
    end(client);
}

/* --- time --- */

TEST(http2_refuses_times_that_are_none)
{
    static const char *const times[] = {"", "1", "S", "1s", "-1S", "123456789S", "soon"};
    struct http2_client *client = begin();
    for (int i = 0; i < ARRAY_LEN(times); i++) {
        const struct http2_words words = {.name = "grpc-timeout", .value = times[i]};
        check_refused(client, ask(client, 0, 5, "hello", &words), INTERNAL);
    }
    const struct http2_words never = {.name = "grpc-timeout", .value = "99999999H"};
    check_answer(client, ask(client, 0, 5, "hello", &never), "hello");
    end(client);
}

/* Its handler, if it was called, is told, and answers nobody. */
static void end_kept(bool must)
{
    struct rpc_call *call = kept;
    CHECK(call || !must);
    if (!call)
        return;
    wait_for(&gone_count, 1);
    CHECK(rpc_call_cancelled(call));
    rpc_call_reply(call, "late", 4);
}

/* Whose handler is told so, and answers nobody any more. */
TEST(http2_ends_calls_whose_time_is_up)
{
    static const char *const times[] = {"0n", "1n", "60m", "100000u"};
    struct http2_client *client = begin();
    struct str request = {0};
    add_message(&request, 0, 0, "", 0);
    for (int i = 0; i < ARRAY_LEN(times); i++) {
        const struct http2_words words = {.name = "grpc-timeout", .value = times[i]};
        kept = NULL;
        gone_count = 0;
        int32_t stream = call_with(client, "/t/Keep", &request, &words);
        check_refused(client, stream, DEADLINE);
        CHECK_TEXT(str_text(&answer_of(client, stream)->text), "Deadline Exceeded");
        end_kept(i >= 2);
    }
    /* also when the request has not come whole */
    const struct http2_words soon = {.name = "grpc-timeout", .value = "50m"};
    request.size--;
    int32_t stream = nghttp2_session_get_next_stream_id(client->session);
    answer_of(client, stream)->leaves_open = true;
    call_with(client, "/t/Keep", &request, &soon);
    check_refused(client, stream, DEADLINE);
    str_release(&request);
    end(client);
}
