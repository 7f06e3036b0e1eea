/*
 * metric.h - metrics: what people look at.
 *
 * A metric is a vector of sums over examples, made by nodes of the graph for each batch, and a
 * number that follows from the sums over all batches.  So batches, tasks and machines simply
 * add up, and nothing has to be kept in variables.  Names, arguments and numbers are Keras's.
 */
#pragma once

#include "runtime/model/build.h"
#include "runtime/model/loss.h"

struct metric_call {
    struct build *m;
    const struct config *config;
    struct edge y_true, y_pred;
    struct edge weights; /* of examples; no node: none */
    bool logits;         /* y_pred comes before the softmax or sigmoid */
    enum loss_targets targets;
};

struct metric_class {
    struct config_class config;
    /* A vector of float sums over the batch. */
    struct edge (*sums)(struct metric_call *call);
    /* What they come to; of the mean of one number: NULL, with sums {total, count}. */
    double (*result)(const struct config *config, const double *sums, int count);
};

#define METRICS(X)                                                                             \
    X(mean_of_values)                                                                          \
    X(sparse_categorical_accuracy)

#define METRIC_DECLARE(name) extern const struct metric_class metric_##name;
METRICS(METRIC_DECLARE)

extern const struct config_family metric_family;

const struct metric_class *metric_of(const struct config_class *class);

struct edge metric_sums(struct metric_call *call);
double metric_result(const struct config *config, const double *sums, int count);

/* The metric that "accuracy" is for such targets; NULL: there is none. */
const char *metric_accuracy(enum loss_targets targets);

/* {sum of values * weights, sum of weights}, of values of examples or of positions in them. */
struct edge metric_mean(struct metric_call *call, struct edge values);
