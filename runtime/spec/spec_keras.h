/* spec_keras.h - tensors as models of Keras name them. */
#pragma once

#include <jansson.h>

#include "base/base.h"
#include "runtime/model/layer.h"

/* Output `tensor` of call `call` of the layer `name`, all of one model. */
struct keras_tensor {
    const char *name;
    int call;
    int tensor;
};

struct keras_tensors {
    struct keras_tensor tensors[LAYER_CALL_INPUTS_MAX];
    int count;
    bool too_many;
};

/*
 * Adds every tensor in what a layer is called with, in order: version 3 marks them by a class,
 * version 2 writes their history alone.
 */
void spec_keras_tensors(const json_t *json, struct keras_tensors *out);

/* What the call of `node` takes, tensors of its model; without one, of a Sequential model, the
 * layer `before`, which may be NULL. */
void spec_keras_inputs(const json_t *node, const char *before, struct keras_tensors *out);

/* Whether an argument of that name is a mask, which Keras fills in by itself, as the layers
 * here do. */
bool spec_keras_is_mask(const char *field);
