/* model_internal.h - what the files of model.c share while a graph is built. */
#pragma once

#include "runtime/builder.h"
#include "runtime/model.h"
#include "runtime/spec.h"

/* A variable, while the graph grows: its public face and its handle. */
struct model_weight {
    struct model_variable face;
    struct edge handle;
};

struct building {
    struct builder b;
    struct arena *arena; /* the graph's */
    const struct spec *spec;
    struct shape input; /* of one example */
    struct model_summary summary;

    struct model_weight *weights; /* trainable ones first, in order of the layers */
    int weights_count, weights_capacity;
    struct node **inits; /* their assignments */
    int inits_count, inits_capacity;
    int (*layer_weights)[2]; /* per layer: kernel and bias in `weights`, -1 for none */

    struct edge step; /* the handle of global_step */
};

/*
 * Adds a variable that starts as `initial`; returns its index in `weights`, -1 after a failure.
 * `name` is copied.
 */
int model_weight_add(struct building *m, const char *name, const struct shape *shape, int dtype,
                     bool trainable, struct edge initial);

/* The values that a variable starts with (model_initializer.c). */
struct edge model_initializer(struct building *m, const char *name,
                              const struct spec_initializer *init, const struct shape *shape);

/* The variables of layer `index` (model_layers.c). */
void model_layer_weights(struct building *m, int index);

/* Its forward pass from `x`; `training` turns dropout on; `last`: softmax is left to the loss.
 */
struct edge model_layer_forward(struct building *m, int index, struct edge x, bool training,
                                bool last);

/* Updates by the gradients of all trainable variables; the nodes to wait for
 * (model_optimizer.c). */
void model_optimizer(struct building *m, const struct edge *gradients, int gradients_count,
                     struct node *after, struct node **updates, int *updates_count);

/* What model_optimizer() adds at most, for `n` variables. */
#define MODEL_UPDATES_MAX(n) ((n) + 2)

/* A seed of its own for each purpose: mixes the job's seed with a name. */
int64_t model_seed(const struct building *m, const char *purpose);
