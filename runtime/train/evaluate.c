/* evaluate.c - the metrics over examples that are not trained on. */

#include "base/alloc.h"
#include "runtime/model/metric.h"
#include "runtime/train/internal.h"

#define EVALUATE_BATCH 200

struct evaluation {
    double *sums[TRAIN_METRICS_MAX]; /* of each metric, over all batches */
    int64_t counts[TRAIN_METRICS_MAX];
};

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
static bool add_batch(struct train *train, int64_t first, int64_t count, struct evaluation *all,
                      struct error *err)
{
    struct dataset_batch batch;
    if (!dataset_batch_read(&batch, &train->dataset, train->eval, first, count, err))
        return false;
    struct tensor fetched[TRAIN_METRICS_MAX];
    bool ok = session_call(train->session, train->eval_call, batch.feeds, fetched, NULL, err);
    dataset_batch_release(&batch);
    if (!ok)
        return false;
    for (int i = 0; i < train->model.metrics_count; i++) {
        add_sums(all, i, &fetched[i]);
        tensor_release(&fetched[i]);
    }
    return true;
}

bool evaluate_run(struct train *train, struct error *err)
{
    int64_t count = train->eval->count;
    struct evaluation all = {0};
    bool ok = true;
    for (int64_t first = 0; ok && first < count; first += EVALUATE_BATCH) {
        int64_t size = count - first < EVALUATE_BATCH ? count - first : EVALUATE_BATCH;
        ok = add_batch(train, first, size, &all, err);
    }
    for (int i = 0; i < train->model.metrics_count; i++) {
        if (ok)
            train->val_values[i] =
                metric_result(train->model.metrics[i].config, all.sums[i], (int)all.counts[i]);
        free(all.sums[i]);
    }
    if (!ok)
        return error_prefix(err, "evaluation after step %lld: ", (long long)train->step);
    train->last.val_values = train->val_values;
    train->evaluated_step = train->step;
    return true;
}
