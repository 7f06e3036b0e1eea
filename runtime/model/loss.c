/* loss.c - the table of losses, and how many losses become one. */

#include "runtime/model/loss.h"

static const char *const reductions[] = {"sum_over_batch_size",     "sum", "mean", "none",
                                         "mean_with_sample_weight", NULL};

static const struct config_argument common[] = {
    {CONFIG_ARG("reduction", CONFIG_CHOICE, "\"sum_over_batch_size\""), .choices = reductions}};

#define LOSS_ROW(name) &loss_##name,
static const struct loss_class *const table[] = {LOSSES(LOSS_ROW)};

static const struct config_class *class_at(int index)
{
    return index < ARRAY_LEN(table) ? &table[index]->config : NULL;
}

const struct config_family loss_family = {.what = "loss",
                                          .key = "name",
                                          .common = common,
                                          .common_count = ARRAY_LEN(common),
                                          .at = class_at};

const struct loss_class *loss_of(const struct config_class *class)
{
    static_assert(offsetof(struct loss_class, config) == 0, "a loss begins with its class");
    return (const struct loss_class *)class;
}

bool loss_takes_logits(const struct config *config)
{
    return config_has(config, "from_logits") &&
           (config_is_null(config, "from_logits") || config_bool(config, "from_logits"));
}

struct edge loss_targets(struct loss_call *call)
{
    struct build *m = call->m;
    struct edge y = build_cast(m, call->y_true, build_dtype(call->y_pred));
    int missing = build_shape(m, call->y_pred)->rank - build_shape(m, y)->rank;
    if (missing == 1)
        return build_expand(m, y, -1);
    return missing == -1 ? build_squeeze(m, y, -1) : y;
}

struct edge loss_clip(struct build *m, struct edge x)
{
    return build_with_number(m, "Minimum", build_with_number(m, "Maximum", x, LOSS_EPSILON),
                             1 - LOSS_EPSILON);
}

struct edge loss_mean_last(struct build *m, struct edge x)
{
    const int64_t last = -1;
    return build_reduce(m, "Mean", x, &last, 1, false);
}

struct edge loss_values(struct build *m, const struct config *config, struct edge y_true,
                        struct edge y_pred, bool logits)
{
    struct loss_call call = {m, config, y_true, y_pred, logits};
    const char *outside = build_enter(m, config->class->name);
    struct edge values = build_ok(m) ? loss_of(config->class)->call(&call) : y_pred;
    (void)build_shape(m, values); /* what does not fit is told here */
    build_leave(m, outside);
    return values;
}

static struct edge spread(struct build *m, struct edge values, struct edge weights)
{
    int rank = build_shape(m, values)->rank, of = build_shape(m, weights)->rank;
    if (build_ok(m) && of > rank)
        build_refuse(m, INVALID, "weights of rank %d for losses of rank %d", of, rank);
    for (; of < rank && build_ok(m); of++)
        weights = build_expand(m, weights, -1);
    return weights;
}

struct edge loss_weigh(struct build *m, struct edge values, struct edge weights)
{
    return build_binary(m, "Mul", values, spread(m, values, weights));
}

struct edge loss_reduce(struct build *m, const struct config *config, struct edge values,
                        struct edge weights)
{
    const char *reduction = config_choice(config, "reduction");
    bool weighted_mean = !strcmp(reduction, "mean_with_sample_weight");
    struct edge sum_of_weights = {0};
    if (weights.from) {
        bool same = build_shape(m, weights)->rank == build_shape(m, values)->rank;
        values = loss_weigh(m, values, weights);
        if (weighted_mean && !same) /* an example counts with all of its positions */
            weights = loss_weigh(m, build_unary(m, "OnesLike", values), weights);
        if (weighted_mean)
            sum_of_weights = build_reduce_all(m, "Sum", weights);
    }
    if (!strcmp(reduction, "none"))
        return values;
    if (!strcmp(reduction, "sum"))
        return build_reduce_all(m, "Sum", values);
    if (!sum_of_weights.from)
        return build_reduce_all(m, "Mean", values);
    return build_binary(m, "DivNoNan", build_reduce_all(m, "Sum", values), sum_of_weights);
}

struct edge loss_mask_weights(struct build *m, const struct config *config, struct edge mask,
                              struct edge values)
{
    if (!mask.from || !build_ok(m))
        return (struct edge){0};
    if (build_shape(m, mask)->rank != build_shape(m, values)->rank) {
        build_refuse(m, INVALID,
                     "the model's output has masked steps, but there is no loss for each step");
        return (struct edge){0};
    }
    const char *reduction = config_choice(config, "reduction");
    struct edge there = build_cast(m, mask, build_dtype(values));
    if (strcmp(reduction, "sum_over_batch_size") && strcmp(reduction, "mean"))
        return there;
    struct edge all = build_cast(m, build_unary(m, "Size", mask), build_dtype(values));
    struct edge share = build_binary(m, "DivNoNan", all, build_reduce_all(m, "Sum", there));
    return build_binary(m, "Mul", there, share);
}
