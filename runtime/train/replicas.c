/* replicas.c - see replicas.h. */

#include "runtime/train/replicas.h"

#include <errno.h>
#include <pthread.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/cluster/account.h"
#include "runtime/dataset/dataset_batch.h"
#include "runtime/shape.h"
#include "runtime/tensor.h"
#include "runtime/train/input.h"
#include "runtime/train/runner.h"

/* A worker that is there but fails again and again is not lost. */
#define TRIES_MAX 8
#define LOOK_MS 250 /* between looks for one that is lost */
#define NOTICE_BYTES_MAX 4000

enum state { IDLE, RUNNING, DONE, LOST };

struct hand { /* a worker's place */
    struct replicas *all;
    struct runner_call *call;
    pthread_t thread;
    enum state state;
    int64_t step;                  /* gathered: that it began with; -1: none */
    int64_t order;                 /* asynchronous: in which it was done, among all */
    int failures;                  /* since it last did what it should */
    uint64_t took_us, took_max_us; /* by steps since they were last asked for */
    int64_t took_steps;
    struct tensor *fetched;
    struct str statistics;
};

struct replicas {
    struct replicas_options options;
    struct hand *hands;
    int threads;

    pthread_mutex_t lock; /* guards what follows, and the hands save those that run */
    pthread_cond_t changed;
    int64_t step;    /* gathered: that is under way; asynchronous: that was begun last */
    int64_t batches; /* begun */
    int64_t done, late;
    bool quiet, over;
    struct str notice;
    struct error error; /* why it is over */

    /* Gathered: of the step that is under way. */
    int arrived;
    struct tensor *sums;
    struct str statistics;
};

/* --- a worker --- */

static bool run(struct hand *hand, int64_t step, bool traced, struct error *err)
{
    const struct replicas_options *options = &hand->all->options;
    struct dataset_batch *batch = input_take(options->input, err);
    if (!batch)
        return false;
    struct tensor number = {0}, *feeds = batch->feeds, *both = NULL;
    bool ok = !options->update || tensor_init(&number, I64, &SHAPE_SCALAR, err);
    if (ok && options->update) {
        tensor_set_number(&number, 0, (double)step);
        both = alloc_array((size_t)batch->feeds_count + 1, sizeof(*both));
        memcpy(both, batch->feeds, (size_t)batch->feeds_count * sizeof(*both));
        both[batch->feeds_count] = number;
        feeds = both;
    }
    ok = ok && runner_call(options->runner, hand->call, feeds, hand->fetched,
                           traced ? &hand->statistics : NULL, err);
    free(both);
    tensor_release(&number);
    input_give_back(options->input, batch);
    return ok;
}

static bool may_begin_locked(const struct replicas *all, const struct hand *hand)
{
    if (hand->state != IDLE || all->quiet || all->step >= all->options.steps)
        return false;
    return !all->options.update || hand->step < all->step;
}

static void add_values(struct tensor *sum, struct tensor *value)
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
            add_values(&all->sums[i], &hand->fetched[i]);
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
    } else if (all->options.update) {
        arrive_locked(all, hand);
    } else {
        hand->order = all->done++;
        hand->state = DONE;
    }
    pthread_cond_broadcast(&all->changed);
}

/* --- a worker that is lost --- */

static int number_of(const struct hand *hand)
{
    return (int)(hand - hand->all->hands);
}

/* What is told when a task falls: by itself, and by those that waited for it. */
static bool may_be_lost(const struct error *err)
{
    return err->code == UNAVAILABLE || err->code == ABORTED || err->code == CANCELLED ||
           err->code == INTERNAL;
}

static void pause_locked(struct replicas *all)
{
    uint64_t end_ns = clock_monotonic_ns() + LOOK_MS * UINT64_C(1000000);
    const struct timespec end = {.tv_sec = (time_t)(end_ns / 1000000000),
                                 .tv_nsec = (long)(end_ns % 1000000000)};
    while (!all->over && pthread_cond_timedwait(&all->changed, &all->lock, &end) != ETIMEDOUT)
        ;
}

static void note_locked(struct replicas *all, const char *text)
{
    if (all->notice.size < NOTICE_BYTES_MAX)
        str_printf(&all->notice, "%s%s", all->notice.size ? "; " : "", text);
}

static void tell_lost_locked(struct hand *hand, const struct error *why)
{
    char *text = alloc_printf("worker %d is lost, the others go on without it: %s",
                              number_of(hand), why->text);
    for (char *at = text; (at = strchr(at, '\n'));) /* a notice is one line */
        *at = ' ';
    note_locked(hand->all, text);
    free(text);
}

static void tell_back_locked(struct hand *hand, uint64_t lost_us)
{
    char *text = alloc_printf("worker %d is back after %.1f s", number_of(hand),
                              (double)(clock_monotonic_us() - lost_us) / 1e6);
    note_locked(hand->all, text);
    free(text);
}

/* Until its task is there again, and what failed may be tried once more; false: it is over,
 * and `why` says why. */
static bool recover_locked(struct hand *hand, struct error *why)
{
    struct replicas *all = hand->all;
    uint64_t lost_us = 0;
    struct error now;
    enum runner_worker found = RUNNER_AWAY;
    bool told = false;
    if (!may_be_lost(why) || ++hand->failures > TRIES_MAX)
        return false;
    hand->state = LOST;
    all->step -= !all->options.update; /* another may do it */
    pthread_cond_broadcast(&all->changed);
    lost_us = clock_monotonic_us();
    while (!all->over && found == RUNNER_AWAY) {
        pthread_mutex_unlock(&all->lock);
        found = runner_recover(all->options.runner, number_of(hand), &now);
        pthread_mutex_lock(&all->lock);
        if (found == RUNNER_AWAY && !told)
            tell_lost_locked(hand, why), told = true;
        if (found != RUNNER_NEVER)
            pause_locked(all);
    }
    if (all->over)
        return false;
    if (found == RUNNER_NEVER) {
        *why = now;
        return false;
    }
    if (told)
        tell_back_locked(hand, lost_us);
    hand->step = -1; /* gathered: the step under way waits for it, perhaps */
    hand->state = IDLE;
    return true;
}

bool replicas_tell(struct replicas *all, struct str *notice)
{
    pthread_mutex_lock(&all->lock);
    bool any = all->notice.size;
    if (any)
        str_printf(notice, "%s%s", notice->size ? "; " : "", str_text(&all->notice));
    str_clear(&all->notice);
    pthread_mutex_unlock(&all->lock);
    return any;
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
        all->batches++;
        all->step += !options->update;
        int64_t step = hand->step = all->step, number = step + (options->update != NULL);
        bool traced = options->trace_every && number % options->trace_every == 0;
        hand->state = RUNNING;
        pthread_mutex_unlock(&all->lock);
        uint64_t start_us = clock_monotonic_us();
        bool ok = run(hand, step, traced, &err);
        uint64_t took_us = clock_monotonic_us() - start_us;
        pthread_mutex_lock(&all->lock);
        if (ok)
            count_locked(hand, took_us);
        if (!ok && !all->over && recover_locked(hand, &err))
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
        arrival->steps = hand->took_steps;
        arrival->recent_count = 0;
        hand->took_us = hand->took_max_us = 0;
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
    str_release(&all->statistics);
    str_release(&all->notice);
    pthread_cond_destroy(&all->changed);
    pthread_mutex_destroy(&all->lock);
    free(all->sums);
    free(all->hands);
    free(all);
}
