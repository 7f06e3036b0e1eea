/*
 * columns.h - sums down the columns of a matrix, and of a gradient through a Relu.
 */
#pragma once

#include "base/base.h"

struct error;
struct kernel_call;

/*
 * sums (columns) of grad (rows,columns); with `features`, of grad where features > 0 and 0
 * elsewhere, which is stored in `out` (may be `grad`).  The order of additions depends on the
 * sizes alone.
 */
bool columns_sum(struct kernel_call *call, int64_t rows, int64_t columns, const float *grad,
                 const float *features, float *out, float *sums, struct error *err) CHECKED;
