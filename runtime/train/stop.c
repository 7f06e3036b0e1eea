/* stop.c - whether a training has got where it should, or gets no further; see spec_end.c. */

#include <math.h>

#include "base/alloc.h"
#include "runtime/train/internal.h"

/* The value of the series `name`: "val_loss" of the last evaluation, "loss" of the last step.
 */
static double watched(const struct train *train, const char *name)
{
    bool of_evaluation = !strncmp(name, "val_", 4);
    for (int i = 0; i < train->model.metrics_count; i++) {
        if (of_evaluation && !strcmp(train->model.metrics[i].name, name + 4))
            return train->val_values[i];
        if (!strcmp(train->model.metrics[i].name, name))
            return train->values[i];
    }
    return NAN;
}

static bool because(struct train *train, const char *format, ...) PRINTF_LIKE(2, 3);

static bool because(struct train *train, const char *format, ...)
{
    va_list args;
    char text[300];
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    str_clear(&train->stop_text);
    str_add(&train->stop_text, text);
    return true;
}

static bool reached(struct train *train)
{
    const struct spec_target *target = &train->spec->stop.target;
    double value = watched(train, target->metric),
           bound = target->has_min ? target->min : target->max;
    if (target->has_min ? !(value >= bound) : !(value <= bound))
        return false;
    return because(train, "the target of /stop/target is reached: %s is %g, wanted: at %s %g",
                   target->metric, value, target->has_min ? "least" : "most", bound);
}

/* --- early stopping: as Keras's EarlyStopping --- */

bool stop_is_over(struct train *train)
{
    const struct spec_early *early = &train->spec->stop.early;
    int64_t borne = early->patience > 1 ? early->patience : 1;
    if (!early->metric || train->stopping.waited < borne)
        return false;
    return because(
        train, "no improvement of %s for %lld evaluation%s; best %g at step %lld (/stop/early)",
        early->metric, (long long)train->stopping.waited,
        train->stopping.waited == 1 ? "" : "s", train->stopping.best,
        (long long)train->stopping.best_step);
}

static void look_for_improvement(struct train *train)
{
    const struct spec_early *early = &train->spec->stop.early;
    struct stopping *s = &train->stopping;
    double value = watched(train, early->metric);
    bool first = s->best_step < 0;
    bool better =
        early->more ? value > s->best + early->min_delta : value < s->best - early->min_delta;
    s->waited++;
    if (isnan(value) || (!first && !better))
        return;
    s->best = value;
    s->best_step = train->step;
    s->waited = 0;
}

/* --- the best checkpoints --- */

double stop_score(const struct train *train)
{
    const struct spec_checkpoint *checkpoint = &train->spec->checkpoint;
    double value;
    if (train->evaluated_step != train->step)
        return NAN;
    value =
        checkpoint->keep_best ? watched(train, checkpoint->best_metric) : train->val_values[0];
    return checkpoint->keep_best && checkpoint->best_is_more ? value : -value;
}

/* The lowest of the best scores so far, with NaN for a place that is free. */
static int worst(const struct stopping *s)
{
    int at = 0;
    for (int i = 0; i < s->scores_count; i++) {
        if (isnan(s->scores[i]))
            return i;
        if (s->scores[i] < s->scores[at])
            at = i;
    }
    return at;
}

bool stop_is_among_best(const struct train *train)
{
    const struct stopping *s = &train->stopping;
    double score = stop_score(train);
    if (!s->scores_count || isnan(score))
        return false;
    return !(s->scores[worst(s)] >= score);
}

void stop_saved(struct train *train)
{
    if (stop_is_among_best(train))
        train->stopping.scores[worst(&train->stopping)] = stop_score(train);
}

/* --- when to look --- */

void stop_begin(struct train *train)
{
    int count = (int)train->spec->checkpoint.keep_best;
    train->stopping = (struct stopping){.best_step = -1, .scores_count = count};
    train->stopping.scores = alloc_array((size_t)count + 1, sizeof(double));
    for (int i = 0; i < count; i++)
        train->stopping.scores[i] = NAN;
}

bool stop_after_step(struct train *train)
{
    const char *metric = train->spec->stop.target.metric;
    return metric && strncmp(metric, "val_", 4) && reached(train);
}

bool stop_after_evaluation(struct train *train)
{
    const char *metric = train->spec->stop.target.metric;
    /* One that is done again, after the end of an earlier attempt, tells nothing new. */
    if (train->spec->stop.early.metric && train->busy_steps)
        look_for_improvement(train);
    return (metric && !strncmp(metric, "val_", 4) && reached(train)) || stop_is_over(train);
}
