/*
 * parse_sequence.h - the feature lists of serialized tf.SequenceExamples become tensors.
 *
 * Their context lies on the wire where the features of an Example do: parse_example.h reads it.
 */
#pragma once

#include "kernels/io/parse_example.h"

/*
 * What one key gives.  Dense: values (batch, rows, shape), lengths (rows of each).  Sparse:
 * values, indices, shape.  Ragged: values, and the row splits: outer and inner.
 */
struct sequence_output {
    struct tensor values;
    struct tensor indices; /* sparse */
    struct tensor shape;   /* sparse */
    struct tensor lengths; /* dense */
    struct tensor outer;   /* ragged */
    struct tensor inner;
};

/*
 * Fills out[0 .. keys->count).  `optional[k]`: a dense list may be absent, it is empty then.
 * Fails with INVALID, EXHAUSTED; nothing is to be released then.
 */
bool kernel_sequence_parse(const struct feature_keys *keys, const bool *optional,
                           const struct example_batch *batch, struct sequence_output *out,
                           struct error *err) CHECKED;
