/* metric_score.c - F1Score, FBetaScore, R2Score, MeanIoU. */

#include <math.h>

#include "runtime/model/metric.h"

static const char *const averages[] = {"micro", "macro", "weighted", NULL};
static const char *const aggregations[] = {"uniform_average", "sum",
                                           "variance_weighted_average", NULL};

#define F_ARGUMENTS                                                                            \
    {CONFIG_ARG("average", CONFIG_CHOICE, "null"), .choices = averages},                       \
    {                                                                                          \
        CONFIG_ARG("threshold", CONFIG_REAL, "null"), CONFIG_RANGE(0, 1)                       \
    }

static const struct config_argument f1_arguments[] = {F_ARGUMENTS};
static const struct config_argument f_beta_arguments[] = {
    F_ARGUMENTS, {CONFIG_ARG("beta", CONFIG_REAL, "1"), CONFIG_RANGE(1e-6, 1e6)}};
static const struct config_argument r2_arguments[] = {
    {CONFIG_ARG("class_aggregation", CONFIG_CHOICE, "\"uniform_average\""),
     .choices = aggregations},
    {CONFIG_ARG("num_regressors", CONFIG_INT, "0"), CONFIG_RANGE(0, 1e9)}};
static const struct config_argument iou_arguments[] = {
    {CONFIG_ARG("num_classes", CONFIG_INT, NULL), CONFIG_RANGE(1, 64),
     .wanted = "how many classes there are"},
    {CONFIG_ARG("ignore_class", CONFIG_INT, "null"), CONFIG_RANGE(-2147483648.0, 2147483647)},
    {CONFIG_ARG("sparse_y_true", CONFIG_BOOL, "true")},
    {CONFIG_ARG("sparse_y_pred", CONFIG_BOOL, "true")},
    {CONFIG_ARG("axis", CONFIG_INT, "-1"), CONFIG_RANGE(-1, -1)}};

/* Sums over all but the last dimension, weighted. */
static struct edge sum_columns(struct metric_call *call, struct edge x)
{
    struct build *m = call->m;
    const int64_t first = 0;
    if (call->weights.from)
        x = build_binary(m, "Mul", x, build_expand(m, call->weights, -1));
    return build_reduce(m, "Sum", x, &first, 1, false);
}

/* --- F: sums of true positives, false positives, false negatives, by class --- */

static struct edge f_sums(struct metric_call *call)
{
    struct build *m = call->m;
    const int64_t last = -1;
    struct edge y = metric_targets(call), p = metric_probabilities(call), told;
    if (config_is_null(call->config, "threshold")) {
        struct edge best = build_reduce(m, "Max", p, &last, 1, true);
        told = build_binary(m, "LogicalAnd", build_binary(m, "Equal", p, best),
                            build_with_number(m, "Greater", build_unary(m, "Abs", p), 1e-9));
    } else {
        told = build_with_number(m, "Greater", p, config_real(call->config, "threshold"));
    }
    told = build_cast(m, told, F32);
    struct edge one = build_number(m, F32, 1);
    struct edge right = build_binary(m, "Mul", told, y);
    struct edge false_yes = build_binary(m, "Mul", told, build_binary(m, "Sub", one, y));
    struct edge false_no = build_binary(m, "Mul", build_binary(m, "Sub", one, told), y);
    struct edge parts[3] = {sum_columns(call, right), sum_columns(call, false_yes),
                            sum_columns(call, false_no)};
    return build_concat(m, parts, 3, 0);
}

static double f_score(double right, double false_yes, double false_no, double beta)
{
    double precision = right / (right + false_yes + LOSS_EPSILON);
    double recall = right / (right + false_no + LOSS_EPSILON);
    return (1 + beta * beta) * precision * recall /
           (beta * beta * precision + recall + LOSS_EPSILON);
}

static int f_result(const struct config *config, const double *sums, int count, double *out)
{
    int classes = count / 3;
    double beta = config_has(config, "beta") ? config_real(config, "beta") : 1;
    const char *average = config_choice(config, "average");
    double totals[3] = {0}, mean = 0;
    for (int i = 0; i < classes; i++) {
        for (int part = 0; part < 3; part++)
            totals[part] += sums[part * classes + i];
    }
    if (average && !strcmp(average, "micro")) {
        out[0] = f_score(totals[0], totals[1], totals[2], beta);
        return 1;
    }
    for (int i = 0; i < classes; i++) {
        double score = f_score(sums[i], sums[classes + i], sums[2 * classes + i], beta);
        double share = sums[i] + sums[2 * classes + i], all = totals[0] + totals[2];
        if (!average && i < METRIC_RESULTS_MAX)
            out[i] = score;
        mean += average && !strcmp(average, "weighted") ? (all == 0 ? 0 : score * share / all)
                                                        : score / classes;
    }
    if (!average)
        return classes < METRIC_RESULTS_MAX ? classes : METRIC_RESULTS_MAX;
    out[0] = mean;
    return 1;
}

/* --- R2: sums of y, y squared, squared errors, weights, by output --- */

static struct edge r2_sums(struct metric_call *call)
{
    struct build *m = call->m;
    struct edge y = metric_targets(call), p = call->y_pred;
    if (build_shape(m, y)->rank == 1) {
        y = build_expand(m, y, 1);
        p = build_expand(m, p, 1);
    }
    struct edge parts[4] = {sum_columns(call, y),
                            sum_columns(call, build_unary(m, "Square", y)),
                            sum_columns(call, build_binary(m, "SquaredDifference", y, p)),
                            sum_columns(call, build_unary(m, "OnesLike", y))};
    return build_concat(m, parts, 4, 0);
}

static int r2_result(const struct config *config, const double *sums, int count, double *out)
{
    int outputs = count / 4;
    const char *how = config_choice(config, "class_aggregation");
    double total_variance = 0, sum = 0, mean = 0, weighted = 0, examples = sums[3 * outputs];
    for (int i = 0; i < outputs; i++)
        total_variance += sums[outputs + i] - sums[i] * sums[i] / examples;
    for (int i = 0; i < outputs; i++) {
        double variance = sums[outputs + i] - sums[i] * sums[i] / examples;
        double score = 1 - sums[2 * outputs + i] / variance;
        if (!isfinite(score))
            score = 0;
        sum += score;
        mean += score / outputs;
        weighted += total_variance == 0 ? 0 : score * variance / total_variance;
    }
    out[0] = !strcmp(how, "sum") ? sum : !strcmp(how, "uniform_average") ? mean : weighted;
    double regressors = (double)config_int(config, "num_regressors");
    if (regressors > 0 && examples - regressors - 1 > 0)
        out[0] = 1 - (1 - out[0]) * (examples - 1) / (examples - regressors - 1);
    return 1;
}

/* --- MeanIoU: the confusion matrix --- */

static struct edge hot(struct build *m, struct edge x, bool sparse, int64_t classes)
{
    struct edge index = sparse ? build_cast(m, x, I64) : build_argmax(m, x, -1, I64);
    index = build_reshape(m, index, (const int64_t[]){-1}, 1);
    return builder_add(&m->b, "OneHot", "OneHot",
                       INPUTS(index, build_number(m, I32, (double)classes),
                              build_number(m, F32, 1), build_number(m, F32, 0)),
                       NO_ATTRS);
}

static struct edge iou_sums(struct metric_call *call)
{
    struct build *m = call->m;
    const struct config *config = call->config;
    int64_t classes = config_int(config, "num_classes");
    bool sparse_true = config_bool(config, "sparse_y_true");
    struct edge y = hot(m, call->y_true, sparse_true, classes);
    struct edge p = hot(m, call->y_pred, config_bool(config, "sparse_y_pred"), classes);
    if (call->weights.from)
        p = build_binary(m, "Mul", p,
                         build_reshape(m, call->weights, (const int64_t[]){-1, 1}, 2));
    if (!config_is_null(config, "ignore_class")) {
        struct edge labels = sparse_true ? build_cast(m, call->y_true, I64)
                                         : build_argmax(m, call->y_true, -1, I64);
        struct edge kept =
            build_cast(m,
                       build_with_number(m, "NotEqual", labels,
                                         (double)config_int(config, "ignore_class")),
                       F32);
        p = build_binary(m, "Mul", p, build_reshape(m, kept, (const int64_t[]){-1, 1}, 2));
    }
    return build_reshape(m, build_matmul(m, y, p, true, false), (const int64_t[]){-1}, 1);
}

static int iou_result(const struct config *config, const double *sums, int count, double *out)
{
    int classes = (int)config_int(config, "num_classes"), seen = 0;
    double total = 0;
    (void)count;
    for (int i = 0; i < classes; i++) {
        double row = 0, column = 0, both = sums[i * classes + i];
        for (int k = 0; k < classes; k++) {
            row += sums[i * classes + k];
            column += sums[k * classes + i];
        }
        if (row + column - both > 0) {
            total += both / (row + column - both);
            seen++;
        }
    }
    out[0] = seen ? total / seen : 0;
    return 1;
}

const struct metric_class metric_f1_score = {
    .config = {.name = "F1Score", CONFIG_ARGUMENTS(f1_arguments)},
    .sums = f_sums,
    .result = f_result};
const struct metric_class metric_f_beta_score = {
    .config = {.name = "FBetaScore", CONFIG_ARGUMENTS(f_beta_arguments)},
    .sums = f_sums,
    .result = f_result};
const struct metric_class metric_r2_score = {
    .config = {.name = "R2Score", CONFIG_ARGUMENTS(r2_arguments)},
    .sums = r2_sums,
    .result = r2_result};
const struct metric_class metric_mean_iou = {
    .config = {.name = "MeanIoU", CONFIG_ARGUMENTS(iou_arguments)},
    .sums = iou_sums,
    .result = iou_result};
