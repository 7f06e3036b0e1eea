/* peak.h - what the machine can do, to hold a step's multiplications against. */
#pragma once

#include "base/base.h"

/*
 * GFLOP/s of products whose factors lie in the first cache, on so many threads at once: within
 * some hundredths what the units for floats (or pairs of bfloat16) can do.  Takes 50 ms.
 */
double bench_peak(int threads, bool bf16);
