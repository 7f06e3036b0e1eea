/* reduce.h - sums with the bits of Sum, for kernels that stand for it among others. */
#pragma once

#include "base/base.h"

/* The sum of one of `rows` rows of `count` elements, as Sum over the last axis gives it. */
float reduce_sum_row(int64_t rows, int64_t count, const float *x);
