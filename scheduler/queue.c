/* queue.c - a sorted array. */

#include "scheduler/queue.h"
#include "base/alloc.h"
#include "scheduler/internal.h"

static bool job_before(const struct job *a, const struct job *b)
{
    int rank = scheduler_share_rank(a, b);
    if (rank)
        return rank > 0;
    return a->number < b->number;
}

/* How many jobs of the queue come before `job`. */
static int jobs_before(const struct queue *queue, const struct job *job)
{
    int low = 0, high = queue->count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (job_before(queue->jobs[middle], job))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void queue_release(struct queue *queue)
{
    free(queue->jobs);
    *queue = (struct queue){0};
}

void queue_add(struct queue *queue, struct job *job)
{
    int at = jobs_before(queue, job);
    assert(at == queue->count || queue->jobs[at] != job);
    queue->jobs = alloc_grow(queue->jobs, queue->count, &queue->capacity, sizeof(*queue->jobs));
    memmove(&queue->jobs[at + 1], &queue->jobs[at],
            (size_t)(queue->count - at) * sizeof(*queue->jobs));
    queue->jobs[at] = job;
    queue->count++;
}

void queue_remove(struct queue *queue, const struct job *job)
{
    int at = queue_position(queue, job);
    assert(at >= 0);
    queue->count--;
    memmove(&queue->jobs[at], &queue->jobs[at + 1],
            (size_t)(queue->count - at) * sizeof(*queue->jobs));
}

int queue_position(const struct queue *queue, const struct job *job)
{
    int at = jobs_before(queue, job);
    return at < queue->count && queue->jobs[at] == job ? at : -1;
}
