/* matrix_function.c - exponential, logarithm and square root of matrices. */

#include "kernels/ref/linear.h"

#include <math.h>

/* The square root of an upper triangle, in place. */
static void triangle_root(double complex *t, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        t[k * n + k] = csqrt(t[k * n + k]);
        for (int64_t i = k - 1; i >= 0; i--) {
            double complex sum = t[i * n + k];
            for (int64_t c = i + 1; c < k; c++)
                sum -= t[i * n + c] * t[c * n + k];
            double complex both = t[i * n + i] + t[k * n + k];
            t[i * n + k] = sum == 0 ? 0 : sum / both;
        }
    }
}

/*
 * The logarithm of an upper triangle: roots until it is near one, then the integral of
 * x (1 + s x)^-1 over s by Gauss's seven places.
 */
static void triangle_log(double complex *t, double complex *sum, double complex *work,
                         int64_t n)
{
    static const double places[] = {
        0.02544604382862074, 0.12923440720030278, 0.2970774243113014, 0.5,
        0.7029225756886985,  0.8707655927996972,  0.97455395617137926};
    static const double weights[] = {
        0.06474248308443485, 0.1398526957446383, 0.19091502525255947, 0.20897959183673469,
        0.19091502525255947, 0.1398526957446383, 0.06474248308443485};
    double scale = 1, norm = 1;
    for (int round = 0; round < 60 && norm > 0.05; round++) {
        norm = 0;
        for (int64_t i = 0; i < n * n; i++)
            norm = fmax(norm, cabs(t[i] - (i % (n + 1) == 0)) * (double)n);
        if (norm <= 0.05)
            break;
        triangle_root(t, n);
        scale *= 2;
    }
    double complex *left = work, *right = work + n * n;
    memset(sum, 0, (size_t)(n * n) * sizeof(*sum));
    for (int p = 0; p < ARRAY_LEN(places); p++) {
        double log_size;
        for (int64_t i = 0; i < n * n; i++) {
            double one = i % (n + 1) == 0;
            right[i] = t[i] - one;
            left[i] = one + places[p] * right[i];
        }
        if (kernel_linear_eliminate(left, n, right, n, &log_size) == 0)
            continue;
        for (int64_t i = 0; i < n * n; i++)
            sum[i] += scale * weights[p] * right[i];
    }
}

/* exp(a): of a 2^-k small enough, by Pade's approximation, then squared k times. */
static void exponential(double complex *a, double complex *work, int64_t n)
{
    static const double c[] = {1,         1.0 / 2,     5.0 / 44,    1.0 / 66,
                               1.0 / 792, 1.0 / 15840, 1.0 / 665280};
    double norm = 0;
    int halvings = 0;
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t k = 0; k < n; k++)
            sum += cabs(a[i * n + k]);
        norm = fmax(norm, sum);
    }
    for (; norm > 0.5 && halvings < 2000; halvings++)
        norm /= 2;
    double complex *power = work, *next = work + n * n, *over = next + n * n,
                   *under = over + n * n;
    for (int64_t i = 0; i < n * n; i++) {
        a[i] = creal(a[i]) * ldexp(1, -halvings) + I * (cimag(a[i]) * ldexp(1, -halvings));
        power[i] = over[i] = under[i] = i % (n + 1) == 0;
    }
    for (int k = 1; k < ARRAY_LEN(c); k++) {
        kernel_linear_product(power, false, a, false, n, n, n, next);
        for (int64_t i = 0; i < n * n; i++) {
            power[i] = next[i];
            over[i] += c[k] * next[i];
            under[i] += (k % 2 ? -c[k] : c[k]) * next[i];
        }
    }
    double log_size;
    kernel_linear_eliminate(under, n, over, n, &log_size);
    for (; halvings > 0; halvings--) {
        kernel_linear_product(over, false, over, false, n, n, n, next);
        memcpy(over, next, (size_t)(n * n) * sizeof(*over));
    }
    memcpy(a, over, (size_t)(n * n) * sizeof(*a));
}

enum function { EXPONENTIAL, LOGARITHM, ROOT };

static bool function_run(struct kernel_call *call, enum function function, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    int64_t n = 0, m;
    if (!kernel_linear_shape(call, 0, true, &n, &m, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    double complex *a = out ? kernel_linear_scratch(call, 6 * n * n, err) : NULL;
    if (!a)
        return false;
    bool is_complex = (DTYPES_COMPLEX & BIT(in->dtype)) != 0;
    double complex *u = a + n * n, *sum = u + n * n, *work = sum + n * n;
    for (int64_t i = 0; n > 0 && i < in->count / (n * n); i++) {
        kernel_linear_load(in, i, n * n, a);
        if (function == EXPONENTIAL) {
            exponential(a, u, n);
            kernel_linear_store(out, i, n * n, a);
            continue;
        }
        if (!kernel_linear_schur(a, u, n, kernel_linear_epsilon(in)))
            return fail(err, INVALID, "the matrix has no Schur decomposition");
        if (function == ROOT) {
            triangle_root(a, n);
            memcpy(sum, a, (size_t)(n * n) * sizeof(*a));
        } else {
            triangle_log(a, sum, work, n);
        }
        kernel_linear_product(u, false, sum, false, n, n, n, work);
        kernel_linear_product(work, false, u, true, n, n, n, a);
        for (int64_t k = 0; !is_complex && k < n * n; k++)
            if (fabs(cimag(a[k])) > 1e-6 * fmax(1, cabs(a[k])))
                a[k] = NAN; /* the root is not real */
        kernel_linear_store(out, i, n * n, a);
    }
    return true;
}

static bool exponential_run(struct kernel_call *call, struct error *err)
{
    return function_run(call, EXPONENTIAL, err);
}

static bool logarithm_run(struct kernel_call *call, struct error *err)
{
    return function_run(call, LOGARITHM, err);
}

static bool root_run(struct kernel_call *call, struct error *err)
{
    return function_run(call, ROOT, err);
}

#define FUNCTION(name_, dtypes_, run_)                                                         \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = dtypes_, .run = run_                             \
    }
#define TYPES (BIT(F32) | BIT(F64) | DTYPES_COMPLEX)

const struct kernel kernel_matrix_exponential_ref =
    FUNCTION("MatrixExponential", TYPES, exponential_run);
const struct kernel kernel_matrix_logarithm_ref =
    FUNCTION("MatrixLogarithm", DTYPES_COMPLEX, logarithm_run);
const struct kernel kernel_matrix_square_root_ref =
    FUNCTION("MatrixSquareRoot", TYPES, root_run);
