/*
 * gemm.h - matrix multiplication in float, with what usually follows it.
 */
#pragma once

#include "base/base.h"

struct gemm {
    int64_t m, n, k;
    const float *a; /* (m,k), element (i,p) at a[i * a_row + p * a_column]; a stride is 1 */
    int64_t a_row, a_column;
    const float *b; /* (k,n), element (p,j) at b[p * b_row + j * b_column]; a stride is 1 */
    int64_t b_row, b_column;
    float *c; /* (m,n), rows c_row apart */
    int64_t c_row;
    float alpha; /* C = alpha * A B + beta * C, then + bias, then max(0); beta 0: not read */
    float beta;
    const float *bias; /* (n) or NULL */
    bool relu;
    bool bf16; /* the elements of A and B are rounded to bfloat16 first */
};

/* Bytes of scratch that gemm_run() needs with so many threads. */
size_t gemm_scratch(const struct gemm *gemm, int threads);

/*
 * Computes it.  The sums are made in an order that depends on shapes, instruction set and
 * `threads` only.  k == 0 gives beta * C and the epilogue.
 */
void gemm_run(const struct gemm *gemm, int threads, void *scratch);

/* How many of the threads work side by side: the cut that leaves the squarest parts. */
int gemm_threads_across(const struct gemm *gemm, int threads);

/* --- B packed once, for products with few rows that follow each other --- */

struct gemm_packed {
    int64_t m, n, k;
    const float *a; /* (m,k), rows a_row apart */
    int64_t a_row;
    const float *panels; /* of gemm_pack() */
    float *c;            /* (m,n), rows c_row apart */
    int64_t c_row;
    bool add;  /* C += A B, else C = A B */
    bool bf16; /* A and B are pairs of bfloat16: gemm_pack_a_bf16(), gemm_pack_bf16() */
};

/* Bytes for a packed B (k,n). */
size_t gemm_pack_bytes(int64_t k, int64_t n);

/* Packs B (k,n), element (p,j) at b[p * b_row + j * b_column]; a stride is 1. */
void gemm_pack(float *panels, int64_t k, int64_t n, const float *b, int64_t b_row,
               int64_t b_column);

/* The same in bfloat16, in half as many bytes; `k` is that of the floats, here and below. */
void gemm_pack_bf16(float *panels, int64_t k, int64_t n, const float *b, int64_t b_row,
                    int64_t b_column);

/* A (m,k) for it, rows gemm_bf16_row(k) apart. */
int64_t gemm_bf16_row(int64_t k);
void gemm_pack_a_bf16(float *pairs, int64_t m, int64_t k, const float *a, int64_t a_row);

/* Columns [from,to) on the calling thread: multiples of isa()->tile_columns, `to` may be n. */
void gemm_packed_run(const struct gemm_packed *gemm, int64_t from, int64_t to);
