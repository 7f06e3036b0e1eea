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
    /*
     * What they come to: how many numbers, the first of which is the series.  NULL: the mean,
     * of sums {total, count}.
     */
    int (*result)(const struct config *config, const double *sums, int count, double *out);
};

#define METRIC_RESULTS_MAX 64
#define METRIC_SUMS_MAX 16384

#define METRICS(X)                                                                             \
    X(mean_of_values)                                                                          \
    X(sum)                                                                                     \
    X(sparse_categorical_accuracy)                                                             \
    X(categorical_accuracy)                                                                    \
    X(binary_accuracy)                                                                         \
    X(accuracy_of_equals)                                                                      \
    X(sparse_top_k)                                                                            \
    X(top_k)                                                                                   \
    X(mean_squared_error)                                                                      \
    X(root_mean_squared_error)                                                                 \
    X(mean_absolute_error)                                                                     \
    X(mean_absolute_percentage_error)                                                          \
    X(mean_squared_logarithmic_error)                                                          \
    X(log_cosh_error)                                                                          \
    X(kl_divergence)                                                                           \
    X(poisson)                                                                                 \
    X(hinge)                                                                                   \
    X(squared_hinge)                                                                           \
    X(categorical_hinge)                                                                       \
    X(cosine_similarity)                                                                       \
    X(sparse_categorical_crossentropy)                                                         \
    X(categorical_crossentropy)                                                                \
    X(binary_crossentropy)                                                                     \
    X(true_positives)                                                                          \
    X(false_positives)                                                                         \
    X(true_negatives)                                                                          \
    X(false_negatives)                                                                         \
    X(precision)                                                                               \
    X(recall)                                                                                  \
    X(auc)                                                                                     \
    X(f1_score)                                                                                \
    X(f_beta_score)                                                                            \
    X(r2_score)                                                                                \
    X(mean_iou)

#define METRIC_DECLARE(name) extern const struct metric_class metric_##name;
METRICS(METRIC_DECLARE)

extern const struct config_family metric_family;

const struct metric_class *metric_of(const struct config_class *class);

struct edge metric_sums(struct metric_call *call);
/* The number of the series. */
double metric_result(const struct config *config, const double *sums, int count);

/* All numbers; how many, at most METRIC_RESULTS_MAX. */
int metric_results(const struct config *config, const double *sums, int count, double *out);

/* The metric that "accuracy" is for such targets; NULL: there is none. */
const char *metric_accuracy(enum loss_targets targets);

/* The weights that a mask of the predictions gives: Keras's means over answers heed it, counts
 * of them do not.  Without node: none. */
struct edge metric_mask_weights(struct build *m, const struct config *config, struct edge mask);

/* --- for metrics --- */

/* The targets as floats, of the rank of the predictions. */
struct edge metric_targets(struct metric_call *call);

/* The numbers of the classes, int64, of targets that are one-hot (or numbers already). */
struct edge metric_classes(struct metric_call *call);

/* The predictions after the softmax or sigmoid, where the loss takes what comes before. */
struct edge metric_probabilities(struct metric_call *call);

/* {sum of values * weights, sum of weights}, of values of examples or of positions in them. */
struct edge metric_mean(struct metric_call *call, struct edge values);
