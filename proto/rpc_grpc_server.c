/*
 * rpc_grpc_server.c - serving calls over gRPC.
 *
 * DESIGN: a served call runs three batches: its end (RECV_CLOSE), its request, its answer.  Its
 * grpc_call is let go when its end has been seen and its answer is out; the struct around it
 * when, besides, the handler has answered.  A server that stops answers what is open itself and
 * lets go of it; a handler's later answer has no effect.
 *
 * No lock is held while another is taken, or over a call into the library that may wait.
 */

#include "base/alloc.h"
#include "base/limits.h"
#include "base/log.h"
#include "proto/rpc_grpc_duty.h"

#define CALLS_ARMED 16 /* requests asked for ahead of time */

struct grpc_host;

struct host_tag { /* of the server itself */
    struct tag tag;
    struct grpc_host *host;
};

struct grpc_host {
    struct rpc_server base;
    struct rpc_service services;
    grpc_server *server;
    grpc_completion_queue *queue;
    struct rpc_grpc_duty *duty; /* to serve the queue */
    struct host_tag shut_down;
    bool asks; /* clients for a certificate */

    pthread_mutex_t lock; /* guards: all below, and parts of its calls */
    pthread_cond_t changed;
    struct served_call *calls; /* those whose grpc_call is held */
    int references;            /* the owner's and each call's */
    int open;                  /* calls that their handler has not answered */
    bool stopping;
    bool is_shut_down;
};

struct served_call {
    struct rpc_call base;
    struct grpc_host *host;
    grpc_call_details details;
    grpc_metadata_array metadata;
    grpc_byte_buffer *message;
    int close_cancelled;
    struct rpc_source
        *source;    /* of an answer that is on its way; NULL: it has been asked all */
    bool has_begun; /* a message of the source is out */
    struct served_tag {
        struct tag tag;
        struct served_call *call;
    } arrived, received, closed, sent;

    /* guarded by the host's lock */
    grpc_call *call; /* NULL once let go */
    struct served_call *next;
    struct served_call *previous;
    int references; /* the handler's, and those of `closed` and `sent` while they are awaited */
    bool is_closed;
    bool is_cancelled;
    bool is_sending;
    bool is_answered;
    bool is_telling; /* that the client has gone */
};

enum served_step { STEP_CLOSED, STEP_SENT, STEP_ANSWERED, STEP_NONE };

static void host_unref(struct grpc_host *host)
{
    pthread_mutex_lock(&host->lock);
    bool last = --host->references == 0;
    pthread_mutex_unlock(&host->lock);
    if (!last)
        return;
    pthread_cond_destroy(&host->changed);
    pthread_mutex_destroy(&host->lock);
    free(host->base.address);
    free(host);
}

static void served_free(struct served_call *call)
{
    str_release(&call->base.request);
    gpr_free(call->base.peer);
    free(call->base.certificate);
    free(call->base.gone_arg);
    grpc_call_details_destroy(&call->details);
    grpc_metadata_array_destroy(&call->metadata);
    host_unref(call->host);
    free(call);
}

/* Takes the grpc_call out when nothing needs it any more; the caller lets go of it. */
static grpc_call *served_drop_locked(struct served_call *call)
{
    struct grpc_host *host = call->host;
    bool wanted =
        !call->is_closed || call->is_sending || !(call->is_answered || host->stopping);
    grpc_call *dropped = call->call;
    if (wanted || !dropped)
        return NULL;
    call->call = NULL;
    if (call->next)
        call->next->previous = call->previous;
    if (call->previous)
        call->previous->next = call->next;
    else
        host->calls = call->next;
    pthread_cond_broadcast(&host->changed);
    return dropped;
}

/* One of the things that hold a call is over; the call may be gone after this. */
static void served_step(struct served_call *call, enum served_step step)
{
    struct grpc_host *host = call->host;
    pthread_mutex_lock(&host->lock);
    if (step == STEP_CLOSED) {
        call->is_closed = true;
        call->is_cancelled = call->close_cancelled != 0;
    } else if (step == STEP_SENT) {
        call->is_sending = false;
    } else if (step == STEP_ANSWERED) {
        call->is_answered = true;
        host->open--;
    }
    grpc_call *dropped = served_drop_locked(call);
    bool last = --call->references == 0;
    pthread_mutex_unlock(&host->lock);
    if (dropped)
        grpc_call_unref(dropped);
    if (last)
        served_free(call);
}

static void on_closed(struct tag *tag, bool ok)
{
    struct served_call *call = ((struct served_tag *)tag)->call;
    (void)ok;
    pthread_mutex_lock(&call->host->lock);
    call->is_cancelled = call->close_cancelled != 0; /* who watches from now on is told so */
    void (*gone)(void *arg) = call->is_cancelled && !call->is_answered ? call->base.gone : NULL;
    call->is_telling = gone;
    pthread_mutex_unlock(&call->host->lock);
    if (gone) {
        gone(call->base.gone_arg);
        pthread_mutex_lock(&call->host->lock);
        call->is_telling = false;
        pthread_cond_broadcast(&call->host->changed);
        pthread_mutex_unlock(&call->host->lock);
    }
    served_step(call, STEP_CLOSED);
}

void rpc_grpc_server_unwatch(struct rpc_call *base)
{
    struct served_call *call = (struct served_call *)base;
    pthread_mutex_lock(&call->host->lock);
    while (call->is_telling)
        pthread_cond_wait(&call->host->changed, &call->host->lock);
    base->gone = NULL;
    pthread_mutex_unlock(&call->host->lock);
}

bool rpc_grpc_server_watch(struct rpc_call *base, void (*gone)(void *arg), void *arg)
{
    struct served_call *call = (struct served_call *)base;
    pthread_mutex_lock(&call->host->lock);
    bool watches = !call->is_cancelled;
    if (watches) {
        base->gone = gone;
        base->gone_arg = arg;
    }
    pthread_mutex_unlock(&call->host->lock);
    return watches;
}

/* The next message of the source, with the status behind the last. */
static void served_send_next(struct served_call *call)
{
    struct rpc_piece pieces[RPC_PIECES_MAX];
    bool last = false;
    int count = call->source->next(call->source, pieces, &last);
    grpc_byte_buffer *message = rpc_grpc_buffer_of(pieces, count);
    grpc_slice text = grpc_empty_slice();
    grpc_op ops[3];
    size_t ops_count = 0;
    if (!call->has_begun)
        ops[ops_count++] = (grpc_op){.op = GRPC_OP_SEND_INITIAL_METADATA};
    ops[ops_count] = (grpc_op){.op = GRPC_OP_SEND_MESSAGE};
    ops[ops_count++].data.send_message.send_message = message;
    if (last) {
        ops[ops_count] = (grpc_op){.op = GRPC_OP_SEND_STATUS_FROM_SERVER};
        ops[ops_count++].data.send_status_from_server.status_details = &text;
        call->source->free(call->source);
        call->source = NULL;
    }
    call->has_begun = true;
    rpc_grpc_batch(call->call, ops, ops_count, &call->sent.tag);
    grpc_byte_buffer_destroy(message);
}

static void on_sent(struct tag *tag, bool ok)
{
    struct served_call *call = ((struct served_tag *)tag)->call;
    if (call->source && ok) {
        served_send_next(call);
        return;
    }
    if (call->source) /* a client that has gone is no fault here */
        call->source->free(call->source);
    call->source = NULL;
    served_step(call, STEP_SENT);
}

/* Whether the answer may be sent: the first, to a client that is there. */
static bool served_may_send(struct served_call *call)
{
    struct grpc_host *host = call->host;
    pthread_mutex_lock(&host->lock);
    bool first = call->call && !call->is_cancelled && !call->is_sending && !host->stopping;
    if (first) {
        call->is_sending = true;
        call->references++;
    }
    pthread_mutex_unlock(&host->lock);
    return first;
}

/* Sends the one answer of a call, unless it has had one or the client has gone. */
static void served_send(struct served_call *call, const void *bytes, size_t size,
                        const struct error *err)
{
    if (!served_may_send(call))
        return;
    grpc_slice text = grpc_slice_from_copied_string(err ? err->text : "");
    grpc_metadata pointer = {.key = grpc_slice_from_static_string(RPC_GRPC_POINTER_KEY),
                             .value = grpc_slice_from_copied_string(err ? err->pointer : "")};
    grpc_byte_buffer *message = err ? NULL : rpc_grpc_buffer(bytes, size);
    grpc_op ops[3] = {{.op = GRPC_OP_SEND_INITIAL_METADATA},
                      {.op = GRPC_OP_SEND_STATUS_FROM_SERVER},
                      {.op = GRPC_OP_SEND_MESSAGE}};
    ops[1].data.send_status_from_server.status = err ? (grpc_status_code)err->code : 0;
    ops[1].data.send_status_from_server.status_details = &text;
    ops[1].data.send_status_from_server.trailing_metadata = &pointer;
    ops[1].data.send_status_from_server.trailing_metadata_count = err ? 1 : 0;
    ops[2].data.send_message.send_message = message;
    rpc_grpc_batch(call->call, ops, message ? 3 : 2, &call->sent.tag);
    grpc_byte_buffer_destroy(message);
    grpc_slice_unref(pointer.value);
    grpc_slice_unref(text);
}

void rpc_grpc_server_answer(struct rpc_call *base, const void *bytes, size_t size,
                            const struct error *err)
{
    struct served_call *call = (struct served_call *)base;
    served_send(call, bytes, size, err);
    served_step(call, STEP_ANSWERED);
}

void rpc_grpc_server_answer_from(struct rpc_call *base, struct rpc_source *source)
{
    struct served_call *call = (struct served_call *)base;
    if (served_may_send(call)) {
        call->source = source;
        served_send_next(call);
    } else {
        source->free(source);
    }
    served_step(call, STEP_ANSWERED);
}

bool rpc_grpc_server_cancelled(const struct rpc_call *base)
{
    const struct served_call *call = (const struct served_call *)base;
    pthread_mutex_lock(&call->host->lock);
    bool cancelled = call->is_cancelled || !call->call;
    pthread_mutex_unlock(&call->host->lock);
    return cancelled;
}

/* Only while it is the one call: others would have to wait. */
bool rpc_grpc_server_later(struct rpc_call *base, bool is_short, void (*work)(void *arg),
                           void *arg)
{
    struct grpc_host *host = ((struct served_call *)base)->host;
    pthread_mutex_lock(&host->lock);
    bool alone = host->open == 1;
    pthread_mutex_unlock(&host->lock);
    return is_short && alone && rpc_grpc_duty_leave(host->duty, work, arg);
}

static void on_received(struct tag *tag, bool ok)
{
    struct served_call *call = ((struct served_tag *)tag)->call;
    struct grpc_host *host = call->host;
    struct error err;
    bool read = ok && call->message && rpc_grpc_read(call->message, &call->base.request);
    const char *path = (const char *)GRPC_SLICE_START_PTR(call->details.method);
    void *self;
    rpc_handler *handler =
        rpc_find_handler(&host->services, path, GRPC_SLICE_LENGTH(call->details.method), &self);
    if (!handler)
        fail(&err, UNIMPLEMENTED, "the server has no such method");
    else if (!read)
        fail(&err, INVALID, "the call carries no message that can be read");
    if (handler && read)
        handler(self, &call->base);
    else
        rpc_grpc_server_answer(&call->base, NULL, 0, &err);
}

/* --- calls come in --- */

static void on_arrived(struct tag *tag, bool ok);

/* Asks for one more call. */
static void host_arm(struct grpc_host *host)
{
    struct served_call *call = alloc_bytes(sizeof(*call));
    call->base.transport = &rpc_grpc_transport;
    call->host = host;
    call->references = 2; /* of the handler, of `closed` */
    call->arrived = (struct served_tag){{.completed = on_arrived}, call};
    call->received = (struct served_tag){{.completed = on_received}, call};
    call->closed = (struct served_tag){{.completed = on_closed}, call};
    call->sent = (struct served_tag){{.completed = on_sent}, call};
    grpc_call_details_init(&call->details);
    grpc_metadata_array_init(&call->metadata);
    pthread_mutex_lock(&host->lock);
    host->references++;
    pthread_mutex_unlock(&host->lock);
    grpc_call_error refused =
        grpc_server_request_call(host->server, &call->call, &call->details, &call->metadata,
                                 host->queue, host->queue, rpc_grpc_give(&call->arrived.tag));
    assert(refused == GRPC_CALL_OK);
}

/* Owned; NULL when the client shows none. */
static char *certificate_shown(grpc_call *call)
{
    grpc_auth_context *context = grpc_call_auth_context(call);
    grpc_auth_property_iterator all =
        grpc_auth_context_find_properties_by_name(context, GRPC_X509_PEM_CERT_PROPERTY_NAME);
    const grpc_auth_property *found = grpc_auth_property_iterator_next(&all);
    char *text = found ? alloc_printf("%.*s", (int)found->value_length, found->value) : NULL;
    grpc_auth_context_release(context);
    return text;
}

static void on_arrived(struct tag *tag, bool ok)
{
    struct served_call *call = ((struct served_tag *)tag)->call;
    struct grpc_host *host = call->host;
    if (!ok) { /* the server is shutting down */
        served_free(call);
        return;
    }
    host_arm(host);
    call->base.peer = grpc_call_get_peer(call->call);
    if (host->asks)
        call->base.certificate = certificate_shown(call->call);
    pthread_mutex_lock(&host->lock);
    call->next = host->calls;
    if (call->next)
        call->next->previous = call;
    host->calls = call;
    host->open++;
    pthread_mutex_unlock(&host->lock);

    grpc_op end = {.op = GRPC_OP_RECV_CLOSE_ON_SERVER};
    end.data.recv_close_on_server.cancelled = &call->close_cancelled;
    rpc_grpc_batch(call->call, &end, 1, &call->closed.tag);
    grpc_op message = {.op = GRPC_OP_RECV_MESSAGE};
    message.data.recv_message.recv_message = &call->message;
    rpc_grpc_batch(call->call, &message, 1, &call->received.tag);
}

static void on_shut_down(struct tag *tag, bool ok)
{
    struct grpc_host *host = ((struct host_tag *)tag)->host;
    (void)ok;
    pthread_mutex_lock(&host->lock);
    host->is_shut_down = true;
    pthread_cond_broadcast(&host->changed);
    pthread_mutex_unlock(&host->lock);
}

/* --- start and stop --- */

static bool is_loopback(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strncmp(address, "localhost:", 10) == 0 ||
           strncmp(address, "[::1]:", 6) == 0;
}

/* Listens; the real address goes to host->base.address. */
static bool host_listen(struct grpc_host *host, const struct rpc_server_options *options,
                        struct error *err)
{
    const char *address = options->address;
    const char *colon = strrchr(address, ':');
    if (!colon)
        return fail(err, INVALID, "'%s' is no address: HOST:PORT is needed", address);
    if (!options->tls && !is_loopback(address))
        return fail(err, INVALID, "%s: without TLS only a loopback address can be served",
                    address);

    grpc_server_credentials *credentials;
    if (options->tls) {
        const struct rpc_tls *tls = options->tls;
        grpc_ssl_pem_key_cert_pair pair = {tls->key, tls->certificate};
        credentials = grpc_ssl_server_credentials_create_ex(
            tls->ca, &pair, 1,
            tls->ca     ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
            : tls->asks ? GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_BUT_DONT_VERIFY
                        : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE,
            NULL);
    } else {
        credentials = grpc_insecure_server_credentials_create();
    }
    int port = grpc_server_add_http2_port(host->server, address, credentials);
    grpc_server_credentials_release(credentials);
    if (!port)
        return fail(
            err, UNAVAILABLE,
            "cannot listen on %s: another program has it (ss -ltnp says which), or it is "
            "no address of this machine%s",
            address, options->tls ? ", or the certificate and its key are no pair" : "");
    host->base.address = alloc_printf("%.*s:%d", (int)(colon - address), address, port);
    return true;
}

struct rpc_server *rpc_grpc_server_start(const struct rpc_server_options *options,
                                         const struct rpc_method *methods, void *self,
                                         struct error *err)
{
    rpc_grpc_open();
    const grpc_arg list[] = {
        rpc_grpc_arg(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, options->message_bytes_max),
        rpc_grpc_arg(GRPC_ARG_ALLOW_REUSEPORT, 0),
        rpc_grpc_arg(GRPC_ARG_ENABLE_CHANNELZ, 0),
        rpc_grpc_arg(GRPC_ARG_KEEPALIVE_TIME_MS, RPC_GRPC_KEEPALIVE_MS),
        rpc_grpc_arg(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, RPC_GRPC_KEEPALIVE_TIMEOUT_MS),
        rpc_grpc_arg(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1),
        rpc_grpc_arg(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0),
        rpc_grpc_arg(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                     RPC_GRPC_KEEPALIVE_MS / 2),
        rpc_grpc_arg(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0),
    };
    grpc_channel_args args = {ARRAY_LEN(list), (grpc_arg *)list};
    struct grpc_host *host = alloc_bytes(sizeof(*host));
    host->base.transport = &rpc_grpc_transport;
    host->services = (struct rpc_service){methods, self, options->more};
    host->references = 1;
    host->asks = options->tls && !options->tls->ca && options->tls->asks;
    host->shut_down = (struct host_tag){{.completed = on_shut_down}, host};
    pthread_mutex_init(&host->lock, NULL);
    rpc_cond_init(&host->changed);
    host->server = grpc_server_create(&args, NULL);
    host->queue = grpc_completion_queue_create_for_next(NULL);
    grpc_server_register_completion_queue(host->server, host->queue, NULL);
    bool listens = host_listen(host, options, err);
    if (listens) {
        grpc_server_start(host->server);
        for (int i = 0; i < CALLS_ARMED; i++)
            host_arm(host);
    }
    host->duty = rpc_grpc_duty_start(host->queue);
    if (!listens) {
        rpc_grpc_server_stop(&host->base);
        return NULL;
    }
    return &host->base;
}

/* Answers every open call in place of its handler, and lets go of those whose client has gone.
 */
static void host_abandon(struct grpc_host *host)
{
    struct error err;
    fail(&err, UNAVAILABLE, "the server is shutting down");
    for (;;) {
        pthread_mutex_lock(&host->lock);
        struct served_call *call = host->calls;
        while (call && (call->is_closed || call->is_sending || call->is_answered))
            call = call->next;
        if (call)
            call->references++;
        pthread_mutex_unlock(&host->lock);
        if (!call)
            break;
        served_send(call, NULL, 0, &err);
        served_step(call, STEP_NONE);
    }
    for (bool more = true; more;) {
        grpc_call *dropped = NULL;
        pthread_mutex_lock(&host->lock);
        host->stopping = true;
        for (struct served_call *call = host->calls; call && !dropped; call = call->next)
            dropped = served_drop_locked(call);
        pthread_mutex_unlock(&host->lock);
        more = dropped != NULL;
        if (dropped)
            grpc_call_unref(dropped);
    }
}

/* Waits until no call is held; false when that takes more than `timeout_ms`. */
static bool host_wait_idle(struct grpc_host *host, int timeout_ms)
{
    struct timespec until = rpc_deadline(timeout_ms);
    int late = 0;
    pthread_mutex_lock(&host->lock);
    while ((host->calls || !host->is_shut_down) && !late)
        late = pthread_cond_timedwait(&host->changed, &host->lock, &until);
    pthread_mutex_unlock(&host->lock);
    return !late;
}

void rpc_grpc_server_stop(struct rpc_server *base)
{
    struct grpc_host *host = (struct grpc_host *)base;
    grpc_server_shutdown_and_notify(host->server, host->queue,
                                    rpc_grpc_give(&host->shut_down.tag));
    if (!host_wait_idle(host, LIMIT_SHUTDOWN_MS)) {
        host_abandon(host);
        if (!host_wait_idle(host, LIMIT_SHUTDOWN_MS / 10))
            grpc_server_cancel_all_calls(host->server);
        while (!host_wait_idle(host, LIMIT_SHUTDOWN_MS))
            log_line(LOG_WARN, "rpc", "address=%s msg=\"a call does not end\"", base->address);
    }
    grpc_completion_queue_shutdown(host->queue);
    rpc_grpc_duty_end(host->duty);
    grpc_server_destroy(host->server);
    grpc_completion_queue_destroy(host->queue);
    host_unref(host);
    grpc_shutdown();
}
