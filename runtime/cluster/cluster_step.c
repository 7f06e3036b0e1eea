/*
 * cluster_step.c - one step of a cluster session: all parts run at once, their ends are
 * gathered.
 *
 * The thread that runs the step runs the part of its own task, which spares two threads to
 * wake, then waits; what ends another part comes by a callback.  (A step with a time limit has
 * a thread that waits alone.)  At the first failure (or a cancel, or when time is up) the step
 * is cleaned up on all workers, which ends the parts that still run; so the step is over when
 * all have answered.
 */

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "proto/attention.h"
#include "runtime/cancel.h"
#include "runtime/cluster/account.h"
#include "runtime/cluster/internal.h"
#include "runtime/session.h"
#include "runtime/statistics.h"
#include "runtime/waits.h"

static int64_t new_step_id(void)
{
    uint64_t id = 0;
    ssize_t got = getrandom(&id, sizeof(id), 0);
    assert(got == (ssize_t)sizeof(id));
    return (int64_t)(id >> 7);
}

static void clean_up(const struct cluster_step *step)
{
    for (int i = 0; i < step->plan->parts_count; i++) {
        struct worker_link *link = step->plan->parts[i].link;
        link->kind->cleanup_graph(link, step->id);
    }
}

/* The same where the step is not over, when nothing runs any more. */
static void clean_up_rest(const struct cluster_step *step)
{
    for (int i = 0; i < step->plan->parts_count; i++) {
        struct worker_link *link = step->plan->parts[i].link;
        if (!step->parts[i].run.ended)
            link->kind->cleanup_graph(link, step->id);
    }
}

static void changed_locked(struct cluster_step *step)
{
    pthread_cond_signal(&step->changed);
    if (step->attention)
        attention_call(step->attention);
}

static void part_done(struct worker_run *run, const struct error *err)
{
    struct cluster_step_part *part = run->arg;
    struct cluster_step *step = part->step;
    uint64_t after_ns = clock_monotonic_ns() - step->begun_ns;
    if (err && step->is_here)
        clean_up(step);
    pthread_mutex_lock(&step->lock);
    part->after_ns = after_ns;
    part->bad = err;
    if (err) {
        part->err = *err;
        if (step->abandoned && err->code == CANCELLED && !cluster_outcome_is_derived(err))
            (void)error_prefix(&part->err, EXECUTE_DERIVED);
        step->failed = true;
    }
    step->running--;
    changed_locked(step);
    pthread_mutex_unlock(&step->lock);
}

void cluster_step_wake(void *arg)
{
    struct cluster_step *step = arg;
    if (step->is_here)
        clean_up(step);
    pthread_mutex_lock(&step->lock);
    step->failed = true;
    changed_locked(step);
    pthread_mutex_unlock(&step->lock);
}

/* --- before and after --- */

void cluster_step_init(struct cluster_step *step, struct cluster_session *session,
                       struct cluster_plan *plan, const struct session_run *run)
{
    const struct partition_parts *ends = &plan->ends;
    pthread_condattr_t attr;
    *step = (struct cluster_step){.plan = plan, .id = new_step_id()};
    cluster_collective_begin(session, step);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&step->lock, NULL);
    pthread_cond_init(&step->changed, &attr);
    pthread_condattr_destroy(&attr);
    step->parts = alloc_array((size_t)plan->parts_count, sizeof(*step->parts));
    step->received = alloc_array((size_t)ends->fetches_count, sizeof(*step->received));
    step->receive_keys = alloc_array((size_t)ends->fetches_count, sizeof(char *));
    step->send_keys = alloc_array((size_t)ends->feeds_count, sizeof(char *));
    step->sends = alloc_array((size_t)ends->feeds_count, sizeof(*step->sends));
    for (int i = 0; i < ends->feeds_count; i++) {
        step->send_keys[i] = ends->feeds[i].key;
        if (run)
            step->sends[i] = run->feed_values[ends->feeds[i].index];
    }
    for (int i = 0; i < ends->fetches_count; i++)
        step->receive_keys[i] = ends->fetches[i].key;
    for (int i = 0; i < plan->parts_count; i++) {
        struct cluster_step_part *part = &step->parts[i];
        bool home = run && plan->parts[i].home;
        part->step = step;
        part->run = (struct worker_run){
            .session = session->handle,
            .graph = plan->parts[i].handle,
            .step_id = step->id,
            .send_keys = step->send_keys,
            .sends = step->sends,
            .sends_count = home ? ends->feeds_count : 0,
            .receive_keys = step->receive_keys,
            .received = step->received,
            .receives_count = home ? ends->fetches_count : 0,
            .waits = run && run->account ? &part->waits : NULL,
            .step_stats = run && run->trace ? &part->step_stats : NULL,
            .may_end = run,
            .done = part_done,
            .arg = part,
        };
    }
}

void cluster_step_release(struct cluster_step *step)
{
    cluster_collective_end(step);
    for (int i = 0; i < step->plan->ends.fetches_count; i++)
        tensor_release(&step->received[i]);
    for (int i = 0; i < step->plan->parts_count; i++) {
        str_release(&step->parts[i].step_stats);
        waits_release(&step->parts[i].waits);
    }
    pthread_mutex_destroy(&step->lock);
    pthread_cond_destroy(&step->changed);
    free(step->parts);
    free(step->received);
    free(step->receive_keys);
    free(step->send_keys);
    free(step->sends);
}

/* --- the outcome --- */

static bool report(const struct cluster_step *step, struct error *err)
{
    int count = step->plan->parts_count;
    struct cluster_outcome *parts = alloc_array((size_t)count, sizeof(*parts));
    for (int i = 0; i < count; i++) {
        parts[i].task = step->plan->parts[i].link->task;
        parts[i].err = step->parts[i].bad ? &step->parts[i].err : NULL;
    }
    bool ok = cluster_outcome_report(parts, count, err);
    free(parts);
    return ok;
}

/* What a worker has not given up by now, it is told to. */
static void abandon_parts(const struct cluster_step *step)
{
    for (int i = 0; i < step->plan->parts_count; i++) {
        struct worker_link *link = step->plan->parts[i].link;
        if (link->kind->abandon_run)
            link->kind->abandon_run(link, &step->parts[i].run);
    }
}

bool cluster_step_wait_locked(struct cluster_step *step, uint64_t until_ns)
{
    const struct timespec end = {.tv_sec = (time_t)(until_ns / 1000000000),
                                 .tv_nsec = (long)(until_ns % 1000000000)};
    int result = until_ns ? pthread_cond_timedwait(&step->changed, &step->lock, &end)
                          : pthread_cond_wait(&step->changed, &step->lock);
    return result != ETIMEDOUT;
}

/*
 * The step ends early: all workers clean up, and those that take long are told again.  One that
 * was `given_up` is told at once: whoever gave it up may go on, and a kernel of a stock task
 * that still waits, which no cleaning up ends, would take what is meant for his next step.
 */
static void end_parts_locked(struct cluster_step *step, bool given_up)
{
    pthread_mutex_unlock(&step->lock);
    clean_up(step);
    uint64_t until_ns = clock_monotonic_ns() + LIMIT_CLEANUP_MS * UINT64_C(1000000);
    pthread_mutex_lock(&step->lock);
    while (step->running && !given_up && cluster_step_wait_locked(step, until_ns))
        ;
    if (!step->running)
        return;
    step->abandoned = true;
    pthread_mutex_unlock(&step->lock);
    abandon_parts(step);
    pthread_mutex_lock(&step->lock);
    while (step->running)
        (void)cluster_step_wait_locked(step, 0);
}

/* The own part comes last: its thread may take this one's processor before the others know. */
void cluster_step_start(struct cluster_step *step, bool here)
{
    const struct cluster_plan *plan = step->plan;
    struct cluster_step_part *own = NULL;
    step->is_here = here;
    step->running = plan->parts_count;
    step->begun_ns = clock_monotonic_ns();
    attention_keep(true);
    for (int i = 0; i < plan->parts_count; i++) {
        struct worker_link *link = plan->parts[i].link;
        if (plan->parts[i].home)
            own = &step->parts[i];
        else
            link->kind->run_graph(link, &step->parts[i].run);
    }
    attention_keep(false);
    if (!own || !here)
        attention_send();
    if (!own)
        return;
    struct worker_link *link = plan->parts[own - step->parts].link;
    if (here && link->kind->run_graph_here)
        link->kind->run_graph_here(link, &own->run);
    else
        link->kind->run_graph(link, &own->run);
}

static bool needs_a_look(void *arg)
{
    struct cluster_step *step = arg;
    pthread_mutex_lock(&step->lock);
    bool needs = !step->running || step->failed;
    pthread_mutex_unlock(&step->lock);
    return needs;
}

/* The end of a part may come by a call that this thread has begun. */
static void attend_locked(struct cluster_step *step, uint64_t deadline_ns)
{
    step->attention = attention_mine();
    if (!step->attention)
        return;
    pthread_mutex_unlock(&step->lock);
    attention_give(needs_a_look, step, deadline_ns);
    pthread_mutex_lock(&step->lock);
    step->attention = NULL;
}

/* Until all parts are done.  False when the time was up before they were. */
static bool wait_for_parts(struct cluster_step *step, uint64_t deadline_ns)
{
    bool in_time = true;
    pthread_mutex_lock(&step->lock);
    if (step->running && !step->failed)
        attend_locked(step, deadline_ns);
    while (step->running && !step->failed && in_time)
        in_time = cluster_step_wait_locked(step, deadline_ns) || !step->running;
    pthread_mutex_unlock(&step->lock);
    return in_time;
}

bool cluster_step_finish(struct cluster_step *step, bool in_time, const struct cancel *own,
                         const struct cancel *cancel, struct error *err)
{
    bool cancelled = cancel_requested(own) || (cancel && cancel_requested(cancel));
    pthread_mutex_lock(&step->lock);
    if (step->running)
        end_parts_locked(step, !in_time || cancelled);
    pthread_mutex_unlock(&step->lock);
    clean_up_rest(step);
    if (!in_time)
        return fail(err, DEADLINE, "Deadline Exceeded");
    if (cancelled || cancel_requested(own) || (cancel && cancel_requested(cancel)))
        return fail(err, CANCELLED, "the run was cancelled");
    return report(step, err);
}

/* Whether a later fetch of the run is the same. */
static bool is_wanted_again(const struct cluster_plan *plan, int index)
{
    for (int i = index + 1; i < plan->fetches_count; i++)
        if (plan->ends.fetch_of[i] == plan->ends.fetch_of[index])
            return true;
    return false;
}

static bool give_fetched(struct cluster_step *step, struct tensor *fetched, struct error *err)
{
    for (int i = 0; i < step->plan->fetches_count; i++) {
        struct tensor *received = &step->received[step->plan->ends.fetch_of[i]];
        fetched[i] = (struct tensor){0};
        if (execute_fetch(received, !is_wanted_again(step->plan, i), &fetched[i], err))
            continue;
        while (i > 0)
            tensor_release(&fetched[--i]);
        return false;
    }
    return true;
}

static void give_statistics(const struct cluster_step *step, struct str *out)
{
    for (int i = 0; i < step->plan->parts_count; i++) {
        const struct str *stats = &step->parts[i].step_stats;
        statistics_join(stats->data, stats->size, out);
    }
}

static void tell_account(const struct cluster_step *step, struct account *account)
{
    for (int i = 0; i < step->plan->parts_count; i++)
        account_part(account, step->plan->parts[i].link->task, &step->parts[i].waits,
                     step->parts[i].after_ns);
    account_step(account);
}

bool cluster_step_run(struct cluster_session *session, struct cluster_plan *plan,
                      const struct session_run *run, struct cancel *own, struct tensor *fetched,
                      struct error *err)
{
    struct cluster_step step;
    uint64_t deadline_ns =
        run->timeout_ms > 0 ? clock_monotonic_ns() + (uint64_t)run->timeout_ms * 1000000 : 0;
    uint64_t own_ticket, ticket;
    cluster_step_init(&step, session, plan, run);
    bool ok = false;
    if (step.refused) {
        *err = step.why;
    } else if (!cancel_add(own, cluster_step_wake, &step, &own_ticket)) {
        (void)fail(err, CANCELLED, "the run was cancelled before it began");
    } else if (run->cancel && !cancel_add(run->cancel, cluster_step_wake, &step, &ticket)) {
        (void)fail(err, CANCELLED, "the run was cancelled before it began");
        (void)cancel_remove(own, own_ticket);
    } else {
        attention_begin();
        cluster_step_start(&step, !deadline_ns);
        bool in_time = wait_for_parts(&step, deadline_ns);
        attention_end();
        ok = cluster_step_finish(&step, in_time, own, run->cancel, err);
        (void)cancel_remove(own, own_ticket);
        if (run->cancel)
            (void)cancel_remove(run->cancel, ticket);
        ok = ok && give_fetched(&step, fetched, err);
        if (ok && run->account)
            tell_account(&step, run->account);
        if (ok && run->trace && run->statistics)
            give_statistics(&step, run->statistics);
    }
    cluster_step_release(&step);
    return ok;
}
