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

void service_complete_group(void *self, struct rpc_call *call)
{
    struct worker *worker = service_worker(self);
    struct arena *arena = service_arena(call);
    struct wire_member in;
    struct error err;
    size_t size;
    const void *bytes = rpc_call_bytes(call, &size);
    if (wire_read_complete_group(bytes, size, arena, &in, &err)) {
        watch(worker, call, false, 0);
        groups_join(worker_collective_groups(worker), &in.wish, &in.device, group_told, call);
    } else {
        rpc_call_fail(call, &err);
    }
    arena_free(arena);
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

void service_complete_instance(void *self, struct rpc_call *call)
{
    struct worker *worker = service_worker(self);
    struct arena *arena = service_arena(call);
    struct wire_member in;
    struct error err;
    size_t size;
    const void *bytes = rpc_call_bytes(call, &size);
    if (wire_read_complete_instance(bytes, size, arena, &in, &err)) {
        watch(worker, call, false, 0);
        groups_join_instance(worker_collective_groups(worker), &in.wish, in.device.name,
                             source_told, call);
    } else {
        rpc_call_fail(call, &err);
    }
    arena_free(arena);
}

/* --- steps --- */

void service_get_step_sequence(void *self, struct rpc_call *call)
{
    struct worker *worker = service_worker(self);
    struct arena *arena = service_arena(call);
    const int64_t *keys;
    struct error err;
    struct str out = {0};
    size_t size;
    int count;
    const void *bytes = rpc_call_bytes(call, &size);
    bool ok = wire_read_get_steps(bytes, size, arena, &keys, &count, &err);
    int64_t *ids = arena_array(arena, ok ? (size_t)count + 1 : 1, sizeof(*ids));
    for (int i = 0; ok && i < count; i++)
        ok = worker_collective_sequence(worker, keys[i], &ids[i], &err);
    if (ok) {
        wire_write_steps(keys, ids, count, &out);
        reply(call, &out);
    } else {
        rpc_call_fail(call, &err);
    }
    arena_free(arena);
}

/* --- bytes --- */

static void took(void *arg, const struct tensor *value, const struct error *err)
{
    if (err)
        rpc_call_fail(arg, err);
    else
        outgoing_reply_buffer(arg, value);
}

void service_receive_buffer(void *self, struct rpc_call *call)
{
    struct worker *worker = service_worker(self);
    struct arena *arena = service_arena(call);
    struct wire_buffer in;
    struct error err;
    size_t size;
    const void *bytes = rpc_call_bytes(call, &size);
    if (wire_read_receive_buffer(bytes, size, arena, &in, &err) &&
        service_check_first(self, "RecvBuf", in.request_id, &err)) {
        watch(worker, call, true, in.step_id);
        worker_collective_take(worker, in.step_id, in.key, in.from, in.incarnation, took, call);
    } else {
        rpc_call_fail(call, &err);
    }
    arena_free(arena);
}
