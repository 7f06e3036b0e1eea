/*
 * scheduler_pass.c - one look at the queue: who starts now.
 *
 * The first job that must wait, the head, gets a reservation.  A later one may pass it only if
 * that does not delay the head: it ends in time, or it takes what the head leaves.  Where no
 * time limit says when the head can start, others pass it until it has waited `overtake_us`;
 * then nodes are kept for the first that has waited so long and needs whole ones.
 */

#include "base/limits.h"
#include "scheduler/internal.h"

#define REFUSED_MAX 64
#define HEADS_MAX 8 /* so many are tried that could not start on the nodes that are there */
#define KEEPS_MAX 8 /* and so many that wait long */

/* Needs that did not fit: room only shrinks, so those that ask for as much need not be tried.
 */
struct refused {
    const struct job *jobs[REFUSED_MAX];
    int count;
};

struct pass {
    struct scheduler *s;
    uint64_t now_us;
    struct scheduler_actions *actions;
    const struct job *head;
    int heads_tried;
    uint64_t start_us; /* of the head; UINT64_MAX: nobody knows */
    int keeps_tried;
    bool kept;             /* nodes, for one that waits long */
    bool strict;           /* nobody may delay the head */
    struct refused now;    /* in what is free */
    struct refused beside; /* in what is free and the head leaves */
};

static bool same_needs(const struct job *a, const struct job *b)
{
    if (a->needs_count != b->needs_count || a->spread != b->spread)
        return false;
    for (int i = 0; i < a->needs_count; i++) {
        if (!match_same(&a->needs[i], &b->needs[i]))
            return false;
    }
    return true;
}

static bool is_one_task(const struct job *job)
{
    return job->needs_count == 1 && job->needs[0].replicas == 1;
}

/* The one task of `small` found no room: then `job`, of which each task asks for as much, finds
 * none. */
static bool asks_as_much(const struct job *small, const struct job *job)
{
    for (int i = 0; i < job->needs_count; i++) {
        if (match_covers(&small->needs[0], &job->needs[i]))
            return true;
    }
    return false;
}

static bool was_refused(const struct refused *refused, const struct job *job)
{
    for (int i = 0; i < refused->count; i++) {
        const struct job *other = refused->jobs[i];
        if (is_one_task(other) ? asks_as_much(other, job) : same_needs(other, job))
            return true;
    }
    return false;
}

/* Remembers a job that found no room; those that it speaks for are forgotten. */
static void refuse(struct refused *refused, const struct job *job)
{
    int kept = 0;
    for (int i = 0; i < refused->count; i++) {
        const struct job *other = refused->jobs[i];
        if (!is_one_task(job) || !asks_as_much(job, other))
            refused->jobs[kept++] = other;
    }
    refused->count = kept;
    if (kept < REFUSED_MAX)
        refused->jobs[refused->count++] = job;
}

static bool fits_in(struct fit *fit, struct refused *refused, const struct job *job,
                    struct fit_place *places)
{
    struct fit_ask ask = scheduler_books_ask(job);
    if (was_refused(refused, job))
        return false;
    if (fit_job(&ask, fit, places))
        return true;
    if (!job->excluded_count) /* else others may go where it may not */
        refuse(refused, job);
    return false;
}

/* What was taken in one view of the nodes is taken in another. */
static void take_in(struct fit *fit, const struct job *job, const struct fit_place *places)
{
    for (int i = 0, at = 0; i < job->needs_count; i++) {
        for (int r = 0; r < job->needs[i].replicas; r++, at++)
            fit_take(&fit->nodes[places[at].node], &job->needs[i].each, job->needs[i].gpu_share,
                     places[at].gpu_mask);
    }
}

static bool ends_in_time(const struct pass *pass, const struct job *job)
{
    return pass->start_us != UINT64_MAX &&
           scheduler_reserve_end_us(pass->s, job, pass->now_us) <= pass->start_us;
}

static bool place(struct pass *pass, const struct job *job, struct fit_place *places)
{
    struct scheduler *s = pass->s;
    if (!pass->strict)
        return fits_in(&s->fit, &pass->now, job, places);
    if (ends_in_time(pass, job)) {
        if (!fits_in(&s->fit, &pass->now, job, places))
            return false;
    } else {
        if (!fits_in(&s->later, &pass->beside, job, places))
            return false;
        take_in(&s->fit, job, places);
        take_in(&s->spare, job, places);
    }
    for (int i = 0; i < job->tasks_max; i++)
        scheduler_reserve_limit(s, places[i].node);
    return true;
}

/* Nodes are kept for one job at a time. */
static void keep(struct pass *pass, const struct job *job)
{
    if (!pass->kept && scheduler_keep_suits(pass->s, job) && pass->keeps_tried++ < KEEPS_MAX)
        pass->kept = scheduler_keep(pass->s, job, pass->now_us);
}

/* The job must wait: is it the first that does so, and keeps room? */
static void must_wait(struct pass *pass, const struct job *job)
{
    struct scheduler *s = pass->s;
    bool late = pass->now_us - job->queued_us >= s->options.overtake_us;
    if (pass->head && !pass->strict && late)
        keep(pass, job);
    if (pass->head || pass->heads_tried == HEADS_MAX)
        return;
    pass->heads_tried++;
    if (job->lane->preempt)
        scheduler_preempt(s, job, pass->now_us, pass->actions);
    if (!scheduler_reserve(s, job, pass->now_us, &pass->start_us))
        return; /* not on the nodes that are there: it holds nobody up */
    pass->head = job;
    s->head = job->number;
    s->head_start_us = pass->start_us;
    bool known = pass->start_us != UINT64_MAX;
    if (!known && late)
        keep(pass, job);
    pass->strict = known || (late && !pass->kept);
    if (!pass->strict)
        return;
    fit_resize(&s->later, s->nodes_count);
    for (int n = 0; n < s->nodes_count; n++)
        scheduler_reserve_limit(s, n);
    fit_ready(&s->later);
}

void scheduler_pass(struct scheduler *s, uint64_t now_us, struct scheduler_actions *actions)
{
    struct pass pass = {.s = s, .now_us = now_us, .actions = actions};
    struct fit_place places[LIMIT_JOB_TASKS];
    s->dirty = false;
    s->head = s->kept_for = 0;
    if (!s->queue.count && !scheduler_alone_any(s))
        return;
    scheduler_books_offers(s, &s->fit);
    scheduler_alone_place(s, now_us, actions);
    scheduler_share_order(s, now_us);
    for (int i = 0; i < s->order_count; i++) {
        struct job *job = s->order[i];
        if (job->retry_us > now_us || !scheduler_share_allows(job))
            continue;
        if (place(&pass, job, places))
            scheduler_job_start(s, job, places, now_us, actions);
        else
            must_wait(&pass, job);
    }
}

bool scheduler_possible(const struct scheduler *s, const struct scheduler_need *needs,
                        int needs_count)
{
    struct fit_place places[LIMIT_JOB_TASKS];
    struct fit fit = {0};
    bool **suits = scheduler_books_suits(s, needs, needs_count);
    struct fit_ask ask = {.needs = needs, .needs_count = needs_count, .suits = suits};
    fit_resize(&fit, s->nodes_count);
    for (int i = 0; i < s->nodes_count; i++) {
        scheduler_books_read(s->nodes[i], true, &fit.nodes[i]);
        fit.nodes[i].offered = true;
    }
    fit_ready(&fit);
    bool possible = fit_job(&ask, &fit, places);
    scheduler_books_suits_free(suits, needs_count);
    fit_release(&fit);
    return possible;
}
