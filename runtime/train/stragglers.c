/* stragglers.c - see stragglers.h. */

#include "runtime/train/stragglers.h"

#include <stdlib.h>

#include "base/str.h"

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double stragglers_median(const struct account_arrival *arrivals, int count, int but)
{
    double means[LIMIT_JOB_TASKS];
    int others = 0;
    for (int i = 0; i < count && others < LIMIT_JOB_TASKS; i++)
        if (i != but)
            means[others++] = arrivals[i].us;
    if (!others)
        return 0;
    qsort(means, (size_t)others, sizeof(*means), compare);
    return (means[others / 2] + means[(others - 1) / 2]) / 2;
}

static struct straggler *find(struct stragglers *stragglers, const char *task)
{
    for (int i = 0; i < stragglers->count; i++)
        if (!strcmp(stragglers->list[i].task, task))
            return &stragglers->list[i];
    if (stragglers->count == LIMIT_JOB_TASKS)
        return NULL;
    struct straggler *new = &stragglers->list[stragglers->count++];
    snprintf(new->task, sizeof(new->task), "%s", task);
    return new;
}

static void tell_slow(const struct account_arrival *late, double median, int64_t step,
                      struct str *notice)
{
    str_printf(notice,
               "%s%s is a straggler: its share of a step takes %.1f ms (at most %.1f), the "
               "others' %.1f ms, %.1f times as long (mean of %lld steps, up to step %lld)",
               notice->size ? "; " : "", late->task, late->us / 1e3, late->max_us / 1e3,
               median / 1e3, late->us / median, (long long)late->steps, (long long)step);
}

static void tell_well(const struct account_arrival *well, double median, struct str *notice)
{
    str_printf(notice,
               "%s%s has caught up: its share of a step takes %.1f ms, the others' %.1f",
               notice->size ? "; " : "", well->task, well->us / 1e3, median / 1e3);
}

bool stragglers_look(struct stragglers *stragglers, const struct account_arrival *arrivals,
                     int count, int64_t step, struct str *notice)
{
    size_t before = notice->size;
    for (int i = 0; i < count && count > 1; i++) {
        const struct account_arrival *arrival = &arrivals[i];
        struct straggler *known = find(stragglers, arrival->task);
        double median = stragglers_median(arrivals, count, i);
        bool slow =
            arrival->us > STRAGGLER_FACTOR * median && arrival->us - median > STRAGGLER_US;
        if (!known)
            continue;
        known->slow = slow ? known->slow + 1 : 0;
        if (known->slow >= STRAGGLER_WINDOWS && !known->told) {
            tell_slow(arrival, median, step, notice);
            known->told = true;
        } else if (known->told && !slow) {
            tell_well(arrival, median, notice);
            known->told = false;
        }
    }
    return notice->size > before;
}
