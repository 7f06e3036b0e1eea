/*
 * http2_client.h - a client of HTTP/2 for tests, which says what they want it to, in the pieces
 * they want.
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
#include "base/str.h"
#include "proto/rpc.h"
#include "tests/unit/proto/counted.h"

enum { CALLS_MAX = 1100 };

/* --- the client --- */

struct http2_answer {
    struct str request;      /* what is left of it */
    bool leaves_open;        /* the client's side, behind the request */
    int status, grpc_status; /* -1: none */
    struct str text;         /* grpc-message */
    struct str body;
    bool is_closed;
    uint32_t why; /* it was closed */
};

struct http2_client {
    int socket;
    nghttp2_session *session;
    size_t frame_bytes; /* of the data of a request; 0: as many as may be */
    struct http2_answer answers[CALLS_MAX];
    int pings; /* that were answered */
    bool goes_away;
};

static inline struct http2_answer *answer_of(struct http2_client *client, int32_t stream)
{
    CHECK(stream > 0 && stream / 2 < CALLS_MAX);
    return &client->answers[stream / 2];
}

static inline int client_header(nghttp2_session *session, const nghttp2_frame *frame,
                                const uint8_t *name, size_t name_size, const uint8_t *value,
                                size_t size, uint8_t flags, void *arg)
{
    struct http2_answer *answer = answer_of(arg, frame->hd.stream_id);
    const char *key = (const char *)name;
    (void)session;
    (void)flags;
    (void)name_size;
    if (!strcmp(key, ":status"))
        answer->status = (int)strtol((const char *)value, NULL, 10);
    if (!strcmp(key, "grpc-status"))
        answer->grpc_status = (int)strtol((const char *)value, NULL, 10);
    if (!strcmp(key, "grpc-message"))
        str_add_bytes(&answer->text, value, size);
    return 0;
}

static inline int client_data(nghttp2_session *session, uint8_t flags, int32_t stream,
                              const uint8_t *data, size_t size, void *arg)
{
    (void)session;
    (void)flags;
    str_add_bytes(&answer_of(arg, stream)->body, data, size);
    return 0;
}

static inline int client_closed(nghttp2_session *session, int32_t stream, uint32_t why,
                                void *arg)
{
    struct http2_answer *answer = answer_of(arg, stream);
    (void)session;
    answer->is_closed = true;
    answer->why = why;
    return 0;
}

static inline int client_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    struct http2_client *client = arg;
    (void)session;
    client->pings += frame->hd.type == NGHTTP2_PING && frame->hd.flags & NGHTTP2_FLAG_ACK;
    client->goes_away |= frame->hd.type == NGHTTP2_GOAWAY;
    return 0;
}

static inline ssize_t client_read(nghttp2_session *session, int32_t stream, uint8_t *out,
                                  size_t size, uint32_t *flags, nghttp2_data_source *source,
                                  void *arg)
{
    const struct http2_client *client = arg;
    struct http2_answer *answer = source->ptr;
    (void)session;
    (void)stream;
    if (client->frame_bytes && size > client->frame_bytes)
        size = client->frame_bytes;
    if (size > answer->request.size)
        size = answer->request.size;
    if (size)
        memcpy(out, answer->request.data, size);
    str_drop(&answer->request, size);
    if (!answer->request.size)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (!answer->request.size && answer->leaves_open)
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
    return (ssize_t)size;
}

static inline int connect_to(const char *address, int receive_bytes)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port =
                                 htons((uint16_t)strtol(strrchr(address, ':') + 1, NULL, 10)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(file >= 0);
    if (receive_bytes)
        CHECK_INT(setsockopt(file, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(int)), 0);
    CHECK_INT(connect(file, (struct sockaddr *)&to, sizeof(to)), 0);
    return file;
}

/* `window` of each answer, and all (0: HTTP/2's own). */
static inline struct http2_client *client_open(const char *address, uint32_t window)
{
    struct http2_client *client = alloc_bytes(sizeof(*client));
    const nghttp2_settings_entry settings = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window};
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
    client->socket = connect_to(address, 0);
    for (int i = 0; i < CALLS_MAX; i++)
        client->answers[i].status = client->answers[i].grpc_status = -1;
    CHECK_INT(nghttp2_session_callbacks_new(&callbacks), 0);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, client_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, client_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, client_closed);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, client_frame);
    CHECK_INT(nghttp2_option_new(&option), 0);
    nghttp2_option_set_peer_max_concurrent_streams(option, CALLS_MAX); /* until it says */
    CHECK_INT(nghttp2_session_client_new2(&client->session, callbacks, client, option), 0);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    CHECK_INT(nghttp2_submit_settings(client->session, 0, &settings, window ? 1 : 0), 0);
    if (window > 65535)
        CHECK_INT(nghttp2_session_set_local_window_size(client->session, 0, 0, (int)window), 0);
    return client;
}

static inline void client_close(struct http2_client *client)
{
    nghttp2_session_del(client->session);
    if (client->socket >= 0)
        close(client->socket);
    for (int i = 0; i < CALLS_MAX; i++) {
        str_release(&client->answers[i].request);
        str_release(&client->answers[i].text);
        str_release(&client->answers[i].body);
    }
    free(client);
}

/* A message and what is in front of it. */
static inline void add_message(struct str *out, int packed, size_t said, const void *bytes,
                               size_t size)
{
    const char prefix[] = {(char)packed, (char)(said >> 24), (char)(said >> 16),
                           (char)(said >> 8), (char)said};
    str_add_bytes(out, prefix, sizeof(prefix));
    str_add_bytes(out, bytes, size);
}

struct http2_words { /* NULL: as is right */
    const char *method, *type;
    const char *name, *value; /* one more */
};

/* A call whose request has these bytes (NULL: ends with its headers). */
static inline int32_t call_with(struct http2_client *client, const char *path,
                                const struct str *request, const struct http2_words *words)
{
    const char *const fields[][2] = {
        {":method", words && words->method ? words->method : "POST"},
        {":scheme", "http"},
        {":path", path},
        {":authority", "localhost"},
        {"content-type", words && words->type ? words->type : "application/grpc"},
        {"te", "trailers"},
        {words && words->name ? words->name : "x-none",
         words && words->name ? words->value : ""},
    };
    nghttp2_nv nvs[ARRAY_LEN(fields)];
    for (int i = 0; i < ARRAY_LEN(fields); i++)
        nvs[i] = (nghttp2_nv){(uint8_t *)fields[i][0], (uint8_t *)fields[i][1],
                              strlen(fields[i][0]), strlen(fields[i][1]), NGHTTP2_NV_FLAG_NONE};
    int32_t stream = nghttp2_session_get_next_stream_id(client->session);
    struct http2_answer *answer = answer_of(client, stream);
    const nghttp2_data_provider provider = {.source.ptr = answer, .read_callback = client_read};
    if (request)
        str_add_bytes(&answer->request, request->data, request->size);
    CHECK_INT(nghttp2_submit_request(client->session, NULL, nvs, ARRAY_LEN(nvs),
                                     request ? &provider : NULL, NULL),
              stream);
    return stream;
}

static inline int32_t call(struct http2_client *client, const char *path, const char *text)
{
    struct str request = {0};
    add_message(&request, 0, strlen(text), text, strlen(text));
    int32_t stream = call_with(client, path, &request, NULL);
    str_release(&request);
    return stream;
}

/* All that it has to say. */
static inline void client_say(struct http2_client *client, struct str *out)
{
    const uint8_t *bytes;
    ssize_t size;
    while ((size = nghttp2_session_mem_send(client->session, &bytes)) > 0)
        str_add_bytes(out, bytes, (size_t)size);
    CHECK_INT(size, 0);
}

static inline void send_all(int socket, const struct str *said, size_t piece)
{
    for (size_t at = 0; at < said->size; at += piece) {
        size_t size = said->size - at < piece ? said->size - at : piece;
        CHECK_INT(send(socket, said->data + at, size, MSG_NOSIGNAL), size);
        if (piece < 16)
            usleep(100);
    }
}

static inline void client_send(struct http2_client *client)
{
    struct str said = {0};
    client_say(client, &said);
    send_all(client->socket, &said, SIZE_MAX / 2);
    str_release(&said);
}

/* Sends, and takes what comes; false: the server has hung up. */
static inline bool client_go(struct http2_client *client)
{
    static char bytes[1 << 16];
    struct pollfd file = {.fd = client->socket, .events = POLLIN};
    client_send(client);
    if (poll(&file, 1, PATIENCE_MS) != 1)
        CHECK_STOP("the server says nothing");
    ssize_t got = recv(client->socket, bytes, sizeof(bytes), 0);
    if (got <= 0)
        return false;
    CHECK_INT(nghttp2_session_mem_recv(client->session, (uint8_t *)bytes, (size_t)got), got);
    return true;
}

static inline struct http2_answer *await(struct http2_client *client, int32_t stream)
{
    struct http2_answer *answer = answer_of(client, stream);
    uint64_t until_us = clock_monotonic_us() + PATIENCE_MS * UINT64_C(1000);
    while (!answer->is_closed && client_go(client))
        CHECK(clock_monotonic_us() < until_us);
    return answer;
}

static inline void check_answer(struct http2_client *client, int32_t stream, const char *text)
{
    const struct http2_answer *answer = await(client, stream);
    struct str wanted = {0};
    add_message(&wanted, 0, strlen(text), text, strlen(text));
    CHECK_INT(answer->status, 200);
    CHECK_INT(answer->grpc_status, 0);
    CHECK_INT(answer->why, NGHTTP2_NO_ERROR);
    CHECK_INT(answer->body.size, wanted.size);
    CHECK(!memcmp(answer->body.data, wanted.data, wanted.size));
    str_release(&wanted);
}

static inline void check_refused(struct http2_client *client, int32_t stream, int code)
{
    const struct http2_answer *answer = await(client, stream);
    CHECK(answer->is_closed);
    CHECK_INT(answer->status, 200);
    CHECK_INT(answer->grpc_status, code);
    CHECK_INT(answer->body.size, 0);
    CHECK(answer->text.size);
}
