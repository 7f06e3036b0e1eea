/* service_near.c - requests of tasks that are near, or on the same fabric. */

#include <inttypes.h>
#include <pthread.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "runtime/worker/fabric.h"
#include "runtime/worker/service.h"
#include "runtime/worker/service_internal.h"
#include "runtime/worker/wire.h"
#include "runtime/worker/worker.h"

void service_finished(void *self, struct rpc_call *call)
{
    const struct service *service = self;
    size_t size;
    const void *bytes = rpc_call_bytes(call, &size);
    int64_t request_id;
    struct error err;
    bool ok = wire_read_finished(bytes, size, &request_id, &err);
    if (ok && !worker_lend_end(service->worker, request_id))
        ok = fail(&err, NOT_FOUND, "no tensor is lent by request %" PRId64, request_id);
    service_answer(call, ok, &err);
}

static bool make_secret(char secret[SERVICE_SECRET_BYTES], struct error *err)
{
    unsigned char bytes[(SERVICE_SECRET_BYTES - 1) / 2];
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return error_errno(err, UNAVAILABLE, "there is no random number");
    for (size_t i = 0; i < sizeof(bytes); i++)
        snprintf(secret + 2 * i, 3, "%02x", bytes[i]);
    return true;
}

/* Serves tasks that are near over a socket, too, once the first has come; if that cannot be
 * they go on over the network. */
static void open_socket_locked(struct service *service)
{
    const struct rpc_server_options options = {.address = "socket:",
                                               .secret = service->secret,
                                               .message_bytes_max = LIMIT_MESSAGE_BYTES - 1};
    struct error err;
    if (service->socket || service->has_no_socket)
        return;
    if (make_secret(service->secret, &err))
        service->socket = rpc_server_start(&options, service_methods, service, &err);
    service->has_no_socket = !service->socket;
}

/* Keeps the nonce of a task that may read it, and says where. */
void service_meet(void *self, struct rpc_call *call)
{
    struct service *service = self;
    size_t size;
    const void *bytes = rpc_call_bytes(call, &size);
    struct arena *arena = service_arena(call);
    struct wire_meet in;
    struct str out = {0};
    char host[NEAR_HOST_BYTES];
    struct error err;
    bool ok = wire_read_meet(bytes, size, arena, &in, &err) && near_host(host, &err);
    if (ok && strcmp(host, in.host) != 0)
        ok = fail(&err, PRECONDITION, "the task is of another system, process space or user");
    if (ok) {
        pthread_mutex_lock(&service->lock);
        unsigned char *kept = service->nonces[service->met++ % SERVICE_TASKS_MET];
        memcpy(kept, in.nonce, NEAR_NONCE_BYTES);
        open_socket_locked(service);
        const struct wire_met met = {getpid(), (uint64_t)(uintptr_t)kept,
                                     service->socket ? rpc_server_address(service->socket) : "",
                                     service->secret};
        pthread_mutex_unlock(&service->lock);
        wire_write_met(&met, &out);
        rpc_call_reply(call, out.data, out.size);
    } else {
        rpc_call_fail(call, &err);
    }
    str_release(&out);
    arena_free(arena);
}

/* Where this process is reached over the fabric. */
void service_tell_fabric(void *self, struct rpc_call *call)
{
    struct error err;
    size_t size;
    (void)self;
    if (fabric_is_open()) {
        const void *address = fabric_address(&size);
        rpc_call_reply(call, address, size);
    } else {
        (void)fail(&err, NOT_FOUND, "the task has no fabric");
        rpc_call_fail(call, &err);
    }
}
