/* replicas_lost.c - a worker whose task fell, until it is there again. */

#include <errno.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "runtime/train/replicas_internal.h"
#include "runtime/train/runner.h"

/* A worker that is there but fails again and again is not lost. */
#define TRIES_MAX 8
#define LOOK_MS 250 /* between looks for one that is lost */
#define NOTICE_BYTES_MAX 4000

static int number_of(const struct hand *hand)
{
    return (int)(hand - hand->all->hands);
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

bool replicas_recover_locked(struct hand *hand, struct error *why)
{
    struct replicas *all = hand->all;
    uint64_t lost_us = 0;
    struct error now;
    enum runner_worker found = RUNNER_AWAY;
    bool told = false;
    if (!runner_may_be_lost(why) || ++hand->failures > TRIES_MAX)
        return false;
    hand->state = LOST;
    if (all->shards)
        replicas_shard_left_locked(hand);
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
