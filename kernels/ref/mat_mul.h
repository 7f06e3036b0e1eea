/* mat_mul.h - which matrices MatMul, BatchMatMul and its later versions multiply. */
#pragma once

#include "runtime/shape.h"

struct error;
struct kernel_call;

struct kernel_batches {
    bool adj_x, adj_y;
    int64_t rows, inner, columns; /* of each product */
    int64_t count;                /* of products */
    struct shape x, y;            /* the dimensions in front of the matrices */
    struct shape out;             /* of the result */
};

/* Reads them; the dimensions in front broadcast (BatchMatMul: are equal).  Fails with INVALID.
 */
bool kernel_batches_read(struct kernel_call *call, struct kernel_batches *m,
                         struct error *err) CHECKED;

/* Where the matrices of product `n` begin. */
void kernel_batches_at(const struct kernel_batches *m, int64_t n, int64_t *x, int64_t *y);

/* The dimensions in front of two batches of matrices, broadcast; fails with INVALID. */
bool kernel_batches_broadcast(const struct shape *x, const struct shape *y, struct shape *out,
                              struct error *err) CHECKED;

/* Whether they are shapes of matrices that can be multiplied; fails with INVALID. */
bool kernel_mat_mul_check(bool transpose_a, bool transpose_b, const struct shape *a,
                          const struct shape *b, struct error *err) CHECKED;
