/* http2_wire.c - what comes over a socket, and what waits to be written. */

#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "proto/http2_wire.h"

#define MS_NS UINT64_C(1000000)

enum {
    WAITING_BYTES_MAX = 1 << 20, /* until the session has to keep what it has to say */
    FRAME_HEAD = 9,
    RECORD_BYTES = 16384, /* of TLS */
    IN_BYTES = 256 << 10, /* that are read at a time */
    READS_MAX = 16,       /* in a turn */
    RESERVED_BYTES_MAX = 16 << 20,
    STREAMS_MAX = 65536,
    HEADERS_BYTES_MAX = 16 << 10,
    FRAME_BYTES_MAX = 1 << 20,
    WINDOW = 1 << 30,    /* what comes is taken at once; the socket holds a sender up */
    RESETS_MAX = 100000, /* calls that a client gives up, at once, and a second */
    SILENT_MS = 10000,   /* until the other end is pinged, */
    PING_MS = 5000,      /* ... and has to answer */
};

/* --- messages --- */

static void put_prefix(unsigned char *prefix, size_t size)
{
    assert(size <= UINT32_MAX);
    prefix[0] = 0;
    for (int i = 0; i < 4; i++)
        prefix[1 + i] = (unsigned char)(size >> (24 - 8 * i));
}

struct http2_message *http2_message_new(const struct rpc_piece *pieces, int count)
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
    message->size = HTTP2_PREFIX + size;
    message->count = 1 + count;
    put_prefix(message->prefix, size);
    message->pieces[0] = (struct rpc_piece){message->prefix, HTTP2_PREFIX, NULL, NULL};
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

static void drop(struct http2_out *out, struct http2_message *message)
{
    if (!message || --message->references)
        return;
    message->next = out->over;
    out->over = message;
}

void http2_message_drop(struct http2_wire *wire, struct http2_message *message)
{
    drop(&wire->out, message);
}

struct http2_message *http2_wire_over(struct http2_wire *wire)
{
    struct http2_message *over = wire->out.over;
    wire->out.over = NULL;
    return over;
}

void http2_messages_release(struct http2_message *message)
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
    return out->size < WAITING_BYTES_MAX && out->count + spans <= HTTP2_SPANS;
}

static struct http2_span *span_at(struct http2_out *out, int index)
{
    return &out->spans[(out->first + index) % HTTP2_SPANS];
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
        drop(out, span->message);
        out->first = (out->first + 1) % HTTP2_SPANS;
        out->count--;
    }
    drop_text(out);
}

static void clear(struct http2_out *out)
{
    take_off(out, out->size);
    str_release(&out->text);
}

/* --- the session --- */

static ssize_t send_text(nghttp2_session *session, const uint8_t *data, size_t size, int flags,
                         void *arg)
{
    struct http2_wire *wire = arg;
    (void)session;
    (void)flags;
    if (!has_room(&wire->out, 1))
        return NGHTTP2_ERR_WOULDBLOCK;
    add_text(&wire->out, data, size);
    return (ssize_t)size;
}

static int send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head,
                     size_t size, nghttp2_data_source *source, void *arg)
{
    struct http2_wire *wire = arg;
    struct http2_out *out = &wire->out;
    struct http2_sending *sending = source->ptr;
    (void)session;
    (void)frame;
    if (!has_room(out, 2 + RPC_PIECES_MAX + 1))
        return NGHTTP2_ERR_WOULDBLOCK;
    add_text(out, head, FRAME_HEAD);
    struct http2_message *message = sending->message;
    size_t skip = sending->sent;
    sending->sent += size;
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

ssize_t http2_wire_part(const struct http2_sending *sending, size_t size, uint32_t *flags)
{
    size_t left = sending->message->size - sending->sent;
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    return (ssize_t)(left < size ? left : size);
}

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

void http2_wire_reserve(struct str *bytes, uint32_t size)
{
    size_t room = size < RESERVED_BYTES_MAX ? size : RESERVED_BYTES_MAX;
    (void)str_extend(bytes, room);
    str_clear(bytes);
}

static bool announce(struct http2_wire *wire, bool serves)
{
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW},
        {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, FRAME_BYTES_MAX},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HEADERS_BYTES_MAX},
        serves ? (nghttp2_settings_entry){NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, STREAMS_MAX}
               : (nghttp2_settings_entry){NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
    };
    return !nghttp2_submit_settings(wire->session, NGHTTP2_FLAG_NONE, settings,
                                    ARRAY_LEN(settings)) &&
           !nghttp2_session_set_local_window_size(wire->session, NGHTTP2_FLAG_NONE, 0, WINDOW);
}

bool http2_wire_open(struct http2_wire *wire, bool serves, nghttp2_session_callbacks *callbacks)
{
    nghttp2_option *option;
    bool ok = !nghttp2_option_new(&option);
    nghttp2_session_callbacks_set_send_callback(callbacks, send_text);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, send_data);
    nghttp2_session_callbacks_set_data_source_read_length_callback(callbacks, frame_bytes);
    if (ok) {
        nghttp2_option_set_stream_reset_rate_limit(option, RESETS_MAX, RESETS_MAX);
        nghttp2_option_set_peer_max_concurrent_streams(option, STREAMS_MAX);
        ok = !(serves ? nghttp2_session_server_new2(&wire->session, callbacks, wire, option)
                      : nghttp2_session_client_new2(&wire->session, callbacks, wire, option));
        nghttp2_option_del(option);
    }
    nghttp2_session_callbacks_del(callbacks);
    return ok && announce(wire, serves);
}

void http2_wire_close(struct http2_wire *wire)
{
    nghttp2_session_del(wire->session);
    wire->session = NULL;
    http2_tls_close(wire);
    clear(&wire->out);
    if (wire->socket >= 0)
        close(wire->socket);
    wire->socket = -1;
    wire->pinged_ns = 0;
    wire->is_shaken = wire->busy = wire->corked = wire->wants_room = false;
}

/* --- turns --- */

void http2_wire_arm(struct http2_wire *wire)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.ptr = wire->watched};
    if (wire->wants_room)
        event.events |= EPOLLOUT;
    if (!wire->busy && wire->session)
        (void)epoll_ctl(wire->epoll, EPOLL_CTL_MOD, wire->socket, &event);
}

static ssize_t read_bytes(struct http2_wire *wire, void *out, size_t size)
{
    if (wire->tls)
        return http2_tls_read(wire, out, size);
    ssize_t got = recv(wire->socket, out, size, MSG_DONTWAIT);
    if (got > 0)
        return got;
    return got < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

bool http2_wire_take(struct http2_wire *wire)
{
    uint8_t in[IN_BYTES];
    for (int n = 0; n < READS_MAX || http2_tls_has_more(wire); n++) {
        ssize_t got = read_bytes(wire, in, sizeof(in));
        if (got <= 0)
            return !got;
        wire->heard_ns = clock_monotonic_ns();
        if (nghttp2_session_mem_recv(wire->session, in, (size_t)got) != got)
            return false;
        if (!wire->tls && got < (ssize_t)sizeof(in))
            break;
    }
    return true;
}

/* --- writing --- */

static const char *span_data(struct http2_out *out, int index, size_t *size)
{
    const struct http2_span *span = span_at(out, index);
    *size = span->size;
    return span->message ? span->data : out->text.data + span->at;
}

/* Small stretches share a record. */
static ssize_t write_encrypted(struct http2_wire *wire)
{
    struct http2_out *out = &wire->out;
    char record[RECORD_BYTES];
    size_t have = 0;
    for (int i = 0; i < out->count && have < sizeof(record); i++) {
        size_t size;
        const char *data = span_data(out, i, &size);
        size_t part = size < sizeof(record) - have ? size : sizeof(record) - have;
        memcpy(record + have, data, part);
        have += part;
    }
    return http2_tls_write(wire, record, have);
}

static ssize_t write_spans(struct http2_wire *wire)
{
    struct http2_out *out = &wire->out;
    struct iovec spans[HTTP2_SPANS];
    struct msghdr message = {.msg_iov = spans, .msg_iovlen = (size_t)out->count};
    for (int i = 0; i < out->count; i++)
        spans[i].iov_base = (void *)span_data(out, i, &spans[i].iov_len);
    for (;;) {
        ssize_t wrote = sendmsg(wire->socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (wrote >= 0)
            return wrote;
        if (errno != EINTR)
            return errno == EAGAIN ? 0 : -1;
    }
}

void http2_wire_flush(struct http2_wire *wire)
{
    struct http2_out *out = &wire->out;
    bool full = false, broken = false;
    if (!wire->is_shaken)
        return;
    while (wire->session && !full && !broken) {
        if (nghttp2_session_send(wire->session) || !out->count)
            break;
        ssize_t wrote = wire->tls ? write_encrypted(wire) : write_spans(wire);
        full = !wrote;
        broken = wrote < 0; /* it is gone, as who reads will see */
        if (wrote > 0)
            take_off(out, (size_t)wrote);
    }
    if (full != wire->wants_room) {
        wire->wants_room = full;
        http2_wire_arm(wire);
    }
}

/* Whether the other end's system has all that was said. */
static bool is_taken(const struct http2_wire *wire)
{
    int left = 0;
    return !wire->out.count && (ioctl(wire->socket, SIOCOUTQ, &left) || !left);
}

void http2_wire_finish(struct http2_wire *wire, uint64_t until_ns)
{
    struct pollfd file = {.fd = wire->socket, .events = POLLOUT};
    http2_wire_flush(wire);
    while (!is_taken(wire) && clock_monotonic_ns() < until_ns) {
        file.revents = 0;
        if (!wire->wants_room)
            usleep(1000);
        else if (poll(&file, 1, 1) == 1 && file.revents & (POLLERR | POLLHUP))
            break;
        http2_wire_flush(wire);
    }
}

/* --- time --- */

bool http2_wire_is_there(struct http2_wire *wire, uint64_t now_ns)
{
    uint64_t silent_ns = now_ns > wire->heard_ns ? now_ns - wire->heard_ns : 0;
    if (silent_ns < SILENT_MS * MS_NS)
        return true;
    if (!wire->is_shaken || (wire->pinged_ns && now_ns - wire->pinged_ns >= PING_MS * MS_NS))
        return false;
    if (!wire->pinged_ns) {
        wire->pinged_ns = now_ns;
        (void)nghttp2_submit_ping(wire->session, NGHTTP2_FLAG_NONE, NULL);
    }
    return true;
}
