/*
 * sums.h - sums by element of an output, for what is added to in no order: gradients of
 * windows, segments, mirrored paddings.
 */
#pragma once

#include "kernels/ref/numbers.h"

/* `count` elements of scratch memory, all bytes 0; NULL (EXHAUSTED) when they are too many. */
void *kernel_zeros(struct kernel_call *call, int64_t count, size_t size,
                   struct error *err) CHECKED;

/*
 * Sums of real numbers by element of `out`, zero at first, in the kernel's scratch memory;
 * stored at the end.  NULL (EXHAUSTED) when there is no memory, or no `out`.
 */
double *kernel_sums(struct kernel_call *call, const struct tensor *out,
                    struct error *err) CHECKED;
void kernel_sums_store(struct tensor *out, const double *sums);

/*
 * Sums of any numbers: integers are exact and wrap around as their type does, all others are
 * summed in double precision.
 */
struct sums {
    uint64_t *whole;         /* of integers; else NULL */
    double complex *numbers; /* of all others; else NULL */
};

/* False (EXHAUSTED) when there is no memory, or no `out`. */
bool kernel_sums_init(struct kernel_call *call, const struct tensor *out, struct sums *sums,
                      struct error *err) CHECKED;
void kernel_sums_write(struct tensor *out, const struct sums *sums);

/* Adds element `from` of `tensor`, which has the type of the output, times `factor` (1 for
 * integers). */
static inline void kernel_sums_add(const struct sums *sums, int64_t to,
                                   const struct tensor *tensor, int64_t from, double factor)
{
    if (sums->whole)
        sums->whole[to] += kernel_load_bits_for(tensor->dtype)(tensor->data, from);
    else
        sums->numbers[to] += factor * kernel_complex_at(tensor, from);
}
