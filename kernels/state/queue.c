/* queue.c - attempts to put into a queue and to take from it. */

#include "kernels/state/queue.h"

#include "base/alloc.h"
#include "kernels/state/tuple.h"
#include "runtime/attempt.h"

struct queue {
    struct resource resource; /* first */
    struct counter counter;   /* guards: all below but the spec */
    struct queue_spec spec;
    struct queue_store store;
    struct attempt_list puts, takes;
    bool closed;
};

enum action { ACTION_PUT, ACTION_CLOSE, ACTION_TAKE };

struct queue_attempt {
    struct attempt attempt; /* first */
    enum action action;
    bool many;
    bool up_to;
    struct tensor *tuple; /* to put; once many rows are taken: stacked */
    int64_t rows_total;
    int64_t rows_left;    /* to put or to take */
    struct tensor **rows; /* taken so far */
    int64_t rows_capacity;
    queue_ended *ended;
    void *arg;
};

static struct queue *queue_of(struct counter *counter)
{
    return (struct queue *)((char *)counter - offsetof(struct queue, counter));
}

/* --- one step of an attempt, the lock held --- */

enum progress { PROGRESS_NONE, PROGRESS_SOME, PROGRESS_ENDED };

/* The next row of an attempt to put; NULL when there is no memory for it. */
static struct tensor *row_to_put(const struct queue *queue, struct queue_attempt *put)
{
    int components = queue->spec.components;
    struct tensor *row;
    if (put->many) {
        struct error err;
        int64_t index = put->rows_total - put->rows_left;
        row = kernel_tuple_row(put->tuple, components, index, &err);
        if (!row)
            attempt_fail(&put->attempt, err.code, "%s", err.text);
        return row;
    }
    row = put->tuple;
    put->tuple = NULL;
    return row;
}

static enum progress put_locked(struct queue *queue, struct queue_attempt *put)
{
    enum progress progress = PROGRESS_NONE;
    if (queue->closed) {
        attempt_fail(&put->attempt, CANCELLED, "%s '%s' is closed.",
                     kernel_queue_kind_name(queue->spec.kind), queue->spec.name);
        return PROGRESS_ENDED;
    }
    while (put->rows_left && queue->store.count < queue->spec.capacity) {
        struct tensor *row = row_to_put(queue, put);
        if (!row)
            return PROGRESS_ENDED;
        kernel_queue_store_put(&queue->store, row);
        put->rows_left--;
        progress = PROGRESS_SOME;
    }
    return put->rows_left ? progress : PROGRESS_ENDED;
}

static enum progress close_locked(struct queue *queue, struct queue_attempt *close)
{
    if (queue->closed)
        attempt_fail(&close->attempt, CANCELLED, "Queue '%s' is already closed.",
                     queue->spec.name);
    queue->closed = true;
    return PROGRESS_ENDED;
}

static void add_row(struct queue_attempt *take, struct tensor *row)
{
    int64_t count = take->rows_total - take->rows_left;
    if (count == take->rows_capacity) {
        take->rows_capacity = count ? 2 * count : 1;
        take->rows =
            alloc_resize(take->rows, (size_t)take->rows_capacity * sizeof(*take->rows));
    }
    take->rows[count] = row;
    take->rows_left--;
}

static bool fail_insufficient(struct queue *queue, struct queue_attempt *take, int64_t wanted,
                              int64_t left)
{
    attempt_fail(&take->attempt, OUT_OF_RANGE,
                 "%s '%s' is closed and has insufficient elements (requested %lld, current "
                 "size %lld)",
                 kernel_queue_kind_name(queue->spec.kind), queue->spec.name, (long long)wanted,
                 (long long)left);
    return false;
}

/* Closed, and fewer rows than wanted: what was taken goes back. */
static bool enough_locked(struct queue *queue, struct queue_attempt *take)
{
    struct queue_store *store = &queue->store;
    int64_t wanted = take->rows_left, left = store->count;
    if (!queue->closed || left >= wanted)
        return true;
    if (take->up_to && store->kind == QUEUE_PRIORITY) {
        /* TensorFlow's priority queue does not give fewer than wanted: it drops them. */
        while (store->count)
            add_row(take, kernel_queue_store_take(store));
        return fail_insufficient(queue, take, take->rows_left, 0);
    }
    for (int64_t i = take->rows_total - take->rows_left; i-- > 0;)
        kernel_queue_store_put_back(store, take->rows[i]);
    take->rows_left = take->rows_total;
    if (take->up_to && store->count) {
        take->rows_left = take->rows_total = store->count;
        return true;
    }
    return fail_insufficient(queue, take, wanted, left);
}

static enum progress take_locked(struct queue *queue, struct queue_attempt *take)
{
    if (!enough_locked(queue, take))
        return PROGRESS_ENDED;
    enum progress progress = PROGRESS_NONE;
    int64_t stay = queue->closed ? 0 : queue->spec.min_after_dequeue;
    while (take->rows_left && queue->store.count > stay) {
        add_row(take, kernel_queue_store_take(&queue->store));
        progress = PROGRESS_SOME;
    }
    return take->rows_left ? progress : PROGRESS_ENDED;
}

/* --- serving --- */

/* Serves the list from its front, up to the first that has to wait. */
static bool serve_list_locked(struct queue *queue, struct attempt_list *list,
                              struct attempt_list *ended)
{
    static enum progress (*const steps[])(struct queue *, struct queue_attempt *) = {
        [ACTION_PUT] = put_locked, [ACTION_CLOSE] = close_locked, [ACTION_TAKE] = take_locked};
    bool changed = false;
    while (list->first) {
        struct queue_attempt *attempt = (struct queue_attempt *)list->first;
        enum progress progress = steps[attempt->action](queue, attempt);
        if (progress != PROGRESS_ENDED)
            return changed || progress == PROGRESS_SOME;
        attempt_end_locked(&attempt->attempt, ended);
        changed = true;
    }
    return changed;
}

static void serve_locked(struct counter *counter, struct attempt_list *ended)
{
    struct queue *queue = queue_of(counter);
    bool changed;
    do {
        changed = serve_list_locked(queue, &queue->puts, ended);
        changed = serve_list_locked(queue, &queue->takes, ended) || changed;
    } while (changed);
}

/* --- ends, no lock held --- */

static void free_rows(struct queue_attempt *attempt, int components)
{
    for (int64_t i = 0; attempt->rows && i < attempt->rows_total - attempt->rows_left; i++)
        kernel_tuple_free(attempt->rows[i], components);
    free(attempt->rows);
}

/* What was taken, as the caller wants it. */
static void make_tuple(const struct queue *queue, struct queue_attempt *take)
{
    if (!take->many) {
        take->tuple = take->rows[0];
        take->rows_left = take->rows_total;
        return;
    }
    take->tuple = kernel_tuple_new(queue->spec.components);
    struct error err;
    for (int c = 0; c < queue->spec.components; c++)
        if (!kernel_tuple_stack(&take->tuple[c], take->rows, take->rows_total, c,
                                (enum dtype)queue->spec.types[c], &queue->spec.shapes[c],
                                &err)) {
            attempt_fail(&take->attempt, err.code, "%s", err.text);
            return;
        }
}

static void end_attempt(struct attempt *base)
{
    struct queue_attempt *attempt = (struct queue_attempt *)base;
    struct queue *queue = queue_of(base->counter);
    int components = queue->spec.components;
    bool takes = attempt->action == ACTION_TAKE;
    if (takes && !base->failure)
        make_tuple(queue, attempt);
    free_rows(attempt, components);
    struct tensor *tuple = attempt->tuple;
    attempt->ended(attempt->arg, takes && !base->failure ? tuple : NULL, base->failure);
    kernel_tuple_free(tuple, components);
    resource_unref(&queue->resource);
    attempt_release(base);
    free(attempt);
}

/* --- beginnings --- */

static struct queue_attempt *attempt_new(struct queue *queue, enum action action,
                                         const char *what, queue_ended *ended, void *arg)
{
    resource_ref(&queue->resource);
    struct queue_attempt *attempt = alloc_bytes(sizeof(*attempt));
    *attempt = (struct queue_attempt){
        .attempt = {.what = what, .done = end_attempt},
        .action = action,
        .rows_total = 1,
        .rows_left = 1,
        .ended = ended,
        .arg = arg,
    };
    return attempt;
}

void kernel_queue_put(struct queue *queue, const struct tensor *const *tuple, bool many,
                      struct cancel *cancel, queue_ended *ended, void *arg)
{
    int64_t rows = many ? tuple[0]->shape.dims[0] : 1;
    if (!rows) {
        ended(arg, NULL, NULL);
        return;
    }
    struct queue_attempt *put = attempt_new(queue, ACTION_PUT, "Enqueue", ended, arg);
    put->many = many;
    put->tuple = kernel_tuple_share(tuple, queue->spec.components);
    put->rows_total = put->rows_left = rows;
    attempt_begin(&put->attempt, &queue->counter, &queue->puts, cancel);
}

void kernel_queue_take(struct queue *queue, struct cancel *cancel, queue_ended *ended,
                       void *arg)
{
    struct queue_attempt *take = attempt_new(queue, ACTION_TAKE, "Dequeue", ended, arg);
    attempt_begin(&take->attempt, &queue->counter, &queue->takes, cancel);
}

void kernel_queue_take_many(struct queue *queue, int64_t count, bool up_to,
                            struct cancel *cancel, queue_ended *ended, void *arg)
{
    assert(count >= 0);
    assert(queue->spec.shapes);
    struct queue_attempt *take = attempt_new(queue, ACTION_TAKE, "Dequeue", ended, arg);
    take->many = true;
    take->up_to = up_to;
    take->rows_total = take->rows_left = count;
    if (!count) { /* which need not wait for its turn */
        take->attempt.counter = &queue->counter;
        end_attempt(&take->attempt);
        return;
    }
    attempt_begin(&take->attempt, &queue->counter, &queue->takes, cancel);
}

/* At once: whoever waits to put is told so. */
static void close_now(struct queue *queue)
{
    struct attempt_list ended = {0};
    pthread_mutex_lock(&queue->counter.lock);
    queue->closed = true;
    while (queue->puts.first) {
        attempt_fail(queue->puts.first, CANCELLED, "Enqueue operation was cancelled");
        attempt_end_locked(queue->puts.first, &ended);
    }
    serve_locked(&queue->counter, &ended);
    pthread_mutex_unlock(&queue->counter.lock);
    attempt_finish(&ended);
}

void kernel_queue_shut(struct queue *queue, bool cancel_pending, struct cancel *cancel,
                       queue_ended *ended, void *arg)
{
    if (cancel_pending) {
        close_now(queue);
        ended(arg, NULL, NULL);
        return;
    }
    struct queue_attempt *close = attempt_new(queue, ACTION_CLOSE, "Close", ended, arg);
    attempt_begin(&close->attempt, &queue->counter, &queue->puts, cancel);
}

int64_t kernel_queue_rows(struct queue *queue)
{
    pthread_mutex_lock(&queue->counter.lock);
    int64_t size = queue->store.count;
    pthread_mutex_unlock(&queue->counter.lock);
    return size;
}

bool kernel_queue_is_shut(struct queue *queue)
{
    pthread_mutex_lock(&queue->counter.lock);
    bool closed = queue->closed;
    pthread_mutex_unlock(&queue->counter.lock);
    return closed;
}

/* --- life --- */

static void destroy(struct resource *resource)
{
    struct queue *queue = (struct queue *)resource;
    assert(!queue->puts.first);
    assert(!queue->takes.first);
    kernel_queue_store_release(&queue->store, queue->spec.components);
    attempt_counter_release(&queue->counter);
    free((void *)queue->spec.types);
    free((void *)queue->spec.shapes);
    free((void *)queue->spec.name);
    free(queue);
}

bool kernel_queue_check_spec(const struct queue_spec *spec, struct error *err)
{
    if (spec->components < 1)
        return fail(err, INVALID, "Empty component types for queue %s", spec->name);
    if (spec->kind == QUEUE_SHUFFLE &&
        (spec->min_after_dequeue < 0 || spec->min_after_dequeue >= spec->capacity))
        return fail(err, INVALID, "min_after_dequeue %lld must be >= 0 and < capacity %lld",
                    (long long)spec->min_after_dequeue, (long long)spec->capacity);
    return true;
}

struct queue *kernel_queue_new(const struct queue_spec *spec, struct error *err)
{
    if (!kernel_queue_check_spec(spec, err))
        return NULL;
    size_t count = (size_t)spec->components;
    int *types = alloc_array(count, sizeof(*types));
    memcpy(types, spec->types, count * sizeof(*types));
    struct shape *shapes = NULL;
    if (spec->shapes) {
        shapes = alloc_array(count, sizeof(*shapes));
        memcpy(shapes, spec->shapes, count * sizeof(*shapes));
    }
    struct queue *queue = alloc_bytes(sizeof(*queue));
    queue->resource =
        (struct resource){.kind = QUEUE_KIND, .references = 1, .destroy = destroy};
    attempt_counter_init(&queue->counter, serve_locked);
    queue->spec = *spec;
    queue->spec.name = alloc_text(spec->name);
    queue->spec.types = types;
    queue->spec.shapes = shapes;
    kernel_queue_store_init(&queue->store, spec->kind, spec->seed, spec->seed2);
    return queue;
}

const char *kernel_queue_kind_name(enum queue_kind kind)
{
    static const char *const names[] = {
        [QUEUE_FIFO] = "FIFOQueue",
        [QUEUE_PADDING] = "PaddingFIFOQueue",
        [QUEUE_SHUFFLE] = "RandomShuffleQueue",
        [QUEUE_PRIORITY] = "PriorityQueue",
    };
    return names[kind];
}

const struct queue_spec *kernel_queue_spec(const struct queue *queue)
{
    return &queue->spec;
}

struct resource *kernel_queue_resource(struct queue *queue)
{
    return &queue->resource;
}
