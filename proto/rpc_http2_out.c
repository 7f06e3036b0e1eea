/* rpc_http2_out.c - what waits to be written, and goes as it lies in memory. */

#include <stdlib.h>

#include "base/alloc.h"
#include "proto/rpc_http2_host.h"

enum {
    WAITING_BYTES_MAX = 1 << 20, /* until the session has to keep what it has to say */
    FRAME_HEAD = 9,
    TURN_BYTES = 4 << 20, /* of sources, until others have their turn */
};

/* --- messages --- */

static void put_prefix(unsigned char *prefix, size_t size)
{
    assert(size <= UINT32_MAX);
    prefix[0] = 0;
    for (int i = 0; i < 4; i++)
        prefix[1 + i] = (unsigned char)(size >> (24 - 8 * i));
}

struct http2_message *rpc_http2_message_new(const struct rpc_piece *pieces, int count)
{
    size_t size = 0, copied = 0;
    assert(count >= 0 && count <= RPC_PIECES_MAX);
    for (int i = 0; i < count; i++) {
        size += pieces[i].size;
        copied += pieces[i].release ? 0 : pieces[i].size;
    }
    struct http2_message *message = alloc_bytes(sizeof(*message) + copied);
    char *at = message->copied;
    message->references = 1;
    message->size = RPC_HTTP2_PREFIX + size;
    message->count = 1 + count;
    put_prefix(message->prefix, size);
    message->pieces[0] = (struct rpc_piece){message->prefix, RPC_HTTP2_PREFIX, NULL, NULL};
    for (int i = 0; i < count; i++) {
        struct rpc_piece *piece = &message->pieces[1 + i];
        *piece = pieces[i];
        if (piece->release || !piece->size)
            continue;
        memcpy(at, piece->data, piece->size);
        piece->data = at;
        at += piece->size;
    }
    return message;
}

void rpc_http2_message_drop(struct http2_out *out, struct http2_message *message)
{
    if (!message || --message->references)
        return;
    message->next = out->over;
    out->over = message;
}

static void release_messages(struct http2_message *message)
{
    while (message) {
        struct http2_message *next = message->next;
        for (int i = 0; i < message->count; i++)
            if (message->pieces[i].release)
                message->pieces[i].release(message->pieces[i].arg);
        free(message);
        message = next;
    }
}

/* --- the queue --- */

static bool has_room(const struct http2_out *out, int spans)
{
    return out->size < WAITING_BYTES_MAX && out->count + spans <= RPC_HTTP2_SPANS;
}

static struct http2_span *span_at(struct http2_out *out, int index)
{
    return &out->spans[(out->first + index) % RPC_HTTP2_SPANS];
}

static void add_text(struct http2_out *out, const void *data, size_t size)
{
    struct http2_span *last = out->count ? span_at(out, out->count - 1) : NULL;
    if (last && !last->message) {
        last->size += size;
    } else {
        *span_at(out, out->count++) = (struct http2_span){.at = out->text.size, .size = size};
    }
    str_add_bytes(&out->text, data, size);
    out->size += size;
}

static void add_stretch(struct http2_out *out, struct http2_message *message, const char *data,
                        size_t size)
{
    enum { SMALL = 512 }; /* cheaper to be copied than to be a span */
    if (size <= SMALL) {
        add_text(out, data, size);
        return;
    }
    *span_at(out, out->count++) =
        (struct http2_span){.message = message, .data = data, .size = size};
    message->references++;
    out->size += size;
}

/* What of the text has been written is let go of, now and then. */
static void drop_text(struct http2_out *out)
{
    enum { WRITTEN_BYTES_MAX = 32 << 10 };
    size_t at = out->text.size;
    for (int i = out->count - 1; i >= 0; i--)
        if (!span_at(out, i)->message)
            at = span_at(out, i)->at;
    if (out->count && at < WRITTEN_BYTES_MAX)
        return;
    str_drop(&out->text, at);
    for (int i = 0; i < out->count; i++)
        span_at(out, i)->at -= span_at(out, i)->message ? 0 : at;
}

/* Those bytes have been written. */
static void take_off(struct http2_out *out, size_t size)
{
    out->size -= size;
    while (size) {
        struct http2_span *span = span_at(out, 0);
        size_t part = size < span->size ? size : span->size;
        span->at += part;
        span->data = span->message ? span->data + part : NULL;
        span->size -= part;
        size -= part;
        if (span->size)
            break;
        rpc_http2_message_drop(out, span->message);
        out->first = (out->first + 1) % RPC_HTTP2_SPANS;
        out->count--;
    }
    drop_text(out);
}

void rpc_http2_out_clear(struct http2_out *out)
{
    take_off(out, out->size);
    str_release(&out->text);
}

/* --- the session's side --- */

ssize_t rpc_http2_send(nghttp2_session *session, const uint8_t *data, size_t size, int flags,
                       void *arg)
{
    struct http2_connection *connection = arg;
    (void)session;
    (void)flags;
    if (!has_room(&connection->out, 1))
        return NGHTTP2_ERR_WOULDBLOCK;
    add_text(&connection->out, data, size);
    return (ssize_t)size;
}

int rpc_http2_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head,
                        size_t size, nghttp2_data_source *source, void *arg)
{
    struct http2_connection *connection = arg;
    struct http2_out *out = &connection->out;
    struct http2_call *call = source->ptr;
    (void)session;
    (void)frame;
    if (!has_room(out, 2 + RPC_PIECES_MAX + 1))
        return NGHTTP2_ERR_WOULDBLOCK;
    add_text(out, head, FRAME_HEAD);
    struct http2_message *message = call->message;
    size_t skip = call->sent;
    call->sent += size;
    for (int i = 0; size; i++) {
        const struct rpc_piece *piece = &message->pieces[i];
        size_t from = skip < piece->size ? skip : piece->size;
        size_t part = piece->size - from < size ? piece->size - from : size;
        skip -= from;
        size -= part;
        if (part)
            add_stretch(out, message, (const char *)piece->data + from, part);
    }
    return 0;
}

void rpc_http2_flush(struct http2_connection *connection)
{
    struct http2_out *out = &connection->out;
    bool full = false, broken = false;
    if (!connection->is_shaken)
        return;
    while (connection->session && !full && !broken) {
        if (nghttp2_session_send(connection->session) || !out->count)
            break;
        ssize_t wrote = rpc_http2_write(connection, out);
        full = !wrote;
        broken = wrote < 0; /* it is gone, as who reads will see */
        if (wrote > 0)
            take_off(out, (size_t)wrote);
    }
    if (full != connection->wants_room) {
        connection->wants_room = full;
        rpc_http2_arm(connection);
    }
}

/* One that wants its next message, if there may be more now. */
static struct http2_call *wanting(struct http2_connection *connection)
{
    struct http2_call *call = connection->calls;
    while (call && !(call->wants_next && !call->is_pumped))
        call = call->next;
    if (!call || connection->pumped < TURN_BYTES)
        return call;
    connection->wants_room = true; /* it goes on behind what others have to do */
    rpc_http2_arm(connection);
    return NULL;
}

void rpc_http2_leave(struct http2_connection *connection)
{
    for (;;) {
        if (!connection->corked)
            rpc_http2_flush(connection);
        struct http2_message *over = connection->out.over;
        struct http2_call *call = connection->corked ? NULL : wanting(connection);
        connection->out.over = NULL;
        if (over) {
            pthread_mutex_unlock(&connection->lock);
            release_messages(over);
            pthread_mutex_lock(&connection->lock);
        } else if (call) {
            rpc_http2_call_pump(call);
        } else {
            break;
        }
    }
    connection->pumped = 0;
    pthread_mutex_unlock(&connection->lock);
}
