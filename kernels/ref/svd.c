/*
 * svd.c - singular values by rotations from both sides until nothing is off the diagonal
 * (Jacobi), after a QR factorisation with pivots where the matrix is not square.
 */

#include "kernels/ref/linear.h"

#include <float.h>
#include <math.h>

/* What is rotated: w (n, n), u (rows, columns n of it), v likewise. */
struct jacobi {
    double complex *w, *u, *v;
    int64_t n, u_rows, u_columns, v_rows, v_columns;
    double largest; /* on the diagonal */
    double epsilon; /* what is less, relative to that, is zero */
};

static void swap_columns(double complex *a, int64_t rows, int64_t stride, int64_t i, int64_t k)
{
    for (int64_t r = 0; r < rows; r++) {
        double complex kept = a[r * stride + i];
        a[r * stride + i] = a[r * stride + k];
        a[r * stride + k] = kept;
    }
}

static void identity(double complex *a, int64_t rows, int64_t columns)
{
    for (int64_t i = 0; i < rows * columns; i++)
        a[i] = i / columns == i % columns;
}

static double column_size(const double complex *a, int64_t from, int64_t rows, int64_t stride,
                          int64_t c)
{
    double sum = 0;
    for (int64_t i = from; i < rows; i++)
        sum += creal(a[i * stride + c] * conj(a[i * stride + c]));
    return sum;
}

/*
 * a (m, n), m >= n, with columns moved so that the greatest come first, as q r: q (m, columns),
 * r (n, n), moves (n, n) with a moves = q r.
 */
static void pivoted(double complex *a, int64_t m, int64_t n, double complex *q, int64_t columns,
                    double complex *r, double complex *moves, double complex *taus)
{
    identity(moves, n, n);
    for (int64_t k = 0; k < n; k++) {
        int64_t best = k;
        for (int64_t c = k + 1; c < n; c++)
            if (column_size(a, k, m, n, c) > column_size(a, k, m, n, best))
                best = c;
        if (best != k) {
            swap_columns(a, m, n, k, best);
            swap_columns(moves, n, n, k, best);
        }
        double complex *v = a + k * n + k;
        struct reflection f = kernel_linear_reflect(v, n, m - k);
        kernel_linear_reflect_left(v + 1, n, m - k, n - k - 1, v, n, f.tau);
        r[k * n + k] = f.beta;
        taus[k] = f.tau;
    }
    for (int64_t i = 0; i < n * n; i++)
        if (i % n != i / n)
            r[i] = i % n < i / n ? 0 : a[i];
    identity(q, m, columns);
    for (int64_t k = n - 1; k >= 0; k--)
        kernel_linear_reflect_left(q + k * columns, columns, m - k, columns, a + k * n + k, n,
                                   conj(taus[k]));
}

static void scale_row(struct jacobi *j, int64_t row, double complex by)
{
    for (int64_t c = 0; c < j->n; c++)
        j->w[row * j->n + c] *= by;
    for (int64_t i = 0; i < j->u_rows; i++)
        j->u[i * j->u_columns + row] *= conj(by);
}

static void scale_column(struct jacobi *j, int64_t column, double complex by)
{
    for (int64_t i = 0; i < j->n; i++)
        j->w[i * j->n + column] *= by;
    for (int64_t i = 0; i < j->v_rows; i++)
        j->v[i * j->v_columns + column] *= by;
}

static void rotate_left(struct jacobi *j, int64_t p, int64_t q, struct rotation r)
{
    /* u is turned by the adjoint from the right. */
    struct rotation right = {conj(r.c), conj(r.s)};
    kernel_linear_rotate(j->w + p * j->n, j->w + q * j->n, 1, j->n, r);
    kernel_linear_rotate(j->u + p, j->u + q, j->u_columns, j->u_rows, right);
}

static void rotate_right(struct jacobi *j, int64_t p, int64_t q, struct rotation r)
{
    struct rotation right = {r.c, -conj(r.s)};
    kernel_linear_rotate(j->w + p, j->w + q, j->n, j->n, right);
    kernel_linear_rotate(j->v + p, j->v + q, j->v_columns, j->v_rows, right);
}

/* What turns `a` onto the positive axis; exact for the smallest, whose squares are nothing. */
static double complex unturn(double complex a)
{
    double size = cabs(a);
    return kernel_complex(creal(a) / size, -cimag(a) / size);
}

/* Makes the four elements at p and q real. */
static void make_real(struct jacobi *j, int64_t p, int64_t q)
{
    double complex *w = j->w;
    int64_t pp = p * j->n + p, pq = p * j->n + q, qp = q * j->n + p, qq = q * j->n + q;
    double size = hypot(cabs(w[pp]), cabs(w[qp]));
    if (size == 0) {
        w[pp] = w[qp] = 0;
        if (fabs(cimag(w[pq])) > DBL_MIN)
            scale_row(j, p, unturn(w[pq]));
    } else {
        rotate_left(j, p, q, (struct rotation){conj(w[pp]) / size, w[qp] / size});
        if (fabs(cimag(w[pq])) > DBL_MIN)
            scale_column(j, q, unturn(w[pq]));
    }
    if (fabs(cimag(w[qq])) > DBL_MIN)
        scale_row(j, q, unturn(w[qq]));
}

static bool is_off(const struct jacobi *j, int64_t p, int64_t q)
{
    double least = fmax(DBL_MIN, 2 * j->epsilon * j->largest);
    return cabs(j->w[p * j->n + q]) > least || cabs(j->w[q * j->n + p]) > least;
}

static void see_diagonal(struct jacobi *j, int64_t p)
{
    j->largest = fmax(j->largest, cabs(j->w[p * j->n + p]));
}

/* Two rotations that bring the four real elements at p and q to the diagonal. */
static void diagonalise(struct jacobi *j, int64_t p, int64_t q)
{
    double a = creal(j->w[p * j->n + p]), b = creal(j->w[p * j->n + q]);
    double c = creal(j->w[q * j->n + p]), d = creal(j->w[q * j->n + q]);
    double sum = a + d, difference = c - b, s1 = 0, c1 = 1;
    if (fabs(difference) >= DBL_MIN) {
        double u = sum / difference, size = sqrt(1 + u * u);
        s1 = 1 / size;
        c1 = u / size;
    }
    /* Now symmetric: x, y, z. */
    double x = c1 * a + s1 * c, y = c1 * b + s1 * d, z = -s1 * b + c1 * d;
    double s2 = 0, c2 = 1;
    if (2 * fabs(y) >= DBL_MIN) {
        double tau = (x - z) / (2 * fabs(y)), w = sqrt(tau * tau + 1);
        double t = tau > 0 ? 1 / (tau + w) : 1 / (tau - w), size = 1 / sqrt(t * t + 1);
        s2 = -(t > 0 ? 1 : -1) * (y / fabs(y)) * fabs(t) * size;
        c2 = size;
    }
    struct rotation left = {c1 * c2 + s1 * s2, s1 * c2 - c1 * s2};
    rotate_left(j, p, q, left);
    rotate_right(j, p, q, (struct rotation){c2, s2});
}

static void sweep(struct jacobi *j, bool is_complex)
{
    j->largest = 0;
    for (int64_t i = 0; i < j->n; i++)
        see_diagonal(j, i);
    bool again = true;
    for (int round = 0; again && round < 100; round++) {
        again = false;
        for (int64_t p = 1; p < j->n; p++)
            for (int64_t q = 0; q < p; q++) {
                if (!is_off(j, p, q))
                    continue;
                again = true;
                if (is_complex) {
                    make_real(j, p, q);
                    see_diagonal(j, p);
                    see_diagonal(j, q);
                    if (!is_off(j, p, q))
                        continue;
                }
                diagonalise(j, p, q);
                see_diagonal(j, p);
                see_diagonal(j, q);
            }
    }
}

/* The diagonal as values, falling; their signs and angles go into u. */
static void finish(struct jacobi *j, double scale, double *values)
{
    for (int64_t i = 0; i < j->n; i++) {
        double complex a = j->w[i * j->n + i];
        double size = cabs(a);
        values[i] = size * scale;
        for (int64_t r = 0; size > 0 && r < j->u_rows; r++)
            j->u[r * j->u_columns + i] *= a / size;
    }
    for (int64_t i = 0; i < j->n; i++) {
        int64_t best = i;
        for (int64_t k = i + 1; k < j->n; k++)
            if (values[k] > values[best])
                best = k;
        if (best == i)
            continue;
        double kept = values[i];
        values[i] = values[best];
        values[best] = kept;
        swap_columns(j->u, j->u_rows, j->u_columns, i, best);
        swap_columns(j->v, j->v_rows, j->v_columns, i, best);
    }
}

void kernel_linear_svd(double complex *a, int64_t m, int64_t n, bool full, bool is_complex,
                       double epsilon, double *values, double complex *u, double complex *v,
                       double complex *work)
{
    int64_t k = m < n ? m : n, large = m > n ? m : n;
    double scale = 0;
    for (int64_t i = 0; i < m * n; i++)
        scale = fmax(scale, cabs(a[i]));
    scale = scale == 0 ? 1 : scale;
    for (int64_t i = 0; i < m * n; i++)
        a[i] /= scale;
    struct jacobi j = {.w = work,
                       .u = u,
                       .v = v,
                       .n = k,
                       .epsilon = epsilon,
                       .u_rows = m,
                       .u_columns = full ? m : k,
                       .v_rows = n,
                       .v_columns = full ? n : k};
    double complex *taus = work + large * large, *turned = taus + large;
    if (m == n) {
        memcpy(work, a, (size_t)(m * n) * sizeof(*a));
        identity(u, m, m);
        identity(v, n, n);
    } else if (m > n) {
        pivoted(a, m, n, u, j.u_columns, work, v, taus);
    } else {
        /* Of the adjoint: what is upper triangular there is lower here. */
        for (int64_t i = 0; i < m * n; i++)
            turned[i % n * m + i / n] = conj(a[i]);
        pivoted(turned, n, m, v, j.v_columns, work, u, taus);
        for (int64_t i = 0; i < k; i++)
            for (int64_t c = 0; c <= i; c++) {
                double complex kept = conj(work[i * k + c]);
                work[i * k + c] = conj(work[c * k + i]);
                work[c * k + i] = kept;
            }
    }
    sweep(&j, is_complex);
    finish(&j, scale, values);
}
