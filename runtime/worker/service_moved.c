/* service_moved.c - a task that was placed anew says where it is. */

#include "base/arena.h"
#include "base/error.h"
#include "runtime/worker/internal.h"
#include "runtime/worker/moved.h"
#include "runtime/worker/service_internal.h"

void service_moved(void *self, struct rpc_call *call)
{
    const struct worker *worker = service_worker(self);
    size_t size;
    const void *bytes = rpc_call_bytes(call, &size);
    struct arena *arena = service_arena(call);
    struct moved moved;
    struct error err;
    if (moved_read(bytes, size, arena, &moved, &err) &&
        moved_take(worker->peers, worker->peers_count, &moved, &err))
        rpc_call_reply(call, "", 0);
    else
        rpc_call_fail(call, &err);
    arena_free(arena);
}
