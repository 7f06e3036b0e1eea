/* rows.c - the loops around elementwise kernels: broadcasting, and rows of contiguous elements.
 */

#include "kernels/ref/rows.h"
#include "kernels/ref/numbers.h"

#include "base/alloc.h"
#include "runtime/op.h"

/* The rows of one operation for the types of one node. */
struct prepared {
    const struct kernel_rows *rows;
    kernel_row_function *function;
    float number;
};

bool kernel_rows_prepare(const struct kernel_rows *rows, const struct node *node, void **state,
                         struct error *err)
{
    while (rows->op && strcmp(rows->op, node->op->name) != 0)
        rows++;
    assert(rows->op);
    enum dtype dtype = dtype_base(node->input_types[0]);
    if (!rows->by_type[dtype])
        return fail(err, UNIMPLEMENTED, "node '%s': no kernel of %s for %s", node->name,
                    node->op->name, dtype_name(dtype));
    struct prepared *prepared = alloc_bytes(sizeof(*prepared));
    prepared->rows = rows;
    prepared->function = rows->by_type[dtype];
    if (rows->number)
        prepared->number = node_attr_float(node, rows->number, 0);
    *state = prepared;
    return true;
}

bool kernel_rows_unary(struct kernel_call *call, struct error *err)
{
    const struct prepared *prepared = call->state;
    const struct tensor *x = kernel_in(call, 0);
    struct tensor *out = kernel_output_reuse(call, 0, 0, &x->shape, err);
    if (!out)
        return false;
    const struct kernel_row row = {.x = x->data,
                                   .x_step = 1,
                                   .out = out->data,
                                   .count = out->count,
                                   .number = prepared->number};
    prepared->function(&row);
    return true;
}

/* Strides of `shape` along the dimensions of `out`, in elements; 0 where it is repeated. */
static void strides_in(const struct shape *shape, const struct shape *out, int64_t *strides)
{
    int64_t stride = 1;
    for (int d = out->rank - 1; d >= 0; d--) {
        int own = d - (out->rank - shape->rank);
        int64_t size = own >= 0 ? shape->dims[own] : 1;
        strides[d] = size == 1 ? 0 : stride;
        stride *= size;
    }
}

/* Dimensions that both operands walk through in one go become one: fewer, longer rows. */
static int merge_dims(int rank, int64_t *dims, int64_t *x, int64_t *y)
{
    int last = 0;
    for (int d = 1; d < rank; d++) {
        bool joined = x[last] == x[d] * dims[d] && y[last] == y[d] * dims[d];
        if (dims[last] == 1 || joined) {
            dims[last] = dims[last] == 1 ? dims[d] : dims[last] * dims[d];
        } else {
            last++;
            dims[last] = dims[d];
        }
        x[last] = x[d];
        y[last] = y[d];
    }
    return rank ? last + 1 : 0;
}

void kernel_rows_broadcast(kernel_row_function *function, const struct tensor *x,
                           const struct tensor *y, struct tensor *out, float number)
{
    int64_t dims[LIMIT_TENSOR_RANK], x_strides[LIMIT_TENSOR_RANK], y_strides[LIMIT_TENSOR_RANK];
    int64_t index[LIMIT_TENSOR_RANK] = {0};
    if (out->count == 0)
        return;
    strides_in(&x->shape, &out->shape, x_strides);
    strides_in(&y->shape, &out->shape, y_strides);
    memcpy(dims, out->shape.dims, sizeof(dims));
    int rank = merge_dims(out->shape.rank, dims, x_strides, y_strides);
    size_t in_size = x->dtype == STRING ? sizeof(struct tensor_string) : dtype_size(x->dtype);
    size_t out_size = dtype_size(out->dtype);
    struct kernel_row row = {.count = rank ? dims[rank - 1] : 1,
                             .x_step = rank ? x_strides[rank - 1] : 0,
                             .y_step = rank ? y_strides[rank - 1] : 0,
                             .number = number};
    int64_t x_at = 0, y_at = 0;
    for (int64_t done = 0; done < out->count; done += row.count) {
        row.x = (const char *)x->data + (size_t)x_at * in_size;
        row.y = (const char *)y->data + (size_t)y_at * in_size;
        row.out = (char *)out->data + (size_t)done * out_size;
        function(&row);
        for (int d = rank - 2; d >= 0; d--) {
            x_at += x_strides[d];
            y_at += y_strides[d];
            if (++index[d] < dims[d])
                break;
            x_at -= x_strides[d] * dims[d];
            y_at -= y_strides[d] * dims[d];
            index[d] = 0;
        }
    }
}

/* Takes over an operand's memory where it has the size of the result. */
static struct tensor *output_for(struct kernel_call *call, const struct shape *shape,
                                 struct error *err)
{
    for (int i = 0; i < 2; i++)
        if (shape_equal(&kernel_in(call, i)->shape, shape))
            return kernel_output_reuse(call, 0, i, shape, err);
    return kernel_output(call, 0, shape, err);
}

/* Element by element, whatever the shapes. */
static bool run_flat(struct kernel_call *call, const struct prepared *prepared,
                     struct error *err)
{
    const struct tensor *x = kernel_in(call, 0), *y = kernel_in(call, 1);
    if (x->count != y->count)
        return fail(err, INVALID,
                    "The two arguments to a cwise op must have same number of elements, got "
                    "%lld and %lld",
                    (long long)x->count, (long long)y->count);
    struct tensor *out = kernel_output_reuse(call, 0, 0, &x->shape, err);
    if (!out)
        return false;
    const struct kernel_row row = {.x = x->data,
                                   .y = y->data,
                                   .x_step = 1,
                                   .y_step = 1,
                                   .out = out->data,
                                   .count = out->count,
                                   .number = prepared->number};
    prepared->function(&row);
    return true;
}

static bool same_shape(const struct kernel_call *call, struct error *err)
{
    const struct shape *x = &kernel_in(call, 0)->shape, *y = &kernel_in(call, 1)->shape;
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    if (strcmp(call->node->op->name, "ApproximateEqual") != 0)
        return kernel_same_shape(call, 0, 1, err);
    return shape_equal(x, y) ||
           fail(err, INVALID, "x and y must be of the same shape. x shape: %s. y shape: %s",
                shape_text(x, a, sizeof(a)), shape_text(y, b, sizeof(b)));
}

bool kernel_rows_binary(struct kernel_call *call, struct error *err)
{
    const struct prepared *prepared = call->state;
    const struct tensor *x = kernel_in(call, 0), *y = kernel_in(call, 1);
    struct shape shape;
    if (prepared->rows->same_shape && !same_shape(call, err))
        return false;
    if (prepared->rows->same_count)
        return run_flat(call, prepared, err);
    if (!shape_broadcast(&x->shape, &y->shape, &shape, err))
        return false;
    if (prepared->rows->check && shape_count(&shape) > 0 && !prepared->rows->check(y, err))
        return false;
    struct tensor *out = output_for(call, &shape, err);
    if (!out)
        return false;
    kernel_rows_broadcast(prepared->function, x, y, out, prepared->number);
    return true;
}
