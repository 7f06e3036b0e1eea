/*
 * segment.c - UnsortedSegmentSum in float: the gradient of rows that were looked up.
 *
 * Threads share the columns, so each sum is made in the order of the rows.
 */
#include "kernels/ref/segment.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"
#include "kernels/list.h"
#include "kernels/ref/numbers.h"

static bool unsorted_segment_sum_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *data = kernel_in(call, 0), *ids = kernel_in(call, 1);
    struct shape shape;
    if (!kernel_segment_unsorted(call, &shape, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    int64_t columns = kernel_span(&shape, 1, shape.rank), rows = ids->count;
    float *sums = tensor_f32_mut(out);
    const float *from = tensor_f32(data);
    int threads = parallel_threads(call, data->count);
    memset(sums, 0, (size_t)out->count * sizeof(*sums));
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        struct range r = parallel_range(columns, 16, threads, t);
        for (int64_t i = 0; i < rows && r.from < r.to; i++) {
            int64_t id = tensor_integer(ids, i);
            float *to = sums + id * columns + r.from;
            if (id >= 0)
                isa()->binary(ISA_ADD, r.to - r.from, to, false, from + i * columns + r.from,
                              false, to);
        }
    }
    return true;
}

const struct kernel kernel_unsorted_segment_sum_cpu = {.op = "UnsortedSegmentSum",
                                                       .device = CPU,
                                                       .dtypes = BIT(F32),
                                                       .run = unsorted_segment_sum_run};
