/* rpc.c - picks the transport by the address and hands over. */

#include <stdlib.h>

#include "base/alloc.h"
#include "proto/attention.h"
#include "proto/internal.h"

static const struct rpc_transport *transport_of(const char *address)
{
    if (strncmp(address, "local:", 6) == 0)
        return &rpc_local_transport;
    if (strncmp(address, RPC_SOCKET_PREFIX, strlen(RPC_SOCKET_PREFIX)) == 0)
        return &rpc_socket_transport;
    return &rpc_http2_transport;
}

rpc_handler *rpc_find_handler(const struct rpc_service *services, const char *path, size_t size,
                              void **self)
{
    for (; services; services = services->next) {
        *self = services->self;
        for (const struct rpc_method *method = services->methods; method->path; method++) {
            if (strlen(method->path) == size && memcmp(method->path, path, size) == 0)
                return method->handler;
        }
    }
    return NULL;
}

void rpc_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

struct timespec rpc_deadline(int timeout_ms)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += timeout_ms / 1000;
    at.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_nsec -= 1000000000;
        at.tv_sec++;
    }
    return at;
}

struct rpc_server *rpc_server_start(const struct rpc_server_options *options,
                                    const struct rpc_method *methods, void *self,
                                    struct error *err)
{
    assert(options->address);
    assert(options->message_bytes_max > 0);
    return transport_of(options->address)->server_start(options, methods, self, err);
}

const char *rpc_server_address(const struct rpc_server *server)
{
    return server->address;
}

void rpc_server_stop(struct rpc_server *server)
{
    if (server)
        server->transport->server_stop(server);
}

bool rpc_call_later(struct rpc_call *call, void (*work)(void *arg), void *arg)
{
    return call->transport->later && call->transport->later(call, work, arg);
}

const void *rpc_call_bytes(const struct rpc_call *call, size_t *size)
{
    *size = call->request.size;
    return call->request.data;
}

const char *rpc_call_peer(const struct rpc_call *call)
{
    return call->peer;
}

const char *rpc_call_certificate(const struct rpc_call *call)
{
    return call->certificate;
}

bool rpc_call_cancelled(const struct rpc_call *call)
{
    return call->transport->cancelled(call);
}

void rpc_call_watch(struct rpc_call *call, void (*gone)(void *arg), void *arg)
{
    if (!call->transport->watch) {
        free(arg);
    } else if (!call->transport->watch(call, gone, arg)) {
        gone(arg);
        free(arg);
    }
}

void rpc_call_unwatch(struct rpc_call *call)
{
    if (call->transport->unwatch)
        call->transport->unwatch(call);
}

void rpc_call_reply(struct rpc_call *call, const void *bytes, size_t size)
{
    call->transport->answer(call, bytes, size, NULL);
}

void rpc_call_fail(struct rpc_call *call, const struct error *err)
{
    assert(err->code != OK);
    call->transport->answer(call, NULL, 0, err);
}

void rpc_call_reply_str(struct rpc_call *call, struct str *bytes)
{
    if (call->transport->answer_pieces && bytes->size) {
        struct rpc_piece piece = {.size = bytes->size, .release = free};
        piece.data = piece.arg = str_take(bytes);
        call->transport->answer_pieces(call, &piece, 1);
    } else {
        call->transport->answer(call, bytes->data, bytes->size, NULL);
        str_release(bytes);
    }
}

void rpc_call_reply_from(struct rpc_call *call, struct rpc_source *source)
{
    assert(call->transport->answer_from);
    call->transport->answer_from(call, source);
}

struct rpc_client *rpc_client_new(const struct rpc_client_options *options, struct error *err)
{
    assert(options->address);
    assert(options->message_bytes_max > 0);
    return transport_of(options->address)->client_new(options, err);
}

void rpc_client_free(struct rpc_client *client)
{
    if (client)
        client->transport->client_free(client);
}

bool rpc_client_call(struct rpc_client *client, const char *path, const struct str *request,
                     struct str *response, int timeout_ms, struct error *err)
{
    assert(path[0] == '/');
    assert(timeout_ms > 0);
    return client->transport->client_call(client, path, request, response, timeout_ms, err);
}

void rpc_client_start(struct rpc_client *client, const char *path, const struct str *request,
                      rpc_done *done, void *arg)
{
    struct error err;
    assert(path[0] == '/');
    if (client->transport->client_start) {
        attention_note(client);
        client->transport->client_start(client, path, request, done, arg);
        return;
    }
    fail(&err, UNIMPLEMENTED, "calls to %s cannot be started, only waited for",
         client->address);
    done(arg, NULL, &err);
}

bool rpc_client_peer(const struct rpc_client *client, struct endpoint *peer)
{
    return client->transport->client_peer && client->transport->client_peer(client, peer);
}

void rpc_client_start_into(struct rpc_client *client, const char *path,
                           const struct str *request, struct rpc_sink *sink)
{
    struct error err;
    assert(path[0] == '/');
    if (client->transport->client_start_into) {
        attention_note(client);
        client->transport->client_start_into(client, path, request, sink);
        return;
    }
    fail(&err, UNIMPLEMENTED, "calls to %s cannot be started, only waited for",
         client->address);
    sink->done(sink, &err);
}

void rpc_client_cancel_started(struct rpc_client *client, const void *arg)
{
    if (client->transport->client_cancel_started)
        client->transport->client_cancel_started(client, arg);
}

void rpc_client_cancel(struct rpc_client *client)
{
    client->transport->client_cancel(client);
}
