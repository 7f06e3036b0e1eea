/*
 * loss.h - losses: what training makes small.
 *
 * A loss is one constant in runtime/model/losses.c and the like, and one row in LOSSES.  Names,
 * arguments and numbers are Keras's.
 */
#pragma once

#include "runtime/model/build.h"

/* What the targets of a loss look like, which decides what "accuracy" means beside it. */
enum loss_targets {
    TARGETS_CLASS,   /* the number of a class */
    TARGETS_ONE_HOT, /* a probability for each class */
    TARGETS_BINARY,  /* 0 or 1 for each output */
    TARGETS_VALUES,  /* numbers of the shape of the output */
};

struct loss_call {
    struct build *m;
    const struct config *config;
    struct edge y_true, y_pred;
    bool logits; /* y_pred comes before the softmax or sigmoid */
};

struct loss_class {
    struct config_class config;
    enum loss_targets targets;
    /* One loss for each example (or position in it): the last dimension is gone. */
    struct edge (*call)(struct loss_call *call);
};

#define LOSSES(X)                                                                              \
    X(sparse_categorical_crossentropy)                                                         \
    X(categorical_crossentropy)                                                                \
    X(categorical_focal_crossentropy)                                                          \
    X(binary_crossentropy)                                                                     \
    X(binary_focal_crossentropy)                                                               \
    X(hinge)                                                                                   \
    X(squared_hinge)                                                                           \
    X(categorical_hinge)                                                                       \
    X(mean_squared_error)                                                                      \
    X(mean_absolute_error)                                                                     \
    X(mean_absolute_percentage_error)                                                          \
    X(mean_squared_logarithmic_error)                                                          \
    X(log_cosh)                                                                                \
    X(huber)                                                                                   \
    X(kl_divergence)                                                                           \
    X(poisson)                                                                                 \
    X(cosine_similarity)

#define LOSS_DECLARE(name) extern const struct loss_class loss_##name;
LOSSES(LOSS_DECLARE)

extern const struct config_family loss_family;

const struct loss_class *loss_of(const struct config_class *class);

/*
 * Whether the loss takes logits.  Where "from_logits" is null it does: a softmax or sigmoid
 * that ends the model is then left to the loss, which computes both at once; a model that ends
 * without gives logits.
 */
bool loss_takes_logits(const struct config *config);

/* The losses, one for each example or position. */
struct edge loss_values(struct build *m, const struct config *config, struct edge y_true,
                        struct edge y_pred, bool logits);

/* Them times the weights of the examples, or of the positions in them. */
struct edge loss_weigh(struct build *m, struct edge values, struct edge weights);

/* Them as one number by the argument "reduction"; `weights` without node: none. */
struct edge loss_reduce(struct build *m, const struct config *config, struct edge values,
                        struct edge weights);

/*
 * The weights that a mask of the predictions gives to the losses of its steps; without node
 * when there is no mask.  By reductions that take the mean it is that over the steps that are
 * there.
 */
struct edge loss_mask_weights(struct build *m, const struct config *config, struct edge mask,
                              struct edge values);

/* --- for losses --- */

/* The targets in the type of the predictions, and of their rank where one dimension is 1. */
struct edge loss_targets(struct loss_call *call);

/* Away from 0 and 1, where logarithms are not finite: Keras's 1e-7. */
#define LOSS_EPSILON 1e-7
struct edge loss_clip(struct build *m, struct edge x);

struct edge loss_mean_last(struct build *m, struct edge x);

#define LOSS_FROM_LOGITS                                                                       \
    {                                                                                          \
        CONFIG_ARG("from_logits", CONFIG_BOOL, "null")                                         \
    }
