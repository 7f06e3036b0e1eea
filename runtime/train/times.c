/* times.c - where the time of steps goes: waiting for input, in each task, and for each other.
 */

#include "base/clock.h"
#include "base/limits.h"
#include "runtime/cluster/account.h"
#include "runtime/train/internal.h"

#define TIMES_EVERY_US 2000000

/* The first step makes plans, and is like no other. */
static void forget(struct train *train)
{
    struct account *account = runner_account(train->runner);
    struct str ignored = {0};
    if (account)
        account_take(account, 1, &ignored);
    str_release(&ignored);
}

void times_add(struct train *train, uint64_t step_us, uint64_t input_us)
{
    if (!train->busy_steps) {
        forget(train);
        return;
    }
    train->times.steps++;
    train->times.step_us += step_us;
    train->times.input_us += input_us;
}

/* Steps of their own they tell by themselves; of steps of all the first has the batches. */
static int arrivals_of(const struct train *train, struct account *account,
                       struct account_arrival *arrivals)
{
    if (train->replicas)
        return replicas_arrivals(train->replicas, arrivals, LIMIT_JOB_TASKS);
    int count = account ? account_arrivals(account, arrivals, LIMIT_JOB_TASKS) : 0;
    for (int i = 0; i < count; i++)
        arrivals[i].input_us = strcmp(arrivals[i].task, "worker:0")
                                   ? 0
                                   : (double)train->times.input_us / (double)train->times.steps;
    return count;
}

/* Of the steps, as a mean: what workers waited that do them on their own is in the arrivals. */
static double input_of(const struct train *train, const struct account_arrival *arrivals,
                       int count)
{
    double sum_us = (double)train->times.input_us, steps = (double)train->times.steps;
    for (int i = 0; train->replicas && i < count; i++)
        sum_us += arrivals[i].input_us * (double)arrivals[i].steps;
    return sum_us / steps;
}

static void add_arrivals(const struct account_arrival *arrivals, int count, struct str *json)
{
    str_add(json, ", \"arrivals\": [");
    for (int i = 0; i < count; i++) {
        str_printf(json,
                   "%s{\"task\": \"%s\", \"us\": %.1f, \"max_us\": %.1f, \"input_us\": %.1f, "
                   "\"others_us\": %.1f, \"recent_us\": [",
                   i ? ", " : "", arrivals[i].task, arrivals[i].us, arrivals[i].max_us,
                   arrivals[i].input_us, stragglers_median(arrivals, count, i));
        for (int k = 0; k < arrivals[i].recent_count; k++)
            str_printf(json, "%s%.0f", k ? ", " : "", (double)arrivals[i].recent_us[k]);
        str_add(json, "]}");
    }
    str_add_char(json, ']');
}

static void look_for_stragglers(struct train *train, const struct account_arrival *arrivals,
                                int count)
{
    if (stragglers_look(&train->stragglers, arrivals, count, train->step, &train->notice))
        train->pending |= PENDING_NOTICE;
}

void times_tell(struct train *train, bool now)
{
    struct train_times *times = &train->times;
    uint64_t now_us = clock_monotonic_us();
    uint64_t told_us = times->told_us ? times->told_us : train->opened_us;
    if (!train->events || !times->steps || (!now && now_us - told_us < TIMES_EVERY_US))
        return;
    struct account *account = runner_account(train->runner);
    double steps = (double)times->steps, step_us = (double)times->step_us / steps;
    struct account_arrival arrivals[LIMIT_JOB_TASKS];
    int count = arrivals_of(train, account, arrivals);
    struct str json = {0};
    str_printf(&json, "{\"step\": %lld, \"steps\": %lld, \"us\": %.1f, \"input_us\": %.1f, ",
               (long long)train->step, (long long)times->steps, step_us,
               input_of(train, arrivals, count));
    str_add(&json, "\"tasks\": ");
    if (account)
        account_take(account, times->steps, &json);
    else
        str_printf(&json,
                   "[{\"task\": \"worker:0\", \"us\": %.1f, \"wait_us\": 0, \"receive_us\": 0, "
                   "\"send_us\": 0, \"from\": []}]",
                   step_us);
    add_arrivals(arrivals, count, &json);
    str_add_char(&json, '}');
    events_times(train->events, train->step, str_text(&json));
    str_release(&json);
    *times = (struct train_times){.told_us = now_us};
    look_for_stragglers(train, arrivals, count);
}
