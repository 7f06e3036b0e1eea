/* self_adjoint.c - eigenvalues and eigenvectors of self-adjoint matrices. */

#include "kernels/ref/linear.h"

#include <math.h>

/* a = q t q*, of its lower triangle, with t real and of three diagonals. */
static void tridiagonal(double complex *a, double complex *q, int64_t n, double *diagonal,
                        double *below)
{
    for (int64_t i = 0; i < n * n; i++) {
        q[i] = i % (n + 1) == 0;
        if (i % n > i / n)
            a[i] = conj(a[i % n * n + i / n]);
        else if (i % n == i / n)
            a[i] = creal(a[i]);
    }
    double complex *v = q + n * n; /* room for one more column */
    for (int64_t k = 0; k + 1 < n; k++) {
        int64_t rest = n - k - 1;
        for (int64_t i = 0; i < rest; i++)
            v[i] = a[(k + 1 + i) * n + k];
        struct reflection r = kernel_linear_reflect(v, 1, rest);
        double complex *corner = a + (k + 1) * n + k + 1;
        kernel_linear_reflect_left(corner, n, rest, rest, v, 1, r.tau);
        kernel_linear_reflect_right(corner, n, rest, rest, v, 1, conj(r.tau));
        kernel_linear_reflect_right(q + k + 1, n, n, rest, v, 1, conj(r.tau));
        below[k] = r.beta;
    }
    for (int64_t i = 0; i < n; i++)
        diagonal[i] = creal(a[i * n + i]);
}

/* One step of the implicit QR algorithm with Wilkinson's shift, on rows `from` to `to`. */
static void qr_step(double *diagonal, double *below, int64_t from, int64_t to,
                    double complex *q, int64_t n)
{
    double td = (diagonal[to - 1] - diagonal[to]) / 2, e = below[to - 1], mu = diagonal[to];
    if (td == 0) {
        mu -= fabs(e);
    } else if (e != 0) {
        double h = hypot(td, e), sum = td + (td > 0 ? h : -h);
        mu -= e * e == 0 ? e / (sum / e) : e * e / sum;
    }
    double x = diagonal[from] - mu, z = below[from];
    for (int64_t k = from; k < to && z != 0; k++) {
        double c, s;
        if (x == 0) {
            c = 0;
            s = z < 0 ? 1 : -1;
        } else if (fabs(x) > fabs(z)) {
            double t = z / x, u = copysign(sqrt(1 + t * t), x);
            c = 1 / u;
            s = -t * c;
        } else {
            double t = x / z, u = copysign(sqrt(1 + t * t), z);
            s = -1 / u;
            c = -t * s;
        }
        double sdk = s * diagonal[k] + c * below[k], dkp1 = s * below[k] + c * diagonal[k + 1];
        diagonal[k] =
            c * (c * diagonal[k] - s * below[k]) - s * (c * below[k] - s * diagonal[k + 1]);
        diagonal[k + 1] = s * sdk + c * dkp1;
        below[k] = c * sdk - s * dkp1;
        if (k > from)
            below[k - 1] = c * below[k - 1] - s * z;
        x = below[k];
        if (k < to - 1) {
            z = -s * below[k + 1];
            below[k + 1] *= c;
        }
        kernel_linear_rotate(q + k, q + k + 1, n, n, (struct rotation){c, -s});
    }
}

/* Values, rising, of a (n, n), and vectors as columns of q; false when it does not converge. */
static bool self_adjoint(double complex *a, double complex *q, int64_t n, double *values,
                         double *below, double epsilon)
{
    double scale = 0;
    for (int64_t i = 0; i < n * n; i++)
        if (i % n <= i / n)
            scale = fmax(scale, cabs(a[i]));
    scale = scale == 0 ? 1 : scale;
    for (int64_t i = 0; i < n * n; i++)
        a[i] /= scale;
    tridiagonal(a, q, n, values, below);
    int64_t last = n - 1;
    for (int64_t round = 0; last > 0; round++) {
        if (round > 30 * n)
            return false;
        for (int64_t i = 0; i < last; i++)
            if (fabs(below[i]) <= epsilon * sqrt(fabs(values[i]) + fabs(values[i + 1])))
                below[i] = 0;
        while (last > 0 && below[last - 1] == 0)
            last--;
        int64_t first = last - 1;
        while (first > 0 && below[first - 1] != 0)
            first--;
        if (last > 0)
            qr_step(values, below, first, last, q, n);
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t best = i;
        for (int64_t k = i + 1; k < n; k++)
            if (values[k] < values[best])
                best = k;
        double kept = values[i];
        values[i] = values[best];
        values[best] = kept;
        for (int64_t r = 0; best != i && r < n; r++) {
            double complex other = q[r * n + i];
            q[r * n + i] = q[r * n + best];
            q[r * n + best] = other;
        }
    }
    for (int64_t i = 0; i < n; i++)
        values[i] *= scale;
    return true;
}

/* Outputs: values and vectors, or (old) both in one with the values as first row. */
static bool self_adjoint_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    bool one = call->node->outputs_count == 1;
    bool vectors = one || node_attr_bool(call->node, "compute_v", true);
    int64_t n = 0, m;
    if (!kernel_linear_shape(call, 0, true, &n, &m, err))
        return false;
    struct shape shape = in->shape, row = in->shape;
    row.rank--;
    if (one)
        shape.dims[shape.rank - 2]++;
    else if (!vectors)
        shape = SHAPE_SCALAR;
    struct tensor *values = one ? NULL : kernel_output(call, 0, &row, err);
    struct tensor *out = one || values ? kernel_output(call, one ? 0 : 1, &shape, err) : NULL;
    double complex *a = out ? kernel_linear_scratch(call, 2 * n * n + n, err) : NULL;
    double *found = a ? kernel_scratch(call, (size_t)(2 * n + 1) * sizeof(double), err) : NULL;
    if (!found)
        return false;
    if (!vectors)
        kernel_zero(out, 0, 1);
    for (int64_t i = 0; n > 0 && i < in->count / (n * n); i++) {
        kernel_linear_load(in, i, n * n, a);
        if (!self_adjoint(a, a + n * n, n, found, found + n, kernel_linear_epsilon(in)))
            return fail(err, INVALID,
                        "Self-adjoint eigen decomposition was not successful. The input might "
                        "not be valid.");
        for (int64_t k = 0; k < n; k++) {
            if (values)
                kernel_set_complex(values, i * n + k, found[k]);
            else
                kernel_set_complex(out, i * (n + 1) * n + k, found[k]);
        }
        for (int64_t k = 0; vectors && k < n * n; k++)
            kernel_set_complex(out, one ? i * (n + 1) * n + n + k : i * n * n + k,
                               a[n * n + k]);
    }
    return true;
}

#define EIGEN(name_, dtypes_, run_)                                                            \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = dtypes_, .run = run_                             \
    }
#define REALS (BIT(F32) | BIT(F64))
#define TYPES (BIT(F32) | BIT(F64) | DTYPES_COMPLEX)

const struct kernel kernel_self_adjoint_eig_ref =
    EIGEN("SelfAdjointEig", REALS, self_adjoint_run);
const struct kernel kernel_self_adjoint_eig_v2_ref =
    EIGEN("SelfAdjointEigV2", TYPES, self_adjoint_run);
const struct kernel kernel_batch_self_adjoint_eig_ref =
    EIGEN("BatchSelfAdjointEig", REALS, self_adjoint_run);
const struct kernel kernel_batch_self_adjoint_eig_v2_ref =
    EIGEN("BatchSelfAdjointEigV2", TYPES, self_adjoint_run);
