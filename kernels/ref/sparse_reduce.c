/* sparse_reduce.c - sums and maxima of sparse tensors along dimensions, and softmax. */

#include "kernels/ref/sparse.h"

#include <math.h>

struct reduction {
    struct sparse in;
    bool reduced[LIMIT_TENSOR_RANK];
    int kept[LIMIT_TENSOR_RANK]; /* the other dimensions */
    int kept_count;
    bool keep_dims;
    int64_t *keys;  /* of each value: its place in the kept dimensions */
    int64_t *order; /* of the values by key */
};

static bool read_axes(const struct tensor *axes, int rank, struct reduction *r,
                      struct error *err)
{
    char text[SHAPE_TEXT_BYTES];
    if (axes->shape.rank > 1)
        return fail(err, INVALID,
                    "Expected reduction_axes to be a scalar or a vector; got shape: %s",
                    shape_text(&axes->shape, text, sizeof(text)));
    for (int64_t i = 0; i < axes->count; i++) {
        int64_t axis = tensor_integer(axes, i);
        if (axis < -rank || axis >= rank)
            return fail(err, INVALID,
                        "Invalid reduction dimension %lld, for input with %d "
                        "dimensions.",
                        (long long)axis, rank);
        r->reduced[axis < 0 ? axis + rank : axis] = true;
    }
    for (int d = 0; d < rank; d++)
        if (!r->reduced[d])
            r->kept[r->kept_count++] = d;
    return true;
}

static bool read(struct kernel_call *call, struct reduction *r, struct error *err)
{
    *r = (struct reduction){.keep_dims = node_attr_bool(call->node, "keep_dims", false)};
    const struct tensor *dims = kernel_in(call, 2);
    char text[SHAPE_TEXT_BYTES];
    if (dims->shape.rank != 1)
        return fail(err, INVALID, "Expected input_shape to be a vector; got shape: %s",
                    shape_text(&dims->shape, text, sizeof(text)));
    if (dims->count > LIMIT_TENSOR_RANK)
        return fail(err, INVALID, "a sparse tensor of %lld dimensions, at most %d",
                    (long long)dims->count, LIMIT_TENSOR_RANK);
    if (!read_axes(kernel_in(call, 3), (int)dims->count, r, err) ||
        !kernel_sparse_check_made(call, 0, 1, 2, err) ||
        !kernel_sparse_in(call, 0, 1, 2, &r->in, err))
        return false;
    /* Sorted by key, then by place, so that a group's values come in row-major order. */
    size_t width = (size_t)r->in.rank;
    r->keys = kernel_scratch(call, (size_t)r->in.count * width * sizeof(*r->keys) + 1, err);
    if (!r->keys)
        return false;
    for (int64_t i = 0; i < r->in.count; i++) {
        int64_t *key = r->keys + i * r->in.rank;
        int to = r->kept_count;
        for (int d = 0, k = 0; d < r->in.rank; d++)
            key[r->reduced[d] ? to++ : k++] = kernel_sparse_at(&r->in, i)[d];
    }
    r->order = kernel_sparse_order(call, r->keys, r->in.count, r->in.rank, err);
    return r->order != NULL;
}

static const int64_t *key_of(const struct reduction *r, int64_t i)
{
    return r->keys + r->order[i] * r->in.rank;
}

/* Where the group of the ordered value `begin` ends. */
static int64_t group_end(const struct reduction *r, int64_t begin)
{
    int64_t end = begin + 1;
    while (end < r->in.count &&
           kernel_sparse_compare(key_of(r, begin), key_of(r, end), r->kept_count) == 0)
        end++;
    return end;
}

static struct shape reduced_shape(const struct reduction *r)
{
    struct shape shape = {.rank = 0};
    for (int d = 0; d < r->in.rank; d++)
        if (r->keep_dims || !r->reduced[d])
            shape.dims[shape.rank++] = r->reduced[d] ? 1 : r->in.dims[d];
    return shape;
}

/* The sum, or the largest, of the ordered values [begin, end) becomes element `to`. */
static void reduce(const struct reduction *r, int64_t begin, int64_t end, bool largest,
                   struct tensor *out, int64_t to)
{
    const struct tensor *values = r->in.values;
    kernel_load_bits *load = kernel_load_bits_for(values->dtype);
    double complex sum = 0;
    uint64_t bits = 0;
    int64_t best = r->order[begin];
    for (int64_t i = begin; i < end; i++) {
        int64_t at = r->order[i];
        if (load)
            bits += load(values->data, at);
        else
            sum += kernel_complex_at(values, at);
        if (largest) {
            bool above =
                load && (DTYPES_UNSIGNED & BIT(values->dtype))
                    ? load(values->data, at) > load(values->data, best)
                : load ? (int64_t)load(values->data, at) > (int64_t)load(values->data, best)
                       : !(tensor_number(values, best) > tensor_number(values, at)); /* NaN */
            best = above ? at : best;
        }
    }
    if (largest)
        kernel_copy(out, to, values, best, 1);
    else if (load)
        kernel_store_bits_for(out->dtype)(out->data, to, bits);
    else
        kernel_set_complex(out, to, sum);
}

static bool to_dense(struct kernel_call *call, bool largest, struct error *err)
{
    struct reduction r;
    if (!read(call, &r, err))
        return false;
    struct shape shape = reduced_shape(&r);
    if (shape_count(&shape) < 0)
        return fail(err, INVALID, "the reduced shape has too many elements");
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    kernel_zero(out, 0, out->count);
    for (int64_t begin = 0, end; begin < r.in.count; begin = end) {
        int64_t to = 0;
        end = group_end(&r, begin);
        for (int k = 0; k < r.kept_count; k++)
            to = to * r.in.dims[r.kept[k]] + key_of(&r, begin)[k];
        if (to < 0 || to >= out->count)
            return fail(err, INTERNAL,
                        "Obtained a write index of %lld which is outside of bounds of [0, "
                        "%lld)",
                        (long long)to, (long long)out->count);
        reduce(&r, begin, end, largest, out, to);
    }
    return true;
}

static bool to_sparse(struct kernel_call *call, bool largest, struct error *err)
{
    struct reduction r;
    struct sparse_out out;
    if (!read(call, &r, err))
        return false;
    struct shape shape = reduced_shape(&r);
    int64_t groups = 0, to = 0;
    for (int64_t begin = 0; begin < r.in.count; begin = group_end(&r, begin))
        groups++;
    if (!kernel_sparse_out(call, 0, groups, shape.rank, &out, err))
        return false;
    memcpy(out.dims, shape.dims, (size_t)shape.rank * sizeof(*out.dims));
    memset(out.index, 0, (size_t)(groups * shape.rank) * sizeof(*out.index));
    for (int64_t begin = 0, end; begin < r.in.count; begin = end, to++) {
        end = group_end(&r, begin);
        for (int k = 0; k < r.kept_count; k++)
            out.index[to * shape.rank + (r.keep_dims ? r.kept[k] : k)] = key_of(&r, begin)[k];
        reduce(&r, begin, end, largest, out.values, to);
    }
    return true;
}

static bool sum_run(struct kernel_call *call, struct error *err)
{
    return to_dense(call, false, err);
}
static bool max_run(struct kernel_call *call, struct error *err)
{
    return to_dense(call, true, err);
}
static bool sum_sparse_run(struct kernel_call *call, struct error *err)
{
    return to_sparse(call, false, err);
}
static bool max_sparse_run(struct kernel_call *call, struct error *err)
{
    return to_sparse(call, true, err);
}

/* --- SparseSoftmax: over the values there are in each row of the last dimension --- */

/* The answers are in row-major order, whatever the order of the values was. */
static bool softmax_run(struct kernel_call *call, struct error *err)
{
    struct sparse in;
    if (!kernel_sparse_in(call, 0, 1, 2, &in, err))
        return false;
    if (in.rank < 2)
        return fail(err, INVALID, "Input should have rank >= 2, but got: %d", in.rank);
    struct tensor *out = kernel_output(call, 0, &SHAPE(in.count), err);
    int64_t *order =
        out ? kernel_sparse_order(call, kernel_sparse_at(&in, 0), in.count, in.rank, err)
            : NULL;
    if (!order)
        return false;
    for (int64_t begin = 0, end; begin < in.count; begin = end) {
        const int64_t *first = kernel_sparse_at(&in, order[begin]);
        double largest = -HUGE_VAL, sum = 0;
        for (end = begin;
             end < in.count &&
             !kernel_sparse_compare(first, kernel_sparse_at(&in, order[end]), in.rank - 1);
             end++)
            largest = fmax(largest, tensor_number(in.values, order[end]));
        for (int64_t i = begin; i < end; i++)
            sum += exp(tensor_number(in.values, order[i]) - largest);
        for (int64_t i = begin; i < end; i++)
            tensor_set_number(out, i, exp(tensor_number(in.values, order[i]) - largest) / sum);
    }
    return true;
}

#define SPARSE(name_, dtypes_, run_)                                                           \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = dtypes_, .run = run_                             \
    }

const struct kernel kernel_sparse_reduce_sum_ref =
    SPARSE("SparseReduceSum", DTYPES_NUMBER, sum_run);
const struct kernel kernel_sparse_reduce_max_ref =
    SPARSE("SparseReduceMax", DTYPES_REAL, max_run);
const struct kernel kernel_sparse_reduce_sum_sparse_ref =
    SPARSE("SparseReduceSumSparse", DTYPES_NUMBER, sum_sparse_run);
const struct kernel kernel_sparse_reduce_max_sparse_ref =
    SPARSE("SparseReduceMaxSparse", DTYPES_REAL, max_sparse_run);
const struct kernel kernel_sparse_softmax_ref =
    SPARSE("SparseSoftmax", BIT(F16) | BIT(F32) | BIT(F64), softmax_run);
