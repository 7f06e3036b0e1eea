/*
 * scheduler_reserve.c - when the first job that must wait can start, by the time limits of
 * those that hold what it needs; and what is left beside it then.
 */

#include "base/alloc.h"
#include "base/limits.h"
#include "scheduler/internal.h"

#define FIRST_STEP 64

struct holder {
    uint64_t ends_us;
    const struct job *job;
};

static uint64_t left_us(const struct scheduler *s, const struct job *job)
{
    return (job->stop_us > job->ran_us ? job->stop_us - job->ran_us : 0) + s->options.grace_us;
}

uint64_t scheduler_reserve_end_us(const struct scheduler *s, const struct job *job,
                                  uint64_t now_us)
{
    uint64_t end_us = UINT64_MAX;
    if (job->state == JOB_STOPPING && job->unkillable_us != UINT64_MAX)
        end_us = job->unkillable_us - s->options.unkillable_us;
    else if (job->state != JOB_STOPPING && job->stop_us)
        end_us = (job->runs ? job->running_us : now_us) + left_us(s, job);
    return end_us < now_us ? now_us : end_us;
}

/* --- who ends when --- */

/* Those that hold something: a heap by their ends, of which the first `sorted` were taken. */
struct holders {
    struct holder *heap;
    int left;
    struct holder *sorted;
    int sorted_count;
    int count;
};

static bool ends_before(const struct holder *a, const struct holder *b)
{
    return a->ends_us != b->ends_us ? a->ends_us < b->ends_us : a->job->number < b->job->number;
}

static void sift_down(struct holder *heap, int count, int at)
{
    for (;;) {
        int first = at;
        for (int child = 2 * at + 1; child <= 2 * at + 2 && child < count; child++) {
            if (ends_before(&heap[child], &heap[first]))
                first = child;
        }
        if (first == at)
            return;
        struct holder keep = heap[at];
        heap[at] = heap[first];
        heap[first] = keep;
        at = first;
    }
}

static struct holders holders_new(const struct scheduler *s, uint64_t now_us)
{
    struct holders out = {.heap = alloc_array((size_t)s->jobs_count, sizeof(*out.heap)),
                          .sorted = alloc_array((size_t)s->jobs_count, sizeof(*out.sorted))};
    for (int i = 0; i < s->jobs_count; i++) {
        const struct job *job = s->jobs[i];
        if (job->state != JOB_QUEUED)
            out.heap[out.left++] =
                (struct holder){scheduler_reserve_end_us(s, job, now_us), job};
    }
    out.count = out.left;
    for (int at = out.left / 2 - 1; at >= 0; at--)
        sift_down(out.heap, out.left, at);
    return out;
}

static void holders_release(struct holders *holders)
{
    free(holders->heap);
    free(holders->sorted);
}

/* The one that ends after `index` others. */
static const struct holder *holder_at(struct holders *holders, int index)
{
    while (holders->sorted_count <= index) {
        holders->sorted[holders->sorted_count++] = holders->heap[0];
        holders->heap[0] = holders->heap[--holders->left];
        sift_down(holders->heap, holders->left, 0);
    }
    return &holders->sorted[index];
}

/* --- when there is room --- */

void scheduler_reserve_give(struct fit *fit, const struct job *job)
{
    for (int i = 0; i < job->tasks_count; i++) {
        const struct task *task = &job->tasks[i];
        if (task->state != TASK_EXITED)
            fit_give(&fit->nodes[task->node->at], &task->resources, task->gpu_share,
                     task->gpu_mask);
    }
}

/* Whether the head fits once those from `from` to before `to` have ended, too: the nodes are
 * in `later` then, with the head's room taken if it does. */
static bool fits_after(struct scheduler *s, const struct fit_ask *ask, struct holders *holders,
                       int from, int to)
{
    struct fit_place places[LIMIT_JOB_TASKS];
    fit_copy(&s->later, &s->spare);
    for (int i = from; i < to; i++)
        scheduler_reserve_give(&s->later, holder_at(holders, i)->job);
    s->later.most = s->most;
    return fit_job(ask, &s->later, places);
}

static void swap_views(struct scheduler *s)
{
    struct fit keep = s->spare;
    s->spare = s->later;
    s->later = keep;
}

/*
 * How few of the holders must have ended; -1: it does not fit even after all.  In growing
 * steps, for it is few as a rule; then between the last two.  What is known not to be enough
 * stays given in `spare`.  The head's room is taken from `spare` in the end.
 */
static int fewest(struct scheduler *s, const struct fit_ask *ask, struct holders *holders)
{
    int given = 0, step = FIRST_STEP, high = holders->count < step ? holders->count : step;
    while (!fits_after(s, ask, holders, given, high)) {
        if (high == holders->count)
            return -1;
        swap_views(s);
        given = high;
        step *= 2;
        high = holders->count - given < step ? holders->count : given + step;
    }
    int low = given;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (fits_after(s, ask, holders, given, middle)) {
            high = middle;
        } else {
            swap_views(s);
            given = middle;
            low = middle + 1;
        }
    }
    bool fits = fits_after(s, ask, holders, given, low);
    swap_views(s);
    return fits ? low : -1;
}

bool scheduler_reserve(struct scheduler *s, const struct job *head, uint64_t now_us,
                       uint64_t *start_us)
{
    struct fit_ask ask = scheduler_books_ask(head);
    struct holders holders = holders_new(s, now_us);
    scheduler_books_offers(s, &s->spare);
    int low = fewest(s, &ask, &holders);
    if (low >= 0)
        *start_us = low ? holder_at(&holders, low - 1)->ends_us : now_us;
    for (int i = low; i >= 0 && i < holders.count; i++) {
        const struct holder *holder = holder_at(&holders, i);
        if (holder->ends_us > *start_us)
            break;
        scheduler_reserve_give(&s->spare, holder->job);
    }
    holders_release(&holders);
    return low >= 0;
}

void scheduler_reserve_limit(struct scheduler *s, int node)
{
    struct fit_node *out = &s->later.nodes[node];
    const struct fit_node *a = &s->fit.nodes[node], *b = &s->spare.nodes[node];
    *out = *a;
    if (b->free.cpu_millis < out->free.cpu_millis)
        out->free.cpu_millis = b->free.cpu_millis;
    if (b->free.memory_bytes < out->free.memory_bytes)
        out->free.memory_bytes = b->free.memory_bytes;
    out->free.gpus = 0;
    for (int g = 0; g < out->gpus_count; g++) {
        if (b->gpu_free[g] < out->gpu_free[g])
            out->gpu_free[g] = b->gpu_free[g];
        out->free.gpus += out->gpu_free[g] == SCHEDULER_GPU_WHOLE;
    }
}
