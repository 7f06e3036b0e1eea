/*
 * dataset_batch.h - examples of a dataset side by side, as a model is fed with them.
 */
#pragma once

#include "runtime/dataset/dataset.h"

struct dataset_batch {
    struct tensor *feeds; /* (count, ...): the features, in their order, then the target */
    int feeds_count;
    const struct dataset_examples *examples; /* that `scratch` is for; NULL: there is none */
    void *scratch;                           /* for examples that are made when asked for */
    void (*scratch_free)(void *scratch);
};

/* Room for `count` examples.  Fails with EXHAUSTED; release it in any case. */
bool dataset_batch_init(struct dataset_batch *batch, const struct dataset *dataset,
                        int64_t count, struct error *err) CHECKED;
void dataset_batch_release(struct dataset_batch *batch);

/*
 * Puts example `example` of a part into row `row`; `position` as transforms want it.  Fails
 * when the example cannot be had.
 */
bool dataset_batch_put(struct dataset_batch *batch, int64_t row, const struct dataset *dataset,
                       const struct dataset_part *part, int64_t example, int64_t position,
                       struct error *err) CHECKED;

/* Makes `to`, of the column's `dtype` and scaled, from an example as stored. */
void dataset_batch_convert(const struct dataset_column *column, const void *from, void *to);

/* Makes a batch of examples `first` .. + count in their order: evaluation. */
bool dataset_batch_read(struct dataset_batch *batch, const struct dataset *dataset,
                        const struct dataset_part *part, int64_t first, int64_t count,
                        struct error *err) CHECKED;
