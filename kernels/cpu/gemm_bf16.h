/*
 * gemm_bf16.h - matrix multiplication whose factors are rounded to bfloat16 and whose sums are
 * float; see gemm.h, which leads here by `bf16`.
 */
#pragma once

#include "kernels/cpu/gemm.h"

/* Bytes of scratch that gemm_bf16_run() needs with so many threads. */
size_t gemm_bf16_scratch(const struct gemm *gemm, int threads);

/* Computes it; k is not 0.  The order of sums is as constant as that of gemm_run(). */
void gemm_bf16_run(const struct gemm *gemm, int threads, void *scratch);
