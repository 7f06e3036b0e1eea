/* master_service.c - requests to a master: read, done, answered. */

#include <stdatomic.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "runtime/cancel.h"
#include "runtime/master/master_service.h"
#include "runtime/master/master_wire.h"
#include "runtime/master/node_error.h"
#include "runtime/tensor.h"
#include "runtime/worker/crew.h"

struct master_service {
    struct master *master;
    struct crew *crew;   /* for what may wait long: steps, and making them ready */
    struct crew *closer; /* for what ends them: never refused because of them */
};

struct master_service *master_service_new(struct master *master)
{
    struct master_service *service = alloc_bytes(sizeof(*service));
    service->master = master;
    service->crew = crew_new(LIMIT_WORKER_THREADS);
    service->closer = crew_new(LIMIT_CLOSER_THREADS);
    return service;
}

void master_service_free(struct master_service *service)
{
    if (!service)
        return;
    crew_free(service->crew);
    crew_free(service->closer);
    free(service);
}

/* --- on a thread of the crew: any of these may wait --- */

/* One request being carried out.  `out` is the answer when `does` succeeds. */
struct order {
    struct master_service *service;
    struct rpc_call *call;
    bool (*does)(struct order *order, const void *bytes, size_t size, struct error *err);
    struct arena *arena;
    struct str out;
};

static void carry_out(void *arg)
{
    struct order *order = arg;
    size_t size;
    const void *bytes = rpc_call_bytes(order->call, &size);
    struct error err;
    order->arena =
        arena_new_limited(size * LIMIT_MESSAGE_EXPANSION + LIMIT_MESSAGE_EXPANSION_BASE);
    if (order->does(order, bytes, size, &err)) {
        rpc_call_reply_str(order->call, &order->out);
    } else {
        node_error(&err);
        rpc_call_fail(order->call, &err);
    }
    str_release(&order->out);
    arena_free(order->arena);
    free(order);
}

static struct order *new_order(struct master_service *service, struct rpc_call *call,
                               bool (*does)(struct order *, const void *, size_t,
                                            struct error *))
{
    struct order *order = alloc_bytes(sizeof(*order));
    *order = (struct order){.service = service, .call = call, .does = does};
    return order;
}

static void give_to(struct crew *crew, struct order *order)
{
    struct error err;
    struct rpc_call *call = order->call;
    if (crew_do(crew, carry_out, order, &err))
        return;
    free(order);
    rpc_call_fail(call, &err);
}

static void carry_out_here(void *arg)
{
    struct crew *crew = ((struct order *)arg)->service->crew;
    carry_out(arg);
    crew_leave(crew);
}

/* By the transport's thread, if it can be: then none has to be woken. */
static void take_step(struct master_service *service, struct rpc_call *call,
                      bool (*does)(struct order *, const void *, size_t, struct error *))
{
    struct order *order = new_order(service, call, does);
    crew_join(service->crew);
    if (rpc_call_later(call, carry_out_here, order))
        return;
    crew_leave(service->crew);
    give_to(service->crew, order);
}

#define HANDLER(name, crew_of)                                                                 \
    static void name(void *self, struct rpc_call *call)                                        \
    {                                                                                          \
        struct master_service *service = self;                                                 \
        give_to(service->crew_of, new_order(service, call, do_##name));                        \
    }

#define STEP_HANDLER(name)                                                                     \
    static void name(void *self, struct rpc_call *call)                                        \
    {                                                                                          \
        take_step(self, call, do_##name);                                                      \
    }

/* --- what ends with its client --- */

struct watch { /* freed with the call */
    struct cancel *cancel;
};

static void client_is_gone(void *arg)
{
    const struct watch *watch = arg;
    cancel_now(watch->cancel);
}

/* What the client's going away cancels, until unwatch(). */
static struct cancel *watch_client(struct order *order)
{
    struct watch *watch = alloc_bytes(sizeof(*watch));
    struct cancel *cancel = watch->cancel = cancel_new();
    rpc_call_watch(order->call, client_is_gone, watch);
    return cancel;
}

static void unwatch_client(struct order *order, struct cancel *cancel)
{
    rpc_call_unwatch(order->call);
    cancel_free(cancel);
}

/* --- sessions --- */

static bool do_create(struct order *order, const void *bytes, size_t size, struct error *err)
{
    struct master_request in;
    char handle[MASTER_HANDLE_BYTES];
    if (!master_wire_create(bytes, size, order->arena, &in, err))
        return false;
    struct cancel *cancel = watch_client(order);
    bool ok = master_create(order->service->master, &in.config, in.graph_def, in.graph_def_size,
                            cancel, handle, err);
    unwatch_client(order, cancel);
    if (ok)
        master_wire_created(handle, &order->out);
    return ok;
}
HANDLER(create, crew)

static bool do_extend(struct order *order, const void *bytes, size_t size, struct error *err)
{
    struct master_request in;
    int64_t version;
    if (!master_wire_extend(bytes, size, order->arena, &in, err))
        return false;
    struct master_session *session = master_find(order->service->master, in.session, err);
    if (!session)
        return false;
    bool ok =
        master_extend(session, in.version, in.graph_def, in.graph_def_size, &version, err);
    master_release(session);
    if (ok)
        master_wire_extended(version, &order->out);
    return ok;
}
HANDLER(extend, crew)

static bool do_close(struct order *order, const void *bytes, size_t size, struct error *err)
{
    struct master_request in;
    return master_wire_close(bytes, size, order->arena, &in, err) &&
           master_close(order->service->master, in.session, err);
}
HANDLER(close, closer)

static bool do_list(struct order *order, const void *bytes, size_t size, struct error *err)
{
    struct master_request in;
    int count, local;
    if (!master_wire_list(bytes, size, order->arena, &in, err))
        return false;
    struct master_session *session = master_find(order->service->master, in.session, err);
    if (!session)
        return fail(err, INVALID,
                    "Session %.64s is not found. Possibly, this master has restarted.",
                    in.session);
    const struct device *devices = master_devices(session, &count, &local);
    master_wire_devices(devices, count, local, &order->out);
    master_release(session);
    return true;
}
HANDLER(list, closer)

static bool do_reset(struct order *order, const void *bytes, size_t size, struct error *err)
{
    const char *const *containers;
    int count;
    return master_wire_reset(bytes, size, order->arena, &containers, &count, err) &&
           master_reset(order->service->master, containers, count, err);
}
HANDLER(reset, closer)

/* --- steps --- */

/* Runs with a cancel that the client's going away pulls. */
static bool run_watched(struct order *order, struct master_session *session,
                        struct master_step *step, struct callable_result *result,
                        struct error *err)
{
    struct cancel *cancel = step->run.cancel = watch_client(order);
    bool ok;
    if (step->callable >= 0) {
        ok = master_callable_run(session, step->callable, step->feeds, step->feeds_count,
                                 &step->run, result, err);
    } else {
        result->count = step->run.fetches_count;
        result->fetched = alloc_array((size_t)result->count + 1, sizeof(struct tensor));
        ok = *step->partial ? master_partial_run(session, strtoll(step->partial, NULL, 10),
                                                 &step->run, result->fetched, err)
                            : master_run(session, &step->run, result->fetched, err);
        if (!ok)
            free(result->fetched);
    }
    unwatch_client(order, cancel);
    return ok;
}

static void release_result(struct callable_result *result)
{
    for (int i = 0; i < result->count; i++)
        tensor_release(&result->fetched[i]);
    free(result->fetched);
}

/* The step itself: its answer goes into order->out. */
static bool run_step(struct order *order, struct master_step *step, struct error *err)
{
    struct master *master = order->service->master;
    struct str metadata = {0};
    struct callable_result result = {0};
    if (!master_first_time(master, step->request, err))
        return false;
    struct master_session *session = master_find(master, step->session, err);
    if (!session)
        return false;
    if (step->run.trace || step->callable >= 0)
        step->run.statistics = &metadata;
    bool ok = run_watched(order, session, step, &result, err);
    if (ok && step->wants_parts && step->callable < 0 && !*step->partial &&
        !master_add_parts(session, &step->run, &metadata, err)) {
        release_result(&result);
        ok = false;
    }
    if (ok && step->callable >= 0)
        master_wire_callable_ran(result.fetched, result.count, &metadata, &order->out);
    else if (ok)
        master_wire_ran(step->run.fetches, result.fetched, result.count, &metadata, NULL,
                        &order->out);
    if (ok)
        release_result(&result);
    else if (node_error(err)) /* this task ran it alone: workers have said where */
        (void)error_prefix(err, "From %s:\n", master_task(master));
    str_release(&metadata);
    master_release(session);
    return ok;
}

static bool do_run(struct order *order, const void *bytes, size_t size, struct error *err)
{
    struct master_step step;
    if (!master_wire_run(bytes, size, order->arena, &step, err))
        return false;
    step.callable = -1;
    bool ok = run_step(order, &step, err);
    master_wire_release(&step);
    if (ok || !step.errors_in_body)
        return ok;
    node_error(err);
    master_wire_ran(NULL, NULL, 0, NULL, err, &order->out);
    return true;
}
STEP_HANDLER(run)

static bool do_partial_setup(struct order *order, const void *bytes, size_t size,
                             struct error *err)
{
    struct master *master = order->service->master;
    struct master_step step;
    int64_t handle;
    if (!master_wire_partial(bytes, size, order->arena, &step, err) ||
        !master_first_time(master, step.request, err))
        return false;
    struct master_session *session = master_find(master, step.session, err);
    if (!session)
        return false;
    bool ok = master_partial_setup(session, &step.run, &handle, err);
    master_release(session);
    if (ok)
        master_wire_partial_made(handle, &order->out);
    return ok;
}
HANDLER(partial_setup, crew)

static bool do_make_callable(struct order *order, const void *bytes, size_t size,
                             struct error *err)
{
    struct master *master = order->service->master;
    struct master_step step;
    int64_t handle;
    if (!master_wire_make_callable(bytes, size, order->arena, &step, err) ||
        !master_first_time(master, step.request, err))
        return false;
    struct master_session *session = master_find(master, step.session, err);
    if (!session)
        return false;
    bool ok = master_callable_make(session, &step.run, &handle, err);
    master_release(session);
    if (ok)
        master_wire_callable_made(handle, &order->out);
    return ok;
}
HANDLER(make_callable, crew)

static bool do_run_callable(struct order *order, const void *bytes, size_t size,
                            struct error *err)
{
    struct master_step step;
    if (!master_wire_run_callable(bytes, size, order->arena, &step, err))
        return false;
    if (step.callable < 0) {
        master_wire_release(&step);
        return fail(err, INVALID, "No such callable handle: %lld", (long long)step.callable);
    }
    bool ok = run_step(order, &step, err);
    master_wire_release(&step);
    return ok;
}
STEP_HANDLER(run_callable)

static bool do_release_callable(struct order *order, const void *bytes, size_t size,
                                struct error *err)
{
    struct master_request in;
    if (!master_wire_release_callable(bytes, size, order->arena, &in, err))
        return false;
    struct master_session *session = master_find(order->service->master, in.session, err);
    if (!session)
        return false;
    master_callable_release(session, in.handle);
    master_release(session);
    return true;
}
HANDLER(release_callable, closer)

#define METHOD(name) "/tensorflow.MasterService/" name

const struct rpc_method master_service_methods[] = {
    {METHOD("CreateSession"), create},
    {METHOD("ExtendSession"), extend},
    {METHOD("CloseSession"), close},
    {METHOD("ListDevices"), list},
    {METHOD("Reset"), reset},
    {METHOD("RunStep"), run},
    {METHOD("PartialRunSetup"), partial_setup},
    {METHOD("MakeCallable"), make_callable},
    {METHOD("RunCallable"), run_callable},
    {METHOD("ReleaseCallable"), release_callable},
    {0},
};
