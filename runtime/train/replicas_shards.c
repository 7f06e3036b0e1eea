/*
 * replicas_shards.c - elastic steps: the batch of a step in as many shards as there are workers
 * in full number, taken in their order; each worker does its own, and those of workers that are
 * lost are done by whoever is free.  The update comes when all are there.
 */

#include "base/alloc.h"
#include "base/clock.h"
#include "runtime/dataset/dataset_batch.h"
#include "runtime/train/input.h"
#include "runtime/train/replicas_internal.h"
#include "runtime/train/runner.h"

static int there_locked(const struct replicas *all)
{
    int count = 0;
    for (int i = 0; i < all->options.calls_count; i++)
        count += all->hands[i].state != LOST;
    return count;
}

int replicas_shard_locked(const struct hand *hand)
{
    const struct replicas *all = hand->all;
    int own = (int)(hand - all->hands);
    if (!all->open || there_locked(all) < all->options.workers_min)
        return -1;
    if (all->shards[own].state == SHARD_WAITS)
        return own;
    for (int i = 0; i < all->options.shards; i++) {
        if (all->shards[i].state == SHARD_WAITS && all->hands[i].state == LOST)
            return i;
    }
    return -1;
}

void replicas_shard_left_locked(struct hand *hand)
{
    hand->all->shards[hand->shard].state = SHARD_WAITS;
}

void replicas_shard_done_locked(struct hand *hand)
{
    struct replicas *all = hand->all;
    struct shard *shard = &all->shards[hand->shard];
    memcpy(shard->fetched, hand->fetched,
           (size_t)all->options.fetches * sizeof(*shard->fetched));
    str_add_bytes(&all->statistics, hand->statistics.data, hand->statistics.size);
    str_clear(&hand->statistics);
    shard->state = SHARD_DONE;
    hand->state = IDLE;
}

static bool all_done_locked(const struct replicas *all)
{
    for (int i = 0; i < all->options.shards; i++) {
        if (all->shards[i].state != SHARD_DONE)
            return false;
    }
    return true;
}

/* One after the other, as a step of all workers at once would have them. */
static bool take_batches(struct replicas *all, struct error *err)
{
    const struct replicas_options *options = &all->options;
    for (int i = 0; i < options->shards; i++) {
        struct shard *shard = &all->shards[i];
        if (!shard->fetched)
            shard->fetched = alloc_array((size_t)options->fetches, sizeof(*shard->fetched));
        shard->batch = input_take(options->input, err);
        if (!shard->batch)
            return false;
    }
    return true;
}

/* The first worker, which is here, has the batches of all. */
static void add_input(struct replicas *all, uint64_t waited_us)
{
    pthread_mutex_lock(&all->lock);
    all->hands[0].input_us += waited_us;
    pthread_mutex_unlock(&all->lock);
}

static void give_back(struct replicas *all)
{
    for (int i = 0; i < all->options.shards; i++) {
        if (all->shards[i].batch)
            input_give_back(all->options.input, all->shards[i].batch);
        all->shards[i].batch = NULL;
    }
}

/* The shards are to be done, and are when this returns; false: it is over. */
static bool wait_for_shards(struct replicas *all, struct error *err)
{
    pthread_mutex_lock(&all->lock);
    for (int i = 0; i < all->options.shards; i++)
        all->shards[i].state = SHARD_WAITS;
    all->batches += all->options.shards;
    all->open = true;
    all->quiet = false;
    pthread_cond_broadcast(&all->changed);
    while (!all->over && !all_done_locked(all))
        pthread_cond_wait(&all->changed, &all->lock);
    all->open = false;
    bool ok = !all->over;
    if (!ok)
        *err = all->error;
    pthread_mutex_unlock(&all->lock);
    return ok;
}

/* The mean of the first value, the sums of the others. */
static void take_values(struct replicas *all, struct tensor *fetched, struct str *statistics)
{
    int shards = all->options.shards;
    for (int f = 0; f < all->options.fetches; f++) {
        fetched[f] = (struct tensor){0};
        for (int i = 0; i < shards; i++)
            replicas_add_values(&fetched[f], &all->shards[i].fetched[f]);
    }
    tensor_set_number(&fetched[0], 0, tensor_number(&fetched[0], 0) / shards);
    pthread_mutex_lock(&all->lock);
    all->step++;
    str_add_bytes(statistics, all->statistics.data, all->statistics.size);
    str_clear(&all->statistics);
    pthread_mutex_unlock(&all->lock);
}

bool replicas_next_shards(struct replicas *all, struct tensor *fetched, struct str *statistics,
                          struct error *err)
{
    const struct replicas_options *options = &all->options;
    uint64_t asked_us = clock_monotonic_us();
    bool ok = take_batches(all, err);
    add_input(all, clock_monotonic_us() - asked_us);
    ok = ok && wait_for_shards(all, err);
    if (ok) /* until here nothing has changed; this is the servers' alone */
        ok = runner_call(options->runner, options->update, NULL, NULL, NULL, err);
    if (ok)
        take_values(all, fetched, statistics);
    /* When it is over a worker may still read its batch: replicas_stop() gives those back. */
    if (ok)
        give_back(all);
    return ok;
}

void replicas_shards_free(struct replicas *all)
{
    if (!all->shards)
        return;
    give_back(all);
    for (int i = 0; i < all->options.shards; i++) {
        struct shard *shard = &all->shards[i];
        for (int f = 0; shard->fetched && f < all->options.fetches; f++)
            tensor_release(&shard->fetched[f]);
        free(shard->fetched);
    }
    free(all->shards);
}
