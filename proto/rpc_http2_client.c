/* rpc_http2_client.c - calls that are made over gRPC. */

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "proto/rpc_http2.h"
#include "proto/rpc_http2_guest.h"

/* --- lives --- */

static void call_unref(struct made_call *call)
{
    if (--call->references)
        return;
    http2_message_drop(&call->guest->wire, call->sending.message);
    while (call->arrived) {
        struct http2_arrived *next = call->arrived->next;
        str_release(&call->arrived->bytes);
        free(call->arrived);
        call->arrived = next;
    }
    str_release(&call->message);
    str_release(&call->spare);
    str_release(&call->text);
    str_release(&call->pointer);
    free((char *)call->path);
    pthread_cond_destroy(&call->finished);
    free(call);
}

void rpc_http2_client_settle(struct made_call *call)
{
    if (!call->is_told || call->stream || !call->at)
        return;
    *call->at = call->next;
    *(call->next ? &call->next->at : &call->guest->calls_end) = call->at;
    call->at = NULL;
    call_unref(call);
}

static void told(struct made_call *call)
{
    call->is_told = true;
    if (!--call->guest->open)
        pthread_cond_broadcast(&call->guest->drained);
    rpc_http2_client_settle(call);
}

void rpc_http2_client_queue(struct made_call *call)
{
    struct http2_guest *guest = call->guest;
    if (call->is_queued)
        return;
    call->is_queued = true;
    call->references++;
    call->queued_next = NULL;
    *guest->queued_end = call;
    guest->queued_end = &call->queued_next;
}

/* --- the end of a call --- */

void rpc_http2_client_end(struct made_call *call, const struct error *err)
{
    struct http2_guest *guest = call->guest;
    if (call->is_over)
        return;
    call->is_over = true;
    call->has_failed = err;
    if (err)
        call->err = *err;
    if (err && call->stream && guest->wire.session)
        (void)nghttp2_submit_rst_stream(guest->wire.session, NGHTTP2_FLAG_NONE, call->stream,
                                        NGHTTP2_CANCEL);
    if (call->done || call->sink)
        rpc_http2_client_queue(call);
    else
        pthread_cond_signal(&call->finished);
}

void rpc_http2_client_abandon(struct http2_guest *guest, const struct error *err)
{
    struct made_call *next;
    for (struct made_call *call = guest->calls; call; call = next) {
        next = call->next;
        rpc_http2_client_end(call, err);
        call->stream = 0;
        rpc_http2_client_settle(call);
    }
}

/* --- requests --- */

static ssize_t read_request(nghttp2_session *session, int32_t stream, uint8_t *out, size_t size,
                            uint32_t *flags, nghttp2_data_source *source, void *arg)
{
    const struct http2_sending *sending = source->ptr;
    ssize_t part = http2_wire_part(sending, size, flags);
    (void)session;
    (void)stream;
    (void)out;
    (void)arg;
    if (sending->sent + (size_t)part == sending->message->size)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return part;
}

static nghttp2_nv field(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value),
                        NGHTTP2_NV_FLAG_NO_COPY_NAME};
}

void rpc_http2_client_submit(struct made_call *call)
{
    struct http2_guest *guest = call->guest;
    char timeout[16];
    struct error err;
    bool in_ms = call->timeout_ms < 100000000; /* eight digits are allowed */
    snprintf(timeout, sizeof(timeout), "%d%c",
             in_ms ? call->timeout_ms : call->timeout_ms / 1000, in_ms ? 'm' : 'S');
    const nghttp2_nv fields[] = {
        field(":method", "POST"),
        field(":scheme", guest->tls ? "https" : "http"),
        field(":path", call->path),
        field(":authority", guest->base.address),
        field("te", "trailers"),
        field("content-type", "application/grpc"),
        field("user-agent", "trainyard"),
        field("grpc-accept-encoding", "identity, deflate, gzip"),
        field("grpc-timeout", timeout),
    };
    const nghttp2_data_provider provider = {.source.ptr = &call->sending,
                                            .read_callback = read_request};
    int32_t stream =
        nghttp2_submit_request(guest->wire.session, NULL, fields,
                               ARRAY_LEN(fields) - !call->timeout_ms, &provider, call);
    if (stream < 0) { /* it has had as many as there are numbers */
        guest->is_leaving = true;
        (void)fail(&err, UNAVAILABLE, "cannot reach %s: %s", guest->base.address,
                   nghttp2_strerror(stream));
        rpc_http2_client_end(call, &err);
        return;
    }
    call->stream = stream;
}

static struct made_call *call_new(struct http2_guest *guest, const char *path,
                                  const struct str *request)
{
    const struct rpc_piece piece = {.data = request->data, .size = request->size};
    struct made_call *call = alloc_bytes(sizeof(*call));
    call->guest = guest;
    call->path = alloc_text(path);
    call->sending.message = http2_message_new(&piece, 1);
    call->references = 1; /* the list's */
    call->http_status = call->status = -1;
    call->arrived_end = &call->arrived;
    rpc_cond_init(&call->finished);
    return call;
}

/* Into the list, and off, or at once over. */
static void call_join(struct made_call *call)
{
    struct http2_guest *guest = call->guest;
    struct error err;
    rpc_http2_guest_part(guest);
    *guest->calls_end = call;
    call->at = guest->calls_end;
    guest->calls_end = &call->next;
    guest->open++;
    if (guest->is_cancelled) {
        (void)fail(&err, CANCELLED, "the call was cancelled");
        rpc_http2_client_end(call, &err);
    } else if (guest->is_leaving) {
        (void)fail(&err, UNAVAILABLE, "cannot reach %s: it is shutting down",
                   guest->base.address);
        rpc_http2_client_end(call, &err);
    } else if (guest->is_greeted) {
        rpc_http2_client_submit(call);
        if (!guest->wire.corked)
            http2_wire_flush(&guest->wire);
    } else if (guest->is_connected) {
        return; /* it is sent by and by */
    } else if (clock_monotonic_ns() < guest->away_until_ns) {
        rpc_http2_client_end(call, &guest->away);
    } else if (!guest->wants_server) {
        guest->wants_server = true;
        rpc_http2_guest_wake(guest);
    }
}

static void unlock(struct http2_guest *guest)
{
    struct http2_message *over = http2_wire_over(&guest->wire);
    if (guest->queued && !pthread_equal(pthread_self(), guest->thread))
        rpc_http2_guest_wake(guest);
    pthread_mutex_unlock(&guest->wire.lock);
    http2_messages_release(over);
}

static bool is_over(const struct timespec *until)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec > until->tv_sec ||
           (now.tv_sec == until->tv_sec && now.tv_nsec >= until->tv_nsec);
}

bool rpc_http2_client_call(struct rpc_client *base, const char *path, const struct str *request,
                           struct str *response, int timeout_ms, struct error *err)
{
    struct http2_guest *guest = (struct http2_guest *)base;
    struct timespec until = rpc_deadline(timeout_ms);
    struct made_call *call = call_new(guest, path, request);
    int late = 0;
    call->timeout_ms = timeout_ms;
    pthread_mutex_lock(&guest->wire.lock);
    call->references++; /* this one's */
    call_join(call);
    while (!call->is_over && !late)
        late = pthread_cond_timedwait(&call->finished, &guest->wire.lock, &until);
    if (!call->is_over) {
        (void)fail(err, DEADLINE, "no answer from %s within %d ms", base->address, timeout_ms);
        rpc_http2_client_end(call, err);
        if (!guest->wire.corked)
            http2_wire_flush(&guest->wire);
    }
    bool ok = !call->has_failed;
    if (ok) {
        str_release(response);
        *response = call->message;
        call->message = (struct str){0};
    } else {
        *err = call->err;
    }
    told(call);
    call_unref(call);
    unlock(guest);
    if (!ok && (err->code == DEADLINE || err->code == CANCELLED) && is_over(&until))
        /* whoever saw it first, and however a server says that */
        (void)fail(err, DEADLINE, "no answer from %s within %d ms", base->address, timeout_ms);
    return ok;
}

static void start(struct http2_guest *guest, struct made_call *call)
{
    pthread_mutex_lock(&guest->wire.lock);
    call_join(call);
    unlock(guest);
}

void rpc_http2_client_start(struct rpc_client *base, const char *path,
                            const struct str *request, rpc_done *done, void *arg)
{
    struct made_call *call = call_new((struct http2_guest *)base, path, request);
    call->done = done;
    call->arg = arg;
    start(call->guest, call);
}

void rpc_http2_client_start_into(struct rpc_client *base, const char *path,
                                 const struct str *request, struct rpc_sink *sink)
{
    struct made_call *call = call_new((struct http2_guest *)base, path, request);
    call->sink = sink;
    call->arg = sink;
    start(call->guest, call);
}

/* --- telling --- */

/* The next message that has come for a sink, if it wants it. */
static void give(struct made_call *call)
{
    struct http2_guest *guest = call->guest;
    struct http2_arrived *arrived = call->arrived;
    struct error err;
    call->arrived = arrived->next;
    if (!call->arrived)
        call->arrived_end = &call->arrived;
    pthread_mutex_unlock(&guest->wire.lock);
    bool takes = call->sink->take(call->sink, arrived->bytes.data, arrived->bytes.size, &err);
    pthread_mutex_lock(&guest->wire.lock);
    str_release(&call->spare);
    call->spare = arrived->bytes;
    str_clear(&call->spare);
    free(arrived);
    if (takes)
        return;
    rpc_http2_client_end(call, &err);
    call->has_failed = true; /* though its answer is whole */
    call->err = err;
}

static void tell_end(struct made_call *call)
{
    struct http2_guest *guest = call->guest;
    const struct error *err = call->has_failed ? &call->err : NULL;
    pthread_mutex_unlock(&guest->wire.lock);
    if (call->sink) {
        call->sink->done(call->sink, err);
    } else {
        guest->is_answering = !err;
        call->done(call->arg, err ? NULL : &call->message, err);
        guest->is_answering = false;
    }
    pthread_mutex_lock(&guest->wire.lock);
    told(call);
}

void rpc_http2_client_tell(struct http2_guest *guest)
{
    struct made_call *call;
    while ((call = guest->queued)) {
        guest->queued = call->queued_next;
        if (!guest->queued)
            guest->queued_end = &guest->queued;
        call->is_queued = false;
        while (call->arrived && !call->has_failed)
            give(call);
        if (call->is_over && !call->is_told)
            tell_end(call);
        call_unref(call);
    }
    if (!guest->wire.corked)
        http2_wire_flush(&guest->wire);
}

bool rpc_http2_client_peer(const struct rpc_client *base, struct endpoint *peer)
{
    const struct http2_guest *guest = (const struct http2_guest *)base;
    *peer = guest->peer;
    return guest->is_answering && guest->has_peer;
}

/* --- ends --- */

static void cancel(struct http2_guest *guest, bool all, const void *arg)
{
    struct error err;
    (void)fail(&err, CANCELLED, "the call was cancelled");
    for (struct made_call *call = guest->calls; call; call = call->next)
        if (all || ((call->done || call->sink) && call->arg == arg))
            rpc_http2_client_end(call, &err);
    if (!guest->wire.corked)
        http2_wire_flush(&guest->wire);
}

void rpc_http2_client_cancel_started(struct rpc_client *base, const void *arg)
{
    struct http2_guest *guest = (struct http2_guest *)base;
    pthread_mutex_lock(&guest->wire.lock);
    cancel(guest, false, arg);
    unlock(guest);
}

void rpc_http2_client_cancel(struct rpc_client *base)
{
    struct http2_guest *guest = (struct http2_guest *)base;
    pthread_mutex_lock(&guest->wire.lock);
    guest->is_cancelled = true;
    cancel(guest, true, NULL);
    unlock(guest);
}

static void guest_release(struct http2_guest *guest)
{
    http2_tls_free(guest->tls);
    if (guest->epoll >= 0)
        close(guest->epoll);
    if (guest->wake >= 0)
        close(guest->wake);
    pthread_cond_destroy(&guest->drained);
    pthread_mutex_destroy(&guest->wire.lock);
    free(guest->host);
    free(guest->port);
    free(guest->name);
    free(guest->base.address);
    free(guest);
}

/* "HOST:PORT" or "[HOST]:PORT" */
static bool read_address(struct http2_guest *guest, const char *address, struct error *err)
{
    const char *colon = strrchr(address, ':');
    if (!colon)
        return fail(err, INVALID, "'%s' is no address: HOST:PORT is needed", address);
    size_t size = (size_t)(colon - address);
    bool bracketed = size > 1 && address[0] == '[' && colon[-1] == ']';
    guest->host = bracketed ? alloc_text_n(address + 1, size - 2) : alloc_text_n(address, size);
    guest->port = alloc_text(colon + 1);
    return true;
}

struct rpc_client *rpc_http2_client_new(const struct rpc_client_options *options,
                                        struct error *err)
{
    struct http2_guest *guest = alloc_bytes(sizeof(*guest));
    const struct rpc_tls *tls = options->tls;
    guest->base.transport = &rpc_http2_transport;
    guest->base.address = alloc_text(options->address);
    guest->message_bytes_max = options->message_bytes_max;
    guest->quiet = options->quiet;
    guest->epoll = epoll_create1(EPOLL_CLOEXEC);
    guest->wake = eventfd(0, EFD_CLOEXEC);
    guest->queued_end = &guest->queued;
    guest->calls_end = &guest->calls;
    guest->wire = (struct http2_wire){.peer = guest->base.address,
                                      .epoll = guest->epoll,
                                      .watched = &guest->wire,
                                      .socket = -1};
    pthread_mutex_init(&guest->wire.lock, NULL);
    pthread_cond_init(&guest->drained, NULL);
    bool ok = read_address(guest, options->address, err);
    if (ok && tls) {
        guest->name = alloc_text(tls->name ? tls->name : guest->host);
        guest->tls = http2_tls_new(tls, false, err);
        ok = guest->tls || error_prefix(err, "cannot call %s: ", options->address);
    }
    if (ok && (guest->epoll < 0 || guest->wake < 0 || !rpc_http2_guest_start(guest)))
        ok = error_errno(err, EXHAUSTED, "no thread to call %s with", options->address);
    if (ok)
        return &guest->base;
    guest_release(guest);
    return NULL;
}

void rpc_http2_client_free(struct rpc_client *base)
{
    struct http2_guest *guest = (struct http2_guest *)base;
    struct error err;
    pthread_mutex_lock(&guest->wire.lock);
    while (guest->open)
        pthread_cond_wait(&guest->drained, &guest->wire.lock);
    guest->closing = true;
    rpc_http2_guest_wake(guest);
    pthread_mutex_unlock(&guest->wire.lock);
    pthread_join(guest->thread, NULL);
    pthread_mutex_lock(&guest->wire.lock);
    http2_wire_flush(&guest->wire);
    http2_wire_close(&guest->wire);
    (void)fail(&err, CANCELLED, "the client is closed");
    rpc_http2_client_abandon(guest, &err); /* streams that were given up */
    unlock(guest);
    guest_release(guest);
}
