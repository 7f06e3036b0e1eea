/* train_open.c - what stands before the first step: data, graph, session, state, event file. */

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "runtime/graph.h"
#include "runtime/machine.h"
#include "runtime/train/evaluate.h"
#include "runtime/train/internal.h"

static int64_t steps_in_all(const struct train *train)
{
    const struct spec *spec = train->spec;
    int64_t examples = train->dataset.train.count, batch = train->batch;
    int64_t steps = spec->train.steps;
    if (!steps)
        steps = (spec->train.epochs * examples + batch - 1) / batch;
    if (train->options.steps)
        steps = train->options.steps;
    if (spec->stop.max_steps && spec->stop.max_steps < steps)
        steps = spec->stop.max_steps;
    return steps;
}

/* The first field of the spec that is about evaluations; NULL: none. */
static const char *wants_evaluations(const struct spec *spec)
{
    const char *target = spec->stop.target.metric;
    if (target && !strncmp(target, "val_", 4))
        return "/stop/target";
    return spec->stop.early.metric      ? "/stop/early"
           : spec->checkpoint.keep_best ? "/checkpoint/keep_best"
                                        : NULL;
}

static bool read_data(struct train *train, struct error *err)
{
    const struct spec_data *data = &train->spec->data;
    struct dataset *dataset = &train->dataset;
    const char *pointer;
    const struct dataset_source source = {.folder = train->options.data,
                                          .data = data,
                                          .seed = train->spec->seed,
                                          .memory = memory_limit(train, &pointer),
                                          .spool = train->options.out};
    if (!dataset_open_from(&source, dataset, err))
        return error_prefix(err, "dataset \"%s\": ", data->dataset);
    train->eval = dataset_eval(dataset);
    const char *waits = wants_evaluations(train->spec);
    if (!train->eval && waits)
        return error_at(err, "/data/validation", INVALID,
                        "dataset \"%s\" has no part to test on, which %s waits for: "
                        "hold examples out, 0.1 of them for instance",
                        data->dataset, waits);
    if (!train->eval)
        str_printf(&train->notice,
                   "dataset \"%s\" has no part to test on, so there are no evaluations: "
                   "\"validation\" in \"data\" holds examples out",
                   data->dataset);
    if (dataset->skipped)
        str_printf(&train->notice, "%s%lld damaged records of dataset \"%s\" were skipped",
                   train->notice.size ? "; " : "", (long long)dataset->skipped, data->dataset);
    train->facts.skipped = dataset->skipped;
    train->facts.examples = dataset->train.count;
    train->facts.eval_examples = train->eval ? train->eval->count : 0;
    train->facts.steps = steps_in_all(train);
    return true;
}

/* FNV-1a, enough to tell one graph from another. */
static uint64_t hash_graph(const struct graph *graph)
{
    struct str bytes = {0};
    graph_export(graph, false, 0, &bytes);
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < bytes.size; i++)
        hash = (hash ^ (unsigned char)bytes.data[i]) * UINT64_C(0x100000001b3);
    str_release(&bytes);
    return hash;
}

static void tell_precision(struct train *train)
{
    if (train->spec->train.precision == BF16 && !machine_multiplies_bf16())
        str_printf(
            &train->notice,
            "%sthis machine has no instructions for bfloat16: products are rounded to it, "
            "but no faster than in float32",
            train->notice.size ? "; " : "");
}

struct runner *train_runner(struct train *train, const struct runner_cluster *cluster,
                            struct model *model, struct error *err)
{
    const char *pointer;
    struct session_options options = {.threads = train->options.threads,
                                      .memory_limit = memory_limit(train, &pointer),
                                      .precision = train->spec->train.precision,
                                      .check_numerics = train->spec->train.check_numerics};
    return runner_new(&options, cluster, model, err);
}

static bool build_session(struct train *train, struct error *err)
{
    if (!model_build(train->spec, &train->dataset.feeds.data, &train->model, err))
        return false;
    tell_precision(train);
    train->facts.metrics = train->model.metrics;
    train->facts.metrics_count = train->model.metrics_count;
    train->facts.parameters = train->model.summary.parameters;
    train->graph_hash = hash_graph(train->model.graph);
    train->runner = train_runner(train, train->options.cluster, &train->model, err);
    if (train->runner)
        train->elastic = elastic_new(train);
    return train->runner;
}

static struct runner_call *prepare_step(struct train *train, const struct model_step *step,
                                        struct error *err)
{
    const struct dataset *dataset = &train->dataset;
    int count = dataset->feeds.count;
    const char *const *names =
        evaluate_feed_names(&dataset->feeds, step->scope, dataset->arena);
    const char **feeds = arena_array(dataset->arena, (size_t)count + 1, sizeof(*feeds));
    memcpy(feeds, names, (size_t)count * sizeof(*feeds));
    if (step->number)
        feeds[count++] = step->number;
    const struct session_run run = {.feeds = feeds,
                                    .feeds_count = count,
                                    .fetches = step->sums,
                                    .fetches_count = train->model.metrics_count,
                                    .targets = &step->train,
                                    .targets_count = 1,
                                    .account = runner_account(train->runner)};
    return runner_prepare(train->runner, &run, err);
}

/* A call for each worker that trains on its own. */
static bool prepare_steps(struct train *train, struct error *err)
{
    const struct model *model = &train->model;
    train->step_calls = alloc_array((size_t)model->steps_count, sizeof(struct runner_call *));
    for (int i = 0; i < model->steps_count; i++) {
        train->step_calls[i] = prepare_step(train, &model->steps[i], err);
        if (!train->step_calls[i])
            return false;
    }
    train->step_call = train->step_calls[0];
    const struct session_run update = {
        .targets = &model->train, .targets_count = 1, .account = runner_account(train->runner)};
    if (model->needed)
        train->update_call = runner_prepare(train->runner, &update, err);
    return !model->needed || train->update_call;
}

bool train_prepare(struct train *train, struct error *err)
{
    const struct model *model = &train->model;
    const char *fetches[TRAIN_METRICS_MAX];
    for (int i = 0; i < model->metrics_count; i++)
        fetches[i] = model->metrics[i].sums;
    const struct model_step only = {
        .scope = model->scope, .train = model->train, .sums = fetches};
    if (model->steps && !prepare_steps(train, err))
        return false;
    if (!model->steps && !(train->step_call = prepare_step(train, &only, err)))
        return false;
    train->eval_call = evaluate_prepare(train->runner, model, &train->dataset, err);
    return train->eval_call;
}

static bool set_start(struct train *train, struct error *err)
{
    if (!runner_run(train->runner, train->model.init, err) || !init_apply(train, err))
        return false;
    if (train->notice.size)
        train->pending |= PENDING_NOTICE;
    return true;
}

static bool set_state(struct train *train, struct error *err)
{
    bool found = false;
    while (train->options.checkpoints && !save_claim(train, err)) {
        if (!room_wait(train, err))
            return false;
    }
    train->sharded =
        train->options.checkpoints && runner_sees(train->runner, train->options.checkpoints);
    if (train->options.resume && train->options.checkpoints &&
        !save_restore(train, &found, err))
        return error_prefix(err, "cannot resume: ");
    if (train->notice.size)
        train->pending |= PENDING_NOTICE;
    train->facts.resumed_from = train->looked_step = train->step;
    if (!found && !set_start(train, err))
        return false;
    return !train->model.mirror || runner_run(train->runner, train->model.mirror, err);
}

static bool start_input(struct train *train, struct error *err)
{
    const struct spec_data *data = &train->spec->data;
    const struct input_options options = {
        .dataset = &train->dataset,
        .part = &train->dataset.train,
        .batch_size = train->step_calls ? train->spec->data.batch_size : train->batch,
        .shuffle = data->shuffle,
        .seed = train->spec->seed,
        .position = train->position,
        .takers = train->step_calls ? train->model.steps_count : 1,
    };
    train->input = input_start(&options, err);
    return train->input;
}

/* Tells what gathers gradients which step is under way. */
static bool begin_gathering(struct train *train, struct error *err)
{
    const struct model *model = &train->model;
    const struct session_run run = {.feeds = &model->begin_number,
                                    .feeds_count = model->begin_number != NULL,
                                    .targets = &model->begin,
                                    .targets_count = 1};
    struct tensor number;
    const struct runner_call *call = runner_prepare(train->runner, &run, err);
    if (!call || !tensor_init(&number, I64, &SHAPE_SCALAR, err))
        return false;
    tensor_set_number(&number, 0, (double)train->step);
    bool ok = runner_call(train->runner, call, &number, NULL, NULL, err);
    tensor_release(&number);
    return ok;
}

static bool start_replicas(struct train *train, struct error *err)
{
    const struct replicas_options options = {.runner = train->runner,
                                             .input = train->input,
                                             .calls = train->step_calls,
                                             .calls_count = train->model.steps_count,
                                             .update = train->update_call,
                                             .needed = train->model.needed,
                                             .shards = train->model.shards,
                                             .workers_min = train->spec->strategy.min_workers,
                                             .fetches = train->model.metrics_count,
                                             .step = train->step,
                                             .steps = train->facts.steps,
                                             .trace_every = train->spec->trace_every_steps};
    if (!train->step_calls)
        return true;
    train->replicas_position = train->position;
    train->replicas = (!train->update_call || begin_gathering(train, err))
                          ? replicas_start(&options, err)
                          : NULL;
    return train->replicas;
}

void train_tell_run(struct train *train, const char *ended)
{
    struct str text = {0};
    str_printf(
        &text,
        "{\"steps\": %lld, \"examples\": %lld, \"parameters\": %lld, \"batch_size\": %lld, "
        "\"threads\": %d, \"resumed_from\": %lld, \"skipped\": %lld",
        (long long)train->facts.steps, (long long)train->facts.examples,
        (long long)train->facts.parameters, (long long)train->batch, train->facts.threads,
        (long long)train->facts.resumed_from, (long long)train->facts.skipped);
    if (ended) {
        str_add(&text, ", \"ended\": ");
        str_add_json(&text, ended, strlen(ended));
    }
    str_add_char(&text, '}');
    events_run(train->events, train->step, str_text(&text));
    str_release(&text);
}

/* The records that open an attempt. */
static bool start_events(struct train *train, struct error *err)
{
    if (!train->options.out)
        return true;
    while (!(train->events = events_open(train->options.out, err))) {
        if (!room_wait(train, err))
            return false;
    }
    train->events_path = alloc_text(events_path(train->events));
    train->facts.events = train->events_path;
    events_session(train->events, train->step, TFEVENT_START, "");
    train_tell_run(train, NULL);
    struct str text = {0};
    graph_export(runner_graph(train->runner), true, 1024, &text);
    events_graph(train->events, text.data, text.size);
    str_clear(&text);
    runner_explain(train->runner, train->step_call, &text);
    events_placement(train->events, train->step, str_text(&text));
    str_release(&text);
    return room_flush(train, err);
}

struct train *train_open(const struct train_options *options, struct error *err)
{
    struct train *train = alloc_bytes(sizeof(*train));
    train->options = *options;
    train->last.values = train->values;
    train->spec = options->spec;
    train->batch = spec_step_examples(options->spec);
    train->facts.threads = options->threads;
    train->saved_step = train->evaluated_step = train->point_step = -1;
    train->opened_us = train->saved_us = clock_monotonic_us();
    stop_begin(train);
    bool ok = read_data(train, err) && build_session(train, err) && train_prepare(train, err) &&
              memory_check(train, err) && set_state(train, err) && start_input(train, err) &&
              start_events(train, err) && start_replicas(train, err);
    if (!ok) {
        train_close(train);
        return NULL;
    }
    return train;
}

const struct train_facts *train_facts(const struct train *train)
{
    return &train->facts;
}

void train_close(struct train *train)
{
    if (!train)
        return;
    struct error ignored; /* whoever closes after a failure has a better one */
    if (train->replicas)
        runner_cancel(train->runner);
    replicas_stop(train->replicas);
    free(train->step_calls);
    input_stop(train->input);
    if (!events_close(train->events, &ignored))
        train->events = NULL;
    runner_free(train->runner);
    elastic_free(train->elastic);
    if (train->model.graph)
        model_release(&train->model);
    dataset_close(&train->dataset);
    str_release(&train->notice);
    str_release(&train->text);
    str_release(&train->stop_text);
    free(train->stopping.scores);
    free(train->events_path);
    free(train);
}
