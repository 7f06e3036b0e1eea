/* metric_accuracy.c - how often the model is right. */

#include "runtime/model/metric.h"

static const struct config_argument threshold_arguments[] = {
    {CONFIG_ARG("threshold", CONFIG_REAL, "0.5"), CONFIG_RANGE(-1e30, 1e30)}};
static const struct config_argument top_arguments[] = {
    {CONFIG_ARG("k", CONFIG_INT, "5"), CONFIG_RANGE(1, 1e9)}};

static struct edge hits(struct metric_call *call, struct edge is)
{
    return metric_mean(call, build_cast(call->m, is, F32));
}

static struct edge sparse(struct metric_call *call)
{
    struct build *m = call->m;
    struct edge y = call->y_true;
    if (build_shape(m, y)->rank == build_shape(m, call->y_pred)->rank)
        y = build_squeeze(m, y, -1);
    if (build_dtype(y) != I32 && build_dtype(y) != I64)
        y = build_cast(m, y, I64);
    return hits(call,
                build_binary(m, "Equal", build_argmax(m, call->y_pred, -1, build_dtype(y)), y));
}

static struct edge categorical(struct metric_call *call)
{
    struct build *m = call->m;
    struct edge y = metric_classes(call);
    return hits(call, build_binary(m, "Equal", build_argmax(m, call->y_pred, -1, I64), y));
}

static struct edge binary(struct metric_call *call)
{
    struct build *m = call->m;
    struct edge p = metric_probabilities(call), y = metric_targets(call);
    double threshold = config_real(call->config, "threshold");
    struct edge yes = build_cast(m, build_with_number(m, "Greater", p, threshold), F32);
    struct edge right = build_cast(m, build_binary(m, "Equal", yes, y), F32);
    const int64_t last = -1;
    if (build_shape(m, right)->rank > 1)
        right = build_reduce(m, "Mean", right, &last, 1, false);
    return metric_mean(call, right);
}

static struct edge exact(struct metric_call *call)
{
    return hits(call, build_binary(call->m, "Equal", metric_targets(call), call->y_pred));
}

/* Whether the class is among the k largest. */
static struct edge top(struct metric_call *call, struct edge classes)
{
    struct build *m = call->m;
    const struct shape shape = *build_shape(m, call->y_pred);
    struct edge x = call->y_pred,
                k = build_number(m, I64, (double)config_int(call->config, "k"));
    classes = build_cast(m, classes, I64);
    if (shape.rank > 2) {
        x = build_reshape(m, x, (const int64_t[]){-1, shape.dims[shape.rank - 1]}, 2);
        classes = build_reshape(m, classes, (const int64_t[]){-1}, 1);
    }
    return hits(call,
                builder_add(&m->b, "InTopKV2", "InTopKV2", INPUTS(x, classes, k), NO_ATTRS));
}

static struct edge sparse_top(struct metric_call *call)
{
    return top(call, call->y_true);
}

static struct edge categorical_top(struct metric_call *call)
{
    return top(call, metric_classes(call));
}

const struct metric_class metric_sparse_categorical_accuracy = {
    .config = {.name = "SparseCategoricalAccuracy"}, .sums = sparse};
const struct metric_class metric_categorical_accuracy = {
    .config = {.name = "CategoricalAccuracy"}, .sums = categorical};
const struct metric_class metric_binary_accuracy = {
    .config = {.name = "BinaryAccuracy", CONFIG_ARGUMENTS(threshold_arguments)},
    .sums = binary};
const struct metric_class metric_accuracy_of_equals = {.config = {.name = "Accuracy"},
                                                       .sums = exact};
const struct metric_class metric_sparse_top_k = {
    .config = {.name = "SparseTopKCategoricalAccuracy", CONFIG_ARGUMENTS(top_arguments)},
    .sums = sparse_top};
const struct metric_class metric_top_k = {
    .config = {.name = "TopKCategoricalAccuracy", CONFIG_ARGUMENTS(top_arguments)},
    .sums = categorical_top};
