/* sparse_dense.c - a sparse tensor with a dense one: product of matrices, sums, elementwise. */

#include "kernels/ref/move.h"
#include "kernels/ref/sparse.h"

/* --- SparseTensorDenseMatMul --- */

struct product {
    const struct tensor *index, *values, *b;
    int64_t rows, inner, columns; /* of the product; of what is summed over */
    bool adjoint_a, adjoint_b;
};

static bool read_product(const struct kernel_call *call, struct product *p, struct error *err)
{
    const struct tensor *shape = kernel_in(call, 2);
    *p = (struct product){.index = kernel_in(call, 0),
                          .values = kernel_in(call, 1),
                          .b = kernel_in(call, 3),
                          .adjoint_a = node_attr_bool(call->node, "adjoint_a", false),
                          .adjoint_b = node_attr_bool(call->node, "adjoint_b", false)};
    if (p->b->shape.rank != 2)
        return fail(err, INVALID, "Tensor 'b' is not a matrix");
    if (shape->shape.rank != 1 || shape->count != 2)
        return fail(err, INVALID, "Tensor 'a_shape' must have 2 elements");
    if (p->values->shape.rank != 1)
        return fail(err, INVALID, "Tensor 'a_values' is not a vector");
    if (p->index->shape.rank != 2)
        return fail(err, INVALID, "Tensor 'a_indices' is not a matrix");
    if (p->index->shape.dims[0] != p->values->count)
        return fail(err, INVALID,
                    "Number of rows of a_indices does not match number of entries in a_values");
    if (p->index->shape.dims[1] != 2)
        return fail(err, INVALID,
                    "Number of columns of a_indices does not match number of entries in "
                    "a_shape");
    const int64_t *a = tensor_i64(shape), *b = p->b->shape.dims;
    if (a[0] < 0 || a[1] < 0)
        return fail(err, INVALID, "a_shape has a negative dimension: [%lld, %lld]",
                    (long long)a[0], (long long)a[1]);
    p->rows = p->adjoint_a ? a[1] : a[0];
    p->inner = p->adjoint_a ? a[0] : a[1];
    p->columns = p->adjoint_b ? b[0] : b[1];
    int64_t inner = p->adjoint_b ? b[1] : b[0];
    if (p->inner != inner)
        return fail(err, INVALID,
                    "Cannot multiply A and B because inner dimension does not "
                    "match: %lld vs. %lld.  Did you forget a transpose?  Dimensions of A: "
                    "[%lld, %lld).  Dimensions of B: [%lld,%lld]",
                    (long long)p->inner, (long long)inner, (long long)a[0], (long long)a[1],
                    (long long)b[0], (long long)b[1]);
    return true;
}

/* Sums in the type itself, or for halves in float: as many places after the point as fit. */
static bool mat_mul_run(struct kernel_call *call, struct error *err)
{
    struct product p;
    if (!read_product(call, &p, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &SHAPE(p.rows, p.columns), err);
    if (out && out->count == 0)
        return true;
    double complex *sums =
        out ? kernel_scratch(call, (size_t)out->count * sizeof(*sums) + 1, err) : NULL;
    if (!sums)
        return false;
    memset(sums, 0, (size_t)out->count * sizeof(*sums));
    for (int64_t i = 0; i < p.values->count; i++) {
        int64_t row = tensor_integer(p.index, 2 * i + p.adjoint_a);
        int64_t k = tensor_integer(p.index, 2 * i + !p.adjoint_a);
        if (k < 0 || k >= p.inner)
            return fail(err, INVALID, "k (%lld) from index[%lld,%d] out of bounds (>=%lld)",
                        (long long)k, (long long)i, !p.adjoint_a, (long long)p.inner);
        if (row < 0 || row >= p.rows)
            return fail(err, INVALID, "m (%lld) from index[%lld,%d] out of bounds (>=%lld)",
                        (long long)row, (long long)i, p.adjoint_a, (long long)p.rows);
        double complex a = kernel_complex_at(p.values, i);
        a = p.adjoint_a ? conj(a) : a;
        for (int64_t c = 0; c < p.columns; c++) {
            double complex b = p.adjoint_b ? conj(kernel_complex_at(p.b, c * p.inner + k))
                                           : kernel_complex_at(p.b, k * p.columns + c);
            sums[row * p.columns + c] += a * b;
        }
    }
    kernel_store_bits *store = kernel_store_bits_for(out->dtype);
    for (int64_t i = 0; i < out->count; i++) {
        if (store)
            store(out->data, i, (uint64_t)(int64_t)creal(sums[i]));
        else
            kernel_set_complex(out, i, sums[i]);
    }
    return true;
}

/* --- SparseTensorDenseAdd --- */

/* Adds element `i` of `from` to element `at` of `to`. */
static void add_element(struct tensor *to, int64_t at, const struct tensor *from, int64_t i)
{
    kernel_load_bits *load = kernel_load_bits_for(to->dtype);
    if (load)
        kernel_store_bits_for(to->dtype)(to->data, at,
                                         load(to->data, at) + load(from->data, i));
    else
        kernel_set_complex(to, at, kernel_complex_at(to, at) + kernel_complex_at(from, i));
}

/* "1 2 4". */
static const char *sizes_text(const struct shape *shape, char *out, size_t size)
{
    size_t used = 0;
    *out = 0;
    for (int d = 0; d < shape->rank && used < size; d++)
        used += (size_t)snprintf(out + used, size - used, "%s%lld", d ? " " : "",
                                 (long long)shape->dims[d]);
    return out;
}

static bool dense_add_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *index = kernel_in(call, 0), *values = kernel_in(call, 1);
    const struct tensor *shape = kernel_in(call, 2), *b = kernel_in(call, 3);
    char one[SHAPE_TEXT_BYTES], other[SHAPE_TEXT_BYTES];
    if (index->shape.rank != 2)
        return fail(err, INVALID, "Input a_indices should be a matrix but received shape: %s",
                    shape_text(&index->shape, one, sizeof(one)));
    if (values->shape.rank != 1 || shape->shape.rank != 1)
        return fail(err, INVALID,
                    "Inputs a_values and a_shape should be vectors but received shapes: %s and "
                    "%s",
                    shape_text(&values->shape, one, sizeof(one)),
                    shape_text(&shape->shape, other, sizeof(other)));
    if (index->shape.dims[0] != values->count || index->shape.dims[1] != shape->count) {
        bool rows = index->shape.dims[0] != values->count;
        return fail(err, INVALID, "Dimensions %lld and %lld are not compatible",
                    (long long)index->shape.dims[!rows],
                    (long long)(rows ? values : shape)->count);
    }
    if (shape->count != b->shape.rank)
        return fail(err, INVALID, "Two operands have different ranks; received: %lld and %d",
                    (long long)shape->count, b->shape.rank);
    for (int d = 0; d < b->shape.rank; d++)
        if (tensor_integer(shape, d) != b->shape.dims[d])
            return fail(err, INVALID,
                        "Dimension %d does not equal (no broadcasting is "
                        "supported): sparse side %lld vs dense side %lld",
                        d, (long long)tensor_integer(shape, d), (long long)b->shape.dims[d]);
    struct tensor *out = kernel_output(call, 0, &b->shape, err);
    if (!out)
        return false;
    kernel_copy(out, 0, b, 0, b->count);
    for (int64_t i = 0; i < values->count; i++) {
        int64_t at = 0;
        for (int d = 0; d < b->shape.rank; d++) {
            int64_t place = tensor_integer(index, i * b->shape.rank + d);
            if (place < 0 || place >= b->shape.dims[d])
                return fail(err, INVALID,
                            "Sparse tensor has an invalid index on dimension %d: "
                            "a_indices(%lld,%d) = %lld, dense tensor shape: %s",
                            d, (long long)i, d, (long long)place,
                            sizes_text(&b->shape, one, sizeof(one)));
            at = at * b->shape.dims[d] + place;
        }
        add_element(out, at, values, i);
    }
    return true;
}

/* --- SparseDenseCwise: the dense one is broadcast to the sparse one's shape --- */

enum operation { ADD, MULTIPLY, DIVIDE };

static double complex apply(enum operation operation, double complex x, double complex y)
{
    return operation == ADD ? x + y : operation == MULTIPLY ? x * y : x / y;
}

/* Integers wrap; false for a division by zero. */
static bool apply_bits(enum operation operation, bool is_signed, uint64_t x, uint64_t y,
                       uint64_t *out)
{
    if (operation == DIVIDE && y == 0)
        return false;
    if (operation == DIVIDE && is_signed)
        *out = y == UINT64_MAX ? 0 - x : (uint64_t)((int64_t)x / (int64_t)y);
    else
        *out = operation == ADD ? x + y : operation == MULTIPLY ? x * y : x / y;
    return true;
}

static bool check_operands(const struct kernel_call *call, struct error *err)
{
    const struct shape *index = &kernel_in(call, 0)->shape,
                       *values = &kernel_in(call, 1)->shape;
    const struct shape *shape = &kernel_in(call, 2)->shape;
    char one[SHAPE_TEXT_BYTES], other[SHAPE_TEXT_BYTES];
    if (index->rank != 2)
        return fail(err, INVALID, "Input sp_indices should be a matrix but received shape: %s",
                    shape_text(index, one, sizeof(one)));
    if (values->rank != 1 || shape->rank != 1)
        return fail(
            err, INVALID,
            "Inputs sp_values and sp_shape should be vectors but received shapes: %s and "
            "%s",
            shape_text(values, one, sizeof(one)), shape_text(shape, other, sizeof(other)));
    if (index->dims[0] != values->dims[0])
        return fail(err, INVALID,
                    "The first dimension of values and indices should match. (%lld vs. %lld)",
                    (long long)values->dims[0], (long long)index->dims[0]);
    return index->dims[1] == shape->dims[0] ||
           fail(err, INVALID,
                "Number of dimensions must match second dimension of indices. Got %lld "
                "dimensions, indices shape: %s",
                (long long)shape->dims[0], shape_text(index, one, sizeof(one)));
}

static bool fail_division(struct error *err)
{
    return fail(
        err, INVALID,
        "SparseDenseCwiseDiv cannot divide by zero,but input dense tensor contains zero");
}

static bool elementwise(struct kernel_call *call, enum operation operation, struct error *err)
{
    const struct tensor *dense = kernel_in(call, 3);
    struct sparse in;
    char one[SHAPE_TEXT_BYTES], other[SHAPE_TEXT_BYTES];
    if (!check_operands(call, err) || !kernel_sparse_in(call, 0, 1, 2, &in, err))
        return false;
    struct shape shape = {.rank = in.rank};
    memcpy(shape.dims, in.dims, (size_t)in.rank * sizeof(*in.dims));
    bool fits = dense->shape.rank <= in.rank;
    for (int d = 1; fits && d <= dense->shape.rank; d++) {
        int64_t size = dense->shape.dims[dense->shape.rank - d];
        int64_t own = shape.dims[in.rank - d];
        fits = size == own || (size == 1 && own > 0) || (size == 0 && own == 1);
    }
    if (!fits)
        return fail(err, INVALID,
                    "SparseDenseBinaryOpShared broadcasts dense to sparse only; "
                    "got incompatible shapes: %s vs. %s",
                    shape_text(&shape, one, sizeof(one)),
                    shape_text(&dense->shape, other, sizeof(other)));
    struct error ignored;
    if (!kernel_sparse_check(&in, &ignored) || (in.count && dense->count == 0))
        return fail(err, INVALID,
                    "Provided indices are out-of-bounds w.r.t. dense side with broadcasted "
                    "shape");
    struct tensor *out = kernel_output(call, 0, &SHAPE(in.count), err);
    if (!out)
        return false;
    struct places places = kernel_broadcast_places(&dense->shape, &shape);
    kernel_load_bits *load = kernel_load_bits_for(out->dtype);
    for (int64_t i = 0; i < in.count; i++) {
        int64_t at = 0;
        for (int d = 0; d < in.rank; d++)
            at += kernel_sparse_at(&in, i)[d] * places.steps[d];
        uint64_t bits;
        if (!load && operation == DIVIDE && kernel_complex_at(dense, at) == 0)
            return fail_division(err);
        if (!load)
            kernel_set_complex(out, i,
                               apply(operation, kernel_complex_at(in.values, i),
                                     kernel_complex_at(dense, at)));
        else if (apply_bits(operation, BIT(out->dtype) & DTYPES_SIGNED,
                            load(in.values->data, i), load(dense->data, at), &bits))
            kernel_store_bits_for(out->dtype)(out->data, i, bits);
        else
            return fail_division(err);
    }
    return true;
}

static bool cwise_add_run(struct kernel_call *call, struct error *err)
{
    return elementwise(call, ADD, err);
}
static bool cwise_mul_run(struct kernel_call *call, struct error *err)
{
    return elementwise(call, MULTIPLY, err);
}
static bool cwise_div_run(struct kernel_call *call, struct error *err)
{
    return elementwise(call, DIVIDE, err);
}

#define SPARSE(name_, dtypes_, run_)                                                           \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = dtypes_, .run = run_                             \
    }

const struct kernel kernel_sparse_tensor_dense_mat_mul_ref =
    SPARSE("SparseTensorDenseMatMul", DTYPES_FLOAT | DTYPES_COMPLEX | BIT(I32), mat_mul_run);
const struct kernel kernel_sparse_tensor_dense_add_ref =
    SPARSE("SparseTensorDenseAdd", DTYPES_NUMBER, dense_add_run);
const struct kernel kernel_sparse_dense_cwise_add_ref =
    SPARSE("SparseDenseCwiseAdd", DTYPES_REAL, cwise_add_run);
const struct kernel kernel_sparse_dense_cwise_mul_ref =
    SPARSE("SparseDenseCwiseMul", DTYPES_REAL, cwise_mul_run);
const struct kernel kernel_sparse_dense_cwise_div_ref =
    SPARSE("SparseDenseCwiseDiv", DTYPES_REAL, cwise_div_run);
