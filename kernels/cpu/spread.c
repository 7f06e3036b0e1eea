/* spread.c - operands that are broadcast, written out. */
#include "kernels/cpu/spread.h"

#include "runtime/kernel.h"

const float *spread(struct kernel_call *call, const float *from, const struct shape *own,
                    const struct shape *shape, struct error *err)
{
    int64_t count = shape_count(shape);
    if (shape_count(own) == count)
        return from;
    float *copy = kernel_scratch(call, (size_t)count * sizeof(*copy) + 1, err);
    for (int64_t i = 0; copy && i < count; i++) {
        int64_t rest = i, at = 0, step = 1;
        for (int k = 0; k < own->rank; k++) {
            int64_t size = own->dims[own->rank - 1 - k];
            int64_t dim = shape->dims[shape->rank - 1 - k];
            at += size > 1 ? rest % dim * step : 0;
            rest /= dim;
            step *= size;
        }
        copy[i] = from[at];
    }
    return copy;
}
