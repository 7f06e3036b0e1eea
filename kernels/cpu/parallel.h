/*
 * parallel.h - how a kernel shares its work among threads.
 *
 * All threads are libgomp's, and schedules are static, so results are the same each time.
 *
 *   int threads = parallel_threads(call, count);
 *   #pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
 *   for (int t = 0; t < threads; t++) {
 *       struct range r = parallel_range(count, 16, threads, t);
 */
#pragma once

#include "base/base.h"

struct kernel_call;

/* Elements that one thread does in about 5 us: less is not worth waking a second. */
#define PARALLEL_ELEMENTS 32768

struct range {
    int64_t from, to;
};

/* The threads that `work` elements are worth: 1, or all that the call may use. */
#define parallel_threads(call, work) ((work) < PARALLEL_ELEMENTS ? 1 : (call)->threads)

/* Part `index` of [0,count), cut at multiples of `grain`. */
static inline struct range parallel_range(int64_t count, int64_t grain, int parts, int index)
{
    int64_t grains = (count + grain - 1) / grain;
    int64_t from = grains * index / parts * grain;
    int64_t to = grains * (index + 1) / parts * grain;
    return (struct range){from < count ? from : count, to < count ? to : count};
}
