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
    (void)build_shape(call->m, sums); /* what does not fit is told here */
    build_leave(call->m, outside);
    return sums;
}

int metric_results(const struct config *config, const double *sums, int count, double *out)
{
    const struct metric_class *class = metric_of(config->class);
    if (class->result)
        return class->result(config, sums, count, out);
    out[0] = sums[1] == 0 ? 0 : sums[0] / sums[1];
    return 1;
}

double metric_result(const struct config *config, const double *sums, int count)
{
    double out[METRIC_RESULTS_MAX] = {0};
    metric_results(config, sums, count, out);
    return out[0];
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

struct edge metric_targets(struct metric_call *call)
{
    struct loss_call as_loss = {call->m, call->config, call->y_true, call->y_pred, false};
    const struct shape pred = *build_shape(call->m, call->y_pred);
    bool classes =
        call->targets == TARGETS_CLASS && pred.rank > 0 && pred.dims[pred.rank - 1] > 1;
    if (!classes || build_shape(call->m, call->y_true)->rank != pred.rank - 1)
        return loss_targets(&as_loss);
    struct build *m = call->m; /* numbers of classes become one-hot */
    return builder_add(&m->b, "OneHot", "OneHot",
                       INPUTS(call->y_true,
                              build_number(m, I32, (double)pred.dims[pred.rank - 1]),
                              build_number(m, F32, 1), build_number(m, F32, 0)),
                       NO_ATTRS);
}

struct edge metric_classes(struct metric_call *call)
{
    struct build *m = call->m;
    if (build_shape(m, call->y_true)->rank < build_shape(m, call->y_pred)->rank)
        return build_cast(m, call->y_true, I64);
    return build_argmax(m, call->y_true, -1, I64);
}

struct edge metric_probabilities(struct metric_call *call)
{
    if (!call->logits)
        return call->y_pred;
    bool binary = call->targets == TARGETS_BINARY;
    return build_unary(call->m, binary ? "Sigmoid" : "Softmax", call->y_pred);
}

struct edge metric_mean(struct metric_call *call, struct edge values)
{
    struct build *m = call->m;
    struct edge count;
    if (call->weights.from) {
        struct edge weights = call->weights;
        if (build_shape(m, weights)->rank < build_shape(m, values)->rank)
            weights = loss_weigh(m, build_unary(m, "OnesLike", values), weights);
        values = build_binary(m, "Mul", values, weights);
        count = build_reduce_all(m, "Sum", weights);
    } else {
        count = build_cast(m, build_unary(m, "Size", values), F32);
    }
    struct edge total = build_reduce_all(m, "Sum", values);
    return builder_add(&m->b, "Pack", "sums", INPUTS(total, count), NO_ATTRS);
}

struct edge metric_mask_weights(struct build *m, const struct config *config, struct edge mask)
{
    bool is_mean = !metric_of(config->class)->result;
    return is_mean && mask.from ? build_cast(m, mask, F32) : (struct edge){0};
}

/* --- Mean and Sum: of the values themselves --- */

static struct edge mean(struct metric_call *call)
{
    return metric_mean(call, call->y_pred);
}

static struct edge sum(struct metric_call *call)
{
    struct build *m = call->m;
    struct edge x = call->y_pred;
    if (call->weights.from)
        x = build_binary(m, "Mul", x, call->weights);
    return build_reshape(m, build_reduce_all(m, "Sum", x), (const int64_t[]){1}, 1);
}

static int sum_result(const struct config *config, const double *sums, int count, double *out)
{
    (void)config, (void)count;
    out[0] = sums[0];
    return 1;
}

const struct metric_class metric_sum = {
    .config = {.name = "Sum"}, .sums = sum, .result = sum_result};
const struct metric_class metric_mean_of_values = {.config = {.name = "Mean"}, .sums = mean};
