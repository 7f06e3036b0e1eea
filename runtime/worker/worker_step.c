/* worker_step.c - the steps that a worker takes part in, by their numbers. */

#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "runtime/cancel.h"
#include "runtime/worker/internal.h"
#include "runtime/worker/lent.h"

enum { BUCKETS = 1024, OVER = 4096, NO_STEP = -1 };

void worker_step_init(struct steps *steps)
{
    pthread_mutex_init(&steps->lock, NULL);
    steps->buckets = alloc_array(BUCKETS, sizeof(struct worker_step *));
    steps->over = alloc_array(OVER, sizeof(int64_t));
    for (int i = 0; i < OVER; i++)
        steps->over[i] = NO_STEP;
}

void worker_step_release(struct steps *steps)
{
    assert(!steps->count);
    pthread_mutex_destroy(&steps->lock);
    free(steps->buckets);
    free(steps->over);
}

static struct worker_step **find_locked(struct steps *steps, int64_t id)
{
    struct worker_step **at = &steps->buckets[(uint64_t)id % BUCKETS];
    while (*at && (*at)->id != id)
        at = &(*at)->next;
    return at;
}

/* Asks the task that the key names as its sender. */
static void fetch(void *arg, const char *key, rendezvous_receiver *receiver, void *receiver_arg)
{
    const struct worker_step *step = arg;
    const struct worker *worker = step->worker;
    for (int i = 0; i < worker->peers_count; i++) {
        struct worker_link *link = worker->peers[i];
        if (!rendezvous_key_is_from(key, link->task))
            continue;
        link->kind->receive(link, step->id, key, receiver, receiver_arg);
        return;
    }
    struct error err;
    (void)fail(&err, INVALID, "%s knows no task that sends %s", worker->task, key);
    receiver(receiver_arg, NULL, false, &err);
}

static struct worker_step *new_step(struct worker *worker, int64_t id)
{
    struct worker_step *step = alloc_bytes(sizeof(*step));
    step->id = id;
    step->worker = worker;
    step->rendezvous = rendezvous_new(worker->task, fetch, step);
    step->cancel = cancel_new();
    collective_init(&step->collective, worker, id);
    step->references = 1;
    return step;
}

struct worker_step *worker_step_ref(struct worker *worker, int64_t id, struct error *err)
{
    struct steps *steps = &worker->steps;
    pthread_mutex_lock(&steps->lock);
    struct worker_step **at = find_locked(steps, id);
    struct worker_step *step = *at;
    if (!step && steps->over[(uint64_t)id % OVER] == id) {
        (void)fail(err, ABORTED, EXECUTE_DERIVED "Cleanup %" PRId64, id);
    } else if (!step && steps->count >= LIMIT_WORKER_STEPS) {
        (void)fail(err, EXHAUSTED, "%s takes part in %d steps already", worker->task,
                   steps->count);
    } else if (!step) {
        step = *at = new_step(worker, id);
        steps->count++;
    }
    if (step)
        step->references++;
    pthread_mutex_unlock(&steps->lock);
    return step;
}

void worker_step_hold(struct worker_step *step)
{
    pthread_mutex_lock(&step->worker->steps.lock);
    step->references++;
    pthread_mutex_unlock(&step->worker->steps.lock);
}

void worker_step_unref(struct worker_step *step)
{
    struct steps *steps = &step->worker->steps;
    pthread_mutex_lock(&steps->lock);
    bool last = !--step->references;
    pthread_mutex_unlock(&steps->lock);
    if (!last)
        return;
    rendezvous_unref(step->rendezvous);
    cancel_free(step->cancel);
    collective_release(&step->collective);
    worker_partial_free(step->partial);
    free(step);
}

static void end_step(struct worker_step *step)
{
    struct error err;
    (void)fail(&err, ABORTED, EXECUTE_DERIVED "Cleanup %" PRId64, step->id);
    rendezvous_abort(step->rendezvous, &err);
    collective_abort(&step->collective, &err);
    cancel_now(step->cancel);
    worker_step_unref(step);
}

void worker_step_end(struct worker *worker, int64_t id)
{
    struct steps *steps = &worker->steps;
    pthread_mutex_lock(&steps->lock);
    struct worker_step **at = find_locked(steps, id);
    struct worker_step *step = *at;
    if (step) {
        *at = step->next;
        steps->count--;
    }
    steps->over[(uint64_t)id % OVER] = id;
    pthread_mutex_unlock(&steps->lock);
    if (step)
        end_step(step);
    lent_end_step(worker->lent, id);
}

bool worker_step_end_idle(struct worker_step *step)
{
    struct worker *worker = step->worker;
    if (rendezvous_count(step->rendezvous) || lent_has_step(worker->lent, step->id))
        return false;
    worker_step_end(worker, step->id);
    return true;
}

bool worker_step_is_over(struct worker *worker, int64_t id)
{
    struct steps *steps = &worker->steps;
    pthread_mutex_lock(&steps->lock);
    bool over = steps->over[(uint64_t)id % OVER] == id;
    pthread_mutex_unlock(&steps->lock);
    return over;
}

void worker_step_end_all(struct worker *worker)
{
    struct steps *steps = &worker->steps;
    for (int i = 0; i < BUCKETS; i++) {
        pthread_mutex_lock(&steps->lock);
        struct worker_step *ended = steps->buckets[i];
        steps->buckets[i] = NULL;
        for (struct worker_step *step = ended; step; step = step->next)
            steps->count--;
        pthread_mutex_unlock(&steps->lock);
        while (ended) {
            struct worker_step *step = ended;
            ended = step->next;
            end_step(step);
        }
    }
}
