/* lstm.h - what the kernels of LSTM ops read of their node and inputs. */
#pragma once

#include "base/base.h"

struct error;
struct kernel_call;
struct shape;

struct kernel_lstm {
    int64_t batch, inputs, cells;
    int ci, f; /* column blocks of w, of `cells` each; i is the first, o the last */
    bool peephole;
    double forget_bias, clip; /* clip 0 or less: none */
};

/*
 * Reads attributes and sizes.  Inputs x, cs_prev, h_prev, w, wci, wcf, wco, b from `first` on;
 * x, of shape `x`, has `rank` dimensions.  Fails with INVALID where they do not fit each other.
 */
bool kernel_lstm_read(struct kernel_call *call, int first, const struct shape *x, int rank,
                      struct kernel_lstm *l, struct error *err) CHECKED;

/* Fails with INVALID where input `index`, called `name`, has another shape. */
bool kernel_lstm_check(const struct kernel_call *call, int index, const char *name,
                       const struct shape *wanted, struct error *err) CHECKED;
