/* rpc_http2_client_test.c - answers that come over HTTP/2 in any shape, and what callers are
 * told. */

#include <zlib.h>

#include "tests/unit/proto/http2_host.h"
#include "tests/unit/proto/made.h"

static struct http2_host host;
static struct rpc_client *client;
static struct made made;
static struct made_sink sink;
static int32_t stream; /* of the last call */

static void begin(void)
{
    host_open(&host);
    client = made_client(host.address, NULL);
    make(&made, client, "hello");
    host_begin(&host);
    host_await(&host, 1);
    CHECK_TEXT(str_text(&host_call_of(&host, 1)->path), "/t/Call");
    CHECK_INT(host_call_of(&host, 1)->request.size, 10);
    host_reply(&host, 1, "hello, too");
    made_answered(&made, "hello, too");
    stream = 1;
}

/* One call more, which waits for its answer. */
static int32_t ask(void)
{
    make(&made, client, "hello");
    host_await(&host, (stream += 2) / 2 + 1);
    return stream;
}

static int32_t ask_into(int takes)
{
    sink.takes = takes;
    make_into(&sink, client);
    host_await(&host, (stream += 2) / 2 + 1);
    return stream;
}

/* The connection is as good as before. */
static void end(void)
{
    host.piece = host.frame_bytes = 0;
    ask();
    host_reply(&host, stream, "still here");
    made_answered(&made, "still here");
    rpc_client_free(client);
    while (host_go(&host)) {
    }
    host_close(&host);
}

static void check_words(const struct host_words *words, const struct str *body, int code,
                        const char *text)
{
    struct str wanted = {0};
    ask();
    host_answer(&host, stream, words, body);
    made_failed(&made, code);
    for (; *text; text++)
        if (*text == '@')
            str_add(&wanted, host.address);
        else
            str_add_char(&wanted, *text);
    CHECK_TEXT(made.err.text, str_text(&wanted));
    str_release(&wanted);
}

/* --- pieces --- */

TEST(http2_client_takes_answers_in_pieces)
{
    static const size_t pieces[] = {1, 2, 3, 7, 24, 1000};
    begin();
    for (int i = 0; i < ARRAY_LEN(pieces); i++) {
        for (int frames = 0; frames < 2; frames++) {
            host.piece = frames ? 0 : pieces[i];
            host.frame_bytes = frames ? pieces[i] : 0;
            host_reply(&host, ask(), "an answer in many pieces");
            made_answered(&made, "an answer in many pieces");
            host_reply(&host, ask(), "");
            made_answered(&made, "");
        }
    }
    end();
}

/* The whole of what a server says, from its first byte on. */
TEST(http2_client_takes_servers_byte_by_byte)
{
    host_open(&host);
    client = made_client(host.address, NULL);
    host.piece = 1;
    make(&made, client, "hello");
    host_begin(&host);
    host_await(&host, 1);
    host_reply(&host, 1, "hello, too");
    made_answered(&made, "hello, too");
    stream = 1;
    end();
}

TEST(http2_client_takes_the_largest_message)
{
    char *text = alloc_bytes(MADE_BYTES_MAX + 1);
    memset(text, 'x', MADE_BYTES_MAX);
    begin();
    for (int i = 0; i < 3; i++) {
        host_reply(&host, ask(), text);
        host_serve(&host, &made.over, 1); /* it gives room, which has to be heard */
        made_answered(&made, text);
    }
    free(text);
    end();
}

/* --- failures --- */

TEST(http2_client_is_told_why)
{
    static const char *const pointers[] = {"L2EvYg==", "L2EvYg", "L2EvYmM=", "L2EvYmM", ""};
    static const char *const wanted[] = {"/a/b", "/a/b", "/a/bc", "/a/bc", ""};
    begin();
    for (int i = 0; i < ARRAY_LEN(pointers); i++) {
        const struct host_words words = {.grpc_status = "5",
                                         .text = "100%25 of %22%C3%A4%22%0Ais gone",
                                         .pointer = pointers[i]};
        check_words(&words, NULL, NOT_FOUND, "100% of \"\xc3\xa4\"\nis gone");
        CHECK_TEXT(made.err.pointer, wanted[i]);
    }
    check_words(&(struct host_words){.grpc_status = "14", .text = "no room"}, NULL, UNAVAILABLE,
                "cannot reach @: no room");
    check_words(&(struct host_words){.grpc_status = "14", .text = "no room", .pointer = ""},
                NULL, UNAVAILABLE, "no room"); /* a server of ours says what it means */
    check_words(&(struct host_words){.grpc_status = "9", .text = "%"}, NULL, PRECONDITION, "%");
    check_words(&(struct host_words){.grpc_status = "9", .text = "a%ffb%4"}, NULL, PRECONDITION,
                "a?b%4");
    check_words(&(struct host_words){.grpc_status = "4"}, NULL, DEADLINE, "");
    end();
}

/* Behind a message, too. */
TEST(http2_client_is_told_why_in_trailers)
{
    struct str body = {0};
    begin();
    check_words(&(struct host_words){.grpc_status = "7", .text = "no"}, &body, DENIED, "no");
    host_add(&body, 0, 5, "hello", 5);
    check_words(&(struct host_words){.grpc_status = "7", .text = "no"}, &body, DENIED, "no");
    str_release(&body);
    end();
}

TEST(http2_client_takes_long_texts)
{
    struct str text = {0}, wanted = {0};
    begin();
    for (int i = 0; i < 2500; i++)
        str_add(&text, "%C3%A4");
    for (int i = 0; i < ((int)sizeof(made.err.text) - 1) / 2; i++)
        str_add(&wanted, "\xc3\xa4");
    if (sizeof(made.err.text) % 2 == 0) /* half of one is no letter */
        str_add(&wanted, "?");
    check_words(&(struct host_words){.grpc_status = "3", .text = str_text(&text)}, NULL,
                INVALID, str_text(&wanted));
    str_release(&text);
    str_release(&wanted);
    end();
}

TEST(http2_client_takes_statuses_that_are_none)
{
    static const char *const statuses[] = {"abc", "", "-1", "17", "9999", "12345"};
    begin();
    for (int i = 0; i < ARRAY_LEN(statuses); i++)
        check_words(&(struct host_words){.grpc_status = statuses[i], .text = "odd"}, NULL,
                    UNKNOWN, "odd");
    end();
}

/* What others than servers of gRPC answer. */
TEST(http2_client_takes_answers_of_others)
{
    static const struct {
        const char *status;
        int code;
    } others[] = {{"400", INTERNAL},      {"401", UNAUTHENTICATED}, {"403", DENIED},
                  {"404", UNIMPLEMENTED}, {"429", UNAVAILABLE},     {"502", UNAVAILABLE},
                  {"503", UNAVAILABLE},   {"504", UNAVAILABLE},     {"500", UNKNOWN},
                  {"302", UNKNOWN}};
    struct str page = {0};
    char text[100];
    str_add(&page, "<html><body>It is not here.</body></html>");
    begin();
    for (int i = 0; i < ARRAY_LEN(others); i++) {
        const struct host_words words = {.status = others[i].status, .type = "text/html"};
        snprintf(text, sizeof(text), "@ answered with HTTP's status %s", others[i].status);
        check_words(&words, &page, others[i].code, text);
        check_words(&words, NULL, others[i].code, text);
    }
    check_words(&(struct host_words){.type = "text/html"}, &page, UNKNOWN,
                "@ answered with something else than gRPC");
    str_release(&page);
    end();
}

TEST(http2_client_takes_answers_without_a_status)
{
    struct str body = {0};
    begin();
    check_words(&(struct host_words){0}, &body, UNKNOWN, "@ answered without a status");
    check_words(&(struct host_words){0}, NULL, UNKNOWN, "@ answered without a status");
    host_add(&body, 0, 5, "hello", 5);
    check_words(&(struct host_words){0}, &body, UNKNOWN, "@ answered without a status");
    str_release(&body);
    end();
}

/* --- messages --- */

static void pack(struct str *out, int window_bits, const char *text, size_t size)
{
    z_stream packer = {0};
    char bytes[8192];
    CHECK_INT(deflateInit2(&packer, 9, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
    packer.next_in = (unsigned char *)text;
    packer.avail_in = (unsigned)size;
    packer.next_out = (unsigned char *)bytes;
    packer.avail_out = sizeof(bytes);
    CHECK_INT(deflate(&packer, Z_FINISH), Z_STREAM_END);
    size_t packed = sizeof(bytes) - packer.avail_out;
    host_add(out, 1, packed, bytes, packed);
    deflateEnd(&packer);
}

TEST(http2_client_takes_packed_answers)
{
    static const char *const encodings[] = {"gzip", "deflate"};
    const char *text = "packed, packed, packed, packed";
    begin();
    for (int i = 0; i < 2; i++) {
        struct str body = {0};
        host.frame_bytes = 7;
        pack(&body, i ? 15 : 15 + 16, text, strlen(text));
        host_answer(&host, ask(),
                    &(struct host_words){.encoding = encodings[i], .grpc_status = "0"}, &body);
        made_answered(&made, text);
        check_words(&(struct host_words){.encoding = encodings[1 - i], .grpc_status = "0"},
                    &body, INTERNAL, "@ answered unreadably");
        check_words(&(struct host_words){.grpc_status = "0"}, &body, INTERNAL,
                    "@ answered unreadably");
        body.data[0] = 0; /* it is not, after all */
        host_answer(&host, ask(),
                    &(struct host_words){.encoding = encodings[i], .grpc_status = "0"}, &body);
        wait_for(&made.over, 1);
        CHECK_INT(made.answer.size, body.size - 5);
        str_release(&made.answer);
        str_release(&body);
    }
    end();
}

TEST(http2_client_refuses_large_messages)
{
    struct str body = {0}, zeros = {0};
    memset(str_extend(&zeros, MADE_BYTES_MAX + 1), 0, MADE_BYTES_MAX + 1);
    begin();
    host_add(&body, 0, MADE_BYTES_MAX + 1, "and so on", 9);
    check_words(&(struct host_words){.grpc_status = "0"}, &body, EXHAUSTED,
                "Received message larger than max (1048577 vs. 1048576)");
    str_clear(&body);
    host_add(&body, 0, UINT32_MAX, zeros.data, zeros.size); /* which nobody wants to hear */
    host_call_of(&host, stream + 2)->stays_open = true;
    check_words(&(struct host_words){.grpc_status = "0"}, &body, EXHAUSTED,
                "Received message larger than max (4294967295 vs. 1048576)");
    CHECK_INT(host_await_end(&host, stream)->why, NGHTTP2_CANCEL);
    str_clear(&body);
    pack(&body, 15 + 16, zeros.data, zeros.size);
    check_words(&(struct host_words){.encoding = "gzip", .grpc_status = "0"}, &body, EXHAUSTED,
                "Received message larger than max: more than 1048576 bytes when unpacked");
    str_release(&body);
    str_release(&zeros);
    end();
}

TEST(http2_client_wants_one_message)
{
    struct str body = {0};
    begin();
    host_add(&body, 0, 5, "first", 5);
    host_add(&body, 0, 6, "second", 6);
    check_words(&(struct host_words){.grpc_status = "0"}, &body, INTERNAL,
                "@ answered with more than one message");
    body.size = 5;
    check_words(&(struct host_words){.grpc_status = "0"}, &body, INTERNAL,
                "@ broke off in the middle of a message");
    body.size = 3;
    check_words(&(struct host_words){.grpc_status = "0"}, &body, INTERNAL,
                "@ broke off in the middle of a message");
    body.size = 12;
    check_words(&(struct host_words){.grpc_status = "0"}, &body, INTERNAL,
                "@ broke off in the middle of a message");
    body.size = 0;
    check_words(&(struct host_words){.grpc_status = "0"}, &body, INTERNAL,
                "@ answered without a message");
    check_words(&(struct host_words){.grpc_status = "0"}, NULL, INTERNAL,
                "@ answered without a message");
    body.size = 7;
    check_words(&(struct host_words){.grpc_status = "10", .text = "why"}, &body, ABORTED,
                "why"); /* more than that it broke off */
    str_release(&body);
    end();
}

/* --- streams that are ended --- */

TEST(http2_client_takes_resets)
{
    static const struct {
        uint32_t why;
        int code;
        const char *text;
    } resets[] = {
        {NGHTTP2_REFUSED_STREAM, UNAVAILABLE, "it takes no more calls"},
        {NGHTTP2_CANCEL, CANCELLED, "the call was cancelled"},
        {NGHTTP2_INTERNAL_ERROR, INTERNAL, "HTTP/2's error 2"},
        {NGHTTP2_ENHANCE_YOUR_CALM, EXHAUSTED, "HTTP/2's error 11"},
        {12345, INTERNAL, "HTTP/2's error 12345"},
    };
    begin();
    for (int i = 0; i < ARRAY_LEN(resets); i++) {
        for (int begins = 0; begins < 2; begins++) {
            struct str half = {0};
            ask();
            host_add(&half, 0, 100, "half", 4);
            host_call_of(&host, stream)->stays_open = true;
            if (begins)
                host_answer(&host, stream, &(struct host_words){0}, &half);
            CHECK_INT(nghttp2_submit_rst_stream(host.session, 0, stream, resets[i].why), 0);
            host_send(&host);
            made_failed(&made, resets[i].code);
            CHECK(strstr(made.err.text, resets[i].text));
            str_release(&half);
        }
    }
    end();
}

/* A server that has its say before it has heard all ends the call, whether it resets the rest
 * or leaves that to be sent for ever. */
TEST(http2_client_takes_answers_before_all_is_said)
{
    struct str request = {0};
    begin();
    memset(str_extend(&request, 8 << 20), 'x', 8 << 20);
    for (int i = 0; i < 2; i++) {
        made = (struct made){.client = client};
        rpc_client_start(client, "/t/Call", &request, made_ended, &made);
        while (host.begun < (stream + 2) / 2 + 1)
            CHECK(host_go(&host));
        stream += 2;
        CHECK(!host_call_of(&host, stream)->is_whole);
        if (i)
            host_reply(&host, stream, "enough");
        else
            host_answer(&host, stream,
                        &(struct host_words){.grpc_status = "8", .text = "too much"}, NULL);
        if (i)
            made_answered(&made, "enough");
        else
            made_failed(&made, EXHAUSTED);
        CHECK(host_await_end(&host, stream)->why == NGHTTP2_CANCEL);
        host.whole++; /* it will not be */
    }
    str_release(&request);
    end();
}

/* --- answers of several messages --- */

TEST(http2_client_gives_messages_as_they_come)
{
    static const size_t frames[] = {1, 2, 3, 5, 8, 13, 0};
    struct str body = {0};
    host_add(&body, 0, 5, "first", 5);
    host_add(&body, 0, 0, "", 0);
    pack(&body, 15 + 16, "second", 6);
    host_add(&body, 0, 1, "3", 1);
    begin();
    for (int i = 0; i < ARRAY_LEN(frames); i++) {
        host.frame_bytes = frames[i];
        host_answer(&host, ask_into(0),
                    &(struct host_words){.encoding = "gzip", .grpc_status = "0"}, &body);
        wait_for(&sink.over, 1);
        CHECK_OK(sink.ok, &sink.err);
        CHECK_TEXT(str_text(&sink.messages), "first||second|3|");
        str_release(&sink.messages);
    }
    str_release(&body);
    end();
}

/* What has come before that may have been given. */
TEST(http2_client_gives_messages_that_break_off)
{
    struct str body = {0};
    host_add(&body, 0, 5, "first", 5);
    host_add(&body, 0, 6, "second", 6);
    begin();
    for (size_t size = 0; size < body.size; size++) {
        struct str part = {.data = body.data, .size = size};
        host_answer(&host, ask_into(0), &(struct host_words){.grpc_status = "0"}, &part);
        wait_for(&sink.over, 1);
        CHECK_INT(sink.ok, size == 10);
        CHECK(sink.ok || sink.err.code == INTERNAL);
        if (size != 10 && sink.taken)
            CHECK(size > 10);
        CHECK_TEXT(str_text(&sink.messages), sink.taken ? "first|" : "");
        str_release(&sink.messages);
    }
    str_release(&body);
    end();
}

/* Who has had enough, before the end or when it has come. */
TEST(http2_client_ends_what_is_not_taken)
{
    struct str body = {0};
    for (int i = 0; i < 5; i++)
        host_add(&body, 0, 4, "more", 4);
    begin();
    for (int ends = 0; ends < 2; ends++) {
        ask_into(3);
        host_call_of(&host, stream)->stays_open = !ends;
        host_answer(&host, stream, &(struct host_words){.grpc_status = "0"}, &body);
        wait_for(&sink.over, 1);
        CHECK_FAILS(sink.ok, &sink.err, ABORTED);
        CHECK_TEXT(sink.err.text, "enough");
        CHECK_INT(sink.taken, 3);
        if (!ends)
            CHECK_INT(host_await_end(&host, stream)->why, NGHTTP2_CANCEL);
        str_release(&sink.messages);
    }
    str_release(&body);
    end();
}

/* Nothing is taken or told any more after that. */
TEST(http2_client_cancels_in_the_middle)
{
    struct str body = {0};
    host_add(&body, 0, 4, "more", 4);
    begin();
    for (int all = 0; all < 2; all++) {
        make(&made, client, "another");
        host_await(&host, (stream += 2) / 2 + 1);
        int32_t other = stream;
        host_call_of(&host, ask_into(0))->stays_open = true;
        host_answer(&host, stream, &(struct host_words){.grpc_status = "0"}, &body);
        wait_for(&sink.taken, 1);
        if (all)
            rpc_client_cancel(client);
        else
            rpc_client_cancel_started(client, &sink);
        wait_for(&sink.over, 1);
        CHECK_FAILS(sink.ok, &sink.err, CANCELLED);
        CHECK_INT(host_await_end(&host, stream)->why, NGHTTP2_CANCEL);
        if (all) {
            made_failed(&made, CANCELLED);
        } else {
            CHECK_INT(count_of(&made.over), 0);
            host_reply(&host, other, "fine");
            made_answered(&made, "fine");
        }
        str_release(&sink.messages);
    }
    CHECK_INT(sink.taken, 1);
    make(&made, client, "late");
    made_failed(&made, CANCELLED);
    str_release(&body);
    rpc_client_free(client);
    while (host_go(&host)) {
    }
    host_close(&host);
}
