/* dataset.h - what the ops of tf.data have in common. */
#pragma once

#include "runtime/ops/internal.h"

/* The attributes that say what elements look like, and what TensorFlow notes for its tools. */
#define OP_ELEMENTS "output_types:list(type)>=1 output_shapes:list(shape)>=1"
#define OP_METADATA "metadata:string=''"

/* An op whose outputs are scalars without gradients. */
#define OP_SCALAR(name_, inputs_, outputs_, attrs_, flags_)                                    \
    {                                                                                          \
        .name = name_, .inputs = inputs_, .outputs = outputs_, .attrs = attrs_,                \
        .flags = flags_, .infer = op_infer_scalar, .no_gradient = true                         \
    }

/* A dataset; one that has a state of its own, or reads what others may change. */
#define OP_DATASET(name, inputs, attrs) OP_SCALAR(name, inputs, "handle:variant", attrs, 0)
#define OP_DATASET_STATEFUL(name, inputs, attrs)                                               \
    OP_SCALAR(name, inputs, "handle:variant", attrs, OP_STATEFUL)

/* The outputs look as the attributes say. */
bool op_infer_element(struct infer *infer, struct error *err);
