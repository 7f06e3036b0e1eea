/* rpc_http2_connection.c - one connection: its session, its turns, its end. */

#include <inttypes.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "proto/rpc_http2_host.h"

enum { TURN_BYTES = 4 << 20 }; /* of sources, until others have their turn */

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

/* "application/grpc", "application/grpc+proto" and the like. */
static bool is_grpc_type(const uint8_t *data, size_t size)
{
    static const char grpc[] = "application/grpc";
    size_t length = strlen(grpc);
    return size >= length && !memcmp(data, grpc, length) &&
           (size == length || data[length] == '+' || data[length] == ';');
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_size, const uint8_t *value, size_t size, uint8_t flags,
                     void *arg)
{
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
        call->is_grpc = is_grpc_type(value, size);
    } else if (is_text(name, name_size, "grpc-encoding")) {
        call->packing = rpc_http2_packing_of((const char *)value, size);
    } else if (is_text(name, name_size, "grpc-timeout")) {
        int64_t ns = rpc_http2_timeout((const char *)value, size);
        call->timeout_ns = ns ? ns : 1; /* its time is up */
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
    for (int i = 1; i < HTTP2_PREFIX; i++)
        call->size = call->size << 8 | call->prefix[i];
    if (call->prefix[0] > 1) {
        refuse(call, INTERNAL, "the call carries no message that can be read");
    } else if (call->size > (uint64_t)bytes_max) {
        (void)fail(&err, EXHAUSTED, "Received message larger than max (%u vs. %" PRId64 ")",
                   call->size, bytes_max);
        rpc_http2_call_refuse(call, &err);
    } /* no room is made for it: who says so may say it of many calls, and send none */
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
                   size_t size, void *arg)
{
    struct http2_call *call = call_of(session, stream);
    (void)flags;
    (void)arg;
    if (!call || call->is_whole)
        return 0;
    if (call->prefix_have < HTTP2_PREFIX) {
        size_t part = HTTP2_PREFIX - call->prefix_have;
        part = part < size ? part : size;
        memcpy(call->prefix + call->prefix_have, data, part);
        call->prefix_have += part;
        data += part;
        size -= part;
        if (call->prefix_have < HTTP2_PREFIX)
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
        connection->wire.pinged_ns = 0;
    if (frame->hd.type == NGHTTP2_GOAWAY && frame->goaway.error_code == NGHTTP2_NO_ERROR)
        connection->is_leaving = true;
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

static nghttp2_session_callbacks *session_callbacks(void)
{
    nghttp2_session_callbacks *callbacks;
    if (nghttp2_session_callbacks_new(&callbacks))
        return NULL;
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_closed);
    return callbacks;
}

bool rpc_http2_open(struct http2_connection *connection)
{
    struct http2_wire *wire = &connection->wire;
    struct ssl_ctx_st *tls = connection->host->tls;
    nghttp2_session_callbacks *callbacks = session_callbacks();
    pthread_mutex_lock(&wire->lock);
    connection->queued_end = &connection->queued;
    wire->is_shaken = !tls;
    bool ok = callbacks && http2_wire_open(wire, true, callbacks) &&
              (!tls || http2_tls_open(wire, tls, NULL));
    pthread_mutex_unlock(&wire->lock);
    return ok;
}

void rpc_http2_hang_up(struct http2_connection *connection, const struct error *why)
{
    struct http2_wire *wire = &connection->wire;
    pthread_mutex_lock(&wire->lock);
    for (struct http2_call *call = connection->calls; call; call = call->next) {
        rpc_http2_call_cancel(call);
        if (why)
            rpc_http2_call_refuse(call, why);
    }
    if (why)
        http2_wire_finish(wire, connection->host->told_by_ns);
    while (connection->calls) /* a session that is deleted tells of no stream's end */
        rpc_http2_call_closed(connection->calls);
    http2_wire_close(wire);
    rpc_http2_see_to(connection);
    rpc_http2_leave(connection);
}

/* --- turns --- */

static void call_handler(struct http2_call *call)
{
    struct http2_connection *connection = call->connection;
    call->is_waiting = false;
    if (call->is_cancelled || call->has_begun)
        return;
    call->is_called = true;
    call->references++; /* the handler's */
    pthread_mutex_unlock(&connection->wire.lock);
    call->handler(call->self, &call->base);
    pthread_mutex_lock(&connection->wire.lock);
}

static void tell_gone(struct http2_call *call)
{
    struct http2_connection *connection = call->connection;
    void (*gone)(void *arg) = call->base.gone;
    if (!gone || call->is_answered)
        return;
    call->base.gone = NULL;
    call->is_telling = true;
    pthread_mutex_unlock(&connection->wire.lock);
    gone(call->base.gone_arg);
    pthread_mutex_lock(&connection->wire.lock);
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

/* Goes on with the handshake; false: there will be none. */
static bool shake(struct http2_connection *connection)
{
    struct http2_wire *wire = &connection->wire;
    char why[200], quoted[400];
    if (!http2_tls_shake(wire, why)) {
        log_line(LOG_DEBUG, "rpc", "peer=%s msg=%s", connection->peer,
                 log_quote(why, quoted, sizeof(quoted)));
        return false;
    }
    if (wire->is_shaken && connection->host->asks)
        connection->certificate = http2_tls_shown(wire);
    return true;
}

/* Neither end has anything to say.  Who leaves may not have taken all of its answers, and would
 * lose what is on its way: it hangs up when it has, or who stops the server does. */
static bool is_over(const struct http2_connection *connection)
{
    const struct http2_wire *wire = &connection->wire;
    return !nghttp2_session_want_read(wire->session) &&
           !nghttp2_session_want_write(wire->session) && !wire->out.count &&
           !connection->is_leaving;
}

bool rpc_http2_serve(struct http2_connection *connection)
{
    struct http2_wire *wire = &connection->wire;
    pthread_mutex_lock(&wire->lock);
    if (!wire->session || wire->busy) {
        pthread_mutex_unlock(&wire->lock);
        return true;
    }
    wire->busy = wire->corked = true;
    wire->wants_room = false;
    bool ok = wire->is_shaken || shake(connection);
    if (ok && wire->is_shaken)
        ok = http2_wire_take(wire);
    rpc_http2_see_to(connection);
    wire->corked = false;
    http2_wire_flush(wire);
    if (!ok || is_over(connection)) { /* still its turn: nobody else hangs up */
        pthread_mutex_unlock(&wire->lock);
        return false;
    }
    wire->busy = false;
    http2_wire_arm(wire);
    rpc_http2_leave(connection);
    return true;
}

/* One that wants its next message, if there may be more now.  The source of one whose time is
 * up may have been freed before the system took what ends its stream. */
static struct http2_call *wanting(struct http2_connection *connection)
{
    struct http2_call *call = connection->calls;
    while (call && !(call->wants_next && call->source && !call->is_pumped))
        call = call->next;
    if (!call || connection->pumped < TURN_BYTES)
        return call;
    connection->wire.wants_room = true; /* it goes on behind what others have to do */
    http2_wire_arm(&connection->wire);
    return NULL;
}

void rpc_http2_leave(struct http2_connection *connection)
{
    struct http2_wire *wire = &connection->wire;
    for (;;) {
        if (!wire->corked)
            http2_wire_flush(wire);
        struct http2_message *over = http2_wire_over(wire);
        struct http2_call *call = wire->corked ? NULL : wanting(connection);
        if (over) {
            pthread_mutex_unlock(&wire->lock);
            http2_messages_release(over);
            pthread_mutex_lock(&wire->lock);
        } else if (call) {
            rpc_http2_call_pump(call);
        } else {
            break;
        }
    }
    connection->pumped = 0;
    if (connection->queued && !wire->wants_room) { /* streams ended as it wrote: a turn's */
        wire->wants_room = true;
        http2_wire_arm(wire);
    }
    pthread_mutex_unlock(&wire->lock);
}

void rpc_http2_refuse_more(struct http2_connection *connection)
{
    pthread_mutex_lock(&connection->wire.lock);
    connection->is_leaving = true;
    if (connection->wire.session)
        (void)nghttp2_submit_goaway(
            connection->wire.session, NGHTTP2_FLAG_NONE,
            nghttp2_session_get_last_proc_stream_id(connection->wire.session), NGHTTP2_NO_ERROR,
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

uint64_t rpc_http2_look(struct http2_connection *connection, uint64_t now_ns)
{
    uint64_t next_ns = UINT64_MAX;
    pthread_mutex_lock(&connection->wire.lock);
    if (connection->wire.session) {
        next_ns = look_at_calls(connection, now_ns);
        if (!http2_wire_is_there(&connection->wire, now_ns))
            (void)shutdown(connection->wire.socket, SHUT_RDWR); /* its end comes to be read */
        rpc_http2_see_to(connection);
    }
    rpc_http2_leave(connection);
    return next_ns;
}
