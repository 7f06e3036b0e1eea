/* metric.c - the table of metrics, and means, which most of them are. */

#include "runtime/model/metric.h"

#define METRIC_ROW(name) &metric_##name,
static const struct metric_class *const table[] = {METRICS(METRIC_ROW)};

static const struct config_class *class_at(int index)
{
    return index < ARRAY_LEN(table) ? &table[index]->config : NULL;
}

const struct config_family metric_family = {.what = "metric", .key = "name", .at = class_at};

const struct metric_class *metric_of(const struct config_class *class)
{
    static_assert(offsetof(struct metric_class, config) == 0, "it begins with its class");
    return (const struct metric_class *)class;
}

struct edge metric_sums(struct metric_call *call)
{
    const char *outside = build_enter(call->m, call->config->class->name);
    struct edge sums =
        build_ok(call->m) ? metric_of(call->config->class)->sums(call) : (struct edge){0};
    build_leave(call->m, outside);
    return sums;
}

double metric_result(const struct config *config, const double *sums, int count)
{
    const struct metric_class *class = metric_of(config->class);
    if (class->result)
        return class->result(config, sums, count);
    return sums[1] == 0 ? 0 : sums[0] / sums[1];
}

const char *metric_accuracy(enum loss_targets targets)
{
    static const char *const names[] = {
        [TARGETS_CLASS] = "SparseCategoricalAccuracy",
        [TARGETS_ONE_HOT] = "CategoricalAccuracy",
        [TARGETS_BINARY] = "BinaryAccuracy",
        [TARGETS_VALUES] = NULL,
    };
    return names[targets];
}

struct edge metric_mean(struct metric_call *call, struct edge values)
{
    struct build *m = call->m;
    struct edge count;
    if (call->weights.from) {
        values = build_binary(m, "Mul", values, call->weights);
        count = build_reduce_all(m, "Sum", call->weights);
    } else {
        count = build_cast(m, build_unary(m, "Size", values), F32);
    }
    struct edge total = build_reduce_all(m, "Sum", values);
    return builder_add(&m->b, "Pack", "sums", INPUTS(total, count), NO_ATTRS);
}

/* --- Mean: of the values themselves --- */

static struct edge mean(struct metric_call *call)
{
    return metric_mean(call, call->y_pred);
}

const struct metric_class metric_mean_of_values = {.config = {.name = "Mean"}, .sums = mean};
