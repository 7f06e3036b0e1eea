/* doubles.c - inputs to double, and results back to the type of the output. */

#include "kernels/ref/doubles.h"

#include "kernels/ref/numbers.h"

double *kernel_doubles_load(struct kernel_call *call, int index, struct error *err)
{
    const struct tensor *in = kernel_in(call, index);
    double *copy = kernel_scratch(call, (size_t)in->count * sizeof(*copy) + 1, err);
    kernel_load *load = kernel_load_for(in->dtype);
    for (int64_t i = 0; copy && i < in->count; i++)
        copy[i] = load(in->data, i);
    return copy;
}

double *kernel_doubles_zeros(struct kernel_call *call, int64_t count, struct error *err)
{
    double *all = kernel_scratch(call, (size_t)count * sizeof(*all) + 1, err);
    if (all)
        memset(all, 0, (size_t)count * sizeof(*all));
    return all;
}

bool kernel_doubles_store(struct kernel_call *call, int index, const struct shape *shape,
                          const double *values, struct error *err)
{
    struct tensor *out = kernel_output(call, index, shape, err);
    kernel_store *store = out ? kernel_store_for(out->dtype) : NULL;
    for (int64_t i = 0; out && i < out->count; i++)
        store(out->data, i, values[i]);
    return out != NULL;
}
