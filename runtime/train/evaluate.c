/* evaluate.c - loss and accuracy over examples that are not trained on. */

#include "runtime/train/internal.h"

#define EVALUATE_BATCH 200

/* Adds the sums over examples `first` .. + count to `sums`: loss, hits. */
static bool add_batch(struct train *train, int64_t first, int64_t count, double sums[2],
                      struct error *err)
{
    struct input_batch batch;
    if (!input_read(train->eval, &train->dataset.shape, first, count, &batch, err))
        return false;
    struct tensor fetched[2];
    bool ok = session_call(train->session, train->eval_call, batch.feeds, fetched, NULL, err);
    input_batch_release(&batch);
    if (!ok)
        return false;
    for (int i = 0; i < 2; i++) {
        sums[i] += tensor_number(&fetched[i], 0);
        tensor_release(&fetched[i]);
    }
    return true;
}

bool evaluate_run(struct train *train, struct error *err)
{
    int64_t count = train->eval->count;
    double sums[2] = {0, 0};
    for (int64_t first = 0; first < count; first += EVALUATE_BATCH) {
        int64_t size = count - first < EVALUATE_BATCH ? count - first : EVALUATE_BATCH;
        if (!add_batch(train, first, size, sums, err))
            return error_prefix(err, "evaluation after step %lld: ", (long long)train->step);
    }
    train->last.val_loss = sums[0] / (double)count;
    train->last.val_accuracy = sums[1] / (double)count;
    train->last.has_val = true;
    train->evaluated_step = train->step;
    return true;
}
