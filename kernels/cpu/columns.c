/*
 * columns.c - sums down the columns: many columns are shared out among threads; few, over many
 * rows, by slices of rows that are added up in order.
 */
#include "kernels/cpu/columns.h"

#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"
#include "runtime/kernel.h"

/* Rows that are summed by themselves first; a fixed number, so that the order is always the
 * same. */
#define SLICES 16

bool columns_sum(struct kernel_call *call, int64_t rows, int64_t columns, const float *grad,
                 const float *features, float *out, float *sums, struct error *err)
{
    int threads = parallel_threads(call, rows * columns);
    int slices = rows * columns < 16 * PARALLEL_ELEMENTS ? 1 : SLICES;
    float *parts = sums;
    if (slices > 1 &&
        !(parts = kernel_scratch(call, (size_t)(slices * columns) * sizeof(float), err)))
        return false;
    int pieces = slices > 1 ? slices : threads;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < pieces; t++) {
        struct range row = parallel_range(rows, 1, slices, slices > 1 ? t : 0);
        struct range column =
            parallel_range(columns, 16, slices > 1 ? 1 : threads, slices > 1 ? 0 : t);
        float *to = slices > 1 ? parts + t * columns : parts;
        int64_t at = row.from * columns;
        if (features)
            isa()->relu_grad_sums(row.to - row.from, columns, column.from, column.to, grad + at,
                                  features + at, out + at, to);
        else
            isa()->column_sums(row.to - row.from, columns, column.from, column.to, grad + at,
                               to);
    }
    if (slices > 1)
        isa()->column_sums(slices, columns, 0, columns, parts, sums);
    return true;
}
