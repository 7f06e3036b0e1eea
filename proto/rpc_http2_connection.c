/* rpc_http2_connection.c - one connection: its session, its turns, its end. */

#include <inttypes.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "proto/rpc_http2_host.h"

#define MS_NS UINT64_C(1000000)

enum {
    IN_BYTES = 64 << 10, /* that are read at a time */
    READS_MAX = 16,      /* in a turn */
    STREAMS_MAX = 65536,
    HEADERS_BYTES_MAX = 16 << 10,
    FRAME_BYTES_MAX = 1 << 20,
    STREAM_WINDOW = 4 << 20,
    CONNECTION_WINDOW = 16 << 20,
    RESETS_MAX = 100000, /* calls that a client gives up, at once, and a second */
    SILENT_MS = 10000,   /* until it is pinged, */
    PING_MS = 5000,      /* ... and has to answer */
};

/* --- a request comes in --- */

static struct http2_call *call_of(nghttp2_session *session, int32_t stream)
{
    return nghttp2_session_get_stream_user_data(session, stream);
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    struct http2_connection *connection = arg;
    int32_t stream = frame->hd.stream_id;
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    (void)nghttp2_session_set_stream_user_data(session, stream,
                                               rpc_http2_call_new(connection, stream));
    return 0;
}

static bool is_text(const uint8_t *data, size_t size, const char *text)
{
    return size == strlen(text) && !memcmp(data, text, size);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_size, const uint8_t *value, size_t size, uint8_t flags,
                     void *arg)
{
    static const char grpc[] = "application/grpc";
    struct http2_call *call = call_of(session, frame->hd.stream_id);
    (void)flags;
    (void)arg;
    if (!call || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    if (is_text(name, name_size, ":path")) {
        str_clear(&call->path);
        str_add_bytes(&call->path, value, size);
    } else if (is_text(name, name_size, ":method")) {
        call->is_post = is_text(value, size, "POST");
    } else if (is_text(name, name_size, "content-type")) {
        call->is_grpc = size >= strlen(grpc) && !memcmp(value, grpc, strlen(grpc));
    } else if (is_text(name, name_size, "grpc-encoding")) {
        call->packing = rpc_http2_packing_of((const char *)value, size);
    } else if (is_text(name, name_size, "grpc-timeout")) {
        call->timeout_ns = rpc_http2_timeout((const char *)value, size);
        call->timeout_ns += !call->timeout_ns; /* 0 would be no limit */
    }
    return 0;
}

static void refuse(struct http2_call *call, enum error_code code, const char *text)
{
    struct error err;
    (void)fail(&err, code, "%s", text);
    rpc_http2_call_refuse(call, &err);
}

static void take_headers(struct http2_call *call)
{
    struct http2_connection *connection = call->connection;
    if (!call->is_post || !call->is_grpc) {
        rpc_http2_call_refuse(call, NULL);
        return;
    }
    call->handler = rpc_find_handler(&connection->host->services, str_text(&call->path),
                                     call->path.size, &call->self);
    if (!call->handler) {
        refuse(call, UNIMPLEMENTED, "the server has no such method");
    } else if (call->timeout_ns < 0) {
        refuse(call, INTERNAL, "the call's grpc-timeout is none");
    } else if (call->packing == PACKING_UNKNOWN) {
        refuse(call, UNIMPLEMENTED,
               "the call's grpc-encoding is not gzip, deflate or identity");
    } else if (call->timeout_ns) {
        uint64_t now_ns = clock_monotonic_ns();
        uint64_t left_ns = (uint64_t)call->timeout_ns;
        call->deadline_ns = left_ns < UINT64_MAX - now_ns ? now_ns + left_ns : UINT64_MAX;
        rpc_http2_look_at(connection->host, call->deadline_ns);
    }
}

/* Its handler is to be called, unless the message cannot be read. */
static void take_message(struct http2_call *call)
{
    struct error err;
    call->is_whole = true;
    if (call->prefix[0] && !rpc_http2_unpack(&call->base.request, call->packing,
                                             call->connection->host->message_bytes_max, &err)) {
        rpc_http2_call_refuse(call, &err);
        return;
    }
    call->is_waiting = true;
    rpc_http2_call_queue(call);
}

static void take_prefix(struct http2_call *call)
{
    struct error err;
    int64_t bytes_max = call->connection->host->message_bytes_max;
    for (int i = 1; i < RPC_HTTP2_PREFIX; i++)
        call->size = call->size << 8 | call->prefix[i];
    if (call->prefix[0] > 1) {
        refuse(call, INTERNAL, "the call carries no message that can be read");
    } else if (call->size > (uint64_t)bytes_max) {
        (void)fail(&err, EXHAUSTED, "Received message larger than max (%u vs. %" PRId64 ")",
                   call->size, bytes_max);
        rpc_http2_call_refuse(call, &err);
    }
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
                   size_t size, void *arg)
{
    struct http2_call *call = call_of(session, stream);
    (void)flags;
    (void)arg;
    if (!call || call->is_whole)
        return 0;
    if (call->prefix_have < RPC_HTTP2_PREFIX) {
        size_t part = RPC_HTTP2_PREFIX - call->prefix_have;
        part = part < size ? part : size;
        memcpy(call->prefix + call->prefix_have, data, part);
        call->prefix_have += part;
        data += part;
        size -= part;
        if (call->prefix_have < RPC_HTTP2_PREFIX)
            return 0;
        take_prefix(call);
    }
    size_t missing = call->size - call->base.request.size;
    if (call->is_whole)
        return 0;
    str_add_bytes(&call->base.request, data, size < missing ? size : missing);
    if (call->base.request.size == call->size)
        take_message(call);
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    struct http2_connection *connection = arg;
    struct http2_call *call = call_of(session, frame->hd.stream_id);
    if (frame->hd.type == NGHTTP2_PING && frame->hd.flags & NGHTTP2_FLAG_ACK)
        connection->pinged_ns = 0;
    if (!call)
        return 0;
    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
        take_headers(call);
    bool ends = (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
                frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
    call->is_ended = call->is_ended || ends;
    if (ends && !call->is_whole)
        refuse(call, INVALID, "the call carries no message that can be read");
    return 0;
}

/* A client that has its answer need not send the rest of its request. */
static int on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    const struct http2_call *call = call_of(session, frame->hd.stream_id);
    (void)arg;
    if (call && !call->is_ended && frame->hd.type == NGHTTP2_HEADERS &&
        frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
        (void)nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
                                        NGHTTP2_NO_ERROR);
    return 0;
}

static int on_closed(nghttp2_session *session, int32_t stream, uint32_t why, void *arg)
{
    struct http2_call *call = call_of(session, stream);
    (void)why;
    (void)arg;
    if (call)
        rpc_http2_call_closed(call);
    return 0;
}

/* --- lives --- */

static ssize_t frame_bytes(nghttp2_session *session, uint8_t type, int32_t stream,
                           int32_t session_window, int32_t stream_window, uint32_t frame_max,
                           void *arg)
{
    (void)session;
    (void)type;
    (void)stream;
    (void)session_window;
    (void)stream_window;
    (void)arg;
    return frame_max < FRAME_BYTES_MAX ? (ssize_t)frame_max : FRAME_BYTES_MAX;
}

static bool open_session(struct http2_connection *connection)
{
    static const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, STREAMS_MAX},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW},
        {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, FRAME_BYTES_MAX},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HEADERS_BYTES_MAX},
    };
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
    if (nghttp2_session_callbacks_new(&callbacks))
        return false;
    if (nghttp2_option_new(&option)) {
        nghttp2_session_callbacks_del(callbacks);
        return false;
    }
    nghttp2_option_set_stream_reset_rate_limit(option, RESETS_MAX, RESETS_MAX);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_closed);
    nghttp2_session_callbacks_set_send_callback(callbacks, rpc_http2_send);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, rpc_http2_send_data);
    nghttp2_session_callbacks_set_data_source_read_length_callback(callbacks, frame_bytes);
    bool ok = !nghttp2_session_server_new2(&connection->session, callbacks, connection, option);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    return ok &&
           !nghttp2_submit_settings(connection->session, NGHTTP2_FLAG_NONE, settings,
                                    ARRAY_LEN(settings)) &&
           !nghttp2_session_set_local_window_size(connection->session, NGHTTP2_FLAG_NONE, 0,
                                                  CONNECTION_WINDOW);
}

bool rpc_http2_open(struct http2_connection *connection)
{
    pthread_mutex_lock(&connection->lock);
    connection->queued_end = &connection->queued;
    connection->is_shaken = !connection->host->tls;
    bool ok =
        open_session(connection) && (connection->is_shaken || rpc_http2_tls_open(connection));
    pthread_mutex_unlock(&connection->lock);
    return ok;
}

void rpc_http2_hang_up(struct http2_connection *connection, const struct error *why)
{
    pthread_mutex_lock(&connection->lock);
    nghttp2_session *session = connection->session;
    for (struct http2_call *call = connection->calls; call; call = call->next) {
        rpc_http2_call_cancel(call);
        if (why)
            rpc_http2_call_refuse(call, why);
    }
    if (why)
        rpc_http2_flush(connection);
    connection->session = NULL;
    while (connection->calls) /* a session that is deleted tells of no stream's end */
        rpc_http2_call_closed(connection->calls);
    nghttp2_session_del(session);
    rpc_http2_tls_close(connection);
    rpc_http2_out_clear(&connection->out);
    close(connection->socket);
    connection->socket = -1;
    connection->corked = false;
    rpc_http2_see_to(connection);
    rpc_http2_leave(connection);
}

/* --- turns --- */

/* False: the other end has gone, or does not speak this language. */
static bool take(struct http2_connection *connection)
{
    uint8_t in[IN_BYTES];
    for (int n = 0; n < READS_MAX || rpc_http2_has_more(connection); n++) {
        ssize_t got = rpc_http2_read(connection, in, sizeof(in));
        if (got <= 0)
            return !got;
        connection->heard_ns = clock_monotonic_ns();
        if (nghttp2_session_mem_recv(connection->session, in, (size_t)got) != got)
            return false;
        if (!connection->tls && got < (ssize_t)sizeof(in))
            break;
    }
    return true;
}

static void call_handler(struct http2_call *call)
{
    struct http2_connection *connection = call->connection;
    call->is_waiting = false;
    if (call->is_cancelled || call->has_begun)
        return;
    call->is_called = true;
    call->references++; /* the handler's */
    pthread_mutex_unlock(&connection->lock);
    call->handler(call->self, &call->base);
    pthread_mutex_lock(&connection->lock);
}

static void tell_gone(struct http2_call *call)
{
    struct http2_connection *connection = call->connection;
    void (*gone)(void *arg) = call->base.gone;
    if (!gone || call->is_answered)
        return;
    call->base.gone = NULL;
    call->is_telling = true;
    pthread_mutex_unlock(&connection->lock);
    gone(call->base.gone_arg);
    pthread_mutex_lock(&connection->lock);
    call->is_telling = false;
    pthread_cond_broadcast(&connection->changed);
}

void rpc_http2_see_to(struct http2_connection *connection)
{
    struct http2_call *call;
    while ((call = connection->queued)) {
        connection->queued = call->queued_next;
        if (!connection->queued)
            connection->queued_end = &connection->queued;
        call->is_queued = false;
        if (call->is_waiting)
            call_handler(call);
        if (call->is_cancelled) {
            tell_gone(call);
            rpc_http2_call_free_source(call);
        }
        rpc_http2_call_unref(call);
    }
}

bool rpc_http2_serve(struct http2_connection *connection)
{
    pthread_mutex_lock(&connection->lock);
    if (!connection->session || connection->busy) {
        pthread_mutex_unlock(&connection->lock);
        return true;
    }
    connection->busy = connection->corked = true;
    connection->wants_room = false;
    bool ok = connection->is_shaken || rpc_http2_shake(connection);
    if (ok && connection->is_shaken)
        ok = take(connection);
    rpc_http2_see_to(connection);
    connection->corked = false;
    rpc_http2_flush(connection);
    ok = ok && (nghttp2_session_want_read(connection->session) ||
                nghttp2_session_want_write(connection->session));
    if (!ok) { /* still its turn: nobody else hangs up */
        pthread_mutex_unlock(&connection->lock);
        return false;
    }
    connection->busy = false;
    rpc_http2_arm(connection);
    rpc_http2_leave(connection);
    return true;
}

void rpc_http2_refuse_more(struct http2_connection *connection)
{
    pthread_mutex_lock(&connection->lock);
    if (connection->session)
        (void)nghttp2_submit_goaway(
            connection->session, NGHTTP2_FLAG_NONE,
            nghttp2_session_get_last_proc_stream_id(connection->session), NGHTTP2_NO_ERROR,
            NULL, 0);
    rpc_http2_leave(connection);
}

/* --- time --- */

static uint64_t look_at_calls(struct http2_connection *connection, uint64_t now_ns)
{
    uint64_t next_ns = UINT64_MAX;
    struct error err;
    (void)fail(&err, DEADLINE, "Deadline Exceeded");
    for (struct http2_call *call = connection->calls; call; call = call->next) {
        if (!call->deadline_ns || call->is_cancelled)
            continue;
        if (call->deadline_ns > now_ns) {
            next_ns = call->deadline_ns < next_ns ? call->deadline_ns : next_ns;
            continue;
        }
        rpc_http2_call_cancel(call);
        rpc_http2_call_refuse(call, &err);
    }
    return next_ns;
}

/* True: it has not been heard of for too long. */
static bool look_whether_there(struct http2_connection *connection, uint64_t now_ns)
{
    uint64_t silent_ns = now_ns > connection->heard_ns ? now_ns - connection->heard_ns : 0;
    if (silent_ns < SILENT_MS * MS_NS)
        return false;
    if (!connection->is_shaken ||
        (connection->pinged_ns && now_ns - connection->pinged_ns >= PING_MS * MS_NS))
        return true;
    if (!connection->pinged_ns) {
        connection->pinged_ns = now_ns;
        (void)nghttp2_submit_ping(connection->session, NGHTTP2_FLAG_NONE, NULL);
    }
    return false;
}

uint64_t rpc_http2_look(struct http2_connection *connection, uint64_t now_ns)
{
    uint64_t next_ns = UINT64_MAX;
    pthread_mutex_lock(&connection->lock);
    if (connection->session) {
        next_ns = look_at_calls(connection, now_ns);
        if (look_whether_there(connection, now_ns))
            (void)shutdown(connection->socket, SHUT_RDWR); /* its end comes to be read */
        rpc_http2_see_to(connection);
    }
    rpc_http2_leave(connection);
    return next_ns;
}
