/* transpose.c - Transpose, the first dimension of what comes out shared among threads. */

#include "kernels/cpu/parallel.h"
#include "kernels/list.h"
#include "kernels/ref/move.h"

static bool transpose_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    struct shape shape;
    struct places from;
    struct tensor *out = NULL;
    if (kernel_transposed(call, &shape, &from, err))
        out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    struct places to = kernel_places(&shape);
    int64_t rows = shape.rank > 0 ? shape.dims[0] : 1;
    int threads = parallel_threads(call, in->count);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        struct range r = parallel_range(rows, 1, threads, t);
        struct places own_to = to, own_from = from;
        struct shape own = shape;
        own.dims[0] = r.to - r.from;
        own_to.start += r.from * to.steps[0];
        own_from.start += r.from * from.steps[0];
        kernel_move(out, &own_to, in, &own_from, own.dims, own.rank);
    }
    return true;
}

const struct kernel kernel_transpose_cpu = {
    .op = "Transpose", .device = CPU, .dtypes = DTYPES_PLAIN, .run = transpose_run};
