/*
 * ragged.h - ragged tensors as elements of datasets: one variant each, with the splits of every
 * level, from the outside in, and the values.
 */
#pragma once

#include "kernels/data/dataset.h"

/* Element `i` of a VARIANT tensor becomes a ragged tensor that holds `count` splits and
 * `values` (shared).  INVALID for values that are variants or resources. */
bool kernel_ragged_hold(struct tensor *out, int64_t i, const struct tensor *splits, int count,
                        const struct tensor *values, struct error *err) CHECKED;
