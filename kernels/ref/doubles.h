/* doubles.h - arrays in double, for references that compute all of it so and round at the end.
 */
#pragma once

#include "runtime/kernel.h"

/* A copy of an input's elements, in scratch memory; NULL after setting `err`. */
double *kernel_doubles_load(struct kernel_call *call, int index, struct error *err);

/* `count` zeros, in scratch memory; NULL after setting `err`. */
double *kernel_doubles_zeros(struct kernel_call *call, int64_t count, struct error *err);

/* Makes output `index` of that shape and stores the values, rounded to its type. */
bool kernel_doubles_store(struct kernel_call *call, int index, const struct shape *shape,
                          const double *values, struct error *err) CHECKED;
