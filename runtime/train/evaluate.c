/* evaluate.c - the metrics over examples that are not trained on. */

#include "runtime/train/evaluate.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "runtime/dataset/dataset_batch.h"
#include "runtime/model/metric.h"
#include "runtime/train/internal.h"

#define EVALUATE_BATCH 200

struct evaluation {
    struct runner *runner;
    const struct runner_call *call;
    const struct dataset *dataset;
    int metrics;
    double *sums[TRAIN_METRICS_MAX]; /* of each metric, over all batches */
    int64_t counts[TRAIN_METRICS_MAX];
};

/* --- the call --- */

const char *const *evaluate_feed_names(const struct feeds *feeds, const char *scope,
                                       struct arena *arena)
{
    const char **names = arena_array(arena, (size_t)feeds->count, sizeof(*names));
    for (int i = 0; i < feeds->count; i++)
        names[i] = arena_printf(arena, "%s%s", scope, feeds_face(feeds, i)->name);
    return names;
}

struct runner_call *evaluate_prepare(struct runner *runner, const struct model *model,
                                     const struct dataset *dataset, struct error *err)
{
    const char *fetches[TRAIN_METRICS_MAX];
    struct arena *arena = arena_new();
    for (int i = 0; i < model->metrics_count; i++)
        fetches[i] = model->metrics[i].eval_sums;
    const struct session_run run = {
        .feeds = evaluate_feed_names(&dataset->feeds, model->eval_scope, arena),
        .feeds_count = dataset->feeds.count,
        .fetches = fetches,
        .fetches_count = model->metrics_count};
    struct runner_call *call = runner_prepare(runner, &run, err);
    arena_free(arena);
    return call;
}

/* --- batch by batch --- */

static void add_sums(struct evaluation *all, int metric, const struct tensor *sums)
{
    if (!all->sums[metric]) {
        all->sums[metric] = alloc_array((size_t)sums->count, sizeof(double));
        all->counts[metric] = sums->count;
    }
    for (int64_t i = 0; i < all->counts[metric]; i++)
        all->sums[metric][i] += tensor_number(sums, i);
}

/* Adds what examples `first` .. + count give. */
static bool add_batch(struct evaluation *all, const struct dataset_part *part, int64_t first,
                      int64_t count, struct error *err)
{
    struct dataset_batch batch;
    if (!dataset_batch_read(&batch, all->dataset, part, first, count, err))
        return false;
    struct tensor fetched[TRAIN_METRICS_MAX];
    bool ok = runner_call(all->runner, all->call, batch.feeds, fetched, NULL, err);
    dataset_batch_release(&batch);
    if (!ok)
        return false;
    for (int i = 0; i < all->metrics; i++) {
        add_sums(all, i, &fetched[i]);
        tensor_release(&fetched[i]);
    }
    return true;
}

bool evaluate_examples(struct runner *runner, const struct runner_call *call,
                       const struct model *model, const struct dataset *dataset,
                       const struct dataset_part *part, double *values, struct error *err)
{
    struct evaluation all = {
        .runner = runner, .call = call, .dataset = dataset, .metrics = model->metrics_count};
    bool ok = true;
    for (int64_t first = 0; ok && first < part->count; first += EVALUATE_BATCH) {
        int64_t left = part->count - first;
        ok = add_batch(&all, part, first, left < EVALUATE_BATCH ? left : EVALUATE_BATCH, err);
    }
    for (int i = 0; i < model->metrics_count; i++) {
        if (ok)
            values[i] =
                metric_result(model->metrics[i].config, all.sums[i], (int)all.counts[i]);
        free(all.sums[i]);
    }
    return ok;
}

bool evaluate_run(struct train *train, struct error *err)
{
    if (!evaluate_examples(train->runner, train->eval_call, &train->model, &train->dataset,
                           train->eval, train->val_values, err))
        return error_prefix(err, "evaluation after step %lld: ", (long long)train->step);
    train->last.val_values = train->val_values;
    train->evaluated_step = train->step;
    return true;
}
