/* band.c - matrices of a few diagonals, and the slope of Cholesky's factors. */

#include "kernels/ref/linear.h"

#include <math.h>

/* What is asked of bands and the right side; `*shape`: their batches, broadcast. */
static bool check_sides(const struct kernel_call *call, struct shape *shape, struct error *err)
{
    struct shape sides[2];
    char text[2][SHAPE_TEXT_BYTES];
    for (int i = 0; i < 2; i++) {
        sides[i] = kernel_in(call, i)->shape;
        shape_text(&sides[i], text[i], sizeof(text[i]));
        if (sides[i].rank < 2)
            return fail(err, INVALID, "In[%d] ndims must be >= 2: %d", i, sides[i].rank);
        sides[i].rank -= 2;
    }
    struct error differ;
    if (!shape_broadcast(&sides[0], &sides[1], shape, &differ))
        return fail(err, INVALID,
                    "In[0] and In[1] must have compatible batch dimensions: %s vs. %s", text[0],
                    text[1]);
    for (int i = 0; i < 2; i++)
        if (kernel_in(call, i)->count == 0)
            return fail(err, INVALID,
                        "In[%d] must not be an empty tensor: Tensor<type: %s shape: %s values: "
                        ">",
                        i, dtype_name(kernel_in(call, i)->dtype), text[i]);
    int64_t columns = sides[0].dims[sides[0].rank + 1], rows = sides[1].dims[sides[1].rank];
    return columns == rows ||
           fail(err, INVALID, "In[0] mismatch In[1] shape: %lld vs. %lld: %s %s %d %d",
                (long long)columns, (long long)rows, text[0], text[1],
                node_attr_bool(call->node, "lower", true),
                node_attr_bool(call->node, "adjoint", false));
}

/* Number of the matrix of `own` that matrix `i` of the batch `all` uses. */
static int64_t matrix_of(const struct shape *own, const struct shape *all, int64_t i)
{
    int64_t at = 0, step = 1;
    for (int d = all->rank - 1, o = own->rank - 3; o >= 0; d--, o--) {
        at += own->dims[o] == 1 ? 0 : i % all->dims[d] * step;
        i /= all->dims[d];
        step *= own->dims[o];
    }
    return at;
}

/*
 * Solves a x = b in place for a (n, n) triangular, given as `bands` rows, one for each
 * diagonal: the main one first where it is lower, last where it is upper.
 */
static bool solve_bands(const double complex *a, int64_t bands, int64_t n, bool lower,
                        bool adjoint, double complex *b, int64_t m)
{
    const double complex *main = lower ? a : a + (bands - 1) * n;
    bool down = lower != adjoint;
    for (int64_t step = 0; step < n; step++) {
        int64_t i = down ? step : n - 1 - step;
        double complex pivot = adjoint ? conj(main[i]) : main[i];
        if (pivot == 0)
            return false;
        for (int64_t k = 1; k < bands; k++) {
            int64_t other = down ? i - k : i + k; /* a row solved before */
            if (other < 0 || other >= n)
                continue;
            const double complex *band = lower ? a + k * n : a + (bands - 1 - k) * n;
            /* Each band is indexed by the row of the matrix it is in. */
            double complex value = adjoint ? conj(band[other]) : band[i];
            for (int64_t c = 0; c < m; c++)
                b[i * m + c] -= value * b[other * m + c];
        }
        for (int64_t c = 0; c < m; c++)
            b[i * m + c] /= pivot;
    }
    return true;
}

static bool banded_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0), *rhs = kernel_in(call, 1);
    int64_t bands = 0, n = 0, rows = 0, m = 0;
    struct shape all;
    if (!check_sides(call, &all, err) ||
        !kernel_linear_shape(call, 0, false, &bands, &n, err) ||
        !kernel_linear_shape(call, 1, false, &rows, &m, err))
        return false;
    if (bands < 1 || bands > n)
        return fail(err, INVALID,
                    "The number of bands must be at least 1 and at most the number of columns, "
                    "got %lld of %lld",
                    (long long)bands, (long long)n);
    struct shape shape = all;
    shape.dims[shape.rank++] = n;
    shape.dims[shape.rank++] = m;
    struct tensor *out = kernel_output(call, 0, &shape, err);
    double complex *a = out ? kernel_linear_scratch(call, bands * n + n * m, err) : NULL;
    if (!a)
        return false;
    double complex *b = a + bands * n;
    for (int64_t i = 0; out->count > 0 && i < out->count / (n * m); i++) {
        kernel_linear_load(in, matrix_of(&in->shape, &all, i), bands * n, a);
        kernel_linear_load(rhs, matrix_of(&rhs->shape, &all, i), n * m, b);
        if (!solve_bands(a, bands, n, node_attr_bool(call->node, "lower", true),
                         node_attr_bool(call->node, "adjoint", false), b, m))
            return fail(err, INVALID, "Input matrix is not invertible.");
        kernel_linear_store(out, i, n * m, b);
    }
    return true;
}

/* --- three diagonals --- */

/* Without pivots: the elements above are eliminated as they come (Thomas). */
static bool thomas(const double complex *d, int64_t n, double complex *b, int64_t m,
                   double complex *u)
{
    const double complex *above = d, *main = d + n, *below = d + 2 * n;
    for (int64_t i = 0; i < n; i++) {
        double complex pivot = i ? main[i] - below[i] * u[i - 1] : main[0];
        if (pivot == 0)
            return false;
        u[i] = i + 1 < n ? above[i] / pivot : 0;
        for (int64_t c = 0; c < m; c++) {
            if (i)
                b[i * m + c] -= below[i] * b[(i - 1) * m + c];
            b[i * m + c] /= pivot;
        }
    }
    for (int64_t i = n - 2; i >= 0; i--)
        for (int64_t c = 0; c < m; c++)
            b[i * m + c] -= u[i] * b[(i + 1) * m + c];
    return true;
}

/* With the greater of two rows as pivot; u has three diagonals (n each). */
static bool pivoting(const double complex *d, int64_t n, double complex *b, int64_t m,
                     double complex *u, bool perturb)
{
    const double complex *above = d, *main = d + n, *below = d + 2 * n;
    double complex *u0 = u, *u1 = u + n, *u2 = u + 2 * n;
    u0[0] = main[0];
    u1[0] = n > 1 ? above[0] : 0;
    for (int64_t i = 0; i < n; i++)
        u2[i] = 0;
    for (int64_t i = 0; i + 1 < n; i++) {
        double complex next1 = i + 2 < n ? above[i + 1] : 0, low = below[i + 1];
        if (cabs(u0[i]) >= cabs(low)) {
            if (u0[i] == 0 && !perturb)
                return false;
            if (u0[i] == 0)
                u0[i] = 1e-8;
            double complex factor = low / u0[i];
            u0[i + 1] = main[i + 1] - factor * u1[i];
            u1[i + 1] = next1;
            for (int64_t c = 0; c < m; c++)
                b[(i + 1) * m + c] -= factor * b[i * m + c];
            continue;
        }
        double complex factor = u0[i] / low, second = u1[i];
        u0[i] = low;
        u1[i] = main[i + 1];
        u2[i] = next1;
        u0[i + 1] = second - factor * main[i + 1];
        u1[i + 1] = -factor * next1;
        for (int64_t c = 0; c < m; c++) {
            double complex kept = b[i * m + c];
            b[i * m + c] = b[(i + 1) * m + c];
            b[(i + 1) * m + c] = kept - factor * b[i * m + c];
        }
    }
    if (u0[n - 1] == 0 && !perturb)
        return false;
    if (u0[n - 1] == 0)
        u0[n - 1] = 1e-8;
    for (int64_t i = n - 1; i >= 0; i--)
        for (int64_t c = 0; c < m; c++) {
            if (i + 1 < n)
                b[i * m + c] -= u1[i] * b[(i + 1) * m + c];
            if (i + 2 < n)
                b[i * m + c] -= u2[i] * b[(i + 2) * m + c];
            b[i * m + c] /= u0[i];
        }
    return true;
}

/* All inputs are matrices, in the same batch. */
static bool same_outer(const struct kernel_call *call, struct error *err)
{
    const struct shape *first = &kernel_in(call, 0)->shape;
    if (first->rank < 2)
        return fail(err, INVALID, "Input tensor 0 must have rank >= 2, got %d", first->rank);
    for (int i = 1; i < call->in_count; i++) {
        if (kernel_in(call, i)->shape.rank != first->rank)
            return fail(err, INVALID, "All input tensors must have the same rank.");
        for (int d = 0; d < first->rank - 2; d++)
            if (kernel_in(call, i)->shape.dims[d] != first->dims[d])
                return fail(err, INVALID,
                            "All input tensors must have the same outer dimensions.");
    }
    return true;
}

static bool tridiagonal_solve_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0), *rhs = kernel_in(call, 1);
    int64_t three = 0, n = 0, rows = 0, m = 0;
    if (!same_outer(call, err) || !kernel_linear_shape(call, 0, false, &three, &n, err) ||
        !kernel_linear_shape(call, 1, false, &rows, &m, err))
        return false;
    if (three != 3)
        return fail(err, INVALID,
                    "Expected diagonals to be provided as a matrix with 3 rows, got %lld rows.",
                    (long long)three);
    if (n != rows)
        return fail(err, INVALID,
                    "Expected the same number of left-hand sides and right-hand sides, got "
                    "%lld and %lld.",
                    (long long)n, (long long)rows);
    struct tensor *out = kernel_output(call, 0, &rhs->shape, err);
    double complex *d = out ? kernel_linear_scratch(call, 6 * n + n * m, err) : NULL;
    if (!d)
        return false;
    double complex *u = d + 3 * n, *x = u + 3 * n;
    bool pivots = node_attr_bool(call->node, "partial_pivoting", true);
    bool perturb = node_attr_bool(call->node, "perturb_singular", false);
    if (perturb && !pivots)
        return fail(err, INVALID,
                    "Setting perturb_singular requires also setting partial_pivoting.");
    for (int64_t i = 0; out->count > 0 && i < out->count / (n * m); i++) {
        kernel_linear_load(in, i, 3 * n, d);
        kernel_linear_load(rhs, i, n * m, x);
        bool solved = pivots ? pivoting(d, n, x, m, u, perturb) : thomas(d, n, x, m, u);
        if (!solved)
            return fail(err, INVALID, "The matrix is not invertible.");
        kernel_linear_store(out, i, n * m, x);
    }
    return true;
}

/* Three diagonals, each a row (1, n) of its own, times a matrix. */
static bool tridiagonal_mat_mul_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *rhs = kernel_in(call, 3);
    static const char *const names[] = {"superdiagonal", "main diagonal", "subdiagonal"};
    int64_t n = 0, m = 0;
    if (!same_outer(call, err) || !kernel_linear_shape(call, 3, false, &n, &m, err))
        return false;
    for (int i = 0; i < 3; i++) {
        struct shape want = rhs->shape;
        want.dims[want.rank - 2] = 1;
        want.dims[want.rank - 1] = n;
        if (!shape_equal(&want, &kernel_in(call, i)->shape))
            return fail(err, INVALID, "Invalid %s shape.", names[i]);
    }
    struct tensor *out = kernel_output(call, 0, &rhs->shape, err);
    if (!out)
        return false;
    for (int64_t i = 0; i < out->count; i++) {
        int64_t row = i / m % n, batch = i / m - row;
        double complex sum =
            kernel_complex_at(kernel_in(call, 1), batch + row) * kernel_complex_at(rhs, i);
        if (row + 1 < n)
            sum += kernel_complex_at(kernel_in(call, 0), batch + row) *
                   kernel_complex_at(rhs, i + m);
        if (row > 0)
            sum += kernel_complex_at(kernel_in(call, 2), batch + row) *
                   kernel_complex_at(rhs, i - m);
        kernel_set_complex(out, i, sum);
    }
    return true;
}

/* --- the gradient of a Cholesky factor: l^-T lower(l^T dl) l^-1, made symmetric --- */

static bool cholesky_grad_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *l = kernel_in(call, 0), *dl = kernel_in(call, 1);
    int64_t n = 0, m;
    if (!kernel_linear_sides(call, err) || !kernel_linear_shape(call, 0, false, &n, &m, err))
        return false;
    if (!shape_equal(&l->shape, &dl->shape))
        return fail(err, INVALID, "Inputs (L and grad) must have the same shape.");
    if (n != m)
        return fail(err, INVALID, "Inputs must be a square matrices.");
    struct tensor *out = kernel_output(call, 0, &l->shape, err);
    double complex *a = out ? kernel_linear_scratch(call, 5 * n * n, err) : NULL;
    if (!a)
        return false;
    double complex *d = a + n * n, *middle = d + n * n, *back = middle + n * n,
                   *left = back + n * n;
    for (int64_t i = 0; n > 0 && i < l->count / (n * n); i++) {
        double log_size;
        kernel_linear_load(l, i, n * n, a);
        kernel_linear_load(dl, i, n * n, d);
        for (int64_t k = 0; k < n * n; k++) {
            if (k % n > k / n)
                a[k] = d[k] = 0;
            back[k] = k % (n + 1) == 0;
        }
        kernel_linear_product(a, true, d, false, n, n, n, middle);
        if (kernel_linear_eliminate(a, n, back, n, &log_size) == 0)
            return fail(err, INVALID, "Input is not invertible.");
        for (int64_t k = 0; k < n * n; k++)
            middle[k] = k % n > k / n ? 0 : k % (n + 1) == 0 ? middle[k] / 2 : middle[k];
        kernel_linear_product(back, true, middle, false, n, n, n, left);
        kernel_linear_product(left, false, back, false, n, n, n, d);
        for (int64_t k = 0; k < n * n; k++)
            left[k] = (d[k] + conj(d[k % n * n + k / n])) / 2;
        kernel_linear_store(out, i, n * n, left);
    }
    return true;
}

#define BAND(name_, dtypes_, run_)                                                             \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = dtypes_, .run = run_                             \
    }
#define TYPES (BIT(F32) | BIT(F64) | DTYPES_COMPLEX)

const struct kernel kernel_banded_triangular_solve_ref =
    BAND("BandedTriangularSolve", TYPES, banded_run);
const struct kernel kernel_tridiagonal_solve_ref =
    BAND("TridiagonalSolve", TYPES, tridiagonal_solve_run);
const struct kernel kernel_tridiagonal_mat_mul_ref =
    BAND("TridiagonalMatMul", TYPES, tridiagonal_mat_mul_run);
const struct kernel kernel_cholesky_grad_ref =
    BAND("CholeskyGrad", BIT(F32) | BIT(F64), cholesky_grad_run);
const struct kernel kernel_batch_cholesky_grad_ref =
    BAND("BatchCholeskyGrad", BIT(F32) | BIT(F64), cholesky_grad_run);
