/*
 * worker_partial.c - runs of a part in several calls.
 *
 * DESIGN: the first call starts the plan as a run of its own that sends and receives nothing.
 * Each call puts its values into the step's rendezvous and takes those that it names, on no
 * thread; the last one is answered when the plan has ended.  A plan whose calls stay away is
 * ended with its session, or, when another begins, after LIMIT_PARTIAL_IDLE_MS.
 */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "runtime/worker/internal.h"

struct worker_partial {
    struct worker_partial *next; /* of the worker's */
    struct worker_step *step;    /* counted until the plan has ended */
    struct worker_run plan;
    char *session, *graph;

    /* guarded by the worker's steps' lock: */
    struct call *calls; /* those that wait */
    uint64_t idle_since_us;
    bool ended; /* the plan has */
    struct error err;
};

/* A call until it is answered. */
struct call {
    struct call *next;
    struct worker_partial *partial;
    struct worker_run *run;
    struct end {
        struct call *call;
        struct tensor *out;
        const char *key;
    } * ends;
    int open; /* receives that have not come, and who looks at them */
    struct error err;
};

static void lock(const struct worker_partial *partial)
{
    pthread_mutex_lock(&partial->step->worker->steps.lock);
}

static void unlock(const struct worker_partial *partial)
{
    pthread_mutex_unlock(&partial->step->worker->steps.lock);
}

/* --- the end of a call --- */

static void note_locked(struct call *call, const struct error *err)
{
    if (call->err.code == OK)
        call->err = *err;
}

static bool is_answered_locked(const struct call *call)
{
    return !call->open && (!call->run->last || call->partial->ended);
}

static void unlink_locked(const struct call *call)
{
    struct call **at = &call->partial->calls;
    while (*at != call)
        at = &(*at)->next;
    *at = call->next;
    call->partial->idle_since_us = clock_monotonic_us();
}

/* Takes it off the list. */
static void answer(struct call *call)
{
    struct worker_run *run = call->run;
    struct worker_step *step = call->partial->step;
    struct error err = call->err;
    for (int i = 0; err.code != OK && i < run->receives_count; i++)
        tensor_release(&run->received[i]);
    free(call->ends);
    free(call);
    run->done(run, err.code == OK ? NULL : &err);
    worker_step_unref(step);
}

/* One less that is open. */
static void close_one(struct call *call, const struct error *err)
{
    struct worker_partial *partial = call->partial;
    lock(partial);
    if (err)
        note_locked(call, err);
    call->open--;
    bool answered = is_answered_locked(call);
    if (answered) {
        if (partial->err.code != OK)
            call->err = partial->err; /* the cause of what the receives were told */
        unlink_locked(call);
    }
    unlock(partial);
    if (answered)
        answer(call);
}

static void come(void *arg, const struct tensor *value, bool dead, const struct error *err)
{
    const struct end *end = arg;
    struct error bad;
    if (!err && dead) {
        (void)fail(&bad, INTERNAL, "The tensor returned for %s was not valid.", end->key);
        err = &bad;
    }
    if (!err)
        tensor_share(end->out, value);
    close_one(end->call, err);
}

/* The plan has ended, so what has not come will not. */
static void withdraw(struct call *call)
{
    const struct worker_step *step = call->partial->step;
    for (int i = 0; i < call->run->receives_count; i++) {
        struct end *end = &call->ends[i];
        struct error err;
        if (!rendezvous_withdraw(step->rendezvous, end->key, end))
            continue;
        (void)fail(&err, INVALID, "no node of the graph sends %s", end->key);
        close_one(call, &err);
    }
}

/* --- the plan --- */

static void unlist_locked(const struct worker_partial *partial)
{
    struct worker_partial **at = &partial->step->worker->steps.partials;
    while (*at != partial)
        at = &(*at)->next;
    *at = partial->next;
}

/* All that wait, kept until they are closed once more. */
static struct call **hold_calls_locked(const struct worker_partial *partial, int *count)
{
    *count = 0;
    for (const struct call *call = partial->calls; call; call = call->next)
        ++*count;
    struct call **calls = alloc_array((size_t)*count, sizeof(struct call *));
    int i = 0;
    for (struct call *call = partial->calls; call; call = call->next) {
        call->open++;
        calls[i++] = call;
    }
    return calls;
}

static void plan_ended(struct worker_run *run, const struct error *err)
{
    struct worker_partial *partial = run->arg;
    struct worker_step *step = partial->step;
    int count;
    lock(partial);
    partial->ended = true;
    if (err)
        partial->err = *err;
    unlist_locked(partial);
    struct call **calls = hold_calls_locked(partial, &count);
    unlock(partial);
    for (int i = 0; i < count; i++) {
        withdraw(calls[i]);
        close_one(calls[i], NULL);
    }
    free(calls);
    worker_step_unref(step);
}

static struct worker_partial *new_partial(const struct worker_run *run)
{
    struct worker_partial *partial = alloc_bytes(sizeof(*partial));
    partial->session = alloc_text(run->session);
    partial->graph = alloc_text(run->graph);
    partial->plan = (struct worker_run){.session = partial->session,
                                        .graph = partial->graph,
                                        .step_id = run->step_id,
                                        .done = plan_ended,
                                        .arg = partial};
    partial->err.code = OK;
    return partial;
}

void worker_partial_free(struct worker_partial *partial)
{
    if (!partial)
        return;
    assert(!partial->calls);
    free(partial->session);
    free(partial->graph);
    free(partial);
}

/* The call joins those of its step; true: it is the first, and its plan is to be started. */
static bool join(struct worker_step *step, struct call *call)
{
    struct steps *steps = &step->worker->steps;
    struct worker_partial *made = new_partial(call->run);
    pthread_mutex_lock(&steps->lock);
    bool first = !step->partial;
    if (first) {
        step->partial = made;
        step->references++;
        made->step = step;
        made->next = steps->partials;
        steps->partials = made;
    }
    call->partial = step->partial;
    call->next = step->partial->calls;
    step->partial->calls = call;
    pthread_mutex_unlock(&steps->lock);
    if (!first)
        worker_partial_free(made);
    return first;
}

/* --- a call --- */

static bool check_receives(const struct worker_run *run, struct error *err)
{
    for (int i = 0; i < run->receives_count; i++)
        if (!rendezvous_check_key(run->receive_keys[i], err))
            return false;
    return true;
}

static void take_receives(struct call *call, struct worker_step *step)
{
    int count = call->run->receives_count;
    lock(call->partial);
    call->open += count;
    unlock(call->partial);
    for (int i = 0; i < count; i++)
        rendezvous_receive_local(step->rendezvous, call->ends[i].key, come, &call->ends[i]);
    lock(call->partial);
    bool ended = call->partial->ended;
    unlock(call->partial);
    if (ended)
        withdraw(call);
}

static struct call *new_call(struct worker_run *run)
{
    struct call *call = alloc_bytes(sizeof(*call));
    *call = (struct call){.run = run, .open = 1, .err.code = OK};
    call->ends = alloc_array((size_t)run->receives_count, sizeof(*call->ends));
    for (int i = 0; i < run->receives_count; i++) {
        run->received[i] = (struct tensor){0};
        call->ends[i] = (struct end){call, &run->received[i], run->receive_keys[i]};
    }
    return call;
}

void worker_partial_run(struct worker *worker, struct worker_run *run)
{
    struct error err;
    worker_partial_sweep(worker, NULL);
    struct worker_step *step = worker_step_ref(worker, run->step_id, &err);
    if (!step) {
        run->done(run, &err);
        return;
    }
    struct call *call = new_call(run);
    if (join(step, call))
        worker_run_graph(worker, &call->partial->plan);
    bool ok = check_receives(run, &err) && worker_put_sends(run, step, &err);
    if (ok)
        take_receives(call, step);
    close_one(call, ok ? NULL : &err);
}

/* --- those that nobody goes on with --- */

static bool is_to_end_locked(const struct worker_partial *partial, const char *session)
{
    if (session)
        return !strcmp(partial->session, session);
    uint64_t idle_us = clock_monotonic_us() - partial->idle_since_us;
    return !partial->calls && idle_us >= (uint64_t)LIMIT_PARTIAL_IDLE_MS * 1000;
}

void worker_partial_sweep(struct worker *worker, const char *session)
{
    struct steps *steps = &worker->steps;
    pthread_mutex_lock(&steps->lock);
    int count = 0;
    for (const struct worker_partial *at = steps->partials; at; at = at->next)
        count += is_to_end_locked(at, session);
    int64_t *ids = count ? alloc_array((size_t)count, sizeof(int64_t)) : NULL;
    count = 0;
    for (const struct worker_partial *at = steps->partials; ids && at; at = at->next)
        if (is_to_end_locked(at, session))
            ids[count++] = at->step->id;
    pthread_mutex_unlock(&steps->lock);
    for (int i = 0; i < count; i++)
        worker_step_end(worker, ids[i]);
    free(ids);
}
