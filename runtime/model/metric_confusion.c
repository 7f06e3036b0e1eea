/*
 * metric_confusion.c - true and false, positives and negatives, over thresholds; precision,
 * recall, area under the curve.
 */

#include <math.h>

#include "runtime/model/metric.h"
#include "runtime/tensor.h"

#define NEVER (-1e10) /* below every threshold: Keras's value */

enum { TRUE_POSITIVES = 1, FALSE_POSITIVES = 2, TRUE_NEGATIVES = 4, FALSE_NEGATIVES = 8 };

#define THRESHOLDS                                                                             \
    {                                                                                          \
        CONFIG_ARG("thresholds", CONFIG_REALS, "null"), CONFIG_RANGE(-1e30, 1e30)              \
    }

static const char *const curves[] = {"ROC", "PR", NULL};
static const char *const summations[] = {"interpolation", "minoring", "majoring", NULL};

static const struct config_argument count_arguments[] = {THRESHOLDS};
static const struct config_argument ratio_arguments[] = {
    THRESHOLDS,
    {CONFIG_ARG("top_k", CONFIG_INT, "null"), CONFIG_RANGE(1, 1e9)},
    {CONFIG_ARG("class_id", CONFIG_INT, "null"), CONFIG_RANGE(0, 1e9)}};
static const struct config_argument auc_arguments[] = {
    {CONFIG_ARG("num_thresholds", CONFIG_INT, "200"), CONFIG_RANGE(2, METRIC_SUMS_MAX / 4)},
    {CONFIG_ARG("curve", CONFIG_CHOICE, "\"ROC\""), .choices = curves},
    {CONFIG_ARG("summation_method", CONFIG_CHOICE, "\"interpolation\""), .choices = summations},
    {CONFIG_ARG("from_logits", CONFIG_BOOL, "null")}};

static bool count_check(const struct config *config, struct error *err)
{
    int count;
    if (!config_reals(config, "thresholds", &count) || count <= METRIC_RESULTS_MAX)
        return true;
    return error_at(err, config->pointer, INVALID, "%d thresholds, allowed: at most %d", count,
                    METRIC_RESULTS_MAX);
}

/* --- sums --- */

struct counting {
    struct metric_call *call;
    struct edge y, p, weights; /* vectors of all answers; `weights` without node: none */
    struct edge thresholds;    /* (thresholds, 1) */
};

static struct edge vector(struct build *m, struct edge x)
{
    return build_shape(m, x)->rank == 1 ? x : build_reshape(m, x, (const int64_t[]){-1}, 1);
}

/* Weights of examples as weights of their answers. */
static struct edge spread(struct counting *c, struct edge like)
{
    struct build *m = c->call->m;
    struct edge weights = c->call->weights;
    if (!weights.from)
        return weights;
    for (int i = build_shape(m, weights)->rank; i < build_shape(m, like)->rank; i++)
        weights = build_expand(m, weights, -1);
    return vector(m, build_binary(m, "Mul", weights, build_unary(m, "OnesLike", like)));
}

static void begin(struct counting *c, struct metric_call *call, struct edge y, struct edge p,
                  const double *thresholds, int count)
{
    struct build *m = call->m;
    struct tensor values;
    c->call = call;
    c->weights = spread(c, p);
    c->y = vector(m, y);
    c->p = vector(m, p);
    if (!build_ok(m) || !tensor_init(&values, F32, &SHAPE(count, 1), m->b.err)) {
        m->b.failed = true;
        return;
    }
    for (int i = 0; i < count; i++)
        tensor_set_number(&values, i, thresholds[i]);
    c->thresholds = builder_const(&m->b, "thresholds", &values);
    tensor_release(&values);
}

/* Over the answers, for each threshold: how many are as `positive` says and were told so. */
static struct edge count(struct counting *c, bool positive, bool told)
{
    struct build *m = c->call->m;
    const int64_t last = 1;
    struct edge above = build_binary(m, "Greater", build_expand(m, c->p, 0), c->thresholds);
    struct edge is = build_with_number(m, positive ? "Greater" : "LessEqual", c->y, 0.5);
    if (!told)
        above = build_unary(m, "LogicalNot", above);
    struct edge both =
        build_cast(m, build_binary(m, "LogicalAnd", above, build_expand(m, is, 0)), F32);
    if (c->weights.from)
        both = build_binary(m, "Mul", both, build_expand(m, c->weights, 0));
    return build_reduce(m, "Sum", both, &last, 1, false);
}

/* The counts that `which` names, one after the other. */
static struct edge counts(struct counting *c, int which)
{
    struct edge parts[4];
    int n = 0;
    if (which & TRUE_POSITIVES)
        parts[n++] = count(c, true, true);
    if (which & FALSE_POSITIVES)
        parts[n++] = count(c, false, true);
    if (which & TRUE_NEGATIVES)
        parts[n++] = count(c, false, false);
    if (which & FALSE_NEGATIVES)
        parts[n++] = count(c, true, false);
    return n == 1 ? parts[0] : build_concat(c->call->m, parts, n, 0);
}

/* What is not among the k largest of its example is told by no threshold. */
static struct edge keep_top(struct build *m, struct edge p, int64_t k)
{
    struct edge largest = builder_add(&m->b, "TopKV2", "TopKV2",
                                      INPUTS(p, build_number(m, I32, (double)k)), NO_ATTRS);
    const int64_t last = -1;
    struct edge least = build_reduce(m, "Min", largest, &last, 1, true);
    return build_select(m, build_binary(m, "GreaterEqual", p, least), p,
                        build_number(m, build_dtype(p), NEVER));
}

static struct edge column(struct build *m, struct edge x, int64_t index)
{
    return build_slice(m, x, (const int64_t[]){0, index}, (const int64_t[]){-1, 1}, 2);
}

static struct edge confusion(struct metric_call *call, int which)
{
    struct build *m = call->m;
    const struct config *config = call->config;
    struct counting c;
    int thresholds_count = 1;
    double usual = 0.5;
    const double *thresholds = config_reals(config, "thresholds", &thresholds_count);
    struct edge y = metric_targets(call), p = metric_probabilities(call);
    if (config_has(config, "top_k") && !config_is_null(config, "top_k")) {
        p = keep_top(m, p, config_int(config, "top_k"));
        usual = NEVER;
    }
    if (config_has(config, "class_id") && !config_is_null(config, "class_id")) {
        y = column(m, y, config_int(config, "class_id"));
        p = column(m, p, config_int(config, "class_id"));
    }
    begin(&c, call, y, p, thresholds ? thresholds : &usual, thresholds ? thresholds_count : 1);
    return build_ok(m) ? counts(&c, which) : p;
}

/* --- results --- */

static int sum_result(const struct config *config, const double *sums, int count, double *out)
{
    (void)config;
    for (int i = 0; i < count; i++)
        out[i] = sums[i];
    return count;
}

/* The first half of the sums over both halves together. */
static int ratio_result(const struct config *config, const double *sums, int count, double *out)
{
    int half = count / 2;
    (void)config;
    for (int i = 0; i < half; i++) {
        double all = sums[i] + sums[half + i];
        out[i] = all == 0 ? 0 : sums[i] / all;
    }
    return half;
}

#define COUNTS(name_, class_, which_, arguments_, result_)                                     \
    static struct edge name_(struct metric_call *call)                                         \
    {                                                                                          \
        return confusion(call, which_);                                                        \
    }                                                                                          \
    const struct metric_class metric_##name_ = {                                               \
        .config = {.name = class_, CONFIG_ARGUMENTS(arguments_), .check = count_check},        \
        .sums = name_,                                                                         \
        .result = result_};

COUNTS(true_positives, "TruePositives", TRUE_POSITIVES, count_arguments, sum_result)
COUNTS(false_positives, "FalsePositives", FALSE_POSITIVES, count_arguments, sum_result)
COUNTS(true_negatives, "TrueNegatives", TRUE_NEGATIVES, count_arguments, sum_result)
COUNTS(false_negatives, "FalseNegatives", FALSE_NEGATIVES, count_arguments, sum_result)
COUNTS(precision, "Precision", TRUE_POSITIVES | FALSE_POSITIVES, ratio_arguments, ratio_result)
COUNTS(recall, "Recall", TRUE_POSITIVES | FALSE_NEGATIVES, ratio_arguments, ratio_result)

/* --- area under the curve --- */

static struct edge auc(struct metric_call *call)
{
    struct counting c;
    double thresholds[METRIC_SUMS_MAX];
    int count = (int)config_int(call->config, "num_thresholds");
    for (int i = 0; i < count; i++)
        thresholds[i] = (double)i / (count - 1);
    thresholds[0] = -LOSS_EPSILON;
    thresholds[count - 1] = 1 + LOSS_EPSILON;
    bool sigmoid = !config_is_null(call->config, "from_logits") &&
                   config_bool(call->config, "from_logits");
    struct edge p =
        sigmoid ? build_unary(call->m, "Sigmoid", call->y_pred) : metric_probabilities(call);
    begin(&c, call, metric_targets(call), p, thresholds, count);
    return build_ok(call->m)
               ? counts(&c, TRUE_POSITIVES | FALSE_POSITIVES | TRUE_NEGATIVES | FALSE_NEGATIVES)
               : p;
}

static double part(double a, double b)
{
    return b == 0 ? 0 : a / b;
}

/*
 * Between two points of the precision-recall curve the true positives grow straight with all
 * positives (Davis and Goadrich, 2006); this is the integral of that.
 */
static double area_between(const double *tp, const double *fp, const double *fn, int i)
{
    double p0 = tp[i] + fp[i], p1 = tp[i + 1] + fp[i + 1];
    double d_tp = tp[i] - tp[i + 1], d_p = p0 - p1;
    double slope = part(d_tp, d_p > 0 ? d_p : 0), intercept = tp[i + 1] - slope * p1;
    double ratio = p0 > 0 && p1 > 0 ? p0 / p1 : 1;
    return part(slope * (d_tp + intercept * log(ratio)), tp[i + 1] + fn[i + 1]);
}

static int auc_result(const struct config *config, const double *sums, int count, double *out)
{
    int n = count / 4;
    const double *tp = sums, *fp = sums + n, *tn = sums + 2 * n, *fn = sums + 3 * n;
    const char *method = config_choice(config, "summation_method");
    bool roc = !strcmp(config_choice(config, "curve"), "ROC");
    double area = 0;
    for (int i = 0; i + 1 < n; i++) {
        if (!roc && !strcmp(method, "interpolation")) {
            area += area_between(tp, fp, fn, i);
            continue;
        }
        double x[2], y[2];
        for (int k = 0; k < 2; k++) {
            double recall = part(tp[i + k], tp[i + k] + fn[i + k]);
            x[k] = roc ? part(fp[i + k], fp[i + k] + tn[i + k]) : recall;
            y[k] = roc ? recall : part(tp[i + k], tp[i + k] + fp[i + k]);
        }
        double height = (y[0] + y[1]) / 2;
        if (!strcmp(method, "minoring"))
            height = fmin(y[0], y[1]);
        else if (!strcmp(method, "majoring"))
            height = fmax(y[0], y[1]);
        area += (x[0] - x[1]) * height;
    }
    out[0] = area;
    return 1;
}

const struct metric_class metric_auc = {
    .config = {.name = "AUC", CONFIG_ARGUMENTS(auc_arguments)},
    .sums = auc,
    .result = auc_result};
