/*
 * http2_host.h - a server of HTTP/2 for tests, which says what they want it to, in the pieces
 * they want; and calls that are made to it.
 *
 * The server is the test's own thread (host_go); calls are ended by those of their client.
 */
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/connection.h"
#include "base/str.h"
#include "proto/rpc.h"
#include "tests/unit/proto/counted.h"

enum { HOST_CALLS_MAX = 1100 };

/* --- the server --- */

/* What a call is answered with; NULL: as is right, or (of what may be missing) nothing. */
struct host_words {
    const char *status, *type, *encoding;
    const char *grpc_status, *text, *pointer;
};

struct host_call {
    struct str path, timeout, request;
    bool is_whole; /* the request */
    bool is_closed;
    uint32_t why; /* it was closed */
    struct host_words words;
    struct str answer; /* what is left of it */
    bool stays_open;   /* behind that */
};

struct http2_host {
    int listener, socket;
    char address[32];
    nghttp2_session *session; /* NULL: nobody is connected, or it is not spoken */
    size_t piece;             /* bytes that are sent at a time; 0: all */
    size_t frame_bytes;       /* of the data of an answer; 0: as many as may be */
    struct host_call calls[HOST_CALLS_MAX];
    int begun, whole; /* calls */
};

static inline struct host_call *host_call_of(struct http2_host *host, int32_t stream)
{
    CHECK(stream > 0 && stream / 2 < HOST_CALLS_MAX);
    return &host->calls[stream / 2];
}

static inline int host_header(nghttp2_session *session, const nghttp2_frame *frame,
                              const uint8_t *name, size_t name_size, const uint8_t *value,
                              size_t size, uint8_t flags, void *arg)
{
    struct host_call *call = host_call_of(arg, frame->hd.stream_id);
    (void)session;
    (void)flags;
    (void)name_size;
    if (!strcmp((const char *)name, ":path"))
        str_add_bytes(&call->path, value, size);
    if (!strcmp((const char *)name, "grpc-timeout"))
        str_add_bytes(&call->timeout, value, size);
    return 0;
}

static inline int host_data(nghttp2_session *session, uint8_t flags, int32_t stream,
                            const uint8_t *data, size_t size, void *arg)
{
    (void)session;
    (void)flags;
    str_add_bytes(&host_call_of(arg, stream)->request, data, size);
    return 0;
}

static inline int host_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    struct http2_host *host = arg;
    (void)session;
    host->begun += frame->hd.type == NGHTTP2_HEADERS;
    if (frame->hd.stream_id && frame->hd.flags & NGHTTP2_FLAG_END_STREAM) {
        host_call_of(host, frame->hd.stream_id)->is_whole = true;
        host->whole++;
    }
    return 0;
}

static inline int host_closed(nghttp2_session *session, int32_t stream, uint32_t why, void *arg)
{
    struct host_call *call = host_call_of(arg, stream);
    (void)session;
    call->is_closed = true;
    call->why = why;
    return 0;
}

static inline void host_open(struct http2_host *host)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(at);
    *host = (struct http2_host){.socket = -1};
    host->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(host->listener >= 0);
    CHECK_INT(bind(host->listener, (struct sockaddr *)&at, sizeof(at)), 0);
    CHECK_INT(listen(host->listener, 100), 0);
    CHECK_INT(getsockname(host->listener, (struct sockaddr *)&at, &size), 0);
    snprintf(host->address, sizeof(host->address), "127.0.0.1:%d", ntohs(at.sin_port));
}

/* Hangs up. */
static inline void host_leave(struct http2_host *host)
{
    nghttp2_session_del(host->session);
    host->session = NULL;
    if (host->socket >= 0)
        close(host->socket);
    host->socket = -1;
    for (int i = 0; i < HOST_CALLS_MAX; i++) {
        str_release(&host->calls[i].path);
        str_release(&host->calls[i].timeout);
        str_release(&host->calls[i].request);
        str_release(&host->calls[i].answer);
        host->calls[i] = (struct host_call){0};
    }
    host->begun = host->whole = 0;
}

static inline void host_close(struct http2_host *host)
{
    host_leave(host);
    if (host->listener >= 0)
        close(host->listener);
    host->listener = -1;
}

/* The next connection, for one who speaks it himself. */
static inline void host_accept(struct http2_host *host)
{
    struct pollfd file = {.fd = host->listener, .events = POLLIN};
    if (poll(&file, 1, PATIENCE_MS) != 1)
        CHECK_STOP("nobody connects");
    host->socket = accept4(host->listener, NULL, NULL, SOCK_CLOEXEC);
    CHECK(host->socket >= 0);
}

static inline void host_send(struct http2_host *host)
{
    const uint8_t *bytes;
    ssize_t size;
    while ((size = nghttp2_session_mem_send(host->session, &bytes)) > 0) {
        ssize_t piece = host->piece ? (ssize_t)host->piece : size;
        for (ssize_t at = 0; at < size; at += piece) {
            size_t part = (size_t)(size - at < piece ? size - at : piece);
            if (send(host->socket, bytes + at, part, MSG_NOSIGNAL) < 0)
                return; /* it has gone, as who reads sees */
            if (host->piece)
                usleep(50);
        }
    }
    CHECK_INT(size, 0);
}

/* The next connection; one whose server has said what it has to say first. */
static inline void host_begin_with(struct http2_host *host, const nghttp2_settings_entry *said,
                                   size_t count)
{
    nghttp2_session_callbacks *callbacks;
    const int on = 1;
    host_accept(host);
    CHECK_INT(setsockopt(host->socket, IPPROTO_TCP, 1 /* TCP_NODELAY */, &on, sizeof(on)), 0);
    CHECK_INT(nghttp2_session_callbacks_new(&callbacks), 0);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, host_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, host_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, host_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, host_closed);
    CHECK_INT(nghttp2_session_server_new(&host->session, callbacks, host), 0);
    nghttp2_session_callbacks_del(callbacks);
    CHECK_INT(nghttp2_submit_settings(host->session, 0, said, count), 0);
    host_send(host);
}

static inline void host_begin(struct http2_host *host)
{
    host_begin_with(host, NULL, 0);
}

/* Sends, and takes what comes; false: the client has hung up. */
static inline bool host_go(struct http2_host *host)
{
    static char bytes[1 << 16];
    struct pollfd file = {.fd = host->socket, .events = POLLIN};
    host_send(host);
    if (poll(&file, 1, PATIENCE_MS) != 1)
        CHECK_STOP("the client says nothing");
    ssize_t got = recv(host->socket, bytes, sizeof(bytes), 0);
    if (got <= 0)
        return false;
    CHECK_INT(nghttp2_session_mem_recv(host->session, (uint8_t *)bytes, (size_t)got), got);
    host_send(host);
    return true;
}

/* Until the client has counted so far. */
static inline void host_serve(struct http2_host *host, const int *counter, int number)
{
    struct pollfd file = {.fd = host->socket, .events = POLLIN};
    for (int ms = 0; count_of(counter) < number && ms < PATIENCE_MS; ms++)
        if (poll(&file, 1, 1))
            CHECK(host_go(host));
    CHECK_INT(count_of(counter), number);
}

/* Until so many requests have come whole. */
static inline void host_await(struct http2_host *host, int whole)
{
    while (host->whole < whole)
        CHECK(host_go(host));
    CHECK_INT(host->whole, whole);
}

static inline struct host_call *host_await_end(struct http2_host *host, int32_t stream)
{
    while (!host_call_of(host, stream)->is_closed)
        CHECK(host_go(host));
    return host_call_of(host, stream);
}

static inline size_t host_fields(const char *const (*said)[2], size_t count, nghttp2_nv *out)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        if (said[i][1])
            out[n++] =
                (nghttp2_nv){(uint8_t *)said[i][0], (uint8_t *)said[i][1], strlen(said[i][0]),
                             strlen(said[i][1]), NGHTTP2_NV_FLAG_NONE};
    return n;
}

static inline ssize_t host_read(nghttp2_session *session, int32_t stream, uint8_t *out,
                                size_t size, uint32_t *flags, nghttp2_data_source *source,
                                void *arg)
{
    const struct http2_host *host = arg;
    struct host_call *call = source->ptr;
    const char *const trailers[][2] = {{"grpc-status", call->words.grpc_status},
                                       {"grpc-message", call->words.text},
                                       {"trainyard-pointer-bin", call->words.pointer}};
    nghttp2_nv nvs[ARRAY_LEN(trailers)];
    if (host->frame_bytes && size > host->frame_bytes)
        size = host->frame_bytes;
    size = size < call->answer.size ? size : call->answer.size;
    if (!size && call->stays_open)
        return NGHTTP2_ERR_DEFERRED;
    if (size)
        memcpy(out, call->answer.data, size);
    str_drop(&call->answer, size);
    if (call->answer.size || call->stays_open)
        return (ssize_t)size;
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (call->words.grpc_status) {
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        CHECK_INT(nghttp2_submit_trailer(session, stream, nvs,
                                         host_fields(trailers, ARRAY_LEN(trailers), nvs)),
                  0);
    }
    return (ssize_t)size;
}

/* `body` NULL: all is said at once, in the headers. */
static inline void host_answer(struct http2_host *host, int32_t stream,
                               const struct host_words *words, const struct str *body)
{
    struct host_call *call = host_call_of(host, stream);
    const nghttp2_data_provider provider = {.source.ptr = call, .read_callback = host_read};
    const char *const fields[][2] = {
        {":status", words->status ? words->status : "200"},
        {"content-type", words->type ? words->type : "application/grpc"},
        {"grpc-encoding", words->encoding},
        {"grpc-status", body ? NULL : words->grpc_status},
        {"grpc-message", body ? NULL : words->text},
        {"trainyard-pointer-bin", body ? NULL : words->pointer},
    };
    nghttp2_nv nvs[ARRAY_LEN(fields)];
    call->words = *words;
    if (body)
        str_add_bytes(&call->answer, body->data, body->size);
    CHECK_INT(nghttp2_submit_response(host->session, stream, nvs,
                                      host_fields(fields, ARRAY_LEN(fields), nvs),
                                      body ? &provider : NULL),
              0);
    host_send(host);
}

/* A message and what is in front of it. */
static inline void host_add(struct str *out, int packed, size_t said, const void *bytes,
                            size_t size)
{
    const char prefix[] = {(char)packed, (char)(said >> 24), (char)(said >> 16),
                           (char)(said >> 8), (char)said};
    str_add_bytes(out, prefix, sizeof(prefix));
    str_add_bytes(out, bytes, size);
}

static inline void host_reply(struct http2_host *host, int32_t stream, const char *text)
{
    struct str body = {0};
    host_add(&body, 0, strlen(text), text, strlen(text));
    host_answer(host, stream, &(struct host_words){.grpc_status = "0"}, &body);
    str_release(&body);
}
