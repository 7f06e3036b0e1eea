/*
 * mutex.c - critical sections: one at a time holds a mutex's lock, the others wait in the order
 * in which they came.
 *
 * A lock is an element of a VARIANT scalar, given up when nobody refers to it any more: after
 * ConsumeMutexLock, which is its last reader, or when its step fails.
 */

#include "kernels/state/handle.h"

#include "base/alloc.h"
#include "runtime/attempt.h"

#define MUTEX_KIND "mutex"
#define LOCK_KIND "mutex lock"

struct mutex {
    struct resource resource; /* first */
    struct counter counter;   /* guards: all below */
    bool held;
    struct attempt_list waits;
};

struct mutex_lock {
    struct resource resource; /* first */
    struct mutex *mutex;      /* counted */
};

struct visit {
    struct attempt attempt; /* first */
    struct kernel_call *call;
    bool has;
};

/* --- the mutex --- */

static struct mutex *mutex_of(struct counter *counter)
{
    return (struct mutex *)((char *)counter - offsetof(struct mutex, counter));
}

static void serve_locked(struct counter *counter, struct attempt_list *ended)
{
    struct mutex *mutex = mutex_of(counter);
    if (mutex->held || !mutex->waits.first)
        return;
    mutex->held = true;
    ((struct visit *)mutex->waits.first)->has = true;
    attempt_end_locked(mutex->waits.first, ended);
}

static void mutex_destroy(struct resource *resource)
{
    struct mutex *mutex = (struct mutex *)resource;
    attempt_counter_release(&mutex->counter);
    free(mutex);
}

static struct resource *mutex_make(const void *spec, const char *name, struct kernel_call *call,
                                   struct error *err)
{
    (void)spec, (void)name, (void)call, (void)err;
    struct mutex *mutex = alloc_bytes(sizeof(*mutex));
    mutex->resource =
        (struct resource){.kind = MUTEX_KIND, .references = 1, .destroy = mutex_destroy};
    attempt_counter_init(&mutex->counter, serve_locked);
    return &mutex->resource;
}

static const struct handle_class mutex_class = {.kind = MUTEX_KIND, .make = mutex_make};

HANDLE_KERNEL(mutex_v2, "MutexV2", mutex_class);

/* --- its lock --- */

static void lock_destroy(struct resource *resource)
{
    struct mutex_lock *lock = (struct mutex_lock *)resource;
    struct mutex *mutex = lock->mutex;
    pthread_mutex_lock(&mutex->counter.lock);
    mutex->held = false;
    pthread_mutex_unlock(&mutex->counter.lock);
    attempt_serve(&mutex->counter);
    resource_unref(&mutex->resource);
    free(lock);
}

/* Takes the reference to the mutex over. */
static void output_lock(struct mutex *mutex, struct kernel_call *call)
{
    struct error err;
    struct mutex_lock *lock = alloc_bytes(sizeof(*lock));
    *lock = (struct mutex_lock){
        .resource = {.kind = LOCK_KIND, .references = 1, .destroy = lock_destroy},
        .mutex = mutex};
    bool ok = kernel_output_resource(call, 0, &lock->resource, NULL, NULL, &err);
    resource_unref(&lock->resource);
    kernel_done(call, ok ? NULL : &err);
}

static void end_visit(struct attempt *attempt)
{
    struct visit *visit = (struct visit *)attempt;
    struct mutex *mutex = mutex_of(attempt->counter);
    if (visit->has) {
        output_lock(mutex, visit->call);
    } else {
        kernel_done(visit->call, attempt->failure);
        resource_unref(&mutex->resource);
    }
    attempt_release(attempt);
    free(visit);
}

static void lock_start(struct kernel_call *call)
{
    struct error err;
    struct mutex *mutex = (struct mutex *)kernel_handle_get(call, 0, MUTEX_KIND, &err);
    if (!mutex) {
        kernel_done(call, &err);
        return;
    }
    struct visit *visit = alloc_bytes(sizeof(*visit));
    *visit = (struct visit){.attempt = {.what = "MutexLock", .done = end_visit}, .call = call};
    resource_ref(&mutex->resource); /* until attempt_begin() has returned */
    attempt_begin(&visit->attempt, &mutex->counter, &mutex->waits, kernel_cancel(call));
    resource_unref(&mutex->resource);
}

static bool consume_run(struct kernel_call *call, struct error *err)
{
    char text[SHAPE_TEXT_BYTES];
    const struct tensor *in = kernel_in(call, 0);
    if (in->shape.rank)
        return fail(err, INVALID, "Expected input to be a scalar, saw shape: %s",
                    shape_text(&in->shape, text, sizeof(text)));
    struct error why;
    return kernel_variant(in, 0, LOCK_KIND, &why) ||
           fail(err, INVALID, "Expected input to contain a SharedLockReleaser object, but %s",
                why.text);
}

const struct kernel kernel_mutex_lock = {.op = "MutexLock", .device = CPU, .start = lock_start};
const struct kernel kernel_consume_mutex_lock = {
    .op = "ConsumeMutexLock", .device = CPU, .run = consume_run};
