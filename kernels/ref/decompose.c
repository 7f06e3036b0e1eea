/* decompose.c - matrices as products: Qr, Lu, Svd, and least squares by them. */

#include "kernels/ref/linear.h"

#include <float.h>
#include <math.h>

/* The shape of output: the batch of input 0, then rows and columns (-1: none). */
static struct tensor *output(struct kernel_call *call, int index, int64_t rows, int64_t columns,
                             struct error *err)
{
    struct shape shape = kernel_in(call, 0)->shape;
    shape.rank -= 2;
    if (rows >= 0)
        shape.dims[shape.rank++] = rows;
    if (columns >= 0)
        shape.dims[shape.rank++] = columns;
    return kernel_output(call, index, &shape, err);
}

static int64_t batch_of(const struct tensor *in)
{
    return kernel_span(&in->shape, 0, in->shape.rank - 2);
}

/* a (m, n) becomes r, with q (m, columns). */
static void qr(double complex *a, int64_t m, int64_t n, double complex *q, int64_t columns,
               double complex *v, double complex *taus)
{
    int64_t k = m < n ? m : n;
    for (int64_t c = 0; c < k; c++) {
        for (int64_t i = c; i < m; i++)
            v[c * m + i] = a[i * n + c];
        struct reflection f = kernel_linear_reflect(v + c * m + c, 1, m - c);
        kernel_linear_reflect_left(a + c * n + c + 1, n, m - c, n - c - 1, v + c * m + c, 1,
                                   f.tau);
        for (int64_t i = c + 1; i < m; i++)
            a[i * n + c] = 0;
        a[c * n + c] = f.beta;
        taus[c] = f.tau;
    }
    for (int64_t i = 0; i < m * columns; i++)
        q[i] = i / columns == i % columns;
    for (int64_t c = k - 1; c >= 0; c--)
        kernel_linear_reflect_left(q + c * columns, columns, m - c, columns, v + c * m + c, 1,
                                   conj(taus[c]));
}

static bool qr_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    int64_t m = 0, n = 0;
    if (!kernel_linear_shape(call, 0, false, &m, &n, err))
        return false;
    bool full = node_attr_bool(call->node, "full_matrices", false);
    int64_t k = m < n ? m : n, columns = full ? m : k;
    struct tensor *q = output(call, 0, m, columns, err);
    struct tensor *r = q ? output(call, 1, columns, n, err) : NULL;
    double complex *a =
        r ? kernel_linear_scratch(call, m * n + m * columns + (m + 1) * k, err) : NULL;
    if (!a)
        return false;
    double complex *to = a + m * n, *v = to + m * columns, *taus = v + m * k;
    for (int64_t i = 0; (q->count || r->count) && i < batch_of(in); i++) {
        kernel_linear_load(in, i, m * n, a);
        qr(a, m, n, to, columns, v, taus);
        kernel_linear_store(q, i, m * columns, to);
        kernel_linear_store(r, i, columns * n, a);
    }
    return true;
}

/*
 * a becomes l (without its diagonal of ones) and u; false where a is not invertible: where u
 * begins with what is no number, or has a zero on its diagonal.
 */
static bool lu(double complex *a, int64_t n, int64_t *order)
{
    for (int64_t i = 0; i < n; i++)
        order[i] = i;
    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n; i++)
            if (cabs(a[i * n + k]) > cabs(a[pivot * n + k]))
                pivot = i;
        for (int64_t c = 0; pivot != k && c < n; c++) {
            double complex kept = a[k * n + c];
            a[k * n + c] = a[pivot * n + c];
            a[pivot * n + c] = kept;
        }
        int64_t kept = order[k];
        order[k] = order[pivot];
        order[pivot] = kept;
        if (a[k * n + k] == 0)
            return false;
        for (int64_t i = k + 1; i < n; i++) {
            a[i * n + k] /= a[k * n + k];
            for (int64_t c = k + 1; c < n; c++)
                a[i * n + c] -= a[i * n + k] * a[k * n + c];
        }
    }
    return n == 0 || !isnan(cabs(a[0]));
}

static bool lu_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    int64_t n = 0, m;
    if (!kernel_linear_shape(call, 0, true, &n, &m, err))
        return false;
    struct tensor *out = output(call, 0, n, n, err);
    struct tensor *order = out ? output(call, 1, n, -1, err) : NULL;
    double complex *a = order ? kernel_linear_scratch(call, n * n, err) : NULL;
    int64_t *moves = a ? kernel_scratch(call, (size_t)n * sizeof(*moves) + 1, err) : NULL;
    if (!moves)
        return false;
    for (int64_t i = 0; n > 0 && i < batch_of(in); i++) {
        kernel_linear_load(in, i, n * n, a);
        if (!lu(a, n, moves))
            return fail(err, INVALID, "Input is not invertible.");
        kernel_linear_store(out, i, n * n, a);
        for (int64_t k = 0; k < n; k++)
            kernel_store_bits_for(order->dtype)(order->data, i * n + k, (uint64_t)moves[k]);
    }
    return true;
}

static bool svd_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    int64_t m = 0, n = 0;
    if (!kernel_linear_shape(call, 0, false, &m, &n, err))
        return false;
    bool full = node_attr_bool(call->node, "full_matrices", false);
    bool vectors = node_attr_bool(call->node, "compute_uv", true);
    int64_t k = m < n ? m : n, large = m > n ? m : n, p = full ? m : k, q = full ? n : k;
    struct tensor *s = output(call, 0, k, -1, err);
    struct tensor *u = !s        ? NULL
                       : vectors ? output(call, 1, m, p, err)
                                 : kernel_output(call, 1, &SHAPE_SCALAR, err);
    struct tensor *v = !u        ? NULL
                       : vectors ? output(call, 2, n, q, err)
                                 : kernel_output(call, 2, &SHAPE_SCALAR, err);
    double complex *a =
        v ? kernel_linear_scratch(call, 4 * large * large + m * p + n * q, err) : NULL;
    double *values = a ? kernel_scratch(call, (size_t)(k + 1) * sizeof(*values), err) : NULL;
    if (!values)
        return false;
    double complex *work = a + large * large, *left = work + 3 * large * large;
    double complex *right = left + m * p;
    bool is_complex = (DTYPES_COMPLEX & BIT(in->dtype)) != 0;
    if (!vectors) {
        kernel_zero(u, 0, 1);
        kernel_zero(v, 0, 1);
    }
    bool has_results = s->count || (vectors && (u->count || v->count));
    for (int64_t i = 0; has_results && i < batch_of(in); i++) {
        kernel_linear_load(in, i, m * n, a);
        kernel_linear_svd(a, m, n, full, is_complex, kernel_linear_epsilon(in), values, left,
                          right, work);
        for (int64_t c = 0; c < k; c++)
            kernel_set_complex(s, i * k + c, values[c]);
        if (vectors) {
            kernel_linear_store(u, i, m * p, left);
            kernel_linear_store(v, i, n * q, right);
        }
    }
    return true;
}

/* --- least squares --- */

struct squares {
    int64_t m, n, columns;
    double complex *a, *b, *x, *gram, *work;
    double complex *u, *v;
    double *values;
};

/* By the normal equations, for the smaller side; false when these are not definite. */
static bool normal_equations(struct squares *s, double l2)
{
    bool tall = s->m >= s->n;
    int64_t k = tall ? s->n : s->m;
    kernel_linear_product(s->a, tall, s->a, !tall, k, tall ? s->m : s->n, k, s->gram);
    for (int64_t i = 0; i < k; i++)
        s->gram[i * (k + 1)] += l2;
    double log_size;
    double complex *right = tall ? s->x : s->work;
    if (tall)
        kernel_linear_product(s->a, true, s->b, false, k, s->m, s->columns, right);
    else
        memcpy(right, s->b, (size_t)(s->m * s->columns) * sizeof(*right));
    if (kernel_linear_eliminate(s->gram, k, right, s->columns, &log_size) == 0)
        return false;
    if (!tall)
        kernel_linear_product(s->a, true, right, false, s->n, s->m, s->columns, s->x);
    return true;
}

/* The shortest of all solutions, by singular values. */
static void shortest(struct squares *s, bool is_complex)
{
    int64_t k = s->m < s->n ? s->m : s->n;
    kernel_linear_svd(s->a, s->m, s->n, false, is_complex, DBL_EPSILON, s->values, s->u, s->v,
                      s->work);
    kernel_linear_product(s->u, true, s->b, false, k, s->m, s->columns, s->work);
    for (int64_t i = 0; i < k; i++)
        for (int64_t c = 0; c < s->columns; c++) {
            bool none = s->values[i] <= s->values[0] * 1e-13 * (double)k;
            s->work[i * s->columns + c] *= none ? 0 : 1 / s->values[i];
        }
    kernel_linear_product(s->v, false, s->work, false, s->n, k, s->columns, s->x);
}

static bool squares_init(struct squares *s, struct kernel_call *call, struct error *err)
{
    int64_t rows = 0, k, large, most;
    if (!kernel_linear_sides(call, err) ||
        !kernel_linear_shape(call, 0, false, &s->m, &s->n, err) ||
        !kernel_linear_shape(call, 1, false, &rows, &s->columns, err))
        return false;
    if (rows != s->m)
        return fail(err, INVALID, "Input matrix and rhs are incompatible.");
    k = s->m < s->n ? s->m : s->n;
    large = s->m > s->n ? s->m : s->n;
    most = large > s->columns ? large : s->columns;
    s->a = kernel_linear_scratch(call, s->m * s->n, err);
    s->b = s->a ? kernel_linear_scratch(call, s->m * s->columns, err) : NULL;
    s->x = s->b ? kernel_linear_scratch(call, s->n * s->columns, err) : NULL;
    s->gram = s->x ? kernel_linear_scratch(call, k * k, err) : NULL;
    s->work = s->gram ? kernel_linear_scratch(call, 3 * large * most, err) : NULL;
    s->u = s->work ? kernel_linear_scratch(call, s->m * k, err) : NULL;
    s->v = s->u ? kernel_linear_scratch(call, s->n * k, err) : NULL;
    s->values = s->v ? kernel_scratch(call, (size_t)(k + 1) * sizeof(double), err) : NULL;
    return s->values != NULL;
}

static bool least_squares_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0), *rhs = kernel_in(call, 1);
    const struct tensor *l2 = kernel_in(call, 2);
    struct squares s = {0};
    if (!squares_init(&s, call, err))
        return false;
    char text[SHAPE_TEXT_BYTES];
    if (l2->shape.rank != 0)
        return fail(err, INVALID, "l2_regularizer must be scalar, got shape %s",
                    shape_text(&l2->shape, text, sizeof(text)));
    if (!(tensor_number(l2, 0) >= 0))
        return fail(err, INVALID, "l2_regularizer must be >= 0.");
    struct tensor *out = output(call, 0, s.n, s.columns, err);
    if (!out)
        return false;
    bool is_complex = (DTYPES_COMPLEX & BIT(in->dtype)) != 0;
    kernel_zero(out, 0, out->count);
    for (int64_t i = 0; s.m > 0 && out->count > 0 && i < batch_of(in); i++) {
        kernel_linear_load(in, i, s.m * s.n, s.a);
        kernel_linear_load(rhs, i, s.m * s.columns, s.b);
        if (!node_attr_bool(call->node, "fast", true))
            shortest(&s, is_complex);
        else if (!normal_equations(&s, tensor_number(l2, 0)))
            return fail(err, INVALID,
                        "Input matrix was rank deficient or ill-conditioned. Try setting "
                        "fast=False or provide a larger l2_regularizer > 0.");
        kernel_linear_store(out, i, s.n * s.columns, s.x);
    }
    return true;
}

#define DECOMPOSE(name_, dtypes_, run_)                                                        \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = dtypes_, .run = run_                             \
    }
#define TYPES (BIT(F32) | BIT(F64) | DTYPES_COMPLEX)

const struct kernel kernel_qr_ref = DECOMPOSE("Qr", TYPES | BIT(F16), qr_run);
const struct kernel kernel_lu_ref = DECOMPOSE("Lu", TYPES, lu_run);
const struct kernel kernel_svd_ref = DECOMPOSE("Svd", TYPES, svd_run);
const struct kernel kernel_batch_svd_ref = DECOMPOSE("BatchSvd", TYPES, svd_run);
const struct kernel kernel_matrix_solve_ls_ref =
    DECOMPOSE("MatrixSolveLs", TYPES, least_squares_run);
const struct kernel kernel_batch_matrix_solve_ls_ref =
    DECOMPOSE("BatchMatrixSolveLs", TYPES, least_squares_run);
