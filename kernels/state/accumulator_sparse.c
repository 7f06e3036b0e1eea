/*
 * accumulator_sparse.c - gradients that are some rows of a tensor.
 *
 * Rows are kept in the order in which a merge of sorted lists gives them: indices that are not
 * sorted, or come twice in one gradient, stay apart, as they do in TensorFlow.
 */

#include "kernels/state/accumulator.h"

#include "base/alloc.h"

struct gradient {
    const struct tensor *indices;
    const struct tensor *values;
    const struct tensor *shape;
    int64_t rows;
    int64_t row_size;
};

/* --- checks --- */

static bool check_known_shape(const struct accumulator *accumulator,
                              const struct gradient *gradient, struct error *err)
{
    const struct shape *shape = &accumulator->spec.shape;
    const struct tensor *given = gradient->shape;
    if (shape->rank > given->count)
        return fail(err, INVALID, "Shape mismatch: expected shape rank at least %d, got %lld",
                    shape->rank, (long long)given->count);
    for (int d = 0; d < shape->rank; d++)
        if (shape->dims[d] != -1 && shape->dims[d] != tensor_i64(given)[d])
            return fail(err, INVALID,
                        "Shape mismatch: expected shape dim %d to be %lld, got %lld", d,
                        (long long)shape->dims[d], (long long)tensor_i64(given)[d]);
    return true;
}

/* Rows as the sum has them, or as they were declared. */
static bool check_rows(const struct accumulator *accumulator, const struct shape *values,
                       struct error *err)
{
    bool exact = accumulator->count > 0;
    const struct shape *wanted = exact ? &accumulator->sum.shape : &accumulator->spec.shape;
    if (exact ? wanted->rank != values->rank : wanted->rank > values->rank)
        return fail(err, INVALID, "Shape mismatch: expected values rank %s%d, got %d",
                    exact ? "" : "at least ", wanted->rank, values->rank);
    for (int d = 1; d < wanted->rank; d++)
        if (wanted->dims[d] != -1 && wanted->dims[d] != values->dims[d])
            return fail(err, INVALID,
                        "Shape mismatch: expected values dim %d to be %lld, got %lld", d,
                        (long long)wanted->dims[d], (long long)values->dims[d]);
    return true;
}

static bool check_indices(const struct accumulator *accumulator,
                          const struct gradient *gradient, struct error *err)
{
    const struct shape *shape = &accumulator->spec.shape;
    for (int64_t i = 0; i < gradient->rows; i++) {
        int64_t index = tensor_i64(gradient->indices)[i];
        if (shape->rank > 0 && shape->dims[0] != -1 && index >= shape->dims[0])
            return fail(err, INVALID,
                        "Shape mismatch: index of slice %lld exceeded limits of shape; index "
                        "is %lld exceeded %lld",
                        (long long)i, (long long)index, (long long)shape->dims[0]);
    }
    return true;
}

static bool read_gradient(const struct accumulator *accumulator, struct kernel_call *call,
                          struct gradient *gradient, struct error *err)
{
    const struct tensor *indices = kernel_in(call, 2), *values = kernel_in(call, 3);
    char text[SHAPE_TEXT_BYTES];
    if (indices->shape.rank != 1)
        return fail(err, INVALID, "Input indices should be vector but received shape: %s",
                    shape_text(&indices->shape, text, sizeof(text)));
    if (values->shape.rank < 1 || values->shape.dims[0] != indices->count)
        return fail(err, INVALID, "%lld indices do not fit values of shape %s",
                    (long long)indices->count, shape_text(&values->shape, text, sizeof(text)));
    *gradient = (struct gradient){
        .indices = indices,
        .values = values,
        .shape = kernel_in(call, 4),
        .rows = indices->count,
        .row_size = kernel_span(&values->shape, 1, values->shape.rank),
    };
    if (node_attr_bool(call->node, "has_known_shape", false) &&
        !check_known_shape(accumulator, gradient, err))
        return false;
    return check_indices(accumulator, gradient, err) &&
           check_rows(accumulator, &values->shape, err);
}

/* --- sums --- */

static bool begin_sum(struct accumulator *accumulator, const struct gradient *gradient,
                      struct error *err)
{
    if (!tensor_clone(&accumulator->sum, gradient->values, err))
        return false;
    size_t rows = (size_t)gradient->rows;
    accumulator->rows = alloc_array(rows, sizeof(int64_t));
    accumulator->rows_count = alloc_array(rows, sizeof(int64_t));
    for (int64_t i = 0; i < gradient->rows; i++) {
        accumulator->rows[i] = tensor_i64(gradient->indices)[i];
        accumulator->rows_count[i] = 1;
    }
    return true;
}

/* How many rows a merge gives; where `sum` is there, it is made too. */
static int64_t merge(struct accumulator *accumulator, const struct gradient *gradient,
                     struct tensor *sum, int64_t *rows, int64_t *rows_count)
{
    const int64_t *given = tensor_i64(gradient->indices);
    int64_t old_rows = accumulator->sum.shape.dims[0], size = gradient->row_size;
    int64_t a = 0, b = 0, count = 0;
    for (; a < old_rows || b < gradient->rows; count++) {
        bool from_a = b == gradient->rows || (a < old_rows && accumulator->rows[a] <= given[b]);
        bool from_b = a == old_rows || (b < gradient->rows && given[b] <= accumulator->rows[a]);
        if (sum) {
            const struct tensor *from = from_a ? &accumulator->sum : gradient->values;
            kernel_copy(sum, count * size, from, (from_a ? a : b) * size, size);
            if (from_a && from_b)
                kernel_accumulator_add(sum, count * size, gradient->values, b * size, size);
            rows[count] = from_a ? accumulator->rows[a] : given[b];
            rows_count[count] = (from_a ? accumulator->rows_count[a] : 0) + from_b;
        }
        a += from_a;
        b += from_b;
    }
    return count;
}

static bool add_to_sum(struct accumulator *accumulator, const struct gradient *gradient,
                       struct error *err)
{
    struct shape shape = accumulator->sum.shape;
    shape.dims[0] = merge(accumulator, gradient, NULL, NULL, NULL);
    struct tensor sum;
    if (!tensor_init(&sum, accumulator->spec.dtype, &shape, err))
        return false;
    int64_t *rows = alloc_array((size_t)shape.dims[0], sizeof(*rows));
    int64_t *rows_count = alloc_array((size_t)shape.dims[0], sizeof(*rows_count));
    merge(accumulator, gradient, &sum, rows, rows_count);
    tensor_release(&accumulator->sum);
    free(accumulator->rows);
    free(accumulator->rows_count);
    accumulator->sum = sum;
    accumulator->rows = rows;
    accumulator->rows_count = rows_count;
    return true;
}

bool kernel_accumulator_add_sparse(struct accumulator *accumulator, struct kernel_call *call,
                                   struct error *err)
{
    struct gradient gradient;
    if (!read_gradient(accumulator, call, &gradient, err))
        return false;
    return accumulator->count ? add_to_sum(accumulator, &gradient, err)
                              : begin_sum(accumulator, &gradient, err);
}

/* Each row is divided by the number of gradients that had it. */
bool kernel_accumulator_take_sparse(struct accumulator *accumulator, struct tensor *out,
                                    struct error *err)
{
    struct tensor *sum = &accumulator->sum;
    int64_t rows = sum->shape.dims[0], row_size = kernel_span(&sum->shape, 1, sum->shape.rank);
    const struct shape *declared = &accumulator->spec.shape;
    if (!tensor_init_copy(&out[0], I64, &SHAPE(rows), accumulator->rows, err) ||
        !tensor_init_copy(&out[2], I64, &SHAPE(sum->shape.rank), sum->shape.dims, err))
        return false;
    ((int64_t *)out[2].data)[0] = declared->rank > 0 ? declared->dims[0] : -1;
    for (int64_t i = 0; accumulator->spec.mean && i < rows; i++)
        kernel_accumulator_divide(sum, i * row_size, row_size, accumulator->rows_count[i]);
    out[1] = *sum;
    *sum = (struct tensor){0};
    free(accumulator->rows);
    free(accumulator->rows_count);
    accumulator->rows = accumulator->rows_count = NULL;
    return true;
}
