/* sums.c - sums by element of an output. */

#include "kernels/ref/sums.h"

static void *zeroed(struct kernel_call *call, int64_t count, size_t size, struct error *err)
{
    void *memory = kernel_scratch(call, (size_t)count * size + 1, err);
    if (memory)
        memset(memory, 0, (size_t)count * size);
    return memory;
}

double *kernel_sums(struct kernel_call *call, const struct tensor *out, struct error *err)
{
    return out ? zeroed(call, out->count, sizeof(double), err) : NULL;
}

void kernel_sums_store(struct tensor *out, const double *sums)
{
    kernel_store *store = kernel_store_for(out->dtype);
    for (int64_t i = 0; i < out->count; i++)
        store(out->data, i, sums[i]);
}

bool kernel_sums_init(struct kernel_call *call, const struct tensor *out, struct sums *sums,
                      struct error *err)
{
    *sums = (struct sums){NULL, NULL};
    if (!out)
        return false;
    if (kernel_load_bits_for(out->dtype))
        sums->whole = zeroed(call, out->count, sizeof(*sums->whole), err);
    else
        sums->numbers = zeroed(call, out->count, sizeof(*sums->numbers), err);
    return sums->whole || sums->numbers;
}

void kernel_sums_write(struct tensor *out, const struct sums *sums)
{
    kernel_store_bits *store = kernel_store_bits_for(out->dtype);
    for (int64_t i = 0; i < out->count; i++)
        if (sums->whole)
            store(out->data, i, sums->whole[i]);
        else
            kernel_set_complex(out, i, sums->numbers[i]);
}
