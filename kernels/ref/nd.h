/*
 * nd.h - slices named by coordinates in the last dimension of indices: what is wrong with them,
 * in TensorFlow's words.
 */
#pragma once

#include "kernels/ref/numbers.h"

/* "[1,0]" for element `at` of `shape`; "" for a scalar's. */
const char *kernel_place_text(const struct shape *shape, int64_t at, char *out, size_t size);

/*
 * Whether each index has its slice of `shape` in the updates.  A vector of indices counts as
 * one coordinate each.
 */
bool kernel_nd_check(const struct tensor *indices, const struct tensor *updates,
                     const struct shape *shape, struct error *err) CHECKED;

/* What the node says is to be done about indices that are bad; a word that is none is INVALID.
 */
bool kernel_nd_policy(const struct node *node, bool *ignore, struct error *err) CHECKED;

/* Says that row `row` of the indices, of `depth` coordinates, is not in `shape`; false. */
bool kernel_nd_bad(const struct tensor *indices, int64_t row, int depth,
                   const struct shape *shape, struct error *err) CHECKED;
