/* linear.h - matrices of a batch as rows of complex numbers in double, whatever the type. */
#pragma once

#include "kernels/ref/numbers.h"

/* The last two dimensions of input `index`; fails with INVALID when there are none, or where
 * `square` is asked for and they differ. */
bool kernel_linear_shape(const struct kernel_call *call, int index, bool square, int64_t *rows,
                         int64_t *columns, struct error *err) CHECKED;

/* Inputs 0 and 1: matrices in the same dimensions; fails with INVALID. */
bool kernel_linear_sides(const struct kernel_call *call, struct error *err) CHECKED;

/* Matrix `number` of `size` elements, from a tensor and into one. */
void kernel_linear_load(const struct tensor *in, int64_t number, int64_t size,
                        double complex *to);
void kernel_linear_store(struct tensor *out, int64_t number, int64_t size,
                         const double complex *from);

/* What is less, relative to the rest, is zero to the tensor's type. */
double kernel_linear_epsilon(const struct tensor *tensor);

/* Scratch memory for so many numbers. */
double complex *kernel_linear_scratch(struct kernel_call *call, int64_t count,
                                      struct error *err) CHECKED;

/*
 * Solves a x = b for b (n, m), in place; a is destroyed.  Returns the determinant: its sign or
 * angle, and the log of its size (-infinity when a is not invertible: b is not a solution).
 */
double complex kernel_linear_eliminate(double complex *a, int64_t n, double complex *b,
                                       int64_t m, double *log_size);

/* out (n, m) = a (n, k) b (k, m), each of a and b conjugated and transposed first if said so.
 */
void kernel_linear_product(const double complex *a, bool adjoint_a, const double complex *b,
                           bool adjoint_b, int64_t n, int64_t k, int64_t m,
                           double complex *out);

/* The parts of a column below its first element that a reflection turns to zero. */
struct reflection {
    double complex tau;
    double beta; /* what the first element becomes */
};

/* The reflection I - tau v v* that turns x, `count` elements `step` apart, into (beta, 0 ...);
 * x becomes v, whose first element is 1. */
struct reflection kernel_linear_reflect(double complex *x, int64_t step, int64_t count);

/* a (rows, columns), its rows `stride` apart, becomes (I - tau v v*) a; v has `step` too. */
void kernel_linear_reflect_left(double complex *a, int64_t stride, int64_t rows,
                                int64_t columns, const double complex *v, int64_t step,
                                double complex tau);

/* The same from the right: a (I - tau v v*). */
void kernel_linear_reflect_right(double complex *a, int64_t stride, int64_t rows,
                                 int64_t columns, const double complex *v, int64_t step,
                                 double complex tau);

/* A rotation of two rows or columns. */
struct rotation {
    double complex c, s;
};

/* What turns (p, q) into (r, 0) from the left by its adjoint. */
struct rotation kernel_linear_rotation(double complex p, double complex q, double complex *r);

/* Rows x and y, elements `step` apart, become c x + s* y and -s x + c* y. */
void kernel_linear_rotate(double complex *x, double complex *y, int64_t step, int64_t count,
                          struct rotation r);

/* a (n, n) = u t u* with t upper triangular; a becomes t.  False when it did not converge. */
bool kernel_linear_schur(double complex *a, double complex *u, int64_t n, double epsilon);

/* The same of a real one, with blocks of two rows on t's diagonal for pairs of eigenvalues. */
bool kernel_linear_schur_real(double complex *a, double complex *u, int64_t n, double epsilon);

/* a (n, n) = u h u*, with h zero below the first diagonal under the main one; a becomes h. */
void kernel_linear_hessenberg(double complex *a, double complex *u, int64_t n);

/* Singular values, falling, of a (m, n) = u s v*, with k = min(m, n): u is (m, m or k), v (n, n
 * or k).  a is destroyed; `work` has room for 3 max(m, n)^2. */
void kernel_linear_svd(double complex *a, int64_t m, int64_t n, bool full, bool is_complex,
                       double epsilon, double *values, double complex *u, double complex *v,
                       double complex *work);
