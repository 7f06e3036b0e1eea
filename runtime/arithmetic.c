/* arithmetic.c - how many threads kernels use, and what becomes of denormal numbers. */

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "base/base.h"
#include "runtime/arithmetic.h"

/* OpenMP's; its header is not there for every compiler. */
void omp_set_num_threads(int threads);

#if defined(__x86_64__)
enum { FLUSH_DENORMALS = 0x8040 }; /* flush to zero, denormals are zero */

/* Each thread of the pool keeps its own setting, so it is set once in all of them. */
static void flush_denormals_in_pool(int threads)
{
    static __thread int threads_set;
    if (threads <= threads_set)
        return;
#pragma omp parallel num_threads(threads)
    _mm_setcsr(_mm_getcsr() | FLUSH_DENORMALS);
    threads_set = threads;
}

unsigned arithmetic_start(int threads)
{
    unsigned before = _mm_getcsr();
    flush_denormals_in_pool(threads);
    _mm_setcsr(before | FLUSH_DENORMALS);
    omp_set_num_threads(threads);
    return before;
}

void arithmetic_end(unsigned before)
{
    _mm_setcsr(before);
}
#else
unsigned arithmetic_start(int threads)
{
    omp_set_num_threads(threads);
    return 0;
}

void arithmetic_end(unsigned before)
{
    (void)before;
}
#endif
