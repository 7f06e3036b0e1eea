/* recurrent.h - what the kernels of _GRUSequence, _RNNSequence and their gradients read. */
#pragma once

#include "base/base.h"

struct error;
struct kernel_call;
struct shape;

struct kernel_recurrent {
    int64_t steps, batch, inputs, cells;
    int gates; /* 3 of a GRU, 1 of a simple cell */
};

/*
 * Sizes, from inputs x, of shape `x`, h_prev, kernel, recurrent and bias, and of a gradient
 * what follows up to input `end`.  Fails with INVALID where they do not fit each other.
 */
bool kernel_recurrent_read(struct kernel_call *call, const struct shape *x, int end,
                           struct kernel_recurrent *r, struct error *err) CHECKED;
