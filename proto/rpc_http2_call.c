/* rpc_http2_call.c - calls and their answers. */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "proto/rpc_http2_host.h"

/* Trailing metadata of every call that we fail: err->pointer. */
#define POINTER_KEY "trainyard-pointer-bin"

/* --- lives --- */

struct http2_call *rpc_http2_call_new(struct http2_connection *connection, int32_t stream)
{
    struct http2_call *call = alloc_bytes(sizeof(*call));
    struct http2_host *host = connection->host;
    call->base.transport = &rpc_http2_transport;
    call->base.peer = connection->peer;
    call->base.certificate = connection->certificate;
    rpc_http2_hold(connection);
    call->connection = connection;
    call->stream = stream;
    call->references = 1; /* the stream's */
    call->next = connection->calls;
    call->at = &connection->calls;
    if (call->next)
        call->next->at = &call->next;
    connection->calls = call;
    pthread_mutex_lock(&host->lock);
    host->open++;
    pthread_mutex_unlock(&host->lock);
    return call;
}

void rpc_http2_call_unref(struct http2_call *call)
{
    struct http2_connection *connection = call->connection;
    if (--call->references)
        return;
    assert(!call->at && !call->source && !call->sending.message);
    str_release(&call->base.request);
    str_release(&call->path);
    free(call->base.gone_arg);
    free(call);
    rpc_http2_drop(connection); /* not the last: the caller has one */
}

void rpc_http2_call_queue(struct http2_call *call)
{
    struct http2_connection *connection = call->connection;
    if (call->is_queued)
        return;
    call->is_queued = true;
    call->references++;
    call->queued_next = NULL;
    *connection->queued_end = call;
    connection->queued_end = &call->queued_next;
}

void rpc_http2_call_cancel(struct http2_call *call)
{
    call->is_cancelled = true;
    rpc_http2_call_queue(call);
}

void rpc_http2_call_closed(struct http2_call *call)
{
    struct http2_host *host = call->connection->host;
    *call->at = call->next;
    if (call->next)
        call->next->at = call->at;
    call->at = NULL;
    call->wants_next = false;
    http2_message_drop(&call->connection->wire, call->sending.message);
    call->sending.message = NULL;
    if (!call->is_done)
        rpc_http2_call_cancel(call);
    pthread_mutex_lock(&host->lock);
    if (!--host->open)
        pthread_cond_broadcast(&host->changed);
    pthread_mutex_unlock(&host->lock);
    rpc_http2_call_unref(call);
}

/* --- words of answers --- */

static nghttp2_nv field(const char *name, const char *value, size_t size)
{
    return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), size,
                        NGHTTP2_NV_FLAG_NO_COPY_NAME};
}

static nghttp2_nv word(const char *name, const char *value)
{
    nghttp2_nv nv = field(name, value, strlen(value));
    nv.flags |= NGHTTP2_NV_FLAG_NO_COPY_VALUE;
    return nv;
}

static void submit_failure(struct http2_call *call, const struct error *err)
{
    struct str text = {0}, pointer = {0};
    char status[12];
    int size = snprintf(status, sizeof(status), "%d", (int)err->code);
    rpc_http2_add_percent(&text, err->text);
    rpc_http2_add_base64(&pointer, err->pointer, strlen(err->pointer));
    const nghttp2_nv fields[] = {
        word(":status", "200"),
        word("content-type", "application/grpc"),
        field("grpc-status", status, (size_t)size),
        field("grpc-message", str_text(&text), text.size),
        field(POINTER_KEY, str_text(&pointer), pointer.size),
    };
    (void)nghttp2_submit_response(call->connection->wire.session, call->stream, fields,
                                  ARRAY_LEN(fields), NULL);
    str_release(&text);
    str_release(&pointer);
}

/* For those that are no gRPC. */
static void submit_unsupported(struct http2_call *call)
{
    const nghttp2_nv fields[] = {word(":status", "415")};
    (void)nghttp2_submit_response(call->connection->wire.session, call->stream, fields,
                                  ARRAY_LEN(fields), NULL);
}

static ssize_t read_answer(nghttp2_session *session, int32_t stream, uint8_t *out, size_t size,
                           uint32_t *flags, nghttp2_data_source *source, void *arg)
{
    struct http2_call *call = nghttp2_session_get_stream_user_data(session, stream);
    struct http2_sending *sending = source->ptr;
    (void)out;
    if (!sending->message || sending->sent == sending->message->size) {
        http2_message_drop(arg, sending->message);
        sending->message = NULL;
        call->wants_next = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    ssize_t part = http2_wire_part(sending, size, flags);
    if (sending->sent + (size_t)part == sending->message->size && !call->source) {
        const nghttp2_nv fields[] = {word("grpc-status", "0")};
        *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
        (void)nghttp2_submit_trailer(session, stream, fields, ARRAY_LEN(fields));
        call->is_done = true;
    }
    return part;
}

static void submit_answer(struct http2_call *call)
{
    const nghttp2_nv fields[] = {word(":status", "200"),
                                 word("content-type", "application/grpc")};
    const nghttp2_data_provider provider = {.source.ptr = &call->sending,
                                            .read_callback = read_answer};
    call->has_begun = true;
    (void)nghttp2_submit_response(call->connection->wire.session, call->stream, fields,
                                  ARRAY_LEN(fields), &provider);
}

void rpc_http2_call_refuse(struct http2_call *call, const struct error *err)
{
    call->is_whole = true;
    if (call->is_done || !call->at)
        return;
    if (call->has_begun)
        (void)nghttp2_submit_rst_stream(call->connection->wire.session, NGHTTP2_FLAG_NONE,
                                        call->stream, NGHTTP2_CANCEL);
    else if (err)
        submit_failure(call, err);
    else
        submit_unsupported(call);
    call->has_begun = call->is_done = true;
}

/* --- the handler's side --- */

/* Whether the answer may be sent: the first, to a client that is there. */
static bool may_answer(const struct http2_call *call)
{
    return call->at && !call->is_cancelled && !call->has_begun;
}

/* The message's reference is taken; NULL: it fails with `err`. */
static void answer(struct rpc_call *base, struct http2_message *message,
                   const struct error *err)
{
    struct http2_call *call = (struct http2_call *)base;
    struct http2_connection *connection = call->connection;
    rpc_http2_hold(connection);
    pthread_mutex_lock(&connection->wire.lock);
    call->is_answered = true;
    if (!may_answer(call)) {
        http2_message_drop(&connection->wire, message);
    } else if (message) {
        call->sending.message = message;
        submit_answer(call);
    } else {
        rpc_http2_call_refuse(call, err);
    }
    rpc_http2_call_unref(call);
    rpc_http2_leave(connection);
    rpc_http2_drop(connection);
}

void rpc_http2_call_answer_pieces(struct rpc_call *base, const struct rpc_piece *pieces,
                                  int count)
{
    answer(base, http2_message_new(pieces, count), NULL);
}

void rpc_http2_call_answer(struct rpc_call *base, const void *bytes, size_t size,
                           const struct error *err)
{
    const struct rpc_piece piece = {.data = bytes, .size = size};
    answer(base, err ? NULL : http2_message_new(&piece, 1), err);
}

void rpc_http2_call_answer_from(struct rpc_call *base, struct rpc_source *source)
{
    struct http2_call *call = (struct http2_call *)base;
    struct http2_connection *connection = call->connection;
    rpc_http2_hold(connection);
    pthread_mutex_lock(&connection->wire.lock);
    call->is_answered = true;
    bool answers = may_answer(call);
    if (answers) {
        call->source = source;
        submit_answer(call);
    }
    rpc_http2_call_unref(call);
    rpc_http2_leave(connection);
    if (!answers)
        source->free(source);
    rpc_http2_drop(connection);
}

void rpc_http2_call_free_source(struct http2_call *call)
{
    struct rpc_source *source = call->is_pumped ? NULL : call->source;
    if (!source)
        return;
    call->source = NULL;
    pthread_mutex_unlock(&call->connection->wire.lock);
    source->free(source);
    pthread_mutex_lock(&call->connection->wire.lock);
}

void rpc_http2_call_pump(struct http2_call *call)
{
    struct http2_connection *connection = call->connection;
    struct rpc_piece pieces[RPC_PIECES_MAX];
    struct rpc_source *source = call->source;
    bool last = false;
    call->is_pumped = true;
    call->wants_next = false;
    call->references++;
    pthread_mutex_unlock(&connection->wire.lock);
    int count = source->next(source, pieces, &last);
    struct http2_message *message = http2_message_new(pieces, count);
    if (last)
        source->free(source);
    pthread_mutex_lock(&connection->wire.lock);
    call->is_pumped = false;
    if (last)
        call->source = NULL;
    connection->pumped += message->size;
    if (call->at) {
        call->sending = (struct http2_sending){message, 0};
        (void)nghttp2_session_resume_data(connection->wire.session, call->stream);
    } else {
        http2_message_drop(&connection->wire, message);
    }
    if (call->is_cancelled)
        rpc_http2_call_free_source(call);
    rpc_http2_call_unref(call);
}

bool rpc_http2_call_cancelled(const struct rpc_call *base)
{
    const struct http2_call *call = (const struct http2_call *)base;
    pthread_mutex_lock(&call->connection->wire.lock);
    bool cancelled = call->is_cancelled || !call->at;
    pthread_mutex_unlock(&call->connection->wire.lock);
    return cancelled;
}

bool rpc_http2_call_watch(struct rpc_call *base, void (*gone)(void *arg), void *arg)
{
    struct http2_call *call = (struct http2_call *)base;
    pthread_mutex_lock(&call->connection->wire.lock);
    bool watches = !call->is_cancelled;
    if (watches) {
        base->gone = gone;
        base->gone_arg = arg;
    }
    pthread_mutex_unlock(&call->connection->wire.lock);
    return watches;
}

void rpc_http2_call_unwatch(struct rpc_call *base)
{
    struct http2_call *call = (struct http2_call *)base;
    struct http2_connection *connection = call->connection;
    pthread_mutex_lock(&connection->wire.lock);
    while (call->is_telling)
        pthread_cond_wait(&connection->changed, &connection->wire.lock);
    base->gone = NULL;
    pthread_mutex_unlock(&connection->wire.lock);
}
