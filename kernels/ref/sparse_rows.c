/* sparse_rows.c - empty rows of sparse tensors filled, and the gradient of that. */

#include "kernels/ref/sparse.h"

static bool check_parts(const struct kernel_call *call, struct error *err)
{
    static const char *const names[] = {"indices", "values", "dense_shape", "default_value"};
    static const char *const kinds[] = {"scalar", "vector", "matrix"};
    static const int ranks[] = {2, 1, 1, 0};
    char text[SHAPE_TEXT_BYTES];
    for (int i = 0; i < 4; i++)
        if (kernel_in(call, i)->shape.rank != ranks[i])
            return fail(err, INVALID, "%s must be a %s, saw: %s", names[i], kinds[ranks[i]],
                        shape_text(&kernel_in(call, i)->shape, text, sizeof(text)));
    const int64_t *rows = kernel_in(call, 0)->shape.dims;
    long long values = kernel_in(call, 1)->count, dims = kernel_in(call, 2)->count;
    if (rows[0] != values)
        return fail(err, INVALID,
                    "The length of `values` (%lld) must match the first dimension of `indices` "
                    "(%lld).",
                    values, (long long)rows[0]);
    return rows[1] == dims ||
           fail(err, INVALID,
                "The length of `dense_shape` (%lld) must match the second dimension of "
                "`indices` (%lld).",
                dims, (long long)rows[1]);
}

static bool check(const struct sparse *in, struct error *err)
{
    if (in->rank < 1)
        return fail(err, INVALID, "Dense shape cannot be empty.");
    if (in->dims[0] == 0 && in->count > 0)
        return fail(err, INVALID,
                    "Received SparseTensor with dense_shape[0] = 0 but indices for "
                    "%lld values",
                    (long long)in->count);
    for (int64_t i = 0; i < in->count; i++) {
        int64_t row = kernel_sparse_at(in, i)[0];
        if (row < 0 || row >= in->dims[0])
            return fail(err, INVALID, "indices(%lld, 0) is invalid: %lld >= %lld", (long long)i,
                        (long long)row, (long long)in->dims[0]);
    }
    return true;
}

/* Where each row begins in the output, whose values are gathered by row; a row without values
 * has one.  `starts` has an element more than there are rows. */
static void count_rows(const struct sparse *in, int64_t *starts, bool *empty)
{
    int64_t rows = in->dims[0];
    memset(starts, 0, (size_t)(rows + 1) * sizeof(*starts));
    for (int64_t i = 0; i < in->count; i++)
        starts[kernel_sparse_at(in, i)[0] + 1]++;
    for (int64_t r = 0; r < rows; r++) {
        empty[r] = starts[r + 1] == 0;
        starts[r + 1] = starts[r] + (empty[r] ? 1 : starts[r + 1]);
    }
}

static bool fill_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *filler = kernel_in(call, 3);
    struct sparse in;
    if (!check_parts(call, err) || !kernel_sparse_in(call, 0, 1, 2, &in, err) ||
        !check(&in, err))
        return false;
    int64_t rows = in.dims[0];
    struct tensor *empty = kernel_output(call, 2, &SHAPE(rows), err);
    struct tensor *map = empty ? kernel_output(call, 3, &SHAPE(in.count), err) : NULL;
    int64_t *starts =
        map ? kernel_scratch(call, (size_t)(rows + 1) * sizeof(*starts), err) : NULL;
    if (!starts)
        return false;
    count_rows(&in, starts, empty->data);
    int64_t count = starts[rows];
    struct tensor *index = kernel_output(call, 0, &SHAPE(count, in.rank), err);
    struct tensor *values = index ? kernel_output(call, 1, &SHAPE(count), err) : NULL;
    if (!values)
        return false;
    int64_t *out = index->data;
    for (int64_t r = 0; r < rows; r++)
        if (((const bool *)empty->data)[r]) {
            memset(out + starts[r] * in.rank, 0, (size_t)in.rank * sizeof(*out));
            out[starts[r] * in.rank] = r;
            kernel_copy(values, starts[r], filler, 0, 1);
        }
    for (int64_t i = 0; i < in.count; i++) {
        const int64_t *place = kernel_sparse_at(&in, i);
        int64_t to = starts[place[0]]++;
        memcpy(out + to * in.rank, place, (size_t)in.rank * sizeof(*out));
        kernel_copy(values, to, in.values, i, 1);
        ((int64_t *)map->data)[i] = to;
    }
    return true;
}

/* What was not taken over from the input came from the filler. */
static bool fill_grad_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *map = kernel_in(call, 0), *grad = kernel_in(call, 1);
    char text[SHAPE_TEXT_BYTES];
    if (map->shape.rank != 1)
        return fail(err, INVALID, "reverse_index_map must be a vector, saw: %s",
                    shape_text(&map->shape, text, sizeof(text)));
    if (grad->shape.rank != 1)
        return fail(err, INVALID, "grad_values must be a vector, saw: %s",
                    shape_text(&grad->shape, text, sizeof(text)));
    struct tensor *values = kernel_output(call, 0, &SHAPE(map->count), err);
    struct tensor *filler = values ? kernel_output(call, 1, &SHAPE_SCALAR, err) : NULL;
    bool *taken = filler ? kernel_scratch(call, (size_t)grad->count + 1, err) : NULL;
    if (!taken)
        return false;
    memset(taken, 0, (size_t)grad->count);
    for (int64_t i = 0; i < map->count; i++) {
        int64_t from = tensor_i64(map)[i];
        if (from < 0 || from >= grad->count)
            return fail(err, INVALID,
                        "Elements in reverse index must be in [0, %lld) but got "
                        "%lld",
                        (long long)grad->count, (long long)from);
        kernel_copy(values, i, grad, from, 1);
        taken[from] = true;
    }
    kernel_load_bits *load = kernel_load_bits_for(grad->dtype);
    uint64_t bits = 0;
    double complex sum = 0;
    for (int64_t i = 0; i < grad->count; i++) {
        if (!taken[i] && load)
            bits += load(grad->data, i);
        else if (!taken[i])
            sum += kernel_complex_at(grad, i);
    }
    if (load)
        kernel_store_bits_for(grad->dtype)(filler->data, 0, bits);
    else
        kernel_set_complex(filler, 0, sum);
    return true;
}

const struct kernel kernel_sparse_fill_empty_rows_ref = {
    .op = "SparseFillEmptyRows", .device = CPU, .run = fill_run};
const struct kernel kernel_sparse_fill_empty_rows_grad_ref = {.op = "SparseFillEmptyRowsGrad",
                                                              .device = CPU,
                                                              .dtypes =
                                                                  DTYPES_NUMBER | BIT(BOOL),
                                                              .run = fill_grad_run};
