/* count.c - how often each number occurs: bins of a dense input, of a sparse one, of rows. */

#include "kernels/ref/sparse.h"

/* Numbers in rows, and what each counts for. */
struct counting {
    const struct tensor *values;
    const struct tensor *weights; /* NULL: each counts 1 */
    bool binary;                  /* whether it occurs at all */
    struct tensor *out;
};

static void count_one(const struct counting *c, int64_t value, int64_t bin)
{
    void *out = c->out->data;
    const void *weights = c->weights ? c->weights->data : NULL;
    int64_t bits = c->weights ? 0 : 1;
    if (c->binary) {
        tensor_set_number(c->out, bin, 1);
        return;
    }
    switch (c->out->dtype) {
    case F32:
        ((float *)out)[bin] += weights ? ((const float *)weights)[value] : 1.0f;
        return;
    case F64:
        ((double *)out)[bin] += weights ? ((const double *)weights)[value] : 1.0;
        return;
    default:
        if (weights)
            bits = (int64_t)kernel_load_bits_for(c->out->dtype)(weights, value);
        bits += (int64_t)kernel_load_bits_for(c->out->dtype)(out, bin);
        kernel_store_bits_for(c->out->dtype)(out, bin, (uint64_t)bits);
    }
}

/* Value `i` into its bin of `row`; too large ones are left out.  False for negative ones. */
static bool count_value(const struct counting *c, int64_t i, int64_t row, int64_t size)
{
    int64_t bin = tensor_integer(c->values, i);
    if (bin < 0)
        return false;
    if (bin < size)
        count_one(c, i, row * size + bin);
    return true;
}

static bool bins_rank(const struct kernel_call *call, int input, struct error *err)
{
    int rank = kernel_in(call, input)->shape.rank;
    return rank == 0 || fail(err, INVALID, "Shape must be rank 0 but is rank %d", rank);
}

static bool bins_size(const struct kernel_call *call, int input, int64_t *size,
                      struct error *err)
{
    if (!bins_rank(call, input, err))
        return false;
    *size = tensor_integer(kernel_in(call, input), 0);
    return *size >= 0 ||
           fail(err, INVALID, "size (%lld) must be non-negative", (long long)*size);
}

/* What weights must be like: the values, as many as these, or at least so many. */
enum fit { SAME_SHAPE, SAME_COUNT, ENOUGH };

static bool fail_weights(const struct kernel_call *call, const struct counting *c,
                         struct error *err)
{
    const char *op = call->node->op->name;
    char weights[SHAPE_TEXT_BYTES], values[SHAPE_TEXT_BYTES];
    shape_text(&c->weights->shape, weights, sizeof(weights));
    if (strstr(op, "Count"))
        return fail(err, INVALID,
                    "Weights and %s must have the same shape. Weight shape: %s; %s shape: %s",
                    *op == 'D' ? "data" : "values", weights, *op == 'D' ? "data" : "values",
                    shape_text(&c->values->shape, values, sizeof(values)));
    if (*op != 'D')
        return fail(err, INVALID, "Input indices and weights must have the same size.");
    return fail(err, INVALID,
                "`weights` must be the same shape as `arr` or a length-0 `Tensor`, in which "
                "case it acts as all weights equal to 1. Received %s",
                weights);
}

/* What the inputs at `values` and `weights` count; a weight for each or none. */
static bool counting_init(struct counting *c, const struct kernel_call *call, int values,
                          int weights, enum fit fit, struct error *err)
{
    *c = (struct counting){.values = kernel_in(call, values),
                           .weights = kernel_in(call, weights),
                           .binary = node_attr_bool(call->node, "binary_output", false)};
    int64_t have = c->weights->count, need = c->values->count;
    bool fits = fit == SAME_SHAPE   ? shape_equal(&c->weights->shape, &c->values->shape)
                : fit == SAME_COUNT ? have == need
                                    : have >= need;
    if (have == 0 || (fit != SAME_SHAPE && c->binary)) /* then nobody looks at them */
        c->weights = NULL;
    else if (!fits)
        return fail_weights(call, c, err);
    return true;
}

static bool counting_output(struct counting *c, struct kernel_call *call, int64_t rows,
                            int64_t size, bool matrix, struct error *err)
{
    struct shape shape = matrix ? SHAPE(rows, size) : SHAPE(size);
    c->out = kernel_output(call, 0, &shape, err);
    if (c->out)
        kernel_zero(c->out, 0, c->out->count);
    return c->out != NULL;
}

/* Bincount, DenseBincount: a matrix is counted row by row. */
static bool bincount_run(struct kernel_call *call, struct error *err)
{
    struct counting c;
    int64_t size = 0;
    bool dense = strcmp(call->node->op->name, "DenseBincount") == 0;
    const struct shape *shape = &kernel_in(call, 0)->shape;
    if (dense && shape->rank > 2)
        return fail(err, INVALID, "Shape must be at most rank 2 but is rank %d", shape->rank);
    if (dense ? !bins_rank(call, 1, err) || !counting_init(&c, call, 0, 2, SAME_SHAPE, err) ||
                    !bins_size(call, 1, &size, err)
              : !bins_size(call, 1, &size, err) ||
                    !counting_init(&c, call, 0, 2, SAME_COUNT, err))
        return false;
    bool matrix = dense && shape->rank == 2;
    if (!counting_output(&c, call, shape->dims[0], size, matrix, err))
        return false;
    for (int64_t i = 0; i < c.values->count; i++) {
        if (count_value(&c, i, matrix ? i / shape->dims[1] : 0, size))
            continue;
        if (matrix)
            return fail(err, INVALID,
                        "Input 'in' must be non-negative! Negative input value found: %lld",
                        (long long)tensor_integer(c.values, i));
        return fail(err, INVALID, "Input arr must be non-negative!");
    }
    return true;
}

/* The sparse tensor of inputs 0 to 2, in the words of what counts it into bins. */
static bool check_sparse_bins(const struct kernel_call *call, struct error *err)
{
    static const char *const names[] = {"indices", "values", "shape"};
    static const int ranks[] = {2, 1, 1};
    for (int i = 0; i < 3; i++)
        if (kernel_in(call, i)->shape.rank != ranks[i])
            return fail(err, INVALID, "Sparse %s must be rank %d but is rank %d", names[i],
                        ranks[i], kernel_in(call, i)->shape.rank);
    const struct tensor *index = kernel_in(call, 0), *dims = kernel_in(call, 2);
    int64_t rows = index->shape.dims[0], rank = index->shape.dims[1];
    if (rows != kernel_in(call, 1)->count)
        return fail(err, INVALID,
                    "Number of elements in indices (%lld) and values (%lld) do not match",
                    (long long)rows, (long long)kernel_in(call, 1)->count);
    if (rank != dims->count)
        return fail(err, INVALID, "Index rank (%lld) and shape rank (%lld) do not match",
                    (long long)rank, (long long)dims->count);
    for (int64_t i = 0; i < rows * rank; i++) {
        int64_t at = tensor_i64(index)[i];
        char text[512];
        if (at < 0 || at >= tensor_i64(dims)[i % rank])
            return fail(err, INVALID,
                        "Sparse index tuple indices[%lld, :] = %s is out of bounds",
                        (long long)(i / rank),
                        kernel_row_text(index, i / rank, (int)rank, ", ", text, sizeof(text)));
    }
    return true;
}

static bool sparse_bincount_run(struct kernel_call *call, struct error *err)
{
    struct counting c;
    struct sparse in;
    int64_t size = 0;
    if (!bins_size(call, 3, &size, err) || !check_sparse_bins(call, err) ||
        !kernel_sparse_in(call, 0, 1, 2, &in, err) ||
        !counting_init(&c, call, 1, 4, in.rank == 1 ? SAME_COUNT : ENOUGH, err))
        return false;
    if (in.rank < 1)
        return fail(err, INVALID, "a sparse tensor of at least 1 dimension is needed");
    if (!counting_output(&c, call, in.dims[0], size, in.rank > 1, err))
        return false;
    for (int64_t i = 0; i < in.count; i++) {
        if (in.rank > 1 && tensor_integer(c.values, i) < 0)
            continue; /* as TensorFlow: only a vector's values are looked at */
        if (!count_value(&c, i, in.rank > 1 ? *kernel_sparse_at(&in, i) : 0, size))
            return fail(err, INVALID, "Input arr must be non-negative!");
    }
    return true;
}

/* Splits of rows go from 0 to the number of values. */
static bool check_splits(const struct tensor *splits, int64_t least, int64_t values,
                         struct error *err)
{
    if (splits->count < least)
        return fail(err, INVALID, "Must provide at least 2 elements for the splits argument");
    int64_t first = tensor_i64(splits)[0], last = tensor_i64(splits)[splits->count - 1];
    if (first != 0)
        return fail(err, INVALID, "Splits must start with 0, not with %lld", (long long)first);
    return last == values || fail(err, INVALID,
                                  "Splits must end with the number of values, got %lld instead "
                                  "of %lld",
                                  (long long)last, (long long)values);
}

/* The row of value `i`, which is not before `row`: splits may fall on the way. */
static int64_t row_of(const struct tensor *splits, int64_t row, int64_t i)
{
    while (i >= tensor_i64(splits)[row + 1])
        row++;
    return row;
}

static bool ragged_bincount_run(struct kernel_call *call, struct error *err)
{
    struct counting c;
    const struct tensor *splits = kernel_in(call, 0);
    int64_t size = 0;
    if (!bins_size(call, 2, &size, err) ||
        !check_splits(splits, 1, kernel_in(call, 1)->count, err) ||
        !counting_init(&c, call, 1, 3, ENOUGH, err) ||
        !counting_output(&c, call, splits->count - 1, size, true, err))
        return false;
    for (int64_t i = 0, row = 0; i < c.values->count; i++) {
        row = row_of(splits, row, i);
        if (!count_value(&c, i, row, size))
            return fail(err, INVALID, "Input must be non-negative");
    }
    return true;
}

/* --- counts as a sparse tensor: a value for each number that occurs in a row --- */

/* What is counted: value number `value` in row `row`. */
struct entry {
    int64_t row, number, value;
};

static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return x->value < y->value ? -1 : x->value > y->value;
}

/* The entries, of which `count` are in bounds, as output; without rows the output is a vector.
 */
static bool give_counts(struct kernel_call *call, struct counting *c, struct entry *entries,
                        int64_t count, int64_t rows, bool has_rows, struct error *err)
{
    int64_t least = node_attr_int(call->node, "minlength", -1);
    int64_t most = node_attr_int(call->node, "maxlength", -1);
    int64_t kept = 0, groups = 0, size = 1;
    for (int64_t i = 0; i < count; i++) {
        if (entries[i].number < 0)
            return fail(err, INVALID, "Input values must all be non-negative");
        if (most >= 0 && entries[i].number >= most)
            continue;
        if (entries[i].number == INT64_MAX)
            return fail(err, INVALID, "Input values must be less than %lld",
                        (long long)INT64_MAX);
        size = entries[i].number >= size ? entries[i].number + 1 : size;
        entries[kept++] = entries[i];
    }
    if (kept > 0)
        qsort(entries, (size_t)kept, sizeof(*entries), compare_entries);
    for (int64_t i = 0; i < kept; i++)
        groups += i == 0 || entries[i].row != entries[i - 1].row ||
                  entries[i].number != entries[i - 1].number;
    struct sparse_out out;
    int rank = has_rows ? 2 : 1;
    if (!kernel_sparse_out(call, 0, groups, rank, &out, err))
        return false;
    c->out = out.values;
    kernel_zero(out.values, 0, groups);
    int64_t group = -1;
    for (int64_t i = 0; i < kept; i++) {
        if (i == 0 || entries[i].row != entries[i - 1].row ||
            entries[i].number != entries[i - 1].number) {
            group++;
            out.index[group * rank] = entries[i].row;
            out.index[group * rank + rank - 1] = entries[i].number;
        }
        count_one(c, entries[i].value, group);
    }
    out.dims[0] = rows;
    out.dims[rank - 1] = most >= 0 ? most : size > least ? size : least;
    return true;
}

static struct entry *entries_new(struct kernel_call *call, int64_t count, struct error *err)
{
    return kernel_scratch(call, (size_t)count * sizeof(struct entry) + 1, err);
}

static bool dense_counts_run(struct kernel_call *call, struct error *err)
{
    struct counting c;
    const struct shape *shape = &kernel_in(call, 0)->shape;
    char text[SHAPE_TEXT_BYTES];
    if (shape->rank < 1 || shape->rank > 2)
        return fail(err, INVALID, "Input must be a 1 or 2-dimensional tensor. Got: %s",
                    shape_text(shape, text, sizeof(text)));
    if (shape->rank == 2 && shape->dims[0] == 0)
        return fail(err, INVALID, "Invalid input: Shapes dimension cannot be 0.");
    if (!counting_init(&c, call, 0, 1, SAME_SHAPE, err))
        return false;
    struct entry *entries = entries_new(call, c.values->count, err);
    if (!entries)
        return false;
    for (int64_t i = 0; i < c.values->count; i++)
        entries[i] = (struct entry){shape->rank == 2 ? i / shape->dims[1] : 0,
                                    tensor_integer(c.values, i), i};
    return give_counts(call, &c, entries, c.values->count, shape->dims[0], shape->rank == 2,
                       err);
}

/* The shapes of a sparse tensor in inputs 0 to 2, in the words of what counts into one. */
static bool check_sparse_counts(const struct kernel_call *call, struct error *err)
{
    static const char *const kinds[] = {"indices must be a 2-dimensional tensor",
                                        "values must be a vector", "shape must be a vector"};
    char text[SHAPE_TEXT_BYTES];
    for (int i = 0; i < 3; i++) {
        const struct shape *shape = &kernel_in(call, i)->shape;
        if (shape->rank != (i == 0 ? 2 : 1))
            return fail(err, INVALID, "Input %s. Got: %s", kinds[i],
                        shape_text(shape, text, sizeof(text)));
    }
    const struct shape *index = &kernel_in(call, 0)->shape;
    int64_t values = kernel_in(call, 1)->count, dims = kernel_in(call, 2)->count;
    shape_text(index, text, sizeof(text));
    if (values != index->dims[0])
        return fail(err, INVALID,
                    "Number of values must match first dimension of indices.Got %lld values, "
                    "indices shape: %s",
                    (long long)values, text);
    if (dims != index->dims[1])
        return fail(err, INVALID,
                    "Number of dimensions must match second dimension of indices.Got %lld "
                    "dimensions, indices shape: %s",
                    (long long)dims, text);
    return dims > 0 || fail(err, INVALID, "The shape argument requires at least one element.");
}

static bool check_sparse_places(const struct kernel_call *call, struct error *err)
{
    const struct tensor *index = kernel_in(call, 0), *dims = kernel_in(call, 2);
    int64_t rank = dims->count;
    char sizes[512], shape[SHAPE_TEXT_BYTES];
    for (int64_t i = 0; i < index->count; i++) {
        int64_t at = tensor_i64(index)[i], size = tensor_i64(dims)[i % rank];
        if (at >= 0 && at < size)
            continue;
        kernel_row_text(dims, 0, (int)rank, " ", sizes, sizeof(sizes)); /* in brackets */
        return fail(err, INVALID,
                    "Invalid index value at %lld: dimension %lld has value %lld which is "
                    "not in [0, %lld) (as given by dense shape Tensor<type: int64 shape: "
                    "%s values: %.*s>",
                    (long long)(i / rank), (long long)(i % rank), (long long)at,
                    (long long)size, shape_text(&dims->shape, shape, sizeof(shape)),
                    (int)strlen(sizes) - 2, sizes + 1);
    }
    return true;
}

static bool sparse_counts_run(struct kernel_call *call, struct error *err)
{
    struct counting c;
    struct sparse in;
    if (!check_sparse_counts(call, err) || !check_sparse_places(call, err) ||
        !counting_init(&c, call, 1, 3, SAME_SHAPE, err) ||
        !kernel_sparse_in(call, 0, 1, 2, &in, err))
        return false;
    struct entry *entries = entries_new(call, in.count, err);
    if (!entries)
        return false;
    for (int64_t i = 0; i < in.count; i++)
        entries[i] = (struct entry){in.rank > 1 ? *kernel_sparse_at(&in, i) : 0,
                                    tensor_integer(c.values, i), i};
    return give_counts(call, &c, entries, in.count, in.dims[0], in.rank > 1, err);
}

static bool ragged_counts_run(struct kernel_call *call, struct error *err)
{
    struct counting c;
    const struct tensor *splits = kernel_in(call, 0);
    if (!counting_init(&c, call, 1, 2, SAME_SHAPE, err) ||
        !check_splits(splits, 2, kernel_in(call, 1)->count, err))
        return false;
    struct entry *entries = entries_new(call, c.values->count, err);
    if (!entries)
        return false;
    for (int64_t i = 0, row = 0; i < c.values->count; i++) {
        row = row_of(splits, row, i);
        entries[i] = (struct entry){row, tensor_integer(c.values, i), i};
    }
    return give_counts(call, &c, entries, c.values->count, splits->count - 1, true, err);
}

#define COUNTS(name_, attr_, run_)                                                             \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = BIT(I32) | BIT(I64) | BIT(F32) | BIT(F64),       \
        .type_attr = attr_, .run = run_                                                        \
    }

const struct kernel kernel_bincount_ref = COUNTS("Bincount", "T", bincount_run);
const struct kernel kernel_dense_bincount_ref = COUNTS("DenseBincount", "T", bincount_run);
const struct kernel kernel_sparse_bincount_ref =
    COUNTS("SparseBincount", "T", sparse_bincount_run);
const struct kernel kernel_ragged_bincount_ref =
    COUNTS("RaggedBincount", "T", ragged_bincount_run);
const struct kernel kernel_dense_count_sparse_output_ref =
    COUNTS("DenseCountSparseOutput", "output_type", dense_counts_run);
const struct kernel kernel_sparse_count_sparse_output_ref =
    COUNTS("SparseCountSparseOutput", "output_type", sparse_counts_run);
const struct kernel kernel_ragged_count_sparse_output_ref =
    COUNTS("RaggedCountSparseOutput", "output_type", ragged_counts_run);
