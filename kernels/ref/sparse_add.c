/* sparse_add.c - two sparse tensors of one shape merged: sums, maxima, minima. */

#include "kernels/ref/sparse.h"

#include <math.h>

/* One place of the union: which value of each has it, -1 for none. */
struct pair {
    int64_t a, b;
};

/* The union of the places, which both have in row-major order; returns how many. */
static int64_t unite(const struct sparse *a, const struct sparse *b, struct pair *pairs)
{
    int64_t i = 0, j = 0, count = 0;
    while (i < a->count || j < b->count) {
        int order = i >= a->count   ? 1
                    : j >= b->count ? -1
                                    : kernel_sparse_compare(kernel_sparse_at(a, i),
                                                            kernel_sparse_at(b, j), a->rank);
        pairs[count++] = (struct pair){order <= 0 ? i++ : -1, order >= 0 ? j++ : -1};
    }
    return count;
}

/* The operands of a sum, before they are read. */
static bool check_terms(const struct kernel_call *call, struct error *err)
{
    const struct shape *in[6];
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    for (int i = 0; i < 6; i++)
        in[i] = &kernel_in(call, i)->shape;
    if (in[0]->rank != 2 || in[3]->rank != 2)
        return fail(err, INVALID,
                    "Input indices should be matrices but received shapes: %s and %s",
                    shape_text(in[0], a, sizeof(a)), shape_text(in[3], b, sizeof(b)));
    if (in[1]->rank != 1 || in[4]->rank != 1)
        return fail(err, INVALID,
                    "Input values should be vectors but received shapes: %s and %s",
                    shape_text(in[1], a, sizeof(a)), shape_text(in[4], b, sizeof(b)));
    if (in[0]->dims[0] != in[1]->dims[0] || in[3]->dims[0] != in[4]->dims[0])
        return fail(err, INVALID,
                    "Expected %lld and %lld non-empty input values, got %lld and %lld",
                    (long long)in[0]->dims[0], (long long)in[3]->dims[0],
                    (long long)in[1]->dims[0], (long long)in[4]->dims[0]);
    if (in[2]->rank != 1 || in[5]->rank != 1)
        return fail(err, INVALID,
                    "Input shapes should be a vector but received shapes %s and %s",
                    shape_text(in[2], a, sizeof(a)), shape_text(in[5], b, sizeof(b)));
    if (in[2]->dims[0] == in[5]->dims[0] && in[0]->dims[1] != in[3]->dims[1])
        return fail(err, INVALID,
                    "Input indices must have the same dimension, got %lld and %lld",
                    (long long)in[0]->dims[1], (long long)in[3]->dims[1]);
    return in[2]->dims[0] != in[5]->dims[0] || in[0]->dims[1] == in[2]->dims[0] ||
           fail(err, INVALID,
                "Second dimension of a_indices and length of a_shape must match, got %lld and "
                "%lld",
                (long long)in[0]->dims[1], (long long)in[2]->dims[0]);
}

static bool read_both(const struct kernel_call *call, struct sparse *a, struct sparse *b,
                      struct error *err)
{
    if (!kernel_sparse_in(call, 0, 1, 2, a, err) || !kernel_sparse_in(call, 3, 4, 5, b, err))
        return false;
    if (a->rank != b->rank)
        return fail(err, INVALID, "Operands do not have the same ranks; got %d and %d", a->rank,
                    b->rank);
    for (int d = 0; d < a->rank; d++)
        if (a->dims[d] != b->dims[d])
            return fail(err, INVALID,
                        "Operands' shapes do not match: got %lld and %lld for "
                        "dimension %d",
                        (long long)a->dims[d], (long long)b->dims[d], d);
    return true;
}

static const int64_t *place_of(const struct pair *pair, const struct sparse *a,
                               const struct sparse *b)
{
    return pair->a >= 0 ? kernel_sparse_at(a, pair->a) : kernel_sparse_at(b, pair->b);
}

static double complex value_of(const struct sparse *in, int64_t i)
{
    return i < 0 ? 0 : kernel_complex_at(in->values, i);
}

static uint64_t bits_of(const struct sparse *in, int64_t i, kernel_load_bits *load)
{
    return i < 0 ? 0 : load(in->values->data, i);
}

/* A sum that is nearer to 0 than the threshold is left out; what only one has stays. */
static bool is_kept(const struct pair *pair, const struct sparse *a, const struct sparse *b,
                    const struct tensor *threshold)
{
    kernel_load_bits *load = kernel_load_bits_for(a->values->dtype);
    if (pair->a < 0 || pair->b < 0)
        return true;
    if (!load) {
        double complex sum = value_of(a, pair->a) + value_of(b, pair->b);
        struct tensor one = {.dtype = a->values->dtype, .count = 1};
        double complex rounded;
        one.data = &rounded;
        kernel_set_complex(&one, 0, sum);
        return tensor_number(threshold, 0) <= cabs(kernel_complex_at(&one, 0));
    }
    uint64_t sum = bits_of(a, pair->a, load) + bits_of(b, pair->b, load);
    uint64_t wrapped = 0;
    kernel_store_bits_for(a->values->dtype)(&wrapped, 0, sum);
    int64_t value = (int64_t)load(&wrapped, 0);
    if (DTYPES_SIGNED & BIT(a->values->dtype))
        value = value < 0 ? -value : value;
    return tensor_integer(threshold, 0) <= value;
}

static bool add_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *threshold = kernel_in(call, 6);
    struct sparse a, b;
    struct sparse_out out;
    char text[SHAPE_TEXT_BYTES];
    if (!check_terms(call, err) || !read_both(call, &a, &b, err))
        return false;
    if (threshold->shape.rank != 0)
        return fail(err, INVALID, "The magnitude threshold must be a scalar: got shape %s",
                    shape_text(&threshold->shape, text, sizeof(text)));
    struct pair *pairs =
        kernel_scratch(call, (size_t)(a.count + b.count) * sizeof(*pairs) + 1, err);
    if (!pairs)
        return false;
    int64_t count = unite(&a, &b, pairs), kept = 0;
    for (int64_t i = 0; i < count; i++)
        if (is_kept(&pairs[i], &a, &b, threshold))
            pairs[kept++] = pairs[i];
    if (!kernel_sparse_out(call, 0, kept, a.rank, &out, err))
        return false;
    memcpy(out.dims, a.dims, (size_t)a.rank * sizeof(*out.dims));
    kernel_load_bits *load = kernel_load_bits_for(a.values->dtype);
    for (int64_t i = 0; i < kept; i++) {
        memcpy(out.index + i * a.rank, place_of(&pairs[i], &a, &b),
               (size_t)a.rank * sizeof(*out.index));
        if (load)
            kernel_store_bits_for(a.values->dtype)(out.values->data, i,
                                                   bits_of(&a, pairs[i].a, load) +
                                                       bits_of(&b, pairs[i].b, load));
        else
            kernel_set_complex(out.values, i,
                               value_of(&a, pairs[i].a) + value_of(&b, pairs[i].b));
    }
    return true;
}

/* --- maximum and minimum, where what is missing counts as 0 --- */

static bool extreme(struct kernel_call *call, bool largest, struct error *err)
{
    struct sparse a, b;
    for (int i = 0; i < 6; i += 3)
        if (!kernel_sparse_check_fit(call, i, i + 1, i + 2, err) ||
            !kernel_sparse_check_inside(call, i, i + 2, err))
            return false;
    if (!read_both(call, &a, &b, err))
        return false;
    struct pair *pairs =
        kernel_scratch(call, (size_t)(a.count + b.count) * sizeof(*pairs) + 1, err);
    if (!pairs)
        return false;
    int64_t count = unite(&a, &b, pairs);
    struct tensor *index = kernel_output(call, 0, &SHAPE(count, a.rank), err);
    struct tensor *values = index ? kernel_output(call, 1, &SHAPE(count), err) : NULL;
    if (!values)
        return false;
    kernel_load_bits *load = kernel_load_bits_for(values->dtype);
    bool is_unsigned = DTYPES_UNSIGNED & BIT(values->dtype);
    for (int64_t i = 0; i < count; i++) {
        memcpy((int64_t *)index->data + i * a.rank, place_of(&pairs[i], &a, &b),
               (size_t)a.rank * sizeof(int64_t));
        if (load) {
            uint64_t x = bits_of(&a, pairs[i].a, load), y = bits_of(&b, pairs[i].b, load);
            bool above = is_unsigned ? x > y : (int64_t)x > (int64_t)y;
            kernel_store_bits_for(values->dtype)(values->data, i, above == largest ? x : y);
        } else {
            double x = creal(value_of(&a, pairs[i].a)), y = creal(value_of(&b, pairs[i].b));
            bool is_b = largest ? x < y : y < x;
            tensor_set_number(values, i, isnan(y) || (is_b && !isnan(x)) ? y : x);
        }
    }
    return true;
}

static bool maximum_run(struct kernel_call *call, struct error *err)
{
    return extreme(call, true, err);
}

static bool minimum_run(struct kernel_call *call, struct error *err)
{
    return extreme(call, false, err);
}

/* --- SparseAddGrad --- */

/* Output `output` has for each place of input `input` the gradient of the sum at that place, 0
 * where the sum has none. */
static bool grad_of(struct kernel_call *call, int output, int input, struct error *err)
{
    const struct tensor *grad = kernel_in(call, 0), *in = kernel_in(call, input);
    const struct tensor *sum = kernel_in(call, 3);
    int rank = (int)sum->shape.dims[1];
    struct tensor *out = kernel_output(call, output, &SHAPE(in->shape.dims[0]), err);
    if (!out)
        return false;
    kernel_zero(out, 0, out->count);
    for (int64_t i = 0, k = 0; i < out->count && k < grad->count;) {
        int order =
            kernel_sparse_compare(tensor_i64(in) + i * rank, tensor_i64(sum) + k * rank, rank);
        if (order == 0)
            kernel_copy(out, i, grad, k, 1);
        i += order <= 0;
        k += order >= 0;
    }
    return true;
}

static bool add_grad_run(struct kernel_call *call, struct error *err)
{
    const struct shape *grad = &kernel_in(call, 0)->shape, *a = &kernel_in(call, 1)->shape;
    const struct shape *b = &kernel_in(call, 2)->shape, *sum = &kernel_in(call, 3)->shape;
    char one[SHAPE_TEXT_BYTES], other[SHAPE_TEXT_BYTES], third[SHAPE_TEXT_BYTES];
    if (a->rank != 2 || b->rank != 2 || sum->rank != 2)
        return fail(err, INVALID,
                    "Input indices should be matrices but received shapes: %s and %s and %s",
                    shape_text(a, one, sizeof(one)), shape_text(b, other, sizeof(other)),
                    shape_text(sum, third, sizeof(third)));
    if (grad->rank != 1)
        return fail(err, INVALID,
                    "Input backprop_val_grad should be a vector but received shape: %s",
                    shape_text(grad, one, sizeof(one)));
    if (a->dims[1] != b->dims[1] || b->dims[1] != sum->dims[1])
        return fail(err, INVALID,
                    "The densified operands should have the same ndims; for A, B, "
                    "sum got: %lld%lld%lld",
                    (long long)a->dims[1], (long long)b->dims[1], (long long)sum->dims[1]);
    if (grad->dims[0] != sum->dims[0])
        return fail(err, INVALID,
                    "# elements of backprop_val_grad and # rows of sum_indices "
                    "should match (#nnz of sum): got %lld and %lld",
                    (long long)grad->dims[0], (long long)sum->dims[0]);
    return grad_of(call, 0, 1, err) && grad_of(call, 1, 2, err);
}

#define SPARSE(name_, dtypes_, run_)                                                           \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = dtypes_, .run = run_                             \
    }

const struct kernel kernel_sparse_add_ref = SPARSE("SparseAdd", DTYPES_NUMBER, add_run);
const struct kernel kernel_sparse_add_grad_ref =
    SPARSE("SparseAddGrad", DTYPES_NUMBER, add_grad_run);
const struct kernel kernel_sparse_sparse_maximum_ref =
    SPARSE("SparseSparseMaximum", DTYPES_REAL, maximum_run);
const struct kernel kernel_sparse_sparse_minimum_ref =
    SPARSE("SparseSparseMinimum", DTYPES_REAL, minimum_run);
