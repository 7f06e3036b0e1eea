/* train.c - the training loop: one step after the other, and what is due between them. */

#include "runtime/train/train.h"

#include <math.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "runtime/model/metric.h"
#include "runtime/model/optimizer.h"
#include "runtime/numerics.h"
#include "runtime/train/internal.h"

#define TRAIN_POINT_US 10000 /* between points, so that fast models do not drown the server */
#define TRAIN_NAME_BYTES 80
#define TRAIN_WINDOW_US 200000 /* over which examples per second are measured */

void train_stop(struct train *train)
{
    train->stop = 1;
}

/* --- one step --- */

static void measure(struct train *train, uint64_t spent_us)
{
    train->busy_us += spent_us;
    train->busy_steps++;
    train->window_us += spent_us;
    train->window_steps++;
    double batch = (double)train->batch;
    if (train->window_us >= TRAIN_WINDOW_US || train->busy_us < TRAIN_WINDOW_US) {
        train->last.examples_per_second =
            (double)train->window_steps * batch * 1e6 / (double)(train->window_us + 1);
        if (train->window_us >= TRAIN_WINDOW_US)
            train->window_us = 0, train->window_steps = 0;
    }
}

static bool is_traced(const struct train *train)
{
    return train->events && train->spec->trace_every_steps &&
           (train->step + 1) % train->spec->trace_every_steps == 0;
}

/* Whether the node that the error names is one of that layer: its name is part of the path. */
static bool names_layer(const char *text, const char *layer)
{
    const char *start = strchr(text, '\''), *end = start ? strchr(start + 1, '\'') : NULL;
    size_t size = strlen(layer);
    for (const char *at = start; end && at < end; at++)
        if ((*at == '\'' || *at == '/') && (size_t)(end - at) > size &&
            !strncmp(at + 1, layer, size) && (at[1 + size] == '/' || at[1 + size] == '\''))
            return true;
    return false;
}

/* What mostly makes training diverge; a graph of another program keeps its rate to itself. */
static const char *suspect(const struct train *train, char *out, size_t size)
{
    const struct config *optimizer = train->spec->train.optimizer;
    if (optimizer)
        snprintf(out, size, "the learning rate %g may be too high", optimizer_rate(optimizer));
    else
        snprintf(out, size, "its learning rate may be too high");
    return out;
}

/* A step that met the first NaN or infinity: which step, and in which layer. */
static bool tell_numerics(const struct train *train, struct error *err)
{
    const struct spec *spec = train->spec;
    const char *layer = NULL;
    char why[TRAIN_NAME_BYTES];
    for (int i = 0; i < spec->layers_count; i++)
        if (names_layer(err->text, spec->layers[i].name))
            layer = spec->layers[i].name;
    if (strcmp(err->pointer, NUMERICS_POINTER) != 0)
        return error_prefix(err, "step %lld: ", (long long)train->step + 1);
    return error_prefix(
        err, "step %lld: training has diverged (%s), %s%s%s: ", (long long)train->step + 1,
        suspect(train, why, sizeof(why)), layer ? "in layer '" : "outside of the layers",
        layer ? layer : "", layer ? "'" : "");
}

/* The loss itself, and what the sums of the other metrics come to. */
static void take_values(struct train *train, struct tensor *fetched)
{
    const struct model *model = &train->model;
    train->values[0] = tensor_number(&fetched[0], 0);
    tensor_release(&fetched[0]);
    for (int i = 1; i < model->metrics_count; i++) {
        double few[8], *sums = few;
        int64_t count = fetched[i].count;
        if (count > ARRAY_LEN(few))
            sums = alloc_array((size_t)count, sizeof(*sums));
        for (int64_t s = 0; s < count; s++)
            sums[s] = tensor_number(&fetched[i], s);
        train->values[i] = metric_result(model->metrics[i].config, sums, (int)count);
        if (sums != few)
            free(sums);
        tensor_release(&fetched[i]);
    }
}

/* The same step of all workers. */
static bool run_together(struct train *train, struct tensor *fetched, struct str *trace,
                         uint64_t *spent_us, struct error *err)
{
    uint64_t asked_us = clock_monotonic_us();
    struct dataset_batch *batch = input_take(train->input, err);
    if (!batch)
        return error_prefix(err, "step %lld: ", (long long)train->step + 1);
    uint64_t start_us = clock_monotonic_us();
    struct str *traced = is_traced(train) ? trace : NULL;
    bool ok = train->elastic ? elastic_call(train, batch->feeds, fetched, traced, err)
                             : runner_call(train->runner, train->step_call, batch->feeds,
                                           fetched, traced, err);
    *spent_us = clock_monotonic_us() - start_us;
    times_add(train, *spent_us, start_us - asked_us);
    input_give_back(train->input, batch);
    return ok || tell_numerics(train, err);
}

/* The next of the steps that workers do on their own. */
static bool run_apart(struct train *train, struct tensor *fetched, struct str *trace,
                      uint64_t *spent_us, struct error *err)
{
    uint64_t start_us = train->taken_us ? train->taken_us : clock_monotonic_us();
    if (!replicas_next(train->replicas, fetched, trace, err))
        return tell_numerics(train, err);
    train->taken_us = clock_monotonic_us();
    if (replicas_tell(train->replicas, &train->notice))
        train->pending |= PENDING_NOTICE;
    *spent_us = train->taken_us - start_us;
    times_add(train, *spent_us, 0);
    return true;
}

static bool run_step(struct train *train, struct error *err)
{
    struct tensor fetched[TRAIN_METRICS_MAX];
    struct str trace = {0};
    uint64_t spent_us = 0;
    bool ok = train->replicas ? run_apart(train, fetched, &trace, &spent_us, err)
                              : run_together(train, fetched, &trace, &spent_us, err);
    if (ok) {
        train->step++;
        failpoint("task.step");
        train->position += train->batch;
        take_values(train, fetched);
        if (train->events && trace.size)
            events_trace(train->events, train->step, trace.data, trace.size);
        measure(train, spent_us);
    }
    str_release(&trace);
    return ok;
}

/* --- what is due after a step --- */

/* Whether a multiple of `period` has been reached since the last look. */
static bool every(const struct train *train, int64_t period)
{
    return period && train->step / period > train->looked_step / period;
}

static void finish(struct train *train, enum train_end end, const char *text)
{
    train->end = end;
    train->end_text = text;
    if (train->eval && train->step != train->evaluated_step && end == TRAIN_FINISHED)
        train->pending |= PENDING_EVALUATE;
    if (train->step != train->saved_step && train->options.checkpoints)
        train->pending |= PENDING_SAVE;
    if (train->step != train->point_step && train->busy_steps)
        train->pending |= PENDING_POINT;
    train->pending |= PENDING_END;
}

static void look_ahead(struct train *train)
{
    const struct spec *spec = train->spec;
    uint64_t now_us = clock_monotonic_us();
    if (train->busy_steps == 1 || now_us - train->point_us >= TRAIN_POINT_US)
        train->pending |= PENDING_POINT;
    if (train->eval && every(train, spec->train.eval_every))
        train->pending |= PENDING_EVALUATE;
    bool save =
        every(train, spec->checkpoint.every_steps) ||
        (spec->checkpoint.every_seconds &&
         now_us - train->saved_us >= (uint64_t)spec->checkpoint.every_seconds * 1000000);
    if (save && train->options.checkpoints)
        train->pending |= PENDING_SAVE;
    train->looked_step = train->step;
    if (train->step >= train->facts.steps)
        finish(train, TRAIN_FINISHED, "all steps done");
    else if (train->stop)
        finish(train, TRAIN_STOPPED, "stopped on request");
    else if (spec->stop.max_seconds &&
             now_us - train->opened_us >= (uint64_t)spec->stop.max_seconds * 1000000)
        finish(train, TRAIN_FINISHED, "the time of /stop/max_seconds is over");
    else if (stop_after_step(train))
        finish(train, TRAIN_FINISHED, str_text(&train->stop_text));
}

/* --- doing it --- */

static bool do_point(struct train *train, struct train_report *report, struct error *err)
{
    (void)err;
    train->point_us = clock_monotonic_us();
    train->point_step = train->step;
    report->what = TRAIN_POINT;
    if (!train->events)
        return true;
    struct tfevent_scalar scalars[TRAIN_METRICS_MAX + 2];
    int count = 0;
    for (int i = 0; i < train->model.metrics_count; i++)
        scalars[count++] =
            (struct tfevent_scalar){train->model.metrics[i].name, (float)train->values[i]};
    scalars[count++] =
        (struct tfevent_scalar){"examples_per_second", (float)train->last.examples_per_second};
    if (train->update_call && !train->model.shards)
        scalars[count++] =
            (struct tfevent_scalar){"late_batches", (float)replicas_late(train->replicas)};
    events_scalars(train->events, train->step, scalars, count);
    times_tell(train, train->pending & PENDING_END);
    return true;
}

/* A loss that is not finite is the last point of the curve. */
static bool check_loss(struct train *train, struct error *err)
{
    if (isfinite(train->values[0]))
        return true;
    struct train_report report;
    char why[TRAIN_NAME_BYTES];
    return do_point(train, &report, err) &&
           fail(err, INVALID,
                "the loss is %s after step %lld: training has diverged (%s; with "
                "\"check_numerics\": true in \"train\" the step fails at "
                "the op where it begins)",
                isnan(train->values[0]) ? "not a number" : "infinite", (long long)train->step,
                suspect(train, why, sizeof(why)));
}

/* What is saved or evaluated stands still, and the steps are counted that made it. */
static bool rest(struct train *train, struct error *err)
{
    bool ok = true;
    for (int left = train->replicas ? replicas_quiet(train->replicas) : 0; left && ok; left--)
        ok = run_step(train, err) && check_loss(train, err);
    train->taken_us = 0;
    if (train->replicas)
        train->position = train->replicas_position +
                          replicas_batches(train->replicas) * train->spec->data.batch_size;
    return ok;
}

static bool do_evaluate(struct train *train, struct train_report *report, struct error *err)
{
    if (!room_flush(train, err) || !evaluate_run(train, err))
        return false;
    bool over = stop_after_evaluation(train);
    if (over && !(train->pending & PENDING_END))
        finish(train, TRAIN_FINISHED, str_text(&train->stop_text));
    if (stop_is_among_best(train) && train->options.checkpoints)
        train->pending |= PENDING_SAVE;
    report->what = TRAIN_EVALUATED;
    if (!train->events)
        return true;
    struct tfevent_scalar scalars[TRAIN_METRICS_MAX];
    char names[TRAIN_METRICS_MAX][TRAIN_NAME_BYTES];
    int count = train->model.metrics_count;
    for (int i = 0; i < count; i++) {
        snprintf(names[i], sizeof(names[i]), "val_%s", train->model.metrics[i].name);
        scalars[i] = (struct tfevent_scalar){names[i], (float)train->val_values[i]};
    }
    events_scalars(train->events, train->step, scalars, count);
    return room_flush(train, err);
}

/* A checkpoint that cannot be written is told; only the last one must succeed. */
static bool do_save(struct train *train, struct train_report *report, struct error *err)
{
    str_clear(&train->text);
    if (!room_flush(train, err))
        return false;
    struct error failure;
    bool last = train->pending & PENDING_END;
    bool ok;
    train->saved_us = clock_monotonic_us();
    do
        ok = save_write(train, &train->text, &failure);
    while (!ok && last && room_wait(train, &failure));
    room_found(train);
    if (ok) {
        train->saved_step = train->step;
        stop_saved(train);
        report->what = TRAIN_SAVED;
        if (!train->events)
            return true;
        events_session(train->events, train->step, TFEVENT_CHECKPOINT, str_text(&train->text));
        return room_flush(train, err);
    }
    bool fenced = failure.code == PRECONDITION; /* a newer attempt has taken over */
    if (last || fenced) {
        *err = failure;
        return false;
    }
    str_clear(&train->text);
    str_printf(&train->text, "no checkpoint after step %lld: %s", (long long)train->step,
               failure.text);
    report->what = TRAIN_NOTICE;
    return true;
}

static bool do_end(struct train *train, struct train_report *report, struct error *err)
{
    str_clear(&train->text);
    str_add(&train->text, train->end_text);
    report->what = TRAIN_ENDED;
    report->end = train->end;
    if (train->busy_us)
        train->last.examples_per_second =
            (double)train->busy_steps * (double)train->batch * 1e6 / (double)train->busy_us;
    if (!train->events)
        return true;
    if (train->end == TRAIN_FINISHED)
        train_tell_run(train, train->end_text);
    events_session(train->events, train->step, TFEVENT_STOP, "");
    if (!room_flush(train, err))
        return false;
    struct events *events = train->events;
    train->events = NULL;
    return events_close(events, err);
}

static bool do_notice(struct train *train, struct train_report *report, struct error *err)
{
    str_clear(&train->text);
    str_add(&train->text, str_text(&train->notice));
    str_clear(&train->notice);
    report->what = TRAIN_NOTICE;
    if (!train->events)
        return true;
    events_notice(train->events, train->step, str_text(&train->text));
    return room_flush(train, err);
}

/* Does the first thing that is pending. */
static bool do_pending(struct train *train, struct train_report *report, struct error *err)
{
    static bool (*const work[])(struct train *, struct train_report *, struct error *) = {
        do_notice, do_point, do_evaluate, do_save, do_end};
    int first = __builtin_ctz((unsigned)train->pending);
    bool ok = work[first](train, report, err);
    train->pending &= ~(1 << first);
    return ok;
}

static void fill_report(const struct train *train, struct train_report *report)
{
    enum train_what what = report->what;
    enum train_end end = report->end;
    *report = train->last;
    report->what = what;
    report->end = end;
    report->step = train->step;
    report->steps = train->facts.steps;
    report->text = str_text(&train->text);
    double rate = train->last.examples_per_second;
    report->seconds_left =
        rate > 0 ? (double)(report->steps - report->step) * (double)train->batch / rate : 0;
}

bool train_next(struct train *train, struct train_report *report, struct error *err)
{
    *report = (struct train_report){0};
    if (!(train->pending & ~PENDING_NOTICE) && train->step >= train->facts.steps)
        finish(train, TRAIN_FINISHED, "all steps were done already");
    else if (!(train->pending & ~PENDING_NOTICE) && !train->busy_steps && stop_is_over(train))
        finish(train, TRAIN_FINISHED, str_text(&train->stop_text));
    while (!train->pending) {
        if (!run_step(train, err) || !check_loss(train, err))
            return false;
        look_ahead(train);
        if (train->pending & ~(PENDING_NOTICE | PENDING_POINT) && !rest(train, err))
            return false;
        if (train->events && !events_flush_due(train->events, err) &&
            !(room_wait(train, err) && room_flush(train, err)))
            return false;
    }
    if (!do_pending(train, report, err))
        return false;
    fill_report(train, report);
    return true;
}
