/*
 * shuffle.h - the order in which an epoch visits its examples.
 *
 * The order follows from (seed, epoch) alone, so that a run resumed in the middle of an epoch
 * goes on with exactly the examples that were still to come.
 */
#pragma once

#include "base/base.h"

/*
 * Fills `order` with a permutation of 0 .. count - 1.
 *
 * `buffer` as in tf.data's shuffle(): each example is drawn from a buffer of that many,
 * refilled in the order of the file.  0: the order of the file; -1, or at least `count`: every
 * permutation is as likely.
 */
void shuffle_order(int64_t seed, int64_t epoch, int64_t buffer, int32_t *order, int64_t count);
