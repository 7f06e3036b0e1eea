/* loss_categorical.c - cross-entropy between classes. */

#include "runtime/model/loss.h"

static const struct config_argument sparse_arguments[] = {
    LOSS_FROM_LOGITS,
    {CONFIG_ARG("ignore_class", CONFIG_INT, "null"), CONFIG_RANGE(-2147483648.0, 2147483647)},
};

/* Rows of (all positions, classes). */
static struct edge sparse(struct loss_call *call)
{
    struct build *m = call->m;
    struct edge x = call->y_pred, labels = call->y_true;
    const struct shape shape = *build_shape(m, x);
    if (shape.rank < 2 || shape.dims[shape.rank - 1] < 1) {
        char text[SHAPE_TEXT_BYTES];
        build_refuse(m, INVALID, "the model gives %s, wanted: one number for each class",
                     shape_text(&shape, text, sizeof(text)));
        return x;
    }
    int64_t classes = shape.dims[shape.rank - 1];
    if (shape.rank > 2) {
        x = build_reshape(m, x, (const int64_t[]){-1, classes}, 2);
        labels = build_reshape(m, labels, (const int64_t[]){-1}, 1);
    }
    if (!call->logits) /* probabilities: their logarithms are logits */
        x = build_unary(m, "Log", build_with_number(m, "Maximum", x, 1e-7));
    return builder_add(&m->b, "SparseSoftmaxCrossEntropyWithLogits",
                       "SparseSoftmaxCrossEntropyWithLogits", INPUTS(x, labels), NO_ATTRS);
}

const struct loss_class loss_sparse_categorical_crossentropy = {
    .config = {.name = "SparseCategoricalCrossentropy", CONFIG_ARGUMENTS(sparse_arguments)},
    .targets = TARGETS_CLASS,
    .call = sparse};
