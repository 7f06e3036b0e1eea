/* scheduler_pass.c - one look at the queue: who starts now. */

#include "base/alloc.h"
#include "base/limits.h"
#include "scheduler/internal.h"

/* Needs that did not fit in this pass: the same ones need not be tried again, room only
 * shrinks. */
#define REFUSED_MAX 16
struct refused {
    const struct job *jobs[REFUSED_MAX];
    int count;
};

/* Writes what each node offers into s->fit. */
static void pass_offers(struct scheduler *s)
{
    if (s->nodes_count > s->fit_capacity) {
        s->fit_capacity = s->nodes_capacity;
        s->fit = alloc_resize(s->fit, (size_t)s->fit_capacity * sizeof(*s->fit));
        s->fit_scratch =
            alloc_resize(s->fit_scratch, (size_t)s->fit_capacity * sizeof(*s->fit_scratch));
    }
    for (int i = 0; i < s->nodes_count; i++) {
        const struct node *node = s->nodes[i];
        struct fit_node *fit = &s->fit[i];
        fit->offered = scheduler_node_offers(node);
        fit->free = node->capacity;
        fit->free.cpu_millis -= node->used.cpu_millis;
        fit->free.memory_bytes -= node->used.memory_bytes;
        fit->free.gpus -= node->used.gpus;
    }
}

static bool same_needs(const struct job *a, const struct job *b)
{
    if (a->needs_count != b->needs_count)
        return false;
    for (int i = 0; i < a->needs_count; i++) {
        const struct scheduler_need *x = &a->needs[i], *y = &b->needs[i];
        if (x->replicas != y->replicas || x->each.cpu_millis != y->each.cpu_millis ||
            x->each.memory_bytes != y->each.memory_bytes || x->each.gpus != y->each.gpus)
            return false;
    }
    return true;
}

static bool was_refused(const struct refused *refused, const struct job *job)
{
    for (int i = 0; i < refused->count; i++) {
        if (same_needs(refused->jobs[i], job))
            return true;
    }
    return false;
}

/* Waits so long already that nobody may overtake it, unless it can never start at all. */
static bool blocks_others(struct scheduler *s, const struct job *job, uint64_t now_us)
{
    return now_us - job->queued_us >= s->options.overtake_us &&
           scheduler_possible(s, job->needs, job->needs_count);
}

void scheduler_pass(struct scheduler *s, uint64_t now_us, struct scheduler_actions *actions)
{
    s->dirty = false;
    struct refused refused = {.count = 0};
    int placement[LIMIT_JOB_TASKS];
    pass_offers(s);
    for (int i = 0; i < s->queue.count;) {
        struct job *job = s->queue.jobs[i];
        if (job->retry_us > now_us) {
            i++;
        } else if (!was_refused(&refused, job) &&
                   fit_job(job->needs, job->needs_count, s->fit, s->nodes_count, s->fit_scratch,
                           placement)) {
            scheduler_job_start(s, job, placement, now_us, actions); /* leaves the queue */
            memcpy(s->fit, s->fit_scratch, (size_t)s->nodes_count * sizeof(*s->fit));
        } else {
            if (refused.count < REFUSED_MAX && !was_refused(&refused, job))
                refused.jobs[refused.count++] = job;
            if (blocks_others(s, job, now_us))
                return;
            i++;
        }
    }
}

bool scheduler_possible(const struct scheduler *s, const struct scheduler_need *needs,
                        int needs_count)
{
    int placement[LIMIT_JOB_TASKS];
    struct fit_node *nodes = alloc_array((size_t)s->nodes_count * 2, sizeof(*nodes));
    for (int i = 0; i < s->nodes_count; i++) {
        nodes[i].offered = true;
        nodes[i].free = s->nodes[i]->capacity;
    }
    bool possible =
        fit_job(needs, needs_count, nodes, s->nodes_count, nodes + s->nodes_count, placement);
    free(nodes);
    return possible;
}
