/*
 * parallel_map.c - a map whose function runs on several elements at once.
 *
 * DESIGN: a ring of calls.  Whoever asks for an element first fills the ring from the input, so
 * that the input is walked by one thread, and hands each call to the workers.  Then it takes
 * the oldest call: does it itself if no worker has begun, else waits for its end, until the run
 * is cancelled.  A call under way belongs to no run: it has a cancel of the iterator's, which
 * ends it when the iterator is freed.
 */

#include "base/alloc.h"
#include "kernels/data/map.h"
#include "kernels/data/workers.h"

enum call_state { CALL_FREE, CALL_ASKED, CALL_DONE };

struct parallel;

struct call {
    struct kernel_work work; /* first */
    struct parallel *parallel;
    struct tensor *args;
    struct tensor *results;
    struct error err;
    bool ok;
    bool of_input;         /* it is the input that failed */
    bool ended;            /* ... at its end */
    enum call_state state; /* under the lock */
};

struct parallel {
    struct iterator it;
    struct pipeline pipeline; /* of calls that workers make */
    struct call **ring;
    int64_t first, count; /* of the ring: those asked for */
    bool over;            /* the input has ended */

    pthread_mutex_t lock; /* guards: calls' states */
    pthread_cond_t done;
};

static const struct map *map_of(const struct parallel *p)
{
    return (const struct map *)p->it.dataset;
}

static int args_count(const struct parallel *p)
{
    return p->it.input->dataset->width;
}

/* Where the call is that was asked for `i` after the oldest. */
static struct call **place(struct parallel *p, int64_t i)
{
    return &p->ring[(p->first + i) % map_of(p)->calls];
}

/* --- calls --- */

static void compute(struct call *call, struct pipeline *pipeline)
{
    struct parallel *p = call->parallel;
    call->ok = kernel_dataset_call(&map_of(p)->function, pipeline, call->args, args_count(p),
                                   call->results, &call->err);
    kernel_row_release(call->args, args_count(p));
}

static void compute_as_worker(struct kernel_work *work)
{
    struct call *call = (struct call *)work;
    struct parallel *p = call->parallel;
    compute(call, &p->pipeline);
    pthread_mutex_lock(&p->lock);
    call->state = CALL_DONE;
    pthread_cond_broadcast(&p->done);
    pthread_mutex_unlock(&p->lock);
}

/* Asks for one more call; what the input fails with comes in its turn. */
static void ask(struct parallel *p)
{
    struct call *call = *place(p, p->count);
    bool end = false;
    bool ok = kernel_iterator_next(p->it.input, call->args, &end, &call->err);
    p->over = ok && end;
    if (p->over)
        return;
    p->count++;
    call->ok = ok;
    call->of_input = !ok;
    call->ended = end;
    call->state = ok ? CALL_ASKED : CALL_DONE;
    if (ok)
        kernel_workers_add(&call->work);
}

static void wake(void *arg)
{
    struct parallel *p = arg;
    pthread_mutex_lock(&p->lock);
    pthread_cond_broadcast(&p->done);
    pthread_mutex_unlock(&p->lock);
}

/* Waits for the end of a call that a worker has begun; false when the run is cancelled first.
 */
static bool await(struct parallel *p, const struct call *call, struct error *err)
{
    struct cancel *cancel = p->it.pipeline->cancel;
    uint64_t ticket;
    if (cancel && !cancel_add(cancel, wake, p, &ticket))
        return fail(err, CANCELLED, "the run was cancelled");
    pthread_mutex_lock(&p->lock);
    while (call->state != CALL_DONE && !(cancel && cancel_requested(cancel)))
        pthread_cond_wait(&p->done, &p->lock);
    bool done = call->state == CALL_DONE;
    pthread_mutex_unlock(&p->lock);
    if (cancel)
        cancel_remove(cancel, ticket);
    return done || fail(err, CANCELLED, "the run was cancelled");
}

/* Any order will do: the first that is done changes places with the oldest. */
static void prefer_done(struct parallel *p)
{
    pthread_mutex_lock(&p->lock);
    int64_t i = 0;
    while (i < p->count && (*place(p, i))->state != CALL_DONE)
        i++;
    pthread_mutex_unlock(&p->lock);
    if (i == 0 || i == p->count)
        return;
    struct call *done = *place(p, i);
    *place(p, i) = *place(p, 0);
    *place(p, 0) = done;
}

/* The oldest call is over: what it gave, or its error, goes out. */
static bool give(struct parallel *p, struct tensor *out, bool *end, struct error *err)
{
    struct call *call = *place(p, 0);
    p->first = (p->first + 1) % map_of(p)->calls;
    p->count--;
    call->state = CALL_FREE;
    if (call->ok) {
        memcpy(out, call->results, (size_t)p->it.dataset->width * sizeof(*out));
        memset(call->results, 0, (size_t)p->it.dataset->width * sizeof(*out));
        return true;
    }
    *err = call->err;
    *end = call->of_input && call->ended;
    return !call->of_input && kernel_map_end_or_error(map_of(p), end, err);
}

static bool parallel_next(struct iterator *it, struct tensor *out, bool *end, struct error *err)
{
    struct parallel *p = (struct parallel *)it;
    while (p->count < map_of(p)->calls && !p->over)
        ask(p);
    *end = p->count == 0;
    if (*end)
        return true;
    if (map_of(p)->sloppy)
        prefer_done(p);
    struct call *call = *place(p, 0);
    if (kernel_workers_withdraw(&call->work))
        compute(call, it->pipeline);
    else if (!await(p, call, err))
        return false;
    return give(p, out, end, err);
}

/* --- the iterator --- */

static bool parallel_begin(struct iterator *it, struct error *err)
{
    (void)err;
    struct parallel *p = (struct parallel *)it;
    int64_t calls = map_of(p)->calls;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->done, NULL);
    kernel_pipeline_init(&p->pipeline, cancel_new());
    p->pipeline.root = it->pipeline->root ? it->pipeline->root : it->pipeline;
    p->ring = alloc_array((size_t)calls, sizeof(*p->ring));
    for (int64_t i = 0; i < calls; i++) {
        struct call *call = p->ring[i] = alloc_bytes(sizeof(*call));
        call->work.run = compute_as_worker;
        call->parallel = p;
        call->args = kernel_row_new(args_count(p));
        call->results = kernel_row_new(it->dataset->width);
    }
    return true;
}

/* Nobody asks any more: what has begun is ended, what has not is taken back. */
static void stop(struct parallel *p)
{
    cancel_now(p->pipeline.cancel);
    for (int64_t i = 0; i < p->count; i++) {
        struct call *call = *place(p, i);
        if (kernel_workers_withdraw(&call->work))
            continue;
        pthread_mutex_lock(&p->lock);
        while (call->state != CALL_DONE)
            pthread_cond_wait(&p->done, &p->lock);
        pthread_mutex_unlock(&p->lock);
    }
}

static void parallel_end(struct iterator *it)
{
    struct parallel *p = (struct parallel *)it;
    if (!p->ring)
        return;
    stop(p);
    for (int64_t i = 0; i < map_of(p)->calls; i++) {
        struct call *call = p->ring[i];
        kernel_row_release(call->args, args_count(p));
        kernel_row_release(call->results, it->dataset->width);
        free(call->args);
        free(call->results);
        free(call);
    }
    free(p->ring);
    cancel_free(p->pipeline.cancel);
    kernel_pipeline_release(&p->pipeline);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->done);
}

const struct dataset_type kernel_parallel_map_type = {
    .name = "ParallelMap",
    .dataset_size = sizeof(struct map),
    .iterator_size = sizeof(struct parallel),
    .begin = parallel_begin,
    .next = parallel_next,
    .end = parallel_end,
    .cardinality = kernel_map_cardinality,
    .release = kernel_map_release,
};
