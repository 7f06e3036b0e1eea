/*
 * linear.c - matrices factored, inverted and solved, each in a batch of its own.
 *
 * All in double complex, whatever the type; Gaussian elimination with pivots.
 */

#include "kernels/ref/linear.h"
#include "kernels/ref/mat_mul.h"

#include <float.h>
#include <math.h>

bool kernel_linear_shape(const struct kernel_call *call, int index, bool square, int64_t *rows,
                         int64_t *columns, struct error *err)
{
    const struct shape *shape = &kernel_in(call, index)->shape;
    char which[16] = "";
    if (strcmp(call->node->op->name, "Lu") != 0) /* the only one of a kernel of its own */
        snprintf(which, sizeof(which), " %d", index);
    if (shape->rank < 2)
        return fail(err, INVALID, "Input tensor%s must have rank >= 2, got %d", which,
                    shape->rank);
    *rows = shape->dims[shape->rank - 2];
    *columns = shape->dims[shape->rank - 1];
    return !square || *rows == *columns || fail(err, INVALID, "Input matrix must be square.");
}

void kernel_linear_load(const struct tensor *in, int64_t number, int64_t size,
                        double complex *to)
{
    for (int64_t i = 0; i < size; i++)
        to[i] = kernel_complex_at(in, number * size + i);
}

void kernel_linear_store(struct tensor *out, int64_t number, int64_t size,
                         const double complex *from)
{
    for (int64_t i = 0; i < size; i++)
        kernel_set_complex(out, number * size + i, from[i]);
}

double kernel_linear_epsilon(const struct tensor *tensor)
{
    return tensor->dtype == F64 || tensor->dtype == C128 ? DBL_EPSILON : (double)FLT_EPSILON;
}

double complex *kernel_linear_scratch(struct kernel_call *call, int64_t count,
                                      struct error *err)
{
    return kernel_scratch(call, (size_t)count * sizeof(double complex) + 1, err);
}

/* a (n, n) becomes its conjugate transpose. */
static void adjoin(double complex *a, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k <= i; k++) {
            double complex kept = conj(a[i * n + k]);
            a[i * n + k] = conj(a[k * n + i]);
            a[k * n + i] = kept;
        }
}

static void swap_rows(double complex *a, int64_t columns, int64_t i, int64_t k)
{
    for (int64_t c = 0; c < columns; c++) {
        double complex kept = a[i * columns + c];
        a[i * columns + c] = a[k * columns + c];
        a[k * columns + c] = kept;
    }
}

double complex kernel_linear_eliminate(double complex *a, int64_t n, double complex *b,
                                       int64_t m, double *log_size)
{
    double complex sign = 1;
    *log_size = 0;
    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n; i++)
            if (cabs(a[i * n + k]) > cabs(a[pivot * n + k]))
                pivot = i;
        double complex value = a[pivot * n + k];
        if (value == 0) {
            *log_size = -INFINITY;
            return 0;
        }
        if (pivot != k) {
            swap_rows(a, n, k, pivot);
            swap_rows(b, m, k, pivot);
            sign = -sign;
        }
        sign *= value / cabs(value);
        *log_size += log(cabs(value));
        for (int64_t i = k + 1; i < n; i++) {
            double complex factor = a[i * n + k] / value;
            for (int64_t c = k; c < n; c++)
                a[i * n + c] -= factor * a[k * n + c];
            for (int64_t c = 0; c < m; c++)
                b[i * m + c] -= factor * b[k * m + c];
        }
    }
    for (int64_t k = n - 1; k >= 0; k--)
        for (int64_t c = 0; c < m; c++) {
            for (int64_t i = k + 1; i < n; i++)
                b[k * m + c] -= a[k * n + i] * b[i * m + c];
            b[k * m + c] /= a[k * n + k];
        }
    return sign;
}

static bool matrix_inverse_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    int64_t n = 0, m;
    if (!kernel_linear_shape(call, 0, true, &n, &m, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    double complex *a = out ? kernel_linear_scratch(call, 2 * n * n, err) : NULL,
                   *b = a ? a + n * n : NULL;
    if (!a)
        return false;
    for (int64_t i = 0; n > 0 && i < in->count / (n * n); i++) {
        double log_size;
        kernel_linear_load(in, i, n * n, a);
        if (node_attr_bool(call->node, "adjoint", false))
            adjoin(a, n);
        for (int64_t k = 0; k < n * n; k++)
            b[k] = k % (n + 1) == 0;
        if (kernel_linear_eliminate(a, n, b, n, &log_size) == 0 || isnan(cabs(a[0])))
            return fail(err, INVALID, "Input is not invertible.");
        kernel_linear_store(out, i, n * n, b);
    }
    return true;
}

static bool determinant(struct kernel_call *call, bool logarithm, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    int64_t n = 0, m;
    if (!kernel_linear_shape(call, 0, true, &n, &m, err))
        return false;
    struct shape shape = in->shape;
    shape.rank -= 2;
    struct tensor *out = kernel_output(call, 0, &shape, err);
    struct tensor *size = out && logarithm ? kernel_output(call, 1, &shape, err) : NULL;
    double complex *a = out ? kernel_linear_scratch(call, n * n, err) : NULL;
    if (!a || (logarithm && !size))
        return false;
    for (int64_t i = 0; i < out->count; i++) {
        double log_size;
        kernel_linear_load(in, i, n * n, a);
        double complex sign = kernel_linear_eliminate(a, n, NULL, 0, &log_size);
        kernel_set_complex(out, i, logarithm ? sign : sign == 0 ? 0 : sign * exp(log_size));
        if (size)
            kernel_set_complex(size, i, log_size);
    }
    return true;
}

static bool matrix_determinant_run(struct kernel_call *call, struct error *err)
{
    return determinant(call, false, err);
}

static bool log_matrix_determinant_run(struct kernel_call *call, struct error *err)
{
    return determinant(call, true, err);
}

bool kernel_linear_sides(const struct kernel_call *call, struct error *err)
{
    const struct shape *a = &kernel_in(call, 0)->shape, *b = &kernel_in(call, 1)->shape;
    struct shape left = *a, right = *b;
    if (a->rank < 2)
        return fail(err, INVALID, "Input tensor 0 must have rank >= 2, got %d", a->rank);
    if (a->rank != b->rank)
        return fail(err, INVALID, "All input tensors must have the same rank.");
    left.rank -= 2;
    right.rank -= 2;
    return shape_equal(&left, &right) ||
           fail(err, INVALID, "All input tensors must have the same outer dimensions.");
}

/* The shape of x in a x = b (n, m), for a batch of matrices and one of right sides. */
static bool solve_shape(const struct kernel_call *call, int64_t *n, int64_t *m,
                        struct shape *shape, struct error *err)
{
    const struct shape *a = &kernel_in(call, 0)->shape, *b = &kernel_in(call, 1)->shape;
    if (!kernel_linear_sides(call, err))
        return false;
    *shape = *b;
    *n = a->dims[a->rank - 2];
    *m = b->dims[b->rank - 1];
    if (*n != a->dims[a->rank - 1])
        return fail(err, INVALID, "First input (lhs) must be a square matrix.");
    return b->dims[b->rank - 2] == *n ||
           fail(err, INVALID, "Input matrix and rhs are incompatible.");
}

/* The same, where the dimensions in front broadcast. */
static bool triangular_shape(const struct kernel_call *call, int64_t *n, int64_t *m,
                             struct shape *shape, struct error *err)
{
    const struct shape *a = &kernel_in(call, 0)->shape, *b = &kernel_in(call, 1)->shape;
    char a_text[SHAPE_TEXT_BYTES], b_text[SHAPE_TEXT_BYTES];
    if (!kernel_batches_broadcast(a, b, shape, err))
        return false;
    *n = a->dims[a->rank - 2];
    *m = b->dims[b->rank - 1];
    if (*n != a->dims[a->rank - 1])
        return fail(err, INVALID,
                    "In[0] matrices in the last dimensions must be square (%lld =/= %lld)",
                    (long long)a->dims[a->rank - 1], (long long)*n);
    if (b->dims[b->rank - 2] != *n)
        return fail(err, INVALID, "In[0] mismatch In[1] shape: %lld vs. %lld: %s %s %d %d",
                    (long long)*n, (long long)b->dims[b->rank - 2],
                    shape_text(a, a_text, sizeof(a_text)),
                    shape_text(b, b_text, sizeof(b_text)),
                    node_attr_bool(call->node, "lower", true),
                    node_attr_bool(call->node, "adjoint", false));
    shape->dims[shape->rank++] = *n;
    shape->dims[shape->rank++] = *m;
    return true;
}

/* Number of the matrix of `own` that matrix `i` of `all` uses. */
static int64_t matrix_of(const struct shape *own, const struct shape *all, int64_t i)
{
    int64_t at = 0, step = 1;
    for (int d = all->rank - 3, o = own->rank - 3; o >= 0; d--, o--) {
        at += own->dims[o] == 1 ? 0 : i % all->dims[d] * step;
        i /= all->dims[d];
        step *= own->dims[o];
    }
    return at;
}

/* Keeps one triangle of a; the other is nobody's business. */
static void keep_triangle(double complex *a, int64_t n, bool lower)
{
    for (int64_t i = 0; i < n * n; i++)
        if (lower ? i % n > i / n : i % n < i / n)
            a[i] = 0;
}

/* b becomes x of a x = b, infinite where the diagonal has a zero. */
static void substitute(const double complex *a, int64_t n, bool lower, double complex *b,
                       int64_t m)
{
    for (int64_t k = 0; k < n; k++) {
        int64_t row = lower ? k : n - 1 - k, first = lower ? 0 : row + 1;
        double complex by = a[row * (n + 1)];
        for (int64_t c = 0; c < m; c++) {
            double complex *x = &b[row * m + c];
            for (int64_t i = first; i < first + k; i++)
                *x -= a[row * n + i] * b[i * m + c];
            *x = cimag(by) == 0 ? kernel_complex(creal(*x) / creal(by), cimag(*x) / creal(by))
                                : *x / by;
        }
    }
}

static bool solve(struct kernel_call *call, bool triangular, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0), *rhs = kernel_in(call, 1);
    int64_t n = 0, m = 0;
    struct shape shape;
    if (!(triangular ? triangular_shape(call, &n, &m, &shape, err)
                     : solve_shape(call, &n, &m, &shape, err)))
        return false;
    struct tensor *out = kernel_output(call, 0, &shape, err);
    double complex *a = out ? kernel_linear_scratch(call, n * (n + m), err) : NULL;
    if (!a)
        return false;
    double complex *b = a + n * n;
    for (int64_t i = 0; out->count > 0 && i < out->count / (n * m); i++) {
        double log_size;
        kernel_linear_load(in, matrix_of(&in->shape, &shape, i), n * n, a);
        kernel_linear_load(rhs, matrix_of(&rhs->shape, &shape, i), n * m, b);
        bool lower = node_attr_bool(call->node, "lower", true);
        bool adjoint = node_attr_bool(call->node, "adjoint", false);
        if (triangular)
            keep_triangle(a, n, lower);
        if (adjoint)
            adjoin(a, n);
        if (triangular)
            substitute(a, n, lower != adjoint, b, m);
        else if (kernel_linear_eliminate(a, n, b, m, &log_size) == 0 || isnan(cabs(a[0])))
            return fail(err, INVALID, "Input matrix is not invertible.");
        kernel_linear_store(out, i, n * m, b);
    }
    return true;
}

static bool matrix_solve_run(struct kernel_call *call, struct error *err)
{
    return solve(call, false, err);
}

static bool matrix_triangular_solve_run(struct kernel_call *call, struct error *err)
{
    return solve(call, true, err);
}

/* a = l l*, of the lower triangle of a; false when a is not positive definite. */
static bool factor(double complex *a, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < n; k++) {
            double complex sum = k > i ? 0 : a[i * n + k];
            for (int64_t c = 0; c < k && k <= i; c++)
                sum -= a[i * n + c] * conj(a[k * n + c]);
            if (k == i && !(creal(sum) > 0))
                return false;
            a[i * n + k] = k > i ? 0 : k == i ? sqrt(creal(sum)) : sum / a[k * n + k];
        }
    return true;
}

static bool cholesky_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    int64_t n = 0, m;
    if (!kernel_linear_shape(call, 0, true, &n, &m, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    double complex *a = out ? kernel_linear_scratch(call, n * n, err) : NULL;
    if (!a)
        return false;
    for (int64_t i = 0; n > 0 && i < in->count / (n * n); i++) {
        kernel_linear_load(in, i, n * n, a);
        if (!factor(a, n)) /* TensorFlow's kernel warns in its log and goes on */
            for (int64_t k = 0; k < n * n; k++)
                a[k] = k % n > k / n ? 0 : NAN;
        kernel_linear_store(out, i, n * n, a);
    }
    return true;
}

#define LINEAR(name_, dtypes_, run_)                                                           \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = dtypes_, .run = run_                             \
    }
#define TYPES (BIT(F32) | BIT(F64) | DTYPES_COMPLEX)

const struct kernel kernel_matrix_inverse_ref =
    LINEAR("MatrixInverse", TYPES | BIT(F16), matrix_inverse_run);
const struct kernel kernel_matrix_determinant_ref =
    LINEAR("MatrixDeterminant", TYPES, matrix_determinant_run);
const struct kernel kernel_log_matrix_determinant_ref =
    LINEAR("LogMatrixDeterminant", TYPES, log_matrix_determinant_run);
const struct kernel kernel_matrix_solve_ref = LINEAR("MatrixSolve", TYPES, matrix_solve_run);
const struct kernel kernel_matrix_triangular_solve_ref =
    LINEAR("MatrixTriangularSolve", TYPES, matrix_triangular_solve_run);
const struct kernel kernel_cholesky_ref = LINEAR("Cholesky", TYPES, cholesky_run);

/* The same by their names from when single matrices had ops of their own. */
const struct kernel kernel_batch_matrix_inverse_ref =
    LINEAR("BatchMatrixInverse", BIT(F32) | BIT(F64), matrix_inverse_run);
const struct kernel kernel_batch_matrix_determinant_ref =
    LINEAR("BatchMatrixDeterminant", TYPES, matrix_determinant_run);
const struct kernel kernel_batch_matrix_solve_ref =
    LINEAR("BatchMatrixSolve", TYPES, matrix_solve_run);
const struct kernel kernel_batch_matrix_triangular_solve_ref =
    LINEAR("BatchMatrixTriangularSolve", TYPES, matrix_triangular_solve_run);
const struct kernel kernel_batch_cholesky_ref = LINEAR("BatchCholesky", TYPES, cholesky_run);
