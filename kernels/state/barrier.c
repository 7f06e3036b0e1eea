/*
 * barrier.c - incomplete tuples by key; the ready ones wait in a priority queue.
 *
 * What is taken out of the incomplete ones by an insertion that fails at a later key is lost,
 * as it is in TensorFlow.
 */

#include "kernels/state/barrier.h"

#include "base/alloc.h"
#include "kernels/state/keys.h"
#include "kernels/state/tuple.h"

enum { LEAD = 2 }; /* index and key come before the components of a ready tuple */

/* A tuple of the ready queue; a component that is no tensor has yet to come. */
struct incomplete {
    struct tensor *tuple;
};

struct barrier {
    struct resource resource; /* first */
    char *name;
    struct barrier_spec spec;
    struct queue *ready;

    pthread_mutex_t lock; /* guards: all below */
    struct keys *keys;
    struct incomplete *incomplete; /* by number of the key */
    int64_t incomplete_capacity;
    int64_t next_index;
    bool closed;
    bool cancelled;  /* what was incomplete when it was closed */
    bool ready_shut; /* nothing more can become ready */
};

/* --- putting --- */

struct put {
    struct barrier *barrier;
    const struct tensor *keys;
    int component;
    const struct tensor *values;
    struct tensor **ready; /* owned tuples that this made complete */
    int64_t ready_count;
    bool new_keys;
    struct cancel *cancel;
    queue_ended *ended;
    void *arg;
};

static int width(const struct barrier *barrier)
{
    return LEAD + barrier->spec.components;
}

/* A tuple that has index and key alone. */
static bool begin_tuple_locked(struct barrier *barrier, struct incomplete *at,
                               const struct tensor_string *key, struct error *err)
{
    struct tensor *tuple = kernel_tuple_new(width(barrier));
    if (!tensor_init(&tuple[0], I64, &SHAPE_SCALAR, err) ||
        !tensor_init_string(&tuple[1], key->data, key->size, err)) {
        kernel_tuple_free(tuple, width(barrier));
        return false;
    }
    *(int64_t *)tuple[0].data = barrier->next_index;
    at->tuple = tuple;
    return true;
}

/* The incomplete tuple of a key, made if there is none; NULL with an error. */
static struct incomplete *find_tuple_locked(struct put *put, const struct tensor_string *key,
                                            struct error *err)
{
    struct barrier *barrier = put->barrier;
    int64_t number = kernel_keys_find(barrier->keys, key->data, key->size);
    if (number >= 0)
        return &barrier->incomplete[number];
    if (barrier->closed)
        return fail_null(err, CANCELLED,
                         "Barrier %s is closed, but attempted to insert a brand new key: %.*s. "
                         " Pending enqueues cancelled: %d.  Number of incomplete keys: %lld.",
                         barrier->name, (int)(key->size < 100 ? key->size : 100), key->data,
                         barrier->cancelled, (long long)kernel_keys_count(barrier->keys));
    number = kernel_keys_add(barrier->keys, key->data, key->size);
    if (number >= barrier->incomplete_capacity) {
        barrier->incomplete_capacity = number < 16 ? 32 : 2 * number;
        barrier->incomplete =
            alloc_resize(barrier->incomplete,
                         (size_t)barrier->incomplete_capacity * sizeof(*barrier->incomplete));
    }
    struct incomplete *made = &barrier->incomplete[number];
    if (!begin_tuple_locked(barrier, made, key, err)) {
        kernel_keys_remove(barrier->keys, key->data, key->size);
        return NULL;
    }
    put->new_keys = true;
    return made;
}

static bool put_one_locked(struct put *put, int64_t i, struct error *err)
{
    struct barrier *barrier = put->barrier;
    const struct tensor_string *key = tensor_strings(put->keys) + i;
    struct incomplete *at = find_tuple_locked(put, key, err);
    if (!at)
        return false;
    struct tensor *component = &at->tuple[LEAD + put->component];
    if (component->dtype != DTYPE_NONE)
        return fail(err, INVALID, "Key %.*s already has a value for component %d in barrier %s",
                    (int)(key->size < 100 ? key->size : 100), key->data, put->component,
                    barrier->name);
    if (!kernel_tuple_slice(component, put->values, i, err))
        return false;
    for (int c = LEAD; c < width(barrier); c++)
        if (at->tuple[c].dtype == DTYPE_NONE)
            return true;
    put->ready[put->ready_count++] = at->tuple;
    kernel_keys_remove(barrier->keys, key->data, key->size);
    return true;
}

static bool put_all_locked(struct put *put, struct error *err)
{
    struct barrier *barrier = put->barrier;
    int64_t count = put->keys->count;
    if (barrier->closed && (barrier->cancelled || (count && !kernel_keys_count(barrier->keys))))
        return fail(err, CANCELLED,
                    "Barrier %s is closed.  Pending enqueues cancelled: %d.  Number of new "
                    "insertions: %lld.  Number of incomplete keys: %lld.",
                    barrier->name, barrier->cancelled, (long long)count,
                    (long long)kernel_keys_count(barrier->keys));
    bool ok = true;
    for (int64_t i = 0; ok && i < count; i++)
        ok = put_one_locked(put, i, err);
    if (ok && put->new_keys)
        barrier->next_index++;
    return ok;
}

static void end_put(struct put *put, const struct error *err)
{
    struct barrier *barrier = put->barrier;
    for (int64_t i = 0; i < put->ready_count; i++)
        kernel_tuple_free(put->ready[i], width(barrier));
    free(put->ready);
    put->ended(put->arg, NULL, err);
    resource_unref(&barrier->resource);
    free(put);
}

static void ready_is_shut(void *arg, struct tensor *tuple, const struct error *err)
{
    (void)tuple;
    end_put(arg, err);
}

/* The rows are in the queue.  After the last one that can come it is closed. */
static void rows_are_ready(void *arg, struct tensor *tuple, const struct error *err)
{
    (void)tuple;
    struct put *put = arg;
    struct barrier *barrier = put->barrier;
    pthread_mutex_lock(&barrier->lock);
    bool last =
        !err && barrier->closed && !barrier->ready_shut && !kernel_keys_count(barrier->keys);
    barrier->ready_shut |= last;
    pthread_mutex_unlock(&barrier->lock);
    if (last)
        kernel_queue_shut(barrier->ready, false, put->cancel, ready_is_shut, put);
    else
        end_put(put, err);
}

/* All at once, so that whoever waits takes them in their order. */
static void hand_over(struct put *put)
{
    struct barrier *barrier = put->barrier;
    const struct queue_spec *spec = kernel_queue_spec(barrier->ready);
    struct tensor *batches = kernel_tuple_new(spec->components);
    const struct tensor **tuple = alloc_array((size_t)spec->components, sizeof(*tuple));
    struct error err;
    bool ok = true;
    for (int c = 0; ok && c < spec->components; c++) {
        ok = kernel_tuple_stack(&batches[c], put->ready, put->ready_count, c,
                                (enum dtype)spec->types[c], &spec->shapes[c], &err);
        tuple[c] = &batches[c];
    }
    if (ok)
        kernel_queue_put(barrier->ready, tuple, true, put->cancel, rows_are_ready, put);
    kernel_tuple_free(batches, spec->components);
    free(tuple);
    if (!ok)
        end_put(put, &err);
}

void kernel_barrier_put(struct barrier *barrier, const struct tensor *keys, int component,
                        const struct tensor *values, struct cancel *cancel, queue_ended *ended,
                        void *arg)
{
    assert(component >= 0 && component < barrier->spec.components);
    struct put *put = alloc_bytes(sizeof(*put));
    *put = (struct put){
        .barrier = barrier,
        .keys = keys,
        .component = component,
        .values = values,
        .ready = alloc_array((size_t)keys->count, sizeof(*put->ready)),
        .cancel = cancel,
        .ended = ended,
        .arg = arg,
    };
    resource_ref(&barrier->resource);
    struct error err;
    pthread_mutex_lock(&barrier->lock);
    bool ok = put_all_locked(put, &err);
    pthread_mutex_unlock(&barrier->lock);
    if (ok && put->ready_count)
        hand_over(put);
    else
        end_put(put, ok ? NULL : &err);
}

/* --- taking, closing --- */

void kernel_barrier_take(struct barrier *barrier, int64_t count, bool small_batch,
                         struct cancel *cancel, queue_ended *ended, void *arg)
{
    int64_t wanted = count, there = kernel_queue_rows(barrier->ready);
    bool enough = true;
    pthread_mutex_lock(&barrier->lock);
    if (barrier->closed) {
        if (small_batch)
            wanted = count < there ? count : there;
        else
            there += kernel_keys_count(barrier->keys);
        enough = there >= (wanted > 1 ? wanted : 1);
    }
    pthread_mutex_unlock(&barrier->lock);
    if (enough) {
        kernel_queue_take_many(barrier->ready, wanted, small_batch, cancel, ended, arg);
        return;
    }
    struct error err;
    fail(&err, OUT_OF_RANGE,
         "Barrier '%s' is closed and has insufficient elements (requested %lld, total size "
         "%lld)",
         barrier->name, (long long)wanted, (long long)there);
    ended(arg, NULL, &err);
}

static void forget_incomplete_locked(struct barrier *barrier)
{
    size_t size;
    for (int64_t i = 0; i < kernel_keys_numbers(barrier->keys); i++)
        if (kernel_keys_at(barrier->keys, i, &size))
            kernel_tuple_free(barrier->incomplete[i].tuple, width(barrier));
    kernel_keys_clear(barrier->keys);
}

void kernel_barrier_shut(struct barrier *barrier, bool cancel_pending, struct cancel *cancel,
                         queue_ended *ended, void *arg)
{
    struct error err;
    bool shut_ready = false;
    pthread_mutex_lock(&barrier->lock);
    bool again = barrier->closed && (barrier->cancelled || !cancel_pending);
    if (again) {
        fail(&err, CANCELLED, "Barrier '%s' is already closed.", barrier->name);
    } else {
        barrier->closed = true;
        barrier->cancelled = cancel_pending;
        if (cancel_pending)
            forget_incomplete_locked(barrier);
        shut_ready = !barrier->ready_shut && !kernel_keys_count(barrier->keys);
        barrier->ready_shut |= shut_ready;
    }
    pthread_mutex_unlock(&barrier->lock);
    if (shut_ready)
        kernel_queue_shut(barrier->ready, cancel_pending, cancel, ended, arg);
    else
        ended(arg, NULL, again ? &err : NULL);
}

int64_t kernel_barrier_ready(struct barrier *barrier)
{
    return kernel_queue_rows(barrier->ready);
}

int64_t kernel_barrier_incomplete(struct barrier *barrier)
{
    pthread_mutex_lock(&barrier->lock);
    int64_t count = kernel_keys_count(barrier->keys);
    pthread_mutex_unlock(&barrier->lock);
    return count;
}

/* --- life --- */

static void destroy(struct resource *resource)
{
    struct barrier *barrier = (struct barrier *)resource;
    forget_incomplete_locked(barrier); /* nobody else is left */
    kernel_keys_free(barrier->keys);
    free(barrier->incomplete);
    resource_unref(kernel_queue_resource(barrier->ready));
    pthread_mutex_destroy(&barrier->lock);
    free(barrier->name);
    free(barrier);
}

struct barrier *kernel_barrier_new(const struct barrier_spec *spec, const char *name,
                                   struct error *err)
{
    int count = LEAD + spec->components;
    int *types = alloc_array((size_t)count, sizeof(*types));
    struct shape *shapes = alloc_array((size_t)count, sizeof(*shapes));
    types[0] = I64;
    types[1] = STRING;
    for (int c = 0; c < spec->components; c++) {
        types[LEAD + c] = spec->types[c];
        shapes[LEAD + c] = spec->shapes[c];
    }
    struct queue *ready = kernel_queue_new(&(struct queue_spec){.kind = QUEUE_PRIORITY,
                                                                .name = name,
                                                                .components = count,
                                                                .types = types,
                                                                .shapes = shapes,
                                                                .capacity = INT64_MAX},
                                           err);
    free(types);
    free(shapes);
    if (!ready)
        return NULL;
    struct barrier *barrier = alloc_bytes(sizeof(*barrier));
    *barrier = (struct barrier){
        .resource = {.kind = BARRIER_KIND, .references = 1, .destroy = destroy},
        .name = alloc_text(name),
        .ready = ready,
        .spec = {.components = spec->components,
                 .types = kernel_queue_spec(ready)->types + LEAD,
                 .shapes = kernel_queue_spec(ready)->shapes + LEAD},
        .keys = kernel_keys_new(),
        .next_index = INT64_MIN,
    };
    pthread_mutex_init(&barrier->lock, NULL);
    return barrier;
}

struct resource *kernel_barrier_resource(struct barrier *barrier)
{
    return &barrier->resource;
}

const char *kernel_barrier_name(const struct barrier *barrier)
{
    return barrier->name;
}

const struct barrier_spec *kernel_barrier_spec(const struct barrier *barrier)
{
    return &barrier->spec;
}
