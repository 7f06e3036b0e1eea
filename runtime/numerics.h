/*
 * numerics.h - finds the first NaN or infinity of a run, as it is made.
 *
 * Around each call of a watched run:
 *
 *   struct numerics seen;
 *   numerics_before(call, &seen);
 *   ... run ...
 *   if (!numerics_after(call, &seen, err)) the run fails
 */
#pragma once

#include "base/base.h"

struct error;
struct kernel_call;

enum { NUMERICS_INPUTS = 6 };

/* What the error points at: the field of a job spec that asks for the check. */
#define NUMERICS_POINTER "/train/check_numerics"

/* Ranges of inputs that the call may overwrite. */
struct numerics {
    bool known[NUMERICS_INPUTS];
    double low[NUMERICS_INPUTS], high[NUMERICS_INPUTS];
};

void numerics_before(const struct kernel_call *call, struct numerics *seen);

/*
 * Fails with INVALID when an output holds a NaN or an infinity, naming the output, how many
 * elements there are of the kind, and the ranges of the inputs.  Ops that only move or choose
 * elements make none, and are not looked at.
 */
bool numerics_after(const struct kernel_call *call, const struct numerics *seen,
                    struct error *err) CHECKED;
