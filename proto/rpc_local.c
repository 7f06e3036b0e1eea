/*
 * rpc_local.c - calls within one process, to servers named "local:NAME".
 *
 * DESIGN: each server has a thread (rpc_local_main) that runs its handlers, so that a caller
 * never runs server code, as with a real network.  One lock guards all of this file: registry,
 * servers, clients, calls.  A call has two sides, the waiting client and the server, and goes
 * when both have let it go; it forgets its server when that stops first.
 */

#include <pthread.h>

#include "base/alloc.h"
#include "base/limits.h"
#include "proto/internal.h"

#define LOCAL_CALLS_MAX 20000 /* open on one server */

struct local_server {
    struct rpc_server base;
    struct rpc_service services;
    int64_t message_bytes_max;
    pthread_t thread;
    pthread_cond_t changed;  /* a call came or was answered, or `stopping` */
    struct local_call *open; /* not answered yet, oldest first */
    struct local_call **open_end;
    int open_count;
    bool stopping;
    struct local_server *next; /* in the registry */
};

struct local_client {
    struct rpc_client base;
    int64_t message_bytes_max;
    struct local_call *waiting;
    bool cancelled;
};

struct local_call {
    struct rpc_call base;
    struct local_server *server; /* NULL once answered or abandoned */
    rpc_handler *handler;
    void *self;
    struct local_call *open_next;    /* of server->open */
    struct local_call *waiting_next; /* of client->waiting */
    pthread_cond_t finished;
    int sides; /* client and server: the last one frees */
    bool handed;
    bool done;
    bool cancelled;
    struct str response;
    struct error error; /* code OK for a reply */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards: everything above */
static struct local_server *registry;

/* --- calls --- */

static struct local_call *call_new(const struct str *request)
{
    struct local_call *call = alloc_bytes(sizeof(*call));
    call->base.transport = &rpc_local_transport;
    call->base.peer = "local";
    str_add_bytes(&call->base.request, request->data, request->size);
    call->sides = 1;
    rpc_cond_init(&call->finished);
    return call;
}

static void call_unref_locked(struct local_call *call)
{
    if (--call->sides)
        return;
    str_release(&call->base.request);
    str_release(&call->response);
    pthread_cond_destroy(&call->finished);
    free(call);
}

/* Gives the client its outcome, unless it has one.  `response` is emptied; err NULL: a reply.
 */
static void call_finish_locked(struct local_call *call, struct str *response,
                               const struct error *err)
{
    if (call->done)
        return;
    call->done = true;
    if (err)
        call->error = *err;
    else
        call->response = *response;
    if (!err)
        str_init(response);
    pthread_cond_signal(&call->finished);
}

static void call_join_locked(struct local_call *call, struct local_server *server)
{
    call->server = server;
    call->sides++;
    *server->open_end = call;
    server->open_end = &call->open_next;
    server->open_count++;
    pthread_cond_broadcast(&server->changed);
}

static void call_leave_locked(struct local_call *call)
{
    struct local_server *server = call->server;
    if (!server)
        return;
    struct local_call **at = &server->open;
    while (*at != call)
        at = &(*at)->open_next;
    *at = call->open_next;
    if (!*at)
        server->open_end = at;
    server->open_count--;
    call->server = NULL;
    pthread_cond_broadcast(&server->changed);
}

static bool local_cancelled(const struct rpc_call *base)
{
    const struct local_call *call = (const struct local_call *)base;
    pthread_mutex_lock(&lock);
    bool cancelled = call->cancelled;
    pthread_mutex_unlock(&lock);
    return cancelled;
}

static void local_answer(struct rpc_call *base, const void *bytes, size_t size,
                         const struct error *err)
{
    struct local_call *call = (struct local_call *)base;
    struct str response = {0};
    str_add_bytes(&response, bytes, size);
    pthread_mutex_lock(&lock);
    call_finish_locked(call, &response, err);
    call_leave_locked(call);
    call_unref_locked(call);
    pthread_mutex_unlock(&lock);
    str_release(&response);
}

/* --- the server --- */

/* The oldest call no handler has seen, or NULL when stopping. */
static struct local_call *server_take(struct local_server *server)
{
    struct local_call *call = NULL;
    pthread_mutex_lock(&lock);
    while (!call && !server->stopping) {
        call = server->open;
        while (call && call->handed)
            call = call->open_next;
        if (!call)
            pthread_cond_wait(&server->changed, &lock);
    }
    if (call)
        call->handed = true;
    pthread_mutex_unlock(&lock);
    return call;
}

static void *rpc_local_main(void *argument)
{
    struct local_server *server = argument;
    struct local_call *call;
    while ((call = server_take(server)) != NULL) {
        if (call->handler) {
            call->handler(call->self, &call->base);
            continue;
        }
        struct error err;
        fail(&err, UNIMPLEMENTED, "the server has no such method");
        local_answer(&call->base, NULL, 0, &err);
    }
    return NULL;
}

static struct local_server **registry_find_locked(const char *address)
{
    struct local_server **at = &registry;
    while (*at && strcmp((*at)->base.address, address) != 0)
        at = &(*at)->next;
    return at;
}

static void server_free(struct local_server *server)
{
    pthread_cond_destroy(&server->changed);
    free(server->base.address);
    free(server);
}

static struct rpc_server *local_server_start(const struct rpc_server_options *options,
                                             const struct rpc_method *methods, void *self,
                                             struct error *err)
{
    struct local_server *server = alloc_bytes(sizeof(*server));
    server->base.transport = &rpc_local_transport;
    server->base.address = alloc_text(options->address);
    server->services = (struct rpc_service){methods, self, options->more};
    server->message_bytes_max = options->message_bytes_max;
    server->open_end = &server->open;
    rpc_cond_init(&server->changed);

    pthread_mutex_lock(&lock);
    struct local_server **at = registry_find_locked(options->address);
    bool taken = *at != NULL;
    if (!taken)
        *at = server;
    pthread_mutex_unlock(&lock);
    if (taken) {
        server_free(server);
        return fail_null(err, UNAVAILABLE, "cannot listen on %s: it is in use",
                         options->address);
    }
    int failed = pthread_create(&server->thread, NULL, rpc_local_main, server);
    assert(!failed);
    pthread_setname_np(server->thread, "rpc");
    return &server->base;
}

static void local_server_stop(struct rpc_server *base)
{
    struct local_server *server = (struct local_server *)base;
    struct timespec until = rpc_deadline(LIMIT_SHUTDOWN_MS);
    struct error err;
    fail(&err, UNAVAILABLE, "the server is shutting down");

    pthread_mutex_lock(&lock);
    struct local_server **at = registry_find_locked(base->address);
    assert(*at == server);
    *at = server->next;
    while (server->open && !pthread_cond_timedwait(&server->changed, &lock, &until)) {
    }
    while (server->open) {
        struct local_call *call = server->open;
        call->cancelled = true;
        call_finish_locked(call, NULL, &err);
        call_leave_locked(call);
        if (!call->handed) /* no handler will answer it */
            call_unref_locked(call);
    }
    server->stopping = true;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&lock);
    pthread_join(server->thread, NULL);
    server_free(server);
}

/* --- the client --- */

static struct rpc_client *local_client_new(const struct rpc_client_options *options,
                                           struct error *err)
{
    (void)err;
    struct local_client *client = alloc_bytes(sizeof(*client));
    client->base.transport = &rpc_local_transport;
    client->base.address = alloc_text(options->address);
    client->message_bytes_max = options->message_bytes_max;
    return &client->base;
}

static void local_client_free(struct rpc_client *base)
{
    struct local_client *client = (struct local_client *)base;
    assert(!client->waiting);
    free(base->address);
    free(client);
}

static bool call_send_locked(struct local_client *client, struct local_call *call,
                             const char *path, struct error *err)
{
    if (client->cancelled)
        return fail(err, CANCELLED, "the call was cancelled");
    struct local_server *server = *registry_find_locked(client->base.address);
    if (!server)
        return fail(err, UNAVAILABLE, "cannot reach %s: nobody serves it",
                    client->base.address);
    if ((int64_t)call->base.request.size > server->message_bytes_max)
        return fail(err, EXHAUSTED, "the request has %zu bytes, more than the %lld allowed",
                    call->base.request.size, (long long)server->message_bytes_max);
    if (server->open_count >= LOCAL_CALLS_MAX)
        return fail(err, EXHAUSTED, "%s has %d calls open", client->base.address,
                    server->open_count);
    call->handler = rpc_find_handler(&server->services, path, strlen(path), &call->self);
    call->waiting_next = client->waiting;
    client->waiting = call;
    call_join_locked(call, server);
    return true;
}

static void call_wait_locked(struct local_client *client, struct local_call *call,
                             int timeout_ms)
{
    struct timespec until = rpc_deadline(timeout_ms);
    int late = 0;
    while (!call->done && !late)
        late = pthread_cond_timedwait(&call->finished, &lock, &until);
    if (!call->done) {
        struct error err;
        fail(&err, DEADLINE, "no answer from %s within %d ms", client->base.address,
             timeout_ms);
        call->cancelled = true;
        call_finish_locked(call, NULL, &err);
    }
    struct local_call **at = &client->waiting;
    while (*at != call)
        at = &(*at)->waiting_next;
    *at = call->waiting_next;
}

static bool local_client_call(struct rpc_client *base, const char *path,
                              const struct str *request, struct str *response, int timeout_ms,
                              struct error *err)
{
    struct local_client *client = (struct local_client *)base;
    struct local_call *call = call_new(request);
    struct str answer = {0};
    pthread_mutex_lock(&lock);
    bool ok = call_send_locked(client, call, path, err);
    if (ok) {
        call_wait_locked(client, call, timeout_ms);
        ok = call->error.code == OK;
        if (!ok)
            *err = call->error;
        answer = call->response;
        str_init(&call->response);
    }
    call_unref_locked(call);
    pthread_mutex_unlock(&lock);

    if (ok && (int64_t)answer.size > client->message_bytes_max)
        ok = fail(err, EXHAUSTED, "the answer has %zu bytes, more than the %lld allowed",
                  answer.size, (long long)client->message_bytes_max);
    if (!ok) {
        str_release(&answer);
        return false;
    }
    str_release(response);
    *response = answer;
    return true;
}

static void local_client_cancel(struct rpc_client *base)
{
    struct local_client *client = (struct local_client *)base;
    struct error err;
    fail(&err, CANCELLED, "the call was cancelled");
    pthread_mutex_lock(&lock);
    client->cancelled = true;
    for (struct local_call *call = client->waiting; call; call = call->waiting_next) {
        call->cancelled = call->cancelled || !call->done;
        call_finish_locked(call, NULL, &err);
    }
    pthread_mutex_unlock(&lock);
}

const struct rpc_transport rpc_local_transport = {
    .server_start = local_server_start,
    .server_stop = local_server_stop,
    .answer = local_answer,
    .cancelled = local_cancelled,
    .client_new = local_client_new,
    .client_free = local_client_free,
    .client_call = local_client_call,
    .client_cancel = local_client_cancel,
};
