/*
 * evaluate.h - the metrics of a model over examples that it is not trained on.
 */
#pragma once

#include "runtime/dataset/dataset.h"
#include "runtime/model/model.h"

struct error;
struct runner;
struct runner_call;

/* Feeds of a pass over `feeds`: the placeholders of features, target and weight, whose names
 * have `scope` in front (of the model).  Lives in `arena`. */
const char *const *evaluate_feed_names(const struct feeds *feeds, const char *scope,
                                       struct arena *arena);

/* The call that evaluate_examples() makes for each batch; owned by the runner. */
struct runner_call *evaluate_prepare(struct runner *runner, const struct model *model,
                                     const struct dataset *dataset, struct error *err) CHECKED;

/*
 * Sets `values` to the metrics of the model, in their order, over all examples of a part of the
 * dataset that the call was prepared for.
 */
bool evaluate_examples(struct runner *runner, const struct runner_call *call,
                       const struct model *model, const struct dataset *dataset,
                       const struct dataset_part *part, double *values,
                       struct error *err) CHECKED;
