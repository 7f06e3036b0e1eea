/*
 * service_collective.c - what members of collectives ask a worker: who takes part, which step
 * is next, and bytes.
 *
 * A call is answered when all are there.  Who waits is known by the call itself, so that a
 * client that goes is taken back.
 */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/worker/groups.h"
#include "runtime/worker/outgoing.h"
#include "runtime/worker/service_internal.h"
#include "runtime/worker/wire_collective.h"
#include "runtime/worker/worker.h"

/* Takes a request apart and sees to its answer, now or later; false: it fails with `err`. */
typedef bool take_request(struct service *service, struct rpc_call *call, const void *bytes,
                          size_t size, struct arena *arena, struct error *err);

static void handle(void *self, struct rpc_call *call, take_request *take)
{
    struct arena *arena = service_arena(call);
    struct error err;
    size_t size;
    const void *bytes = rpc_call_bytes(call, &size);
    if (!take(self, call, bytes, size, arena, &err))
        rpc_call_fail(call, &err);
    arena_free(arena);
}

static void reply(struct rpc_call *call, struct str *out)
{
    rpc_call_reply(call, out->data, out->size);
    str_release(out);
}

/* --- calls that wait, and whose client may go --- */

struct watched {
    struct worker *worker;
    struct rpc_call *call;
    int64_t step_id; /* of RecvBuf */
    bool takes;      /* it is one */
};

static void client_is_gone(void *arg)
{
    const struct watched *watched = arg;
    struct error err;
    bool waited =
        watched->takes
            ? worker_collective_withdraw(watched->worker, watched->step_id, watched->call)
            : groups_withdraw(worker_collective_groups(watched->worker), watched->call);
    if (!waited)
        return;
    (void)fail(&err, CANCELLED, "the client has gone");
    rpc_call_fail(watched->call, &err);
}

static void watch(struct worker *worker, struct rpc_call *call, bool takes, int64_t step_id)
{
    struct watched *watched = alloc_bytes(sizeof(*watched));
    *watched = (struct watched){worker, call, step_id, takes};
    rpc_call_watch(call, client_is_gone, watched);
}

/* --- groups and instances --- */

static void group_told(void *arg, const struct collective_group *group, const struct error *err)
{
    struct str out = {0};
    if (err) {
        rpc_call_fail(arg, err);
        return;
    }
    wire_write_group(group, &out);
    reply(arg, &out);
}

static bool complete_group(struct service *service, struct rpc_call *call, const void *bytes,
                           size_t size, struct arena *arena, struct error *err)
{
    struct worker *worker = service_worker(service);
    struct wire_member in;
    if (!wire_read_complete_group(bytes, size, arena, &in, err))
        return false;
    watch(worker, call, false, 0);
    groups_join(worker_collective_groups(worker), &in.wish, &in.device, group_told, call);
    return true;
}

void service_complete_group(void *self, struct rpc_call *call)
{
    handle(self, call, complete_group);
}

static void source_told(void *arg, int source, const struct error *err)
{
    struct str out = {0};
    if (err) {
        rpc_call_fail(arg, err);
        return;
    }
    wire_write_instance(source, &out);
    reply(arg, &out);
}

static bool complete_instance(struct service *service, struct rpc_call *call, const void *bytes,
                              size_t size, struct arena *arena, struct error *err)
{
    struct worker *worker = service_worker(service);
    struct wire_member in;
    if (!wire_read_complete_instance(bytes, size, arena, &in, err))
        return false;
    watch(worker, call, false, 0);
    groups_join_instance(worker_collective_groups(worker), &in.wish, in.device.name,
                         source_told, call);
    return true;
}

void service_complete_instance(void *self, struct rpc_call *call)
{
    handle(self, call, complete_instance);
}

/* --- steps --- */

static bool get_step_sequence(struct service *service, struct rpc_call *call, const void *bytes,
                              size_t size, struct arena *arena, struct error *err)
{
    const int64_t *keys;
    struct str out = {0};
    int count;
    if (!wire_read_get_steps(bytes, size, arena, &keys, &count, err))
        return false;
    int64_t *ids = arena_array(arena, (size_t)count + 1, sizeof(*ids));
    for (int i = 0; i < count; i++)
        if (!worker_collective_sequence(service_worker(service), keys[i], &ids[i], err))
            return false;
    wire_write_steps(keys, ids, count, &out);
    reply(call, &out);
    return true;
}

void service_get_step_sequence(void *self, struct rpc_call *call)
{
    handle(self, call, get_step_sequence);
}

/* --- bytes --- */

static void took(void *arg, const struct tensor *value, const struct error *err)
{
    if (err)
        rpc_call_fail(arg, err);
    else
        outgoing_reply_buffer(arg, value);
}

static bool receive_buffer(struct service *service, struct rpc_call *call, const void *bytes,
                           size_t size, struct arena *arena, struct error *err)
{
    struct worker *worker = service_worker(service);
    struct wire_buffer in;
    if (!wire_read_receive_buffer(bytes, size, arena, &in, err) ||
        !service_check_first(service, "RecvBuf", in.request_id, err))
        return false;
    watch(worker, call, true, in.step_id);
    worker_collective_take(worker, in.step_id, in.key, in.from, in.incarnation, took, call);
    return true;
}

void service_receive_buffer(void *self, struct rpc_call *call)
{
    handle(self, call, receive_buffer);
}
