/* peak.c - see peak.h. */

#include "tests/bench/peak.h"

#include <string.h>

#include "base/clock.h"
#include "kernels/cpu/isa.h"

enum { DEPTH = 128, CALLS = 200, TIME_US = 50000 };

static double of_one(bool bf16)
{
    float a[ISA_TILE_ROWS_MAX * DEPTH], b[DEPTH * ISA_TILE_COLUMNS_MAX];
    float c[ISA_TILE_ROWS_MAX * ISA_TILE_COLUMNS_MAX];
    const struct isa *ops = isa();
    const struct isa_tile tile = {.rows = ops->tile_rows,
                                  .columns = ops->tile_columns,
                                  .k = DEPTH,
                                  .a = a,
                                  .a_row = DEPTH,
                                  .a_column = 1,
                                  .b = b,
                                  .b_row = ops->tile_columns,
                                  .c = c,
                                  .c_row = ops->tile_columns,
                                  .alpha = 1};
    memset(a, 0, sizeof(a));
    memset(b, 0, sizeof(b));
    int64_t calls = 0;
    uint64_t start_us = clock_monotonic_us(), us;
    do {
        for (int i = 0; i < CALLS; i++)
            bf16 ? ops->bf16.tile(&tile) : ops->tile(&tile);
        calls += CALLS;
        us = clock_monotonic_us() - start_us;
    } while (us < TIME_US);
    double each = 2.0 * (bf16 ? 2 : 1) * tile.rows * tile.columns * DEPTH;
    return each * (double)calls / (double)us * 1e-3;
}

double bench_peak(int threads, bool bf16)
{
    double sum = 0;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(+ : sum)
    for (int t = 0; t < threads; t++)
        sum += of_one(bf16);
    return sum;
}
