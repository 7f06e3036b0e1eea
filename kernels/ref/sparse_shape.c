/* sparse_shape.c - sparse tensors reshaped, put in order, cut and joined. */

#include "kernels/ref/sparse.h"

/* --- SparseReshape --- */

/* Fills in the dimension given as -1; both shapes must have as many elements. */
static bool resolve(const struct tensor *from, const struct tensor *to, struct shape *old,
                    struct shape *new, struct error *err)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    int unknown = -1;
    int64_t known = 1;
    *old = (struct shape){.rank = (int)from->count};
    *new = (struct shape){.rank = (int)to->count};
    for (int d = 0; d < old->rank; d++) {
        old->dims[d] = tensor_i64(from)[d];
        if (old->dims[d] < 0)
            return fail(err, INVALID, "Expected shape dimensions to be non-negative, got %lld",
                        (long long)old->dims[d]);
    }
    int64_t total = shape_count(old);
    if (total < 0)
        return fail(err, INVALID, "the input shape has too many elements");
    for (int d = 0; d < new->rank; d++) {
        new->dims[d] = tensor_i64(to)[d];
        if (new->dims[d] == -1) {
            if (unknown >= 0)
                return fail(err, INVALID,
                            "only one output dimension may be -1, not both %d and "
                            "%d",
                            unknown, d);
            unknown = d;
        } else if (new->dims[d] < 0) {
            return fail(err, INVALID, "size %d must be non-negative, not %lld", d,
                        (long long)new->dims[d]);
        } else if (__builtin_mul_overflow(known, new->dims[d], &known)) {
            return fail(err, INVALID, "the new shape has too many elements");
        }
    }
    if (unknown >= 0) {
        if (known == 0)
            return fail(err, INVALID,
                        "reshape cannot infer the missing input size for an empty "
                        "tensor unless all specified input sizes are non-zero");
        new->dims[unknown] = 1; /* as the message shows it */
        if (total % known)
            return fail(err, INVALID,
                        "Input to reshape is a SparseTensor with %lld dense values, but the "
                        "requested shape requires a multiple of %lld. input_shape=%s "
                        "output_shape=%s",
                        (long long)total, (long long)known, shape_text(old, a, sizeof(a)),
                        shape_text(new, b, sizeof(b)));
        new->dims[unknown] = total / known;
        known = total;
    }
    if (known != total)
        return fail(err, INVALID,
                    "Input to reshape is a tensor with %lld dense values, but the requested "
                    "shape has %lld. input_shape=%s output_shape=%s",
                    (long long)total, (long long)known, shape_text(old, a, sizeof(a)),
                    shape_text(new, b, sizeof(b)));
    return true;
}

/* Places are not checked: one outside the old shape moves as far as the steps take it. */
static void move(const struct shape *old, const int64_t *place, const struct shape *new,
                 int64_t *moved)
{
    uint64_t at = 0, step = 1;
    for (int d = old->rank - 1; d >= 0; d--) {
        at += (uint64_t)place[d] * step;
        step *= (uint64_t)old->dims[d];
    }
    int64_t left = (int64_t)at, below = 1;
    for (int d = 1; d < new->rank; d++)
        below *= new->dims[d];
    for (int d = 0; d < new->rank; d++) {
        moved[d] = left / below;
        left %= below;
        if (d + 1 < new->rank)
            below /= new->dims[d + 1];
    }
}

static bool reshape_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0), *from = kernel_in(call, 1);
    const struct tensor *to = kernel_in(call, 2);
    struct shape old, new;
    char text[SHAPE_TEXT_BYTES];
    if (in->shape.rank != 2)
        return fail(err, INVALID, "Input must be a matrix.");
    if (from->shape.rank != 1)
        return fail(err, INVALID, "Input shape must be a vector.");
    if (to->shape.rank != 1)
        return fail(err, INVALID, "Target shape should be a vector but received shape %s",
                    shape_text(&to->shape, text, sizeof(text)));
    if (from->count > LIMIT_TENSOR_RANK || to->count > LIMIT_TENSOR_RANK)
        return fail(err, INVALID, "more than %d dimensions", LIMIT_TENSOR_RANK);
    if (in->shape.dims[1] != from->count)
        return fail(err, INVALID, "Input tensor rank must match input shape length.");
    if (!resolve(from, to, &old, &new, err))
        return false;
    int64_t count = in->shape.dims[0];
    struct tensor *out = kernel_output(call, 0, &SHAPE(count, new.rank), err);
    struct tensor *shape = out ? kernel_output(call, 1, &SHAPE(new.rank), err) : NULL;
    if (!shape)
        return false;
    memcpy(shape->data, new.dims, (size_t) new.rank * sizeof(int64_t));
    if (count > 0 && shape_count(&new) == 0)
        return fail(err, INVALID, "%lld values in a tensor without elements", (long long)count);
    for (int64_t i = 0; i < count; i++)
        move(&old, tensor_i64(in) + i * old.rank, &new, (int64_t *)out->data + i * new.rank);
    return true;
}

/* --- SparseReorder --- */

static bool reorder_run(struct kernel_call *call, struct error *err)
{
    struct sparse in;
    if (!kernel_sparse_in(call, 0, 1, 2, &in, err))
        return false;
    struct tensor *index = kernel_output(call, 0, &SHAPE(in.count, in.rank), err);
    struct tensor *values = index ? kernel_output(call, 1, &SHAPE(in.count), err) : NULL;
    int64_t *order =
        values ? kernel_sparse_order(call, in.index, in.count, in.rank, err) : NULL;
    if (!order)
        return false;
    for (int64_t i = 0; i < in.count; i++) {
        memcpy((int64_t *)index->data + i * in.rank, kernel_sparse_at(&in, order[i]),
               (size_t)in.rank * sizeof(int64_t));
        kernel_copy(values, i, in.values, order[i], 1);
    }
    return true;
}

/* --- boxes cut out: SparseSlice, SparseSplit --- */

static bool is_inside(const int64_t *place, const int64_t *start, const int64_t *size, int rank)
{
    for (int d = 0; d < rank; d++)
        if (place[d] < start[d] || place[d] - start[d] >= size[d])
            return false;
    return true;
}

/* Outputs `first` and the two at `stride` and twice that behind it: what lies in the box. */
static bool cut(struct kernel_call *call, const struct sparse *in, const int64_t *start,
                const int64_t *size, int first, int stride, struct error *err)
{
    int64_t count = 0, to = 0;
    for (int64_t i = 0; i < in->count; i++)
        count += is_inside(kernel_sparse_at(in, i), start, size, in->rank);
    struct tensor *index = kernel_output(call, first, &SHAPE(count, in->rank), err);
    struct tensor *values =
        index ? kernel_output(call, first + stride, &SHAPE(count), err) : NULL;
    struct tensor *dims =
        values ? kernel_output(call, first + 2 * stride, &SHAPE(in->rank), err) : NULL;
    if (!dims)
        return false;
    memcpy(dims->data, size, (size_t)in->rank * sizeof(*size));
    for (int64_t i = 0; i < in->count; i++) {
        const int64_t *place = kernel_sparse_at(in, i);
        if (!is_inside(place, start, size, in->rank))
            continue;
        for (int d = 0; d < in->rank; d++)
            ((int64_t *)index->data)[to * in->rank + d] = place[d] - start[d];
        kernel_copy(values, to++, in->values, i, 1);
    }
    return true;
}

static bool slice_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *start = kernel_in(call, 3), *size = kernel_in(call, 4);
    struct sparse in;
    int64_t sizes[LIMIT_TENSOR_RANK];
    if (!kernel_sparse_check_fit(call, 0, 1, 2, err) ||
        !kernel_sparse_in(call, 0, 1, 2, &in, err))
        return false;
    for (int i = 0; i < 2; i++) {
        char text[SHAPE_TEXT_BYTES];
        if ((i ? size : start)->shape.rank != 1)
            return fail(err, INVALID, "Input %s should be a vector but received shape %s",
                        i ? "size" : "start",
                        shape_text(&(i ? size : start)->shape, text, sizeof(text)));
    }
    for (int i = 0; i < 2; i++)
        if ((i ? size : start)->count != in.rank)
            return fail(err, INVALID,
                        "Expected %s to be a vector of length %d but got length %lld",
                        i ? "size" : "start", in.rank, (long long)(i ? size : start)->count);
    for (int d = 0; d < in.rank; d++) {
        int64_t from = tensor_i64(start)[d], most = in.dims[d] - from;
        if (from < 0 || from > in.dims[d])
            most = from < 0 ? in.dims[d] : 0;
        sizes[d] = tensor_i64(size)[d] < most ? tensor_i64(size)[d] : most;
        if (sizes[d] < 0)
            return fail(err, INVALID, "Expected a non-negative size, got %lld",
                        (long long)tensor_i64(size)[d]);
    }
    return cut(call, &in, tensor_i64(start), sizes, 0, 1, err);
}

static bool check_split(const struct kernel_call *call, struct error *err)
{
    const struct shape *index = &kernel_in(call, 1)->shape,
                       *values = &kernel_in(call, 2)->shape;
    return index->rank != 2 || values->rank != 1 || index->dims[0] == values->dims[0] ||
           fail(err, INVALID,
                "Number of elements in indices (%lld) and values (%lld) do not match",
                (long long)index->dims[0], (long long)values->dims[0]);
}

static bool split_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *along = kernel_in(call, 0);
    int parts = (int)node_attr_int(call->node, "num_split", 1);
    int64_t start[LIMIT_TENSOR_RANK] = {0}, size[LIMIT_TENSOR_RANK];
    struct sparse in;
    if (along->shape.rank != 0)
        return fail(err, INVALID, "split_dim must be a scalar");
    if (!check_split(call, err) || !kernel_sparse_in(call, 1, 2, 3, &in, err))
        return false;
    int64_t axis = tensor_i64(along)[0];
    axis += axis < 0 ? in.rank : 0;
    if (axis < 0 || axis >= in.rank)
        return fail(err, INVALID, "Input axis should be in range [%d, %d), got %lld", -in.rank,
                    in.rank, (long long)tensor_i64(along)[0]);
    if (parts < 1 || parts > in.dims[axis])
        return fail(err, INVALID,
                    "Input num_split should be between 1 and the splitting "
                    "dimension size (%lld), got %d",
                    (long long)in.dims[axis], parts);
    if (!kernel_sparse_check_inside(call, 1, 3, err))
        return false;
    memcpy(size, in.dims, (size_t)in.rank * sizeof(*size));
    for (int p = 0; p < parts; p++) { /* the first ones are larger by what is left over */
        size[axis] = in.dims[axis] / parts + (p < in.dims[axis] % parts);
        if (!cut(call, &in, start, size, p, parts, err))
            return false;
        start[axis] += size[axis];
    }
    return true;
}

static bool check_slice_grad(const struct kernel_call *call, struct error *err)
{
    const struct shape *grad = &kernel_in(call, 0)->shape, *in = &kernel_in(call, 1)->shape;
    const struct shape *start = &kernel_in(call, 2)->shape, *out = &kernel_in(call, 3)->shape;
    char one[SHAPE_TEXT_BYTES], other[SHAPE_TEXT_BYTES];
    if (in->rank != 2 || out->rank != 2)
        return fail(
            err, INVALID,
            "Input and output indices should be matrices but received shapes: %s and %s",
            shape_text(in, one, sizeof(one)), shape_text(out, other, sizeof(other)));
    if (grad->rank != 1)
        return fail(err, INVALID,
                    "Input backprop_val_grad should be a vector but received shape: %s",
                    shape_text(grad, one, sizeof(one)));
    if (in->dims[1] != out->dims[1])
        return fail(err, INVALID,
                    "The input and output should have the same ndims: got: %lld and %lld",
                    (long long)in->dims[1], (long long)out->dims[1]);
    if (grad->dims[0] != out->dims[0])
        return fail(err, INVALID,
                    "# elements of backprop_val_grad and # rows of output_indices should match "
                    "(#nnz of sum): got %lld and %lld",
                    (long long)grad->dims[0], (long long)out->dims[0]);
    if (start->rank != 1)
        return fail(err, INVALID, "The input_start should be a vector but received shape %s",
                    shape_text(start, one, sizeof(one)));
    return start->dims[0] == in->dims[1] ||
           fail(err, INVALID,
                "Expected input_start to be a vector of length %lld but got length %lld",
                (long long)in->dims[1], (long long)start->dims[0]);
}

/* The gradients of a slice's values go back to where these came from. */
static bool slice_grad_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *grad = kernel_in(call, 0), *in = kernel_in(call, 1);
    const struct tensor *start = kernel_in(call, 2), *places = kernel_in(call, 3);
    if (!check_slice_grad(call, err))
        return false;
    int rank = (int)in->shape.dims[1];
    struct tensor *out = kernel_output(call, 0, &SHAPE(in->shape.dims[0]), err);
    if (!out)
        return false;
    kernel_zero(out, 0, out->count);
    int64_t next = 0;
    for (int64_t i = 0; i < out->count && next < grad->count; i++) {
        bool same = true;
        for (int d = 0; d < rank; d++)
            same = same && tensor_i64(in)[i * rank + d] ==
                               tensor_i64(places)[next * rank + d] + tensor_i64(start)[d];
        if (same)
            kernel_copy(out, i, grad, next++, 1);
    }
    return next == grad->count ||
           fail(err, INTERNAL,
                "Elements of backprop_val_grad aren't all propagated. Num "
                "elements:%lld, used: %lld",
                (long long)grad->count, (long long)next);
}

#define SPARSE(name_, run_)                                                                    \
    {                                                                                          \
        .op = name_, .device = CPU, .run = run_                                                \
    }

const struct kernel kernel_sparse_reshape_ref = SPARSE("SparseReshape", reshape_run);
const struct kernel kernel_sparse_reorder_ref = SPARSE("SparseReorder", reorder_run);
const struct kernel kernel_sparse_slice_ref = SPARSE("SparseSlice", slice_run);
const struct kernel kernel_sparse_split_ref = SPARSE("SparseSplit", split_run);
const struct kernel kernel_sparse_slice_grad_ref = SPARSE("SparseSliceGrad", slice_grad_run);
