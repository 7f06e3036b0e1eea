/* metric_loss.c - the means of losses, as metrics. */

#include <math.h>

#include "runtime/model/metric.h"

static const struct config_argument from_logits[] = {
    LOSS_FROM_LOGITS,
    {CONFIG_ARG("ignore_class", CONFIG_INT, "null"), CONFIG_RANGE(-2147483648.0, 2147483647)},
    {CONFIG_ARG("label_smoothing", CONFIG_REAL, "0"), CONFIG_RANGE(0, 1)},
    {CONFIG_ARG("axis", CONFIG_INT, "-1"), CONFIG_RANGE(-1, -1)}};
static const struct config_argument axis_only[] = {
    {CONFIG_ARG("axis", CONFIG_INT, "-1"), CONFIG_RANGE(-7, 7)}};

/* The values of a loss with this metric's arguments. */
static struct edge values(struct metric_call *call, const struct loss_class *loss)
{
    struct loss_call inner = {call->m, call->config, call->y_true, call->y_pred, call->logits};
    if (config_has(call->config, "from_logits") && !config_is_null(call->config, "from_logits"))
        inner.logits |= config_bool(call->config, "from_logits");
    return loss->call(&inner);
}

static int root_result(const struct config *config, const double *sums, int count, double *out)
{
    (void)config, (void)count;
    out[0] = sqrt(sums[1] == 0 ? 0 : sums[0] / sums[1]);
    return 1;
}

/* Keras's loss is the negative of the metric. */
static int negative_result(const struct config *config, const double *sums, int count,
                           double *out)
{
    (void)config, (void)count;
    out[0] = sums[1] == 0 ? 0 : -sums[0] / sums[1];
    return 1;
}

#define METRIC(name_, class_, alias_, of_, result_, ...)                                       \
    static struct edge name_##_sums(struct metric_call *call)                                  \
    {                                                                                          \
        return metric_mean(call, values(call, &loss_##of_));                                   \
    }                                                                                          \
    const struct metric_class metric_##name_ = {                                               \
        .config = {.name = class_,                                                             \
                   .aliases = (const char *const[]){alias_, NULL},                             \
                   __VA_ARGS__},                                                               \
        .sums = name_##_sums,                                                                  \
        .result = result_};

#define PLAIN .arguments_count = 0

METRIC(mean_squared_error, "MeanSquaredError", "mse", mean_squared_error, NULL, PLAIN)
METRIC(root_mean_squared_error, "RootMeanSquaredError", "rmse", mean_squared_error, root_result,
       PLAIN)
METRIC(mean_absolute_error, "MeanAbsoluteError", "mae", mean_absolute_error, NULL, PLAIN)
METRIC(mean_absolute_percentage_error, "MeanAbsolutePercentageError", "mape",
       mean_absolute_percentage_error, NULL, PLAIN)
METRIC(mean_squared_logarithmic_error, "MeanSquaredLogarithmicError", "msle",
       mean_squared_logarithmic_error, NULL, PLAIN)
METRIC(log_cosh_error, "LogCoshError", "logcosh", log_cosh, NULL, PLAIN)
METRIC(kl_divergence, "KLDivergence", "kullback_leibler_divergence", kl_divergence, NULL, PLAIN)
METRIC(poisson, "Poisson", "poisson", poisson, NULL, PLAIN)
METRIC(hinge, "Hinge", "hinge", hinge, NULL, PLAIN)
METRIC(squared_hinge, "SquaredHinge", "squared_hinge", squared_hinge, NULL, PLAIN)
METRIC(categorical_hinge, "CategoricalHinge", "categorical_hinge", categorical_hinge, NULL,
       PLAIN)
METRIC(cosine_similarity, "CosineSimilarity", "cosine_similarity", cosine_similarity,
       negative_result, CONFIG_ARGUMENTS(axis_only))
METRIC(sparse_categorical_crossentropy, "SparseCategoricalCrossentropy",
       "sparse_categorical_crossentropy", sparse_categorical_crossentropy, NULL,
       CONFIG_ARGUMENTS(from_logits))
METRIC(categorical_crossentropy, "CategoricalCrossentropy", "categorical_crossentropy",
       categorical_crossentropy, NULL, CONFIG_ARGUMENTS(from_logits))
METRIC(binary_crossentropy, "BinaryCrossentropy", "binary_crossentropy", binary_crossentropy,
       NULL, CONFIG_ARGUMENTS(from_logits))
