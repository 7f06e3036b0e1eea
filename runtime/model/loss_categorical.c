/* loss_categorical.c - cross-entropy between classes. */

#include "runtime/model/loss.h"

static const struct config_argument sparse_arguments[] = {
    LOSS_FROM_LOGITS,
    {CONFIG_ARG("ignore_class", CONFIG_INT, "null"), CONFIG_RANGE(-2147483648.0, 2147483647)},
};
static const struct config_argument dense_arguments[] = {
    LOSS_FROM_LOGITS,
    {CONFIG_ARG("label_smoothing", CONFIG_REAL, "0"), CONFIG_RANGE(0, 1)},
    {CONFIG_ARG("axis", CONFIG_INT, "-1"), CONFIG_RANGE(-1, -1)},
};
static const struct config_argument focal_arguments[] = {
    LOSS_FROM_LOGITS,
    {CONFIG_ARG("alpha", CONFIG_REAL, "0.25"), CONFIG_RANGE(0, 1)},
    {CONFIG_ARG("gamma", CONFIG_REAL, "2"), CONFIG_RANGE(0, 100)},
    {CONFIG_ARG("label_smoothing", CONFIG_REAL, "0"), CONFIG_RANGE(0, 1)},
    {CONFIG_ARG("axis", CONFIG_INT, "-1"), CONFIG_RANGE(-1, -1)},
};

/* How many classes the last dimension holds; 0 after refusing. */
static int64_t classes_of(struct build *m, struct edge x)
{
    const struct shape *shape = build_shape(m, x);
    if (shape->rank > 0 && shape->dims[shape->rank - 1] > 0)
        return shape->dims[shape->rank - 1];
    char text[SHAPE_TEXT_BYTES];
    build_refuse(m, INVALID, "the model gives %s, wanted: one number for each class",
                 shape_text(shape, text, sizeof(text)));
    return 0;
}

/* Back to one loss for each position, from the rows of all positions. */
static struct edge unflatten(struct build *m, struct edge losses, struct edge y_pred)
{
    const struct shape shape = *build_shape(m, y_pred);
    return shape.rank > 2 ? build_reshape_examples(m, losses, shape.dims + 1, shape.rank - 2)
                          : losses;
}

static struct edge sparse(struct loss_call *call)
{
    struct build *m = call->m;
    struct edge x = call->y_pred, labels = call->y_true;
    const struct shape shape = *build_shape(m, x);
    int64_t classes = classes_of(m, x);
    if (!classes)
        return x;
    if (build_shape(m, labels)->rank == shape.rank && build_ok(m)) /* (B, 1) */
        labels = build_squeeze(m, labels, -1);
    if (build_dtype(labels) != I32 && build_dtype(labels) != I64)
        labels = build_cast(m, labels, I64);
    if (shape.rank > 2) {
        x = build_reshape(m, x, (const int64_t[]){-1, classes}, 2);
        labels = build_reshape(m, labels, (const int64_t[]){-1}, 1);
    }
    struct edge ignored = {0};
    if (!config_is_null(call->config, "ignore_class")) {
        ignored = build_with_number(m, "Equal", labels,
                                    (double)config_int(call->config, "ignore_class"));
        labels = build_select(m, ignored, build_number(m, build_dtype(labels), 0), labels);
    }
    if (!call->logits) /* probabilities: their logarithms are logits */
        x = build_unary(m, "Log", loss_clip(m, x));
    struct edge losses =
        builder_add(&m->b, "SparseSoftmaxCrossEntropyWithLogits",
                    "SparseSoftmaxCrossEntropyWithLogits", INPUTS(x, labels), NO_ATTRS);
    if (ignored.from)
        losses = build_select(m, ignored, build_number(m, F32, 0), losses);
    return unflatten(m, losses, call->y_pred);
}

/* Labels as probabilities of the shape of the predictions, smoothed. */
static struct edge one_hot(struct loss_call *call, int64_t classes)
{
    struct build *m = call->m;
    struct edge y = call->y_true;
    double smoothing = config_real(call->config, "label_smoothing");
    if (build_shape(m, y)->rank == build_shape(m, call->y_pred)->rank - 1)
        y = builder_add(&m->b, "OneHot", "OneHot",
                        INPUTS(y, build_number(m, I32, (double)classes),
                               build_number(m, F32, 1), build_number(m, F32, 0)),
                        NO_ATTRS);
    y = build_cast(m, y, build_dtype(call->y_pred));
    if (smoothing > 0)
        y = build_with_number(m, "AddV2", build_with_number(m, "Mul", y, 1 - smoothing),
                              smoothing / (double)classes);
    return y;
}

/* Probabilities that add up to one and keep away from 0 and 1. */
static struct edge normalised(struct build *m, struct edge x)
{
    const int64_t last = -1;
    return loss_clip(m,
                     build_binary(m, "RealDiv", x, build_reduce(m, "Sum", x, &last, 1, true)));
}

static struct edge dense(struct loss_call *call)
{
    struct build *m = call->m;
    const int64_t last = -1;
    struct edge x = call->y_pred;
    int64_t classes = classes_of(m, x);
    if (!classes)
        return x;
    struct edge y = one_hot(call, classes);
    if (!call->logits) {
        struct edge logs = build_unary(m, "Log", normalised(m, x));
        struct edge sums =
            build_reduce(m, "Sum", build_binary(m, "Mul", y, logs), &last, 1, false);
        return build_unary(m, "Neg", sums);
    }
    if (build_shape(m, x)->rank > 2) {
        x = build_reshape(m, x, (const int64_t[]){-1, classes}, 2);
        y = build_reshape(m, y, (const int64_t[]){-1, classes}, 2);
    }
    struct edge losses = builder_add(&m->b, "SoftmaxCrossEntropyWithLogits",
                                     "SoftmaxCrossEntropyWithLogits", INPUTS(x, y), NO_ATTRS);
    return unflatten(m, losses, call->y_pred);
}

/* -alpha (1 - p)^gamma y log p, summed over the classes. */
static struct edge focal(struct loss_call *call)
{
    struct build *m = call->m;
    const int64_t last = -1;
    struct edge p = call->y_pred;
    int64_t classes = classes_of(m, p);
    if (!classes)
        return p;
    struct edge y = one_hot(call, classes);
    if (call->logits)
        p = build_unary(m, "Softmax", p);
    p = normalised(m, p);
    struct edge away = build_binary(m, "Sub", build_number(m, build_dtype(p), 1), p);
    struct edge factor = build_with_number(
        m, "Mul", build_with_number(m, "Pow", away, config_real(call->config, "gamma")),
        -config_real(call->config, "alpha"));
    struct edge losses =
        build_binary(m, "Mul", factor, build_binary(m, "Mul", y, build_unary(m, "Log", p)));
    return build_reduce(m, "Sum", losses, &last, 1, false);
}

const struct loss_class loss_sparse_categorical_crossentropy = {
    .config = {.name = "SparseCategoricalCrossentropy", CONFIG_ARGUMENTS(sparse_arguments)},
    .targets = TARGETS_CLASS,
    .call = sparse};
const struct loss_class loss_categorical_crossentropy = {
    .config = {.name = "CategoricalCrossentropy", CONFIG_ARGUMENTS(dense_arguments)},
    .targets = TARGETS_ONE_HOT,
    .call = dense};
const struct loss_class loss_categorical_focal_crossentropy = {
    .config = {.name = "CategoricalFocalCrossentropy", CONFIG_ARGUMENTS(focal_arguments)},
    .targets = TARGETS_ONE_HOT,
    .call = focal};
