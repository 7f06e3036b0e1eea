/*
 * model.h - the layers of a job spec as a graph that trains them.
 *
 * One graph holds it all, with TensorFlow's op names: variables and their initial values, the
 * forward pass of training, loss, gradients, updates, and a forward pass for evaluation (no
 * dropout, any number of examples).  What the training loop feeds, fetches and runs has the
 * names below.
 */
#pragma once

#include "runtime/shape.h"

struct arena;
struct error;
struct graph;
struct spec;

/* Feeds of a training step: (B,H,W,C) float from 0 to 1, and (B) int32. */
#define MODEL_IMAGES "images"
#define MODEL_LABELS "labels"
/* Its results: the means over the batch, before the update. */
#define MODEL_LOSS "loss"
#define MODEL_ACCURACY "accuracy"
/* Targets: one update of every variable and of the step; every variable set to its start. */
#define MODEL_TRAIN "train"
#define MODEL_INIT "init"
/* Evaluation: the same feeds with any B, and sums over them. */
#define MODEL_EVAL_IMAGES "eval/images"
#define MODEL_EVAL_LABELS "eval/labels"
#define MODEL_EVAL_LOSS "eval/loss"
#define MODEL_EVAL_CORRECT "eval/correct"
/* The variable that counts steps, int64. */
#define MODEL_STEP "global_step"

/* --- what it will look like, without building it --- */

struct model_layer {
    const char *name;
    const char *class_name;
    struct shape output; /* of one example */
    int64_t parameters;
};

struct model_summary {
    const struct model_layer *layers;
    int layers_count;
    int64_t parameters;
};

/*
 * Shapes and parameters of every layer for examples of shape `input` with labels from 0 to
 * `classes` - 1 (0: not known).  Lives in `arena`; needs neither ops nor kernels.
 *
 * Fails with INVALID and the layer's pointer when layers do not fit each other, the data or the
 * loss, with EXHAUSTED when one is too large for a tensor.
 */
bool model_summary(const struct spec *spec, const struct shape *input, int64_t classes,
                   struct arena *arena, struct model_summary *out, struct error *err) CHECKED;

/* --- the graph --- */

struct model_variable {
    const char *name; /* as Keras: "conv2d/kernel"; of its slots "conv2d/kernel/Adam" */
    int dtype;
    struct shape shape;
    bool trainable;
};

struct model {
    struct graph *graph; /* owned; the rest lives in its arena; not sealed */
    const struct model_variable *variables;
    int variables_count;
    struct model_summary summary;
};

/*
 * Builds it.  The same spec, input and classes give the same graph, node by node.  Fails as
 * model_summary() does.  On success the caller owns it: model_release().
 */
bool model_build(const struct spec *spec, const struct shape *input, int64_t classes,
                 struct model *out, struct error *err) CHECKED;
void model_release(struct model *model);
