/*
 * cluster_partial.c - a run in several calls over several tasks.
 *
 * DESIGN: it is one step, whose parts all start at its first call and wait for what is fed.
 * Feeds and fetches pass through the client's task, where a call puts them into the step's
 * rendezvous and takes them out; the other tasks see nothing special.
 */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/cancel.h"
#include "runtime/cluster/internal.h"
#include "runtime/partial_names.h"
#include "runtime/session.h"

/* A tensor that the step gives to its client, perhaps by several names. */
struct end {
    struct cluster_step *step;
    bool asked, came; /* guarded by the step's lock, as all here */
    bool dead;
    struct tensor value;
    struct error err; /* OK: none */
};

struct cluster_partial {
    struct cluster_session *session;
    struct cluster_plan *plan;
    struct arena *arena; /* of the names */
    struct session_run names;
    struct partial_names used;
    struct cluster_step step;
    struct end *ends; /* by fetch of the plan */
    bool begun, over; /* the step has */
    bool failed;
    struct error err; /* when failed */
};

static const char *const *copy_names(struct arena *arena, const char *const *names, int count)
{
    const char **copies = arena_array(arena, (size_t)count, sizeof(*copies));
    for (int i = 0; i < count; i++)
        copies[i] = arena_text(arena, names[i]);
    return copies;
}

struct cluster_partial *cluster_partial_new(struct cluster_session *session,
                                            const struct session_run *names, struct error *err)
{
    struct cluster_plan *plan = cluster_session_plan(session, names, true, err);
    if (!plan)
        return NULL;
    if (!session->links[0]->kind->send)
        return fail_null(err, UNIMPLEMENTED, "a partial run needs its client's task here");
    struct cluster_partial *partial = alloc_bytes(sizeof(*partial));
    partial->session = session;
    partial->plan = plan;
    partial->arena = arena_new();
    partial->names = (struct session_run){
        .feeds = copy_names(partial->arena, names->feeds, names->feeds_count),
        .feeds_count = names->feeds_count,
        .fetches = copy_names(partial->arena, names->fetches, names->fetches_count),
        .fetches_count = names->fetches_count,
    };
    partial_names_init(&partial->used, &partial->names);
    partial->ends = alloc_array((size_t)plan->ends.fetches_count + 1, sizeof(*partial->ends));
    cluster_step_init(&partial->step, session, plan, NULL);
    for (int i = 0; i < plan->ends.fetches_count; i++)
        partial->ends[i] = (struct end){.step = &partial->step, .err.code = OK};
    return partial;
}

/* Nothing of it runs any more. */
static bool finish(struct cluster_partial *partial, bool in_time, const struct cancel *own,
                   const struct cancel *cancel, struct error *err)
{
    bool ok = cluster_step_finish(&partial->step, in_time, own, cancel, err);
    pthread_mutex_lock(&partial->step.lock);
    for (int i = 0; i < partial->plan->ends.fetches_count; i++)
        while (partial->ends[i].asked && !partial->ends[i].came)
            (void)cluster_step_wait_locked(&partial->step, 0); /* the end has told them all */
    pthread_mutex_unlock(&partial->step.lock);
    partial->over = true;
    return ok;
}

void cluster_partial_free(struct cluster_partial *partial)
{
    struct error ended;
    if (!partial)
        return;
    struct cancel *cancel = cancel_new();
    cancel_now(cancel);
    if (partial->begun && !partial->over)
        (void)!finish(partial, true, cancel, NULL, &ended);
    cancel_free(cancel);
    for (int i = 0; i < partial->plan->ends.fetches_count; i++)
        tensor_release(&partial->ends[i].value);
    cluster_step_release(&partial->step);
    partial_names_release(&partial->used);
    arena_free(partial->arena);
    free(partial->ends);
    free(partial);
}

bool cluster_partial_is_done(const struct cluster_partial *partial)
{
    return partial->failed || !partial->used.left;
}

/* --- a call --- */

static bool check_fetches(const struct cluster_partial *partial,
                          const struct partial_request *request, struct error *err)
{
    int feeds_count = partial->names.feeds_count;
    for (int i = 0; i < request->run->fetches_count; i++) {
        int fetch = request->fetches[i];
        const bool *needs = partial->plan->needs + (size_t)fetch * (size_t)feeds_count;
        for (int k = 0; k < feeds_count; k++)
            if (needs[k] && !request->fed[k])
                return partial_names_too_early(&partial->used, k, err);
    }
    return true;
}

static void come(void *arg, const struct tensor *value, bool dead, const struct error *err)
{
    struct end *end = arg;
    pthread_mutex_lock(&end->step->lock);
    end->came = true;
    end->dead = dead;
    if (err)
        end->err = *err;
    else if (!dead)
        tensor_share(&end->value, value);
    pthread_cond_signal(&end->step->changed);
    pthread_mutex_unlock(&end->step->lock);
}

static bool send_feeds(struct cluster_partial *partial, const struct partial_request *request,
                       struct error *err)
{
    const struct partition_parts *ends = &partial->plan->ends;
    struct worker_link *home = partial->session->links[0];
    bool ok = true;
    for (int i = 0; ok && i < request->run->feeds_count; i++)
        for (int k = 0; ok && k < ends->feeds_count; k++)
            if (ends->feeds[k].index == request->feeds[i])
                ok = home->kind->send(home, partial->step.id, ends->feeds[k].key,
                                      &request->run->feed_values[i], err);
    return ok;
}

static void ask_for_fetches(struct cluster_partial *partial,
                            const struct partial_request *request)
{
    const struct partition_parts *ends = &partial->plan->ends;
    struct worker_link *home = partial->session->links[0];
    for (int i = 0; i < request->run->fetches_count; i++) {
        int which = ends->fetch_of[request->fetches[i]];
        struct end *end = &partial->ends[which];
        if (end->asked)
            continue;
        end->asked = true;
        home->kind->receive(home, partial->step.id, ends->fetches[which].key, come, end);
    }
}

static bool is_answered_locked(const struct cluster_partial *partial,
                               const struct partial_request *request)
{
    for (int i = 0; i < request->run->fetches_count; i++)
        if (!partial->ends[partial->plan->ends.fetch_of[request->fetches[i]]].came)
            return false;
    return partial->used.left || !partial->step.running;
}

/* Until what is fetched is there, and after the last of it all parts are done. */
static bool await(struct cluster_partial *partial, const struct partial_request *request,
                  uint64_t deadline_ns)
{
    struct cluster_step *step = &partial->step;
    bool in_time = true, answered;
    pthread_mutex_lock(&step->lock);
    while (!(answered = is_answered_locked(partial, request)) && !step->failed && in_time)
        in_time = cluster_step_wait_locked(step, deadline_ns);
    pthread_mutex_unlock(&step->lock);
    return in_time || answered;
}

static bool give_fetched(struct cluster_partial *partial, const struct partial_request *request,
                         struct tensor *fetched, struct error *err)
{
    for (int i = 0; i < request->run->fetches_count; i++) {
        int fetch = request->fetches[i];
        struct end *end = &partial->ends[partial->plan->ends.fetch_of[fetch]];
        fetched[i] = (struct tensor){0};
        bool ok = end->err.code == OK || fail(err, end->err.code, "%s", end->err.text);
        if (ok && end->dead)
            ok = fail(err, INTERNAL, "The tensor returned for %s was not valid.",
                      partial->names.fetches[fetch]);
        if (ok && execute_fetch(&end->value, false, &fetched[i], err))
            continue;
        while (i > 0)
            tensor_release(&fetched[--i]);
        return false;
    }
    return true;
}

static bool go_on(struct cluster_partial *partial, const struct partial_request *request,
                  const struct cancel *own, struct tensor *fetched, struct error *err)
{
    const struct session_run *run = request->run;
    uint64_t deadline_ns =
        run->timeout_ms > 0 ? clock_monotonic_ns() + (uint64_t)run->timeout_ms * 1000000 : 0;
    if (!partial->begun)
        cluster_step_start(&partial->step, false);
    partial->begun = true;
    struct error unsent;
    bool sent = send_feeds(partial, request, &unsent);
    ask_for_fetches(partial, request);
    bool in_time = !sent || await(partial, request, deadline_ns);
    pthread_mutex_lock(&partial->step.lock);
    bool goes_on =
        sent && in_time && !partial->step.failed && is_answered_locked(partial, request);
    pthread_mutex_unlock(&partial->step.lock);
    if (!goes_on || !partial->used.left) {
        bool ok = finish(partial, in_time, own, run->cancel, err);
        if (!ok || !sent)
            return ok ? fail(err, unsent.code, "%s", unsent.text) : false;
    }
    return give_fetched(partial, request, fetched, err);
}

/* With what may end it while it waits. */
static bool go_on_watched(struct cluster_partial *partial,
                          const struct partial_request *request, struct cancel *own,
                          struct tensor *fetched, struct error *err)
{
    struct cancel *cancel = request->run->cancel;
    uint64_t own_ticket, ticket;
    if (!cancel_add(own, cluster_step_wake, &partial->step, &own_ticket))
        return fail(err, CANCELLED, "the run was cancelled before it began");
    bool watched = cancel && cancel_add(cancel, cluster_step_wake, &partial->step, &ticket);
    bool ok = !cancel || watched || fail(err, CANCELLED, "the run was cancelled");
    if (ok)
        ok = go_on(partial, request, own, fetched, err);
    if (watched)
        (void)cancel_remove(cancel, ticket);
    (void)cancel_remove(own, own_ticket);
    return ok;
}

bool cluster_partial_run(struct cluster_partial *partial, const struct session_run *run,
                         struct tensor *fetched, struct error *err)
{
    struct partial_request request;
    if (partial->failed) {
        *err = partial->err;
        return false;
    }
    struct running *running = runs_begin(&partial->session->runs, err);
    if (!running)
        return false;
    bool ok = partial_names_find(&partial->used, run, &request, err) &&
              check_fetches(partial, &request, err);
    if (ok) {
        partial_names_use(&partial->used, &request);
        ok = go_on_watched(partial, &request, running->cancel, fetched, err);
        if (!ok)
            (void)runs_explain(&partial->session->runs, err);
        partial->failed = !ok;
        if (!ok)
            partial->err = *err;
    }
    partial_names_done(&request);
    runs_end(&partial->session->runs, running);
    return ok;
}
