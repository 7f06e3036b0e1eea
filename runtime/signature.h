/*
 * signature.h - what a model takes and gives, by names for people: what to feed, what to fetch.
 *
 * A model of ours and each signature of a SavedModel are described alike, so that whoever uses
 * a trained model need not know where it came from.
 */
#pragma once

#include "runtime/dtype.h"
#include "runtime/shape.h"

struct tensor;

struct signature_tensor {
    const char *name;   /* "images" */
    const char *tensor; /* "eval/images:0": what to feed or to fetch */
    int dtype;
    struct shape shape;               /* the first dimension, of the examples, is mostly open */
    const struct tensor *when_absent; /* of an input that may be left out; else NULL */
};

struct signature {
    const char *name; /* "serving_default" */
    const struct signature_tensor *inputs, *outputs;
    int inputs_count, outputs_count;
};
