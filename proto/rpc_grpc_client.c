/*
 * rpc_grpc_client.c - making calls over gRPC.
 *
 * DESIGN: a call is one batch; its caller waits on a condition that the thread of the queue
 * signals, or (of a call that was started) has left a function that this thread calls.  A call
 * into a sink has a batch for each message besides, and is over when none is awaited.
 *
 * The thread is in the library only while a batch is awaited, or a connection is tried: the
 * library has one set of connections for all queues of a process, and a thread that polls for
 * another queue than its own has to wake that one's.  Else it looks in once a second, for pings
 * and connections that have ended, where no server's thread does.
 */

#include <arpa/inet.h>
#include <grpc/support/time.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/connection.h"
#include "proto/rpc_grpc.h"

#define LOOK_IN_MS 1000
#define RECONNECT_FIRST_MS 100
#define RECONNECT_MAX_MS 1000

struct grpc_guest {
    struct rpc_client base;
    grpc_channel *channel;
    grpc_completion_queue *queue;
    pthread_t thread;
    grpc_call *answered; /* whose `done` runs, by the thread */

    pthread_mutex_t lock;   /* guards: all below, and `done` of each call */
    pthread_cond_t drained; /* the last call has gone */
    pthread_cond_t changed; /* a batch is awaited, or it closes */
    int batches;            /* awaited */
    bool closing;
    struct made_call *calls;
    bool cancelled;
};

struct reading { /* the messages of a call into a sink */
    struct tag tag;
    struct made_call *call;
    struct rpc_sink *sink;
    int awaited; /* batches: the next message, the status */
    bool has_taken, has_refused;
    struct error refused;
};

struct made_call { /* on the stack of the caller, who waits for it; on the heap if started */
    struct tag tag;
    struct grpc_guest *guest;
    struct made_call *next;
    grpc_call *call;
    pthread_cond_t finished;
    bool done;
    rpc_done *callback; /* of a call that was started; NULL: somebody waits, or it reads */
    void *arg;
    struct reading *reading; /* NULL: one message, with the status */

    grpc_metadata_array initial;
    grpc_metadata_array trailing;
    grpc_byte_buffer *message;
    grpc_status_code status;
    grpc_slice details;
};

/* The other end was away; each step to it is somebody's who polls, and calls fail meanwhile. */
static bool is_connecting(const struct grpc_guest *guest)
{
    grpc_connectivity_state state = grpc_channel_check_connectivity_state(guest->channel, 0);
    return state == GRPC_CHANNEL_CONNECTING || state == GRPC_CHANNEL_TRANSIENT_FAILURE;
}

/* Until a batch is awaited, or it is time to look in; how long to stay in the library then. */
static gpr_timespec await_batch(struct grpc_guest *guest)
{
    gpr_timespec until = gpr_inf_future(GPR_CLOCK_MONOTONIC);
    int late = 0;
    pthread_mutex_lock(&guest->lock);
    if (!guest->batches && !guest->closing && is_connecting(guest)) {
        until = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                             gpr_time_from_millis(LOOK_IN_MS, GPR_TIMESPAN));
    } else if (!guest->batches && !guest->closing) {
        struct timespec look_in = rpc_deadline(LOOK_IN_MS);
        while (!guest->batches && !guest->closing && !late)
            late = pthread_cond_timedwait(&guest->changed, &guest->lock, &look_in);
        if (late)
            until = gpr_now(GPR_CLOCK_MONOTONIC);
    }
    pthread_mutex_unlock(&guest->lock);
    return until;
}

static void *rpc_client_main(void *argument)
{
    struct grpc_guest *guest = argument;
    grpc_event event;
    do {
        event = grpc_completion_queue_next(guest->queue, await_batch(guest), NULL);
        if (event.type == GRPC_OP_COMPLETE) {
            rpc_grpc_completed(&event);
            pthread_mutex_lock(&guest->lock);
            guest->batches--;
            pthread_mutex_unlock(&guest->lock);
        }
    } while (event.type != GRPC_QUEUE_SHUTDOWN);
    return NULL;
}

static void guest_batch(struct grpc_guest *guest, grpc_call *call, const grpc_op *ops,
                        size_t count, struct tag *tag)
{
    pthread_mutex_lock(&guest->lock);
    if (!guest->batches++)
        pthread_cond_signal(&guest->changed);
    pthread_mutex_unlock(&guest->lock);
    rpc_grpc_batch(call, ops, count, tag);
}

struct rpc_client *rpc_grpc_client_new(const struct rpc_client_options *options,
                                       struct error *err)
{
    if (!strrchr(options->address, ':'))
        return fail_null(err, INVALID, "'%s' is no address: HOST:PORT is needed",
                         options->address);
    rpc_grpc_open();
    const struct rpc_tls *tls = options->tls;
    const grpc_arg list[] = {
        rpc_grpc_arg(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, options->message_bytes_max),
        rpc_grpc_arg(GRPC_ARG_ENABLE_HTTP_PROXY, 0),
        rpc_grpc_arg(GRPC_ARG_ENABLE_CHANNELZ, 0),
        rpc_grpc_arg(GRPC_ARG_ENABLE_RETRIES, 0),
        rpc_grpc_arg(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1),
        rpc_grpc_arg(GRPC_ARG_KEEPALIVE_TIME_MS,
                     options->quiet ? INT_MAX : RPC_GRPC_KEEPALIVE_MS),
        rpc_grpc_arg(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, RPC_GRPC_KEEPALIVE_TIMEOUT_MS),
        rpc_grpc_arg(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, !options->quiet),
        rpc_grpc_arg(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0),
        rpc_grpc_arg(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, RECONNECT_FIRST_MS),
        rpc_grpc_arg(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, RECONNECT_MAX_MS),
        {.type = GRPC_ARG_STRING,
         .key = (char *)GRPC_SSL_TARGET_NAME_OVERRIDE_ARG,
         .value.string = (char *)(tls && tls->name ? tls->name : "")},
    };
    const size_t named = tls && tls->name;
    grpc_channel_args args = {ARRAY_LEN(list) - 1 + named, (grpc_arg *)list};
    grpc_ssl_pem_key_cert_pair pair = {tls ? tls->key : NULL, tls ? tls->certificate : NULL};
    grpc_channel_credentials *credentials =
        tls ? grpc_ssl_credentials_create(tls->ca, tls->certificate ? &pair : NULL, NULL, NULL)
            : grpc_insecure_credentials_create();
    struct grpc_guest *guest = alloc_bytes(sizeof(*guest));
    guest->base.transport = &rpc_grpc_transport;
    guest->base.address = alloc_text(options->address);
    guest->channel = grpc_channel_create(options->address, credentials, &args);
    grpc_channel_credentials_release(credentials);
    guest->queue = grpc_completion_queue_create_for_next(NULL);
    pthread_mutex_init(&guest->lock, NULL);
    pthread_cond_init(&guest->drained, NULL);
    rpc_cond_init(&guest->changed);
    int failed = pthread_create(&guest->thread, NULL, rpc_client_main, guest);
    assert(!failed);
    pthread_setname_np(guest->thread, "rpc");
    return &guest->base;
}

void rpc_grpc_client_free(struct rpc_client *base)
{
    struct grpc_guest *guest = (struct grpc_guest *)base;
    pthread_mutex_lock(&guest->lock);
    for (const struct made_call *call = guest->calls; call; call = call->next)
        assert(call->callback || call->reading);
    while (guest->calls)
        pthread_cond_wait(&guest->drained, &guest->lock);
    guest->closing = true;
    pthread_cond_signal(&guest->changed);
    pthread_mutex_unlock(&guest->lock);
    grpc_channel_destroy(guest->channel);
    grpc_completion_queue_shutdown(guest->queue);
    pthread_join(guest->thread, NULL);
    grpc_completion_queue_destroy(guest->queue);
    pthread_cond_destroy(&guest->drained);
    pthread_cond_destroy(&guest->changed);
    pthread_mutex_destroy(&guest->lock);
    free(base->address);
    free(guest);
    grpc_shutdown();
}

static void made_send(struct made_call *call, const struct str *request)
{
    grpc_byte_buffer *message = rpc_grpc_buffer(request->data, request->size);
    grpc_op ops[] = {
        {.op = GRPC_OP_SEND_INITIAL_METADATA},  {.op = GRPC_OP_SEND_MESSAGE},
        {.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT}, {.op = GRPC_OP_RECV_STATUS_ON_CLIENT},
        {.op = GRPC_OP_RECV_INITIAL_METADATA},  {.op = GRPC_OP_RECV_MESSAGE},
    };
    ops[1].data.send_message.send_message = message;
    ops[3].data.recv_status_on_client.trailing_metadata = &call->trailing;
    ops[3].data.recv_status_on_client.status = &call->status;
    ops[3].data.recv_status_on_client.status_details = &call->details;
    ops[4].data.recv_initial_metadata.recv_initial_metadata = &call->initial;
    ops[5].data.recv_message.recv_message = &call->message;
    size_t reads_apart = call->reading ? 2 : 0;
    guest_batch(call->guest, call->call, ops, ARRAY_LEN(ops) - reads_apart, &call->tag);
    grpc_byte_buffer_destroy(message);
}

static void slice_text(grpc_slice slice, char *out, size_t out_size)
{
    size_t size = GRPC_SLICE_LENGTH(slice);
    if (size >= out_size)
        size = out_size - 1;
    memcpy(out, GRPC_SLICE_START_PTR(slice), size);
    out[size] = '\0';
}

/* What went wrong, in words; the server's own when it was the server that failed the call. */
static bool made_error(const struct made_call *call, int timeout_ms, struct error *err)
{
    struct error said = {.code = call->status <= 16 ? (enum error_code)call->status : UNKNOWN};
    slice_text(call->details, said.text, sizeof(said.text));
    for (size_t i = 0; i < call->trailing.count; i++) {
        if (grpc_slice_str_cmp(call->trailing.metadata[i].key, RPC_GRPC_POINTER_KEY) != 0)
            continue;
        slice_text(call->trailing.metadata[i].value, said.pointer, sizeof(said.pointer));
        *err = said;
        return false;
    }
    const char *address = call->guest->base.address;
    if (said.code == DEADLINE)
        return fail(err, DEADLINE, "no answer from %s within %d ms", address, timeout_ms);
    if (said.code == CANCELLED)
        return fail(err, CANCELLED, "the call was cancelled");
    if (said.code == UNAVAILABLE)
        return fail(err, UNAVAILABLE, "cannot reach %s: %s", address, said.text);
    *err = said;
    return false;
}

/* The answer into `*answer` (empty before), or what went wrong. */
static bool made_result(struct made_call *call, int timeout_ms, struct str *answer,
                        struct error *err)
{
    const char *address = call->guest->base.address;
    bool ok = call->status == GRPC_STATUS_OK || made_error(call, timeout_ms, err);
    if (ok && !call->message)
        ok = fail(err, INTERNAL, "%s answered without a message", address);
    if (call->message && !rpc_grpc_read(call->message, answer) && ok)
        ok = fail(err, INTERNAL, "%s answered unreadably", address);
    return ok;
}

static void made_open(struct made_call *call, struct grpc_guest *guest, const char *path,
                      gpr_timespec deadline)
{
    call->guest = guest;
    grpc_metadata_array_init(&call->initial);
    grpc_metadata_array_init(&call->trailing);
    call->details = grpc_empty_slice();
    grpc_slice method = grpc_slice_from_copied_string(path);
    call->call = grpc_channel_create_call(guest->channel, NULL, GRPC_PROPAGATE_DEFAULTS,
                                          guest->queue, method, NULL, deadline, NULL);
    grpc_slice_unref(method);
}

static void made_release(struct made_call *call)
{
    grpc_slice_unref(call->details);
    grpc_metadata_array_destroy(&call->initial);
    grpc_metadata_array_destroy(&call->trailing);
    grpc_call_unref(call->call);
}

/* Into the client's list, unless it has been cancelled. */
static bool made_join(struct made_call *call)
{
    struct grpc_guest *guest = call->guest;
    pthread_mutex_lock(&guest->lock);
    bool joins = !guest->cancelled;
    if (joins) {
        call->next = guest->calls;
        guest->calls = call;
    }
    pthread_mutex_unlock(&guest->lock);
    return joins;
}

static void made_leave_locked(struct made_call *call)
{
    struct grpc_guest *guest = call->guest;
    struct made_call **at = &guest->calls;
    while (*at != call)
        at = &(*at)->next;
    *at = call->next;
    if (!guest->calls)
        pthread_cond_broadcast(&guest->drained);
}

static void on_made_done(struct tag *tag, bool ok)
{
    struct made_call *call = (struct made_call *)tag;
    struct grpc_guest *guest = call->guest;
    (void)ok; /* the status says it */
    pthread_mutex_lock(&guest->lock);
    call->done = true;
    pthread_cond_signal(&call->finished);
    pthread_mutex_unlock(&guest->lock);
}

bool rpc_grpc_client_call(struct rpc_client *base, const char *path, const struct str *request,
                          struct str *response, int timeout_ms, struct error *err)
{
    struct grpc_guest *guest = (struct grpc_guest *)base;
    struct made_call call = {.tag = {.completed = on_made_done}};
    struct str answer = {0};
    bool ok = false;
    rpc_cond_init(&call.finished);
    made_open(&call, guest, path,
              gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                           gpr_time_from_millis(timeout_ms, GPR_TIMESPAN)));
    if (made_join(&call)) {
        made_send(&call, request);
        pthread_mutex_lock(&guest->lock);
        while (!call.done)
            pthread_cond_wait(&call.finished, &guest->lock);
        made_leave_locked(&call);
        pthread_mutex_unlock(&guest->lock);
        ok = made_result(&call, timeout_ms, &answer, err);
    } else {
        (void)fail(err, CANCELLED, "the call was cancelled");
    }
    if (ok) {
        str_release(response);
        *response = answer;
    } else {
        str_release(&answer);
    }
    made_release(&call);
    pthread_cond_destroy(&call.finished);
    return ok;
}

static void on_started_done(struct tag *tag, bool ok)
{
    struct made_call *call = (struct made_call *)tag;
    struct grpc_guest *guest = call->guest;
    struct str answer = {0};
    struct error err;
    (void)ok; /* the status says it */
    bool went_well = made_result(call, 0, &answer, &err);
    guest->answered = call->call;
    call->callback(call->arg, went_well ? &answer : NULL, went_well ? NULL : &err);
    guest->answered = NULL;
    str_release(&answer);
    pthread_mutex_lock(&guest->lock);
    made_leave_locked(call);
    pthread_mutex_unlock(&guest->lock);
    made_release(call);
    free(call);
}

void rpc_grpc_client_start(struct rpc_client *base, const char *path, const struct str *request,
                           rpc_done *done, void *arg)
{
    struct grpc_guest *guest = (struct grpc_guest *)base;
    struct made_call *call = alloc_bytes(sizeof(*call));
    *call =
        (struct made_call){.tag = {.completed = on_started_done}, .callback = done, .arg = arg};
    made_open(call, guest, path, gpr_inf_future(GPR_CLOCK_MONOTONIC));
    if (made_join(call)) {
        made_send(call, request);
        return;
    }
    struct error err;
    fail(&err, CANCELLED, "the call was cancelled");
    made_release(call);
    free(call);
    done(arg, NULL, &err);
}

/* "ipv4:127.0.0.1:7070", "ipv6:%5B::1%5D:7070" */
static bool read_peer(const char *text, struct endpoint *peer)
{
    char host[64];
    struct sockaddr_in ipv4 = {.sin_family = AF_INET};
    struct sockaddr_in6 ipv6 = {.sin6_family = AF_INET6};
    int port;
    if (sscanf(text, "ipv4:%63[0-9.]:%d", host, &port) == 2 &&
        inet_pton(AF_INET, host, &ipv4.sin_addr) == 1) {
        ipv4.sin_port = htons((uint16_t)port);
        return connection_endpoint((struct sockaddr *)&ipv4, peer);
    }
    if ((sscanf(text, "ipv6:%%5B%63[0-9a-fA-F:.]%%5D:%d", host, &port) == 2 ||
         sscanf(text, "ipv6:[%63[0-9a-fA-F:.]]:%d", host, &port) == 2) &&
        inet_pton(AF_INET6, host, &ipv6.sin6_addr) == 1) {
        ipv6.sin6_port = htons((uint16_t)port);
        return connection_endpoint((struct sockaddr *)&ipv6, peer);
    }
    return false;
}

bool rpc_grpc_client_peer(const struct rpc_client *base, struct endpoint *peer)
{
    const struct grpc_guest *guest = (const struct grpc_guest *)base;
    char *text = guest->answered ? grpc_call_get_peer(guest->answered) : NULL;
    bool ok = text && read_peer(text, peer);
    gpr_free(text);
    return ok;
}

/* --- into a sink --- */

static void on_read(struct tag *tag, bool ok);

static void read_next(struct reading *reading)
{
    struct made_call *call = reading->call;
    grpc_op ops[2] = {{.op = GRPC_OP_RECV_MESSAGE}, {.op = GRPC_OP_RECV_INITIAL_METADATA}};
    ops[0].data.recv_message.recv_message = &call->message;
    ops[1].data.recv_initial_metadata.recv_initial_metadata = &call->initial;
    guest_batch(call->guest, call->call, ops, reading->has_taken ? 1 : 2, &reading->tag);
}

/* One batch less is awaited; after the last the call is over. */
static void read_step(struct reading *reading)
{
    struct made_call *call = reading->call;
    struct grpc_guest *guest = call->guest;
    struct error err = reading->refused;
    if (--reading->awaited)
        return;
    bool ok = !reading->has_refused &&
              (call->status == GRPC_STATUS_OK || made_error(call, 0, &err)) &&
              (reading->has_taken ||
               fail(&err, INTERNAL, "%s answered without a message", guest->base.address));
    reading->sink->done(reading->sink, ok ? NULL : &err);
    pthread_mutex_lock(&guest->lock);
    made_leave_locked(call);
    pthread_mutex_unlock(&guest->lock);
    made_release(call);
    free(reading);
    free(call);
}

/* The message as it lies in memory; gone after this. */
static bool take_message(struct reading *reading, grpc_byte_buffer *message, struct error *err)
{
    grpc_byte_buffer_reader reader;
    struct str spans = {0};
    grpc_slice *slice;
    if (!grpc_byte_buffer_reader_init(&reader, message)) {
        grpc_byte_buffer_destroy(message);
        return fail(err, INTERNAL, "%s answered unreadably",
                    reading->call->guest->base.address);
    }
    while (grpc_byte_buffer_reader_peek(&reader, &slice)) {
        const struct rpc_span span = {GRPC_SLICE_START_PTR(*slice), GRPC_SLICE_LENGTH(*slice)};
        str_add_bytes(&spans, &span, sizeof(span));
    }
    bool ok = reading->sink->take(reading->sink, (const struct rpc_span *)spans.data,
                                  (int)(spans.size / sizeof(struct rpc_span)), err);
    str_release(&spans);
    grpc_byte_buffer_reader_destroy(&reader);
    grpc_byte_buffer_destroy(message);
    return ok;
}

static void on_read(struct tag *tag, bool ok)
{
    struct reading *reading = (struct reading *)tag;
    struct made_call *call = reading->call;
    grpc_byte_buffer *message = call->message;
    call->message = NULL;
    if (!ok || !message) {
        read_step(reading);
    } else if (take_message(reading, message, &reading->refused)) {
        reading->has_taken = true;
        read_next(reading);
    } else {
        reading->has_refused = true;
        grpc_call_cancel(call->call, NULL);
        read_step(reading);
    }
}

static void on_status(struct tag *tag, bool ok)
{
    (void)ok; /* the status says it */
    read_step(((struct made_call *)tag)->reading);
}

void rpc_grpc_client_start_into(struct rpc_client *base, const char *path,
                                const struct str *request, struct rpc_sink *sink)
{
    struct grpc_guest *guest = (struct grpc_guest *)base;
    struct made_call *call = alloc_bytes(sizeof(*call));
    struct reading *reading = alloc_bytes(sizeof(*reading));
    *call = (struct made_call){.tag = {.completed = on_status}, .reading = reading};
    *reading = (struct reading){
        .tag = {.completed = on_read}, .call = call, .sink = sink, .awaited = 2};
    made_open(call, guest, path, gpr_inf_future(GPR_CLOCK_MONOTONIC));
    if (made_join(call)) {
        made_send(call, request);
        read_next(reading);
        return;
    }
    struct error err;
    fail(&err, CANCELLED, "the call was cancelled");
    made_release(call);
    free(reading);
    free(call);
    sink->done(sink, &err);
}

void rpc_grpc_client_cancel_started(struct rpc_client *base, const void *arg)
{
    struct grpc_guest *guest = (struct grpc_guest *)base;
    pthread_mutex_lock(&guest->lock);
    for (struct made_call *call = guest->calls; call; call = call->next)
        if (call->reading ? call->reading->sink == arg : call->callback && call->arg == arg)
            grpc_call_cancel(call->call, NULL);
    pthread_mutex_unlock(&guest->lock);
}

void rpc_grpc_client_cancel(struct rpc_client *base)
{
    struct grpc_guest *guest = (struct grpc_guest *)base;
    pthread_mutex_lock(&guest->lock);
    guest->cancelled = true;
    /* Only starts the cancelling; the lock keeps the calls alive meanwhile. */
    for (struct made_call *call = guest->calls; call; call = call->next)
        grpc_call_cancel(call->call, NULL);
    pthread_mutex_unlock(&guest->lock);
}
