/*
 * parse_example.h - a batch of serialized tf.Examples becomes tensors.
 *
 * The bytes come from outside: whatever they hold, the answer is tensors or INVALID.
 */
#pragma once

#include "kernels/io/parse_feature.h"

/* What one key gives.  Dense: values.  Sparse: all three.  Ragged: values, and row splits in
 * `indices`. */
struct example_output {
    struct tensor values;
    struct tensor indices;
    struct tensor shape;
};

struct example_batch {
    const struct tensor_string *serialized;
    int64_t count;
    bool single;                /* of one Example, without the dimension of the batch */
    bool sequence;              /* SequenceExamples: an empty feature is not an absent one */
    const struct tensor *names; /* NULL, or a name for each, for messages */
};

/*
 * Fills out[0 .. keys->count) with tensors that the caller releases.  As TensorFlow: the last
 * of equal keys wins.  Fails with INVALID, EXHAUSTED; nothing is to be released then.
 */
bool kernel_example_parse(const struct feature_keys *keys, const struct example_batch *batch,
                          struct example_output *out, struct error *err) CHECKED;
void kernel_example_release(struct example_output *out, int count);
