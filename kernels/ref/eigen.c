/* eigen.c - eigenvalues and eigenvectors of any square matrix. */

#include "kernels/ref/linear.h"

#include <float.h>
#include <math.h>

/* x (n, n): eigenvectors of an upper triangular t, with ones on the diagonal. */
static void triangle_vectors(const double complex *t, double complex *x, int64_t n)
{
    double norm = 0;
    for (int64_t i = 0; i < n * n; i++)
        norm += creal(t[i] * conj(t[i]));
    norm = fmax(sqrt(norm), DBL_MIN);
    memset(x, 0, (size_t)(n * n) * sizeof(*x));
    for (int64_t k = n - 1; k >= 0; k--) {
        x[k * n + k] = 1;
        for (int64_t i = k - 1; i >= 0; i--) {
            double complex sum = -t[i * n + k];
            for (int64_t c = i + 1; c < k; c++)
                sum -= t[i * n + c] * x[c * n + k];
            double complex z = t[i * n + i] - t[k * n + k];
            x[i * n + k] = sum / (z == 0 ? DBL_EPSILON * norm : z);
        }
    }
}

/*
 * Values of a real t with blocks of two rows, and its vectors: with 1 as their last element, of
 * a pair i (the second is the conjugate of the first).
 */
static void block_vectors(const double complex *t, double complex *x, double complex *values,
                          int64_t n)
{
    memset(x, 0, (size_t)(n * n) * sizeof(*x));
    for (int64_t k = 0; k < n; k++) {
        bool pair = k + 1 < n && t[(k + 1) * n + k] != 0;
        double complex a = t[k * n + k], value = a;
        int64_t last = k + pair;
        if (pair) {
            double complex d = t[last * n + last], p = (a - d) / 2;
            value = d + p + I * sqrt(cabs(p * p + t[k * n + last] * t[last * n + k]));
        }
        x[last * n + k] = pair ? I : 1;
        for (int64_t i = last - 1; i >= 0; i--) {
            double complex one = 0, two = 0;
            bool block = i > 0 && t[i * n + i - 1] != 0;
            if (i == k) {
                /* The pair's own other element. */
                bool low = cabs(t[last * n + k]) > cabs(t[k * n + last]);
                x[i * n + k] = low ? -(t[last * n + last] - value) * I / t[last * n + k]
                                   : -t[k * n + last] * I / (t[k * n + k] - value);
                continue;
            }
            for (int64_t c = i + 1; c <= last; c++) {
                one -= t[i * n + c] * x[c * n + k];
                if (block)
                    two -= t[(i - 1) * n + c] * x[c * n + k];
            }
            double complex z = t[i * n + i] - value;
            if (!block) {
                x[i * n + k] = one / (z == 0 ? DBL_EPSILON : z);
                continue;
            }
            double complex y = t[(i - 1) * n + i - 1] - value, b = t[(i - 1) * n + i],
                           c = t[i * n + i - 1], det = y * z - b * c;
            det = det == 0 ? DBL_EPSILON : det;
            x[i * n + k] = (y * one - c * two) / det;
            x[(i - 1) * n + k] = (z * two - b * one) / det;
            i--;
        }
        values[k] = value;
        if (!pair)
            continue;
        values[k + 1] = conj(value);
        for (int64_t i = 0; i < n; i++)
            x[i * n + k + 1] = conj(x[i * n + k]);
        k++;
    }
}

/* Vectors x of t as those of the matrix, each of length 1. */
static void turn_vectors(const double complex *u, const double complex *x, double complex *to,
                         int64_t n)
{
    kernel_linear_product(u, false, x, false, n, n, n, to);
    for (int64_t k = 0; k < n; k++) {
        double size = 0;
        for (int64_t i = 0; i < n; i++)
            size += creal(to[i * n + k] * conj(to[i * n + k]));
        for (int64_t i = 0; i < n; i++)
            to[i * n + k] /= sqrt(size);
    }
}

static bool eig_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    bool vectors = node_attr_bool(call->node, "compute_v", true);
    int64_t n = 0, m;
    if (!kernel_linear_shape(call, 0, true, &n, &m, err))
        return false;
    struct shape row = in->shape;
    row.rank--;
    struct tensor *values = kernel_output(call, 0, &row, err);
    struct tensor *out =
        values ? kernel_output(call, 1, vectors ? &in->shape : &SHAPE_SCALAR, err) : NULL;
    double complex *a = out ? kernel_linear_scratch(call, 4 * n * n + n, err) : NULL;
    int64_t *order = a ? kernel_scratch(call, (size_t)(n + 1) * sizeof(*order), err) : NULL;
    if (!order)
        return false;
    double complex *u = a + n * n, *x = u + n * n, *to = x + n * n, *of = to + n * n;
    double epsilon = kernel_linear_epsilon(in);
    bool real = !(DTYPES_COMPLEX & BIT(in->dtype));
    if (!vectors)
        kernel_zero(out, 0, 1);
    for (int64_t i = 0; n > 0 && i < in->count / (n * n); i++) {
        kernel_linear_load(in, i, n * n, a);
        bool finite = true; /* a complex number is its own eigenvalue in any case */
        for (int64_t k = 0; (real || n > 1) && k < n * n; k++)
            finite &= isfinite(creal(a[k])) && isfinite(cimag(a[k]));
        bool found = !finite ? false
                     : real  ? kernel_linear_schur_real(a, u, n, epsilon)
                             : kernel_linear_schur(a, u, n, epsilon);
        if (!found)
            return fail(
                err, INVALID,
                "Eigen decomposition was not successful. The input might not be valid.");
        if (real) {
            block_vectors(a, x, of, n);
        } else {
            triangle_vectors(a, x, n);
            for (int64_t k = 0; k < n; k++)
                of[k] = a[k * (n + 1)];
        }
        turn_vectors(u, x, to, n);
        for (int64_t k = 0; k < n; k++)
            order[k] = k;
        for (int64_t k = 0; k < n; k++) {
            /* Eigenvalues of complex matrices rise in size. */
            int64_t best = k;
            for (int64_t c = k + 1; !real && c < n; c++)
                if (cabs(of[order[c]]) < cabs(of[order[best]]))
                    best = c;
            int64_t kept = order[k];
            order[k] = order[best];
            order[best] = kept;
            kernel_set_complex(values, i * n + k, of[order[k]]);
            for (int64_t r = 0; vectors && r < n; r++)
                kernel_set_complex(out, (i * n + r) * n + k, to[r * n + order[k]]);
        }
    }
    return true;
}

const struct kernel kernel_eig_ref = {
    .op = "Eig", .device = CPU, .dtypes = BIT(F32) | BIT(F64) | DTYPES_COMPLEX, .run = eig_run};
