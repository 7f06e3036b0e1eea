/*
 * pass.h - one pass over a spec's layers: what is fed goes in, predictions, losses and metrics
 * come out.
 *
 * A model of layers has one for training, or one for each replica, and one for evaluation; all
 * share the variables.
 */
#pragma once

#include "runtime/model/build.h"
#include "runtime/model/layer.h"

/* A model of layers while it is built. */
struct building {
    struct build m;
    const struct spec *spec;
    const struct model_data *data;
    struct model_layer *layers;
    struct model_metric *metrics;
    int step;                    /* the weight that counts steps */
    const struct stages *stages; /* where each layer is; NULL: where the pass is */
    struct model_step *steps;    /* of replicas that train on their own; NULL: none do */
    int steps_count;
    const char *begin; /* of model.h */
    const char *mirror;
    const char *begin_number;
    const char *output;
};

struct pass {
    struct edge *features;
    struct edge target;
    struct edge weight; /* of each example; without node: all count the same */
    struct edge (*outputs)[LAYER_OUTPUTS_MAX]; /* by layer */
    struct edge (*masks)[LAYER_OUTPUTS_MAX];   /* of the outputs; without node: none */
    struct edge prediction;                    /* what the loss takes */
    struct edge mask;                          /* of the prediction; without node: none */
    bool logits;
};

/* One whose inputs are to be set, and one with placeholders for `batch` examples (-1: any). */
struct pass pass_new(struct building *g);
struct pass pass_fed(struct building *g, int64_t batch);

/* The layers, and whether the loss can take what the last of them gives. */
void pass_run(struct building *g, struct pass *pass, bool training);

struct edge pass_losses(struct building *g, const struct pass *pass); /* of each example */
/* As it is trained: with the penalties of weights and outputs. */
struct edge pass_loss(struct building *g, const struct pass *pass, struct edge losses);

/* The gradients of all trainable weights, `*count` of them in their order; NULL after a
 * failure: the loss must depend on each. */
struct edge *pass_gradients(struct building *g, struct edge loss, int *count);

/* The sums of each metric, by its index; the first is the mean of the losses. */
void pass_add_metrics(struct building *g, const struct pass *pass, struct edge losses,
                      struct edge *sums);

/* A model of which nothing is built yet. */
struct building pass_begin(const struct spec *spec, const struct model_data *data,
                           struct graph *graph, struct error *err);

/* What a person wants to see: with the softmax or sigmoid that was left to the loss. */
struct edge pass_prediction(struct building *g, const struct pass *pass);
