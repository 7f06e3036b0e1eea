/* metric_accuracy.c - how often the model is right. */

#include "runtime/model/metric.h"

static struct edge sparse(struct metric_call *call)
{
    struct build *m = call->m;
    struct edge best = build_argmax(m, call->y_pred, -1, build_dtype(call->y_true));
    struct edge equal = build_binary(m, "Equal", best, call->y_true);
    return metric_mean(call, build_cast(m, equal, F32));
}

const struct metric_class metric_sparse_categorical_accuracy = {
    .config = {.name = "SparseCategoricalAccuracy"}, .sums = sparse};
