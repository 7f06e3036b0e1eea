/* replicas.c - see replicas.h. */

#include "runtime/train/replicas.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "runtime/cluster/account.h"
#include "runtime/dataset/dataset_batch.h"
#include "runtime/shape.h"
#include "runtime/train/input.h"
#include "runtime/train/replicas_internal.h"
#include "runtime/train/runner.h"

/* --- a worker --- */

bool replicas_run(struct hand *hand, struct dataset_batch *batch, int64_t number, bool traced,
                  struct error *err)
{
    const struct replicas_options *options = &hand->all->options;
    struct tensor fed = {0}, *feeds = batch->feeds, *both = NULL;
    bool ok = number < 0 || tensor_init(&fed, I64, &SHAPE_SCALAR, err);
    if (ok && number >= 0) {
        tensor_set_number(&fed, 0, (double)number);
        both = alloc_array((size_t)batch->feeds_count + 1, sizeof(*both));
        memcpy(both, batch->feeds, (size_t)batch->feeds_count * sizeof(*both));
        both[batch->feeds_count] = fed;
        feeds = both;
    }
    ok = ok && runner_call(options->runner, hand->call, feeds, hand->fetched,
                           traced ? &hand->statistics : NULL, err);
    free(both);
    tensor_release(&fed);
    return ok;
}

/* A step on the next batch; elastic on the shard that it has.  `*begun_us` is when it had it.
 */
static bool run(struct hand *hand, int64_t step, bool traced, uint64_t *begun_us,
                struct error *err)
{
    struct replicas *all = hand->all;
    if (all->shards)
        return replicas_run(hand, all->shards[hand->shard].batch, hand->shard, traced, err);
    struct dataset_batch *batch = input_take(all->options.input, err);
    *begun_us = clock_monotonic_us();
    if (!batch)
        return false;
    bool ok = replicas_run(hand, batch, all->options.update ? step : -1, traced, err);
    input_give_back(all->options.input, batch);
    return ok;
}

static bool may_begin_locked(const struct replicas *all, const struct hand *hand)
{
    if (hand->state != IDLE || all->quiet || all->step >= all->options.steps)
        return false;
    if (all->shards)
        return replicas_shard_locked(hand) >= 0;
    return !all->options.update || hand->step < all->step;
}

void replicas_add_values(struct tensor *sum, struct tensor *value)
{
    if (!sum->dtype) {
        *sum = *value;
        *value = (struct tensor){0};
        return;
    }
    for (int64_t i = 0; i < sum->count; i++)
        tensor_set_number(sum, i, tensor_number(sum, i) + tensor_number(value, i));
    tensor_release(value);
}

/* It has come for the step that is under way, or late. */
static void arrive_locked(struct replicas *all, struct hand *hand)
{
    bool late = hand->step != all->step;
    for (int i = 0; i < all->options.fetches; i++) {
        if (late)
            tensor_release(&hand->fetched[i]);
        else
            replicas_add_values(&all->sums[i], &hand->fetched[i]);
    }
    str_add_bytes(&all->statistics, hand->statistics.data, hand->statistics.size);
    str_clear(&hand->statistics);
    all->arrived += !late;
    all->late += late;
    hand->state = IDLE;
}

static void finish_locked(struct hand *hand, const struct error *err)
{
    struct replicas *all = hand->all;
    hand->state = IDLE;
    if (err) {
        if (!all->over)
            all->error = *err;
        all->over = true;
    } else if (all->shards) {
        replicas_shard_done_locked(hand);
    } else if (all->options.update) {
        arrive_locked(all, hand);
    } else {
        hand->order = all->done++;
        hand->state = DONE;
    }
    pthread_cond_broadcast(&all->changed);
}

/* --- its thread --- */

static void count_locked(struct hand *hand, uint64_t took_us)
{
    hand->took_us += took_us;
    hand->took_max_us = took_us > hand->took_max_us ? took_us : hand->took_max_us;
    hand->took_steps++;
}

static void *replicas_main(void *arg)
{
    struct hand *hand = arg;
    struct replicas *all = hand->all;
    const struct replicas_options *options = &all->options;
    struct error err;
    pthread_mutex_lock(&all->lock);
    while (!all->over) {
        if (!may_begin_locked(all, hand)) {
            pthread_cond_wait(&all->changed, &all->lock);
            continue;
        }
        if (all->shards) {
            hand->shard = replicas_shard_locked(hand);
            all->shards[hand->shard].state = SHARD_RUNS;
        } else {
            all->batches++;
        }
        all->step += !options->update;
        int64_t step = hand->step = all->step, number = step + (options->update != NULL);
        bool traced = options->trace_every && number % options->trace_every == 0;
        hand->state = RUNNING;
        pthread_mutex_unlock(&all->lock);
        uint64_t asked_us = clock_monotonic_us(), begun_us = asked_us;
        bool ok = run(hand, step, traced, &begun_us, &err);
        uint64_t took_us = clock_monotonic_us() - begun_us;
        pthread_mutex_lock(&all->lock);
        hand->input_us += begun_us - asked_us;
        if (ok)
            count_locked(hand, took_us);
        if (!ok && !all->over && replicas_recover_locked(hand, &err))
            continue;
        hand->failures = ok ? 0 : hand->failures;
        bool first = !ok && !all->over; /* later ones tell what that led to */
        finish_locked(hand, ok ? NULL : &err);
        if (first && options->update) {
            pthread_mutex_unlock(&all->lock);
            runner_cancel(options->runner); /* the update would wait for it */
            pthread_mutex_lock(&all->lock);
        }
    }
    pthread_mutex_unlock(&all->lock);
    return NULL;
}

struct replicas *replicas_start(const struct replicas_options *options, struct error *err)
{
    struct replicas *all = alloc_bytes(sizeof(*all));
    all->options = *options;
    all->step = options->step;
    all->quiet = true;
    all->hands = alloc_array((size_t)options->calls_count, sizeof(*all->hands));
    all->sums = alloc_array((size_t)options->fetches, sizeof(*all->sums));
    if (options->shards)
        all->shards = alloc_array((size_t)options->shards, sizeof(*all->shards));
    pthread_mutex_init(&all->lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&all->changed, &attr);
    pthread_condattr_destroy(&attr);
    for (int i = 0; i < options->calls_count; i++) {
        struct hand *hand = &all->hands[i];
        hand->all = all;
        hand->call = options->calls[i];
        hand->step = -1;
        hand->fetched = alloc_array((size_t)options->fetches, sizeof(*hand->fetched));
    }
    while (all->threads < options->calls_count) {
        struct hand *hand = &all->hands[all->threads];
        if (pthread_create(&hand->thread, NULL, replicas_main, hand)) {
            fail(err, EXHAUSTED, "cannot start a thread for each of %d workers",
                 options->calls_count);
            replicas_stop(all);
            return NULL;
        }
        pthread_setname_np(hand->thread, "replica");
        all->threads++;
    }
    return all;
}

/* --- the loop's side --- */

/* The step that was done first; NULL: none is. */
static struct hand *first_done_locked(const struct replicas *all)
{
    struct hand *first = NULL;
    for (int i = 0; i < all->threads; i++) {
        struct hand *hand = &all->hands[i];
        if (hand->state == DONE && (!first || hand->order < first->order))
            first = hand;
    }
    return first;
}

static void go_on_locked(struct replicas *all)
{
    all->quiet = false;
    pthread_cond_broadcast(&all->changed);
}

static bool next_apart(struct replicas *all, struct tensor *fetched, struct str *statistics,
                       struct error *err)
{
    struct hand *hand;
    pthread_mutex_lock(&all->lock);
    if (all->quiet && !first_done_locked(all))
        go_on_locked(all);
    while (!(hand = first_done_locked(all)) && !all->over)
        pthread_cond_wait(&all->changed, &all->lock);
    if (hand) {
        memcpy(fetched, hand->fetched, (size_t)all->options.fetches * sizeof(*fetched));
        str_add_bytes(statistics, hand->statistics.data, hand->statistics.size);
        str_clear(&hand->statistics);
        hand->state = IDLE;
        pthread_cond_broadcast(&all->changed);
    } else {
        *err = all->error;
    }
    pthread_mutex_unlock(&all->lock);
    return hand;
}

/* What came of the step: the mean of the first value, the sums of the others. */
static void take_gathered_locked(struct replicas *all, struct tensor *fetched,
                                 struct str *statistics)
{
    for (int i = 0; i < all->options.fetches; i++) {
        fetched[i] = all->sums[i];
        all->sums[i] = (struct tensor){0};
    }
    tensor_set_number(&fetched[0], 0, tensor_number(&fetched[0], 0) / all->arrived);
    str_add_bytes(statistics, all->statistics.data, all->statistics.size);
    str_clear(&all->statistics);
    all->arrived = 0;
    all->step++;
    pthread_cond_broadcast(&all->changed);
}

static bool next_gathered(struct replicas *all, struct tensor *fetched, struct str *statistics,
                          struct error *err)
{
    pthread_mutex_lock(&all->lock);
    go_on_locked(all);
    pthread_mutex_unlock(&all->lock);
    bool ok = runner_call(all->options.runner, all->options.update, NULL, NULL, NULL, err);
    pthread_mutex_lock(&all->lock);
    while (ok && !all->over && all->arrived < all->options.needed)
        pthread_cond_wait(&all->changed, &all->lock);
    if (all->over)
        *err = all->error; /* the cause of whatever the update met */
    ok = ok && !all->over;
    if (ok)
        take_gathered_locked(all, fetched, statistics);
    pthread_mutex_unlock(&all->lock);
    return ok;
}

bool replicas_next(struct replicas *all, struct tensor *fetched, struct str *statistics,
                   struct error *err)
{
    if (all->shards)
        return replicas_next_shards(all, fetched, statistics, err);
    return all->options.update ? next_gathered(all, fetched, statistics, err)
                               : next_apart(all, fetched, statistics, err);
}

int replicas_quiet(struct replicas *all)
{
    int running, done;
    if (all->options.update) /* between two updates nothing changes */
        return 0;
    pthread_mutex_lock(&all->lock);
    all->quiet = true;
    for (;;) {
        running = done = 0;
        for (int i = 0; i < all->threads; i++) {
            running += all->hands[i].state == RUNNING;
            done += all->hands[i].state == DONE;
        }
        if (!running)
            break;
        pthread_cond_wait(&all->changed, &all->lock);
    }
    pthread_mutex_unlock(&all->lock);
    return done;
}

int replicas_arrivals(struct replicas *all, struct account_arrival *arrivals, int max)
{
    int count = 0;
    pthread_mutex_lock(&all->lock);
    for (int i = 0; i < all->threads && count < max; i++) {
        struct hand *hand = &all->hands[i];
        if (!hand->took_steps)
            continue;
        struct account_arrival *arrival = &arrivals[count++];
        snprintf(arrival->task, sizeof(arrival->task), "worker:%d", i);
        arrival->us = (double)hand->took_us / (double)hand->took_steps;
        arrival->max_us = (double)hand->took_max_us;
        arrival->input_us = (double)hand->input_us / (double)hand->took_steps;
        arrival->steps = hand->took_steps;
        arrival->recent_count = 0;
        hand->took_us = hand->took_max_us = hand->input_us = 0;
        hand->took_steps = 0;
    }
    pthread_mutex_unlock(&all->lock);
    return count;
}

static int64_t read_locked(struct replicas *all, const int64_t *number)
{
    pthread_mutex_lock(&all->lock);
    int64_t value = *number;
    pthread_mutex_unlock(&all->lock);
    return value;
}

int64_t replicas_batches(struct replicas *all)
{
    return read_locked(all, &all->batches);
}

int64_t replicas_late(struct replicas *all)
{
    return read_locked(all, &all->late);
}

void replicas_stop(struct replicas *all)
{
    if (!all)
        return;
    pthread_mutex_lock(&all->lock);
    all->over = true;
    pthread_cond_broadcast(&all->changed);
    pthread_mutex_unlock(&all->lock);
    for (int i = 0; i < all->threads; i++)
        pthread_join(all->hands[i].thread, NULL);
    for (int i = 0; i < all->options.calls_count; i++) {
        struct hand *hand = &all->hands[i];
        for (int f = 0; hand->state == DONE && f < all->options.fetches; f++)
            tensor_release(&hand->fetched[f]);
        str_release(&hand->statistics);
        free(hand->fetched);
    }
    for (int f = 0; f < all->options.fetches; f++)
        tensor_release(&all->sums[f]);
    replicas_shards_free(all);
    str_release(&all->statistics);
    str_release(&all->notice);
    pthread_cond_destroy(&all->changed);
    pthread_mutex_destroy(&all->lock);
    free(all->sums);
    free(all->hands);
    free(all);
}
