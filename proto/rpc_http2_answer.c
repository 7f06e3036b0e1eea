/* rpc_http2_answer.c - answers as they come, of calls that are made over gRPC. */

#include <inttypes.h>
#include <stddef.h>

#include "base/alloc.h"
#include "base/error.h"
#include "proto/rpc_http2_guest.h"

/* Trailing metadata of every call that a server of ours fails: err->pointer. */
#define POINTER_KEY "trainyard-pointer-bin"

static enum error_code code_of_http(int status)
{
    switch (status) {
    case 400:
        return INTERNAL;
    case 401:
        return UNAUTHENTICATED;
    case 403:
        return DENIED;
    case 404:
        return UNIMPLEMENTED;
    case 429:
    case 502:
    case 503:
    case 504:
        return UNAVAILABLE;
    default:
        return UNKNOWN;
    }
}

/* What a stream that ended without a status means. */
static bool ended_early(const struct made_call *call, uint32_t why, struct error *err)
{
    const char *address = call->guest->base.address;
    if (call->http_status != 200 && call->http_status >= 0)
        return fail(err, code_of_http(call->http_status), "%s answered with HTTP's status %d",
                    address, call->http_status);
    if (call->is_other)
        return fail(err, UNKNOWN, "%s answered with something else than gRPC", address);
    if (why == NGHTTP2_NO_ERROR)
        return fail(err, UNKNOWN, "%s answered without a status", address);
    if (why == NGHTTP2_REFUSED_STREAM)
        return fail(err, UNAVAILABLE, "cannot reach %s: it takes no more calls", address);
    if (why == NGHTTP2_CANCEL)
        return fail(err, CANCELLED, "the call was cancelled");
    return fail(err, why == NGHTTP2_ENHANCE_YOUR_CALM ? EXHAUSTED : INTERNAL,
                "%s ended the call by HTTP/2's error %u", address, why);
}

static void copy_text(const struct str *text, char *out, size_t out_size)
{
    size_t size = text->size < out_size ? text->size : out_size - 1;
    if (size)
        memcpy(out, text->data, size);
    out[size] = '\0';
}

/* The server's words, where it was the server that failed the call. */
static bool refused(const struct made_call *call, struct error *err)
{
    const char *address = call->guest->base.address;
    struct error said = {.code = call->status <= 16 ? (enum error_code)call->status : UNKNOWN};
    copy_text(&call->text, said.text, sizeof(said.text));
    copy_text(&call->pointer, said.pointer, sizeof(said.pointer));
    str_make_utf8(said.text);
    str_make_utf8(said.pointer);
    *err = said;
    if (call->pointer.data || said.code != UNAVAILABLE)
        return false; /* of ours, or what it has to say needs no more words */
    return fail(err, UNAVAILABLE, "cannot reach %s: %s", address, said.text);
}

/* Whether the answer is there and good; it has no more to come. */
static bool check_answer(const struct made_call *call, uint32_t why, struct error *err)
{
    if (call->status < 0)
        return ended_early(call, why, err);
    if (call->status)
        return refused(call, err);
    if (call->prefix_have)
        return fail(err, INTERNAL, "%s broke off in the middle of a message",
                    call->guest->base.address);
    if (!call->messages)
        return fail(err, INTERNAL, "%s answered without a message", call->guest->base.address);
    return true;
}

/* --- what the session calls --- */

static struct made_call *call_of(nghttp2_session *session, int32_t stream)
{
    return nghttp2_session_get_stream_user_data(session, stream);
}

static bool is_text(const uint8_t *data, size_t size, const char *text)
{
    return size == strlen(text) && !memcmp(data, text, size);
}

static int read_number(const uint8_t *text, size_t size)
{
    int number = 0;
    if (!size || size > 4)
        return -1;
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        number = 10 * number + text[i] - '0';
    }
    return number;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_size, const uint8_t *value, size_t size, uint8_t flags,
                     void *arg)
{
    struct made_call *call = call_of(session, frame->hd.stream_id);
    (void)flags;
    (void)arg;
    if (!call || frame->hd.type != NGHTTP2_HEADERS)
        return 0;
    if (is_text(name, name_size, ":status")) {
        call->http_status = read_number(value, size);
    } else if (is_text(name, name_size, "grpc-status")) {
        int status = read_number(value, size);
        call->status = status < 0 ? UNKNOWN : status;
    } else if (is_text(name, name_size, "grpc-message")) {
        str_clear(&call->text);
        rpc_http2_add_plain(&call->text, (const char *)value, size);
    } else if (is_text(name, name_size, POINTER_KEY)) {
        str_clear(&call->pointer);
        str_add(&call->pointer, ""); /* it was said */
        rpc_http2_add_decoded(&call->pointer, (const char *)value, size);
    } else if (is_text(name, name_size, "grpc-encoding")) {
        call->packing = rpc_http2_packing_of((const char *)value, size);
    } else if (is_text(name, name_size, "content-type")) {
        static const char grpc[] = "application/grpc"; /* "+proto" and the like follow */
        call->is_other = size < strlen(grpc) || memcmp(value, grpc, strlen(grpc));
    }
    return 0;
}

static void take_message(struct made_call *call)
{
    struct error err;
    call->prefix_have = 0;
    call->messages++;
    if (call->prefix[0] && !rpc_http2_unpack(&call->message, call->packing,
                                             call->guest->message_bytes_max, &err)) {
        if (err.code != EXHAUSTED)
            (void)fail(&err, INTERNAL, "%s answered unreadably", call->guest->base.address);
        rpc_http2_client_end(call, &err);
        return;
    }
    if (!call->sink)
        return;
    struct http2_arrived *arrived = alloc_bytes(sizeof(*arrived));
    arrived->bytes = call->message;
    call->message = (struct str){0};
    *call->arrived_end = arrived;
    call->arrived_end = &arrived->next;
    rpc_http2_client_queue(call);
}

static void take_prefix(struct made_call *call)
{
    struct error err;
    int64_t bytes_max = call->guest->message_bytes_max;
    call->size = 0;
    for (int i = 1; i < HTTP2_PREFIX; i++)
        call->size = call->size << 8 | call->prefix[i];
    if (call->size > (uint64_t)bytes_max) {
        (void)fail(&err, EXHAUSTED, "Received message larger than max (%u vs. %" PRId64 ")",
                   call->size, bytes_max);
        rpc_http2_client_end(call, &err);
    } else if (call->messages && !call->sink) {
        (void)fail(&err, INTERNAL, "%s answered with more than one message",
                   call->guest->base.address);
        rpc_http2_client_end(call, &err);
    } else {
        call->message = call->spare;
        call->spare = (struct str){0};
        http2_wire_reserve(&call->message, call->size);
    }
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
                   size_t size, void *arg)
{
    struct made_call *call = call_of(session, stream);
    (void)flags;
    (void)arg;
    if (call && (call->http_status != 200 || call->is_other))
        return 0; /* a page, for people */
    while (call && !call->is_over && size) {
        size_t part;
        if (call->prefix_have < HTTP2_PREFIX) {
            part = HTTP2_PREFIX - call->prefix_have;
            part = part < size ? part : size;
            memcpy(call->prefix + call->prefix_have, data, part);
            call->prefix_have += part;
            if (call->prefix_have == HTTP2_PREFIX)
                take_prefix(call);
        } else {
            part = call->size - call->message.size;
            part = part < size ? part : size;
            str_add_bytes(&call->message, data, part);
        }
        data += part;
        size -= part;
        if (!call->is_over && call->prefix_have == HTTP2_PREFIX &&
            call->message.size == call->size)
            take_message(call);
    }
    return 0;
}

/* An answer that is whole before its request is: the rest of that is not sent. */
static void answered_early(struct made_call *call)
{
    struct error err;
    bool good = check_answer(call, NGHTTP2_NO_ERROR, &err);
    rpc_http2_client_end(call, good ? NULL : &err);
    if (good)
        (void)nghttp2_submit_rst_stream(call->guest->wire.session, NGHTTP2_FLAG_NONE,
                                        call->stream, NGHTTP2_CANCEL);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    struct http2_guest *guest =
        (struct http2_guest *)((char *)arg - offsetof(struct http2_guest, wire));
    bool is_ack = frame->hd.flags & NGHTTP2_FLAG_ACK;
    bool is_last =
        frame->hd.type <= NGHTTP2_HEADERS && frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
    struct made_call *call = is_last ? call_of(session, frame->hd.stream_id) : NULL;
    if (frame->hd.type == NGHTTP2_PING && is_ack)
        guest->wire.pinged_ns = 0;
    if (frame->hd.type == NGHTTP2_SETTINGS && !is_ack)
        rpc_http2_guest_greeted(guest);
    if (frame->hd.type == NGHTTP2_GOAWAY)
        guest->is_leaving = true;
    if (call && !call->is_over && call->sending.sent < call->sending.message->size)
        answered_early(call);
    return 0;
}

/* A request that waited to be sent until the server took no more. */
static int on_not_sent(nghttp2_session *session, const nghttp2_frame *frame, int why, void *arg)
{
    struct made_call *call = call_of(session, frame->hd.stream_id);
    struct error err;
    (void)why;
    (void)arg;
    if (call && frame->hd.type == NGHTTP2_HEADERS) {
        (void)fail(&err, UNAVAILABLE, "cannot reach %s: it is shutting down",
                   call->guest->base.address);
        rpc_http2_client_end(call, &err);
    }
    return 0;
}

static int on_closed(nghttp2_session *session, int32_t stream, uint32_t why, void *arg)
{
    struct made_call *call = call_of(session, stream);
    struct error err;
    (void)arg;
    if (!call)
        return 0;
    bool good = check_answer(call, why, &err);
    call->stream = 0;
    rpc_http2_client_end(call, good ? NULL : &err);
    rpc_http2_client_settle(call);
    return 0;
}

nghttp2_session_callbacks *rpc_http2_answer_callbacks(void)
{
    nghttp2_session_callbacks *callbacks;
    if (nghttp2_session_callbacks_new(&callbacks))
        return NULL;
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, on_not_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_closed);
    return callbacks;
}
