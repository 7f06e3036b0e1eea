/* sums.c - sums by element of an output. */

#include "kernels/ref/sums.h"

void *kernel_zeros(struct kernel_call *call, int64_t count, size_t size, struct error *err)
{
    size_t bytes;
    if (__builtin_mul_overflow((size_t)count, size, &bytes) || bytes == SIZE_MAX)
        return fail_null(err, EXHAUSTED, "a kernel asks for %lld times %zu bytes",
                         (long long)count, size);
    void *memory = kernel_scratch(call, bytes + 1, err);
    if (memory)
        memset(memory, 0, bytes);
    return memory;
}

double *kernel_sums(struct kernel_call *call, const struct tensor *out, struct error *err)
{
    return out ? kernel_zeros(call, out->count, sizeof(double), err) : NULL;
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
        sums->whole = kernel_zeros(call, out->count, sizeof(*sums->whole), err);
    else
        sums->numbers = kernel_zeros(call, out->count, sizeof(*sums->numbers), err);
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
